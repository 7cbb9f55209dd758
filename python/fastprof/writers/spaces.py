"""Write report columns separated by single spaces, for tools that split at whitespace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.model.names import printable
from fastprof.writers.columns import cell_text
from fastprof.writers.table import table_notation, write_table


def _without_blanks(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: printable(text(value)).replace(" ", "_") or "-"


def write(columns: Mapping[str, Column], chosen: Sequence[ColumnInfo], file: BinaryIO) -> None:
    """Write a header line and the chosen columns.

    Whitespace and control characters in a cell become `_` and an empty cell `-`: each line has one
    word per column.
    """
    write_table(
        columns,
        chosen,
        [table_notation(_without_blanks(cell_text(column))) for column in chosen],
        [column.header for column in chosen],
        file,
        separator=" ",
    )
