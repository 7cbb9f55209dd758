"""Write report columns aligned within a given total width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof.errors import FastprofError
from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.model.heading import printable
from fastprof.writers.cells import Notation
from fastprof.writers.columns import short_cell_text
from fastprof.writers.table import table_notation, write_table


class WidthError(FastprofError, ValueError):
    """The columns do not fit the width; the message gives the minimum width."""


def share_width(chosen: Sequence[ColumnInfo], width: int) -> list[int]:
    """Compute the width of each column.

    Each column gets its minimum; kernel and params share the rest. Without these two, the other
    columns of long text share it. As in PyProf, separators do not count.

    Raises
    ------
    WidthError
        The minimum widths add up to more than `width`.
    """
    minimum = sum(column.width for column in chosen)
    if width < minimum:
        names = ",".join(column.key for column in chosen)
        raise WidthError(f"width {width} is too small: {names} need at least {minimum}")
    elastic = [column for column in chosen if column.key in ("kernel", "params")]
    elastic = elastic or [column for column in chosen if column.is_long]
    extra = (width - minimum) // max(len(elastic), 1)
    return [column.width + (extra if column in elastic else 0) for column in chosen]


def _on_one_line(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: printable(text(value))


def _notation(column: ColumnInfo, width: int) -> Notation:
    return table_notation(
        _on_one_line(short_cell_text(column)),
        width=width,
        is_right=column.kind == "number",
        keeps_end=column.keeps_end,
    )


def write(
    columns: Mapping[str, Column], chosen: Sequence[ColumnInfo], file: BinaryIO, width: int
) -> None:
    """Write a header line and the chosen columns, aligned.

    Text is left-aligned and cut to the column, paths and layer names on the left. Numbers are
    right-aligned and never cut.
    """
    widths = share_width(chosen, width)
    write_table(
        columns,
        chosen,
        [_notation(column, width) for column, width in zip(chosen, widths, strict=True)],
        [column.header[:width].ljust(width) for column, width in zip(chosen, widths, strict=True)],
        file,
        separator=" ",
    )
