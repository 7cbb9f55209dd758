"""Write report columns as a header line and rows of separated cells, also by single spaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof._core._rows import RowWriter
from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.model.heading import printable
from fastprof.writers import write_threads
from fastprof.writers.cells import Notation, add_cell, encode
from fastprof.writers.columns import cell_text


def table_notation(text: Callable[[Any], str], **further: Any) -> Notation:
    """The notation of tables: `na` for unknown, `-` for an empty list, commas between numbers."""
    return Notation(
        none="na",
        empty="-",
        triple=(b"", b",", b""),
        numbers=(b"", b",", b""),
        text=text,
        **further,
    )


def write_table(
    columns: Mapping[str, Column],
    chosen: Sequence[ColumnInfo],
    notations: Sequence[Notation],
    header: Sequence[str],
    file: BinaryIO,
    *,
    separator: str,
    edge: str = "",
) -> None:
    """Write the header and all rows.

    Parameters
    ----------
    columns : mapping of key to Column
        Columns of equal length.
    chosen : sequence of ColumnInfo
        Columns to write, left to right.
    notations, header : sequence
        Notation and header text of each chosen column.
    file : binary file
    separator, edge : str
        Text between two cells, and text at the start and end of a row.
    """
    write_threads.write_all(file, encode(f"{edge}{separator.join(header)}{edge}\n"))
    writer = RowWriter(len(columns[chosen[0].key]), encode(f"{edge}\n"))
    before = edge
    for column, notation in zip(chosen, notations, strict=True):
        add_cell(writer, before, columns[column.key], notation)
        before = separator
    write_threads.write_on_threads(writer, file)


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
