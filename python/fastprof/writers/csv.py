"""Write report columns as CSV: every field quoted, quotes doubled, lines end in \\n."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.writers.columns import cell_text
from fastprof.writers.table import table_notation, write_table


def _quoted(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: text(value).replace('"', '""')


def write(columns: Mapping[str, Column], chosen: Sequence[ColumnInfo], file: BinaryIO) -> None:
    """Write the chosen columns as CSV with a header line."""
    write_table(
        columns,
        chosen,
        [table_notation(_quoted(cell_text(column))) for column in chosen],
        [column.header for column in chosen],
        file,
        separator='","',
        edge='"',
    )
