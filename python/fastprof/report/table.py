"""Report columns -> a header line and rows of cells with something between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof._core._rows import RowWriter
from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.report import write_threads
from fastprof.report.cells import Notation, add_cell, encode


def table_notation(text: Callable[[Any], str], **further: Any) -> Notation:
    """How every table writes what is not text: `na`, `-` for nothing, commas inside a cell."""
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
    between: str,
    around: str = "",
) -> None:
    """Write the header and all rows.

    Parameters
    ----------
    columns : mapping of key to Column
        All of one length.
    chosen : sequence of ColumnInfo
        What to write, from left to right.
    notations, header : sequence
        How to write each chosen column, and what stands above it.
    file : binary file
    between, around : str
        Written between two cells, and before and after a row.
    """
    write_threads.write_all(file, encode(f"{around}{between.join(header)}{around}\n"))
    writer = RowWriter(len(columns[chosen[0].key]), encode(f"{around}\n"))
    before = around
    for column, notation in zip(chosen, notations, strict=True):
        add_cell(writer, before, columns[column.key], notation)
        before = between
    write_threads.write(writer, file)
