"""Report columns -> lines of cells separated by one space, for tools that split at blanks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.report.columns import cell_text
from fastprof.report.table import table_notation, write_table


def _without_blanks(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: re.sub(r"\s", "_", text(value)) or "-"


def write(columns: Mapping[str, Column], chosen: Sequence[ColumnInfo], file: BinaryIO) -> None:
    """Write the chosen columns and a header line.

    A blank inside a cell becomes `_` and an empty cell `-`, so that every line has as many words.
    """
    write_table(
        columns,
        chosen,
        [table_notation(_without_blanks(cell_text(column))) for column in chosen],
        [column.header for column in chosen],
        file,
        between=" ",
    )
