"""Report columns -> aligned columns within a given width."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof.errors import FastprofError
from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.report.cells import Notation
from fastprof.report.columns import short_cell_text
from fastprof.report.table import table_notation, write_table


class WidthError(FastprofError, ValueError):
    """The columns do not fit the width; the text says the least one."""


def share_width(chosen: Sequence[ColumnInfo], width: int) -> list[int]:
    """Give each column its width: the least one, and what is left to kernel and params.

    Without either, what is left goes to the other columns of long texts. As in PyProf the spaces
    between columns are not counted.

    Raises
    ------
    WidthError
        The least widths add up to more.
    """
    least = sum(column.width for column in chosen)
    if width < least:
        names = ",".join(column.key for column in chosen)
        raise WidthError(f"width {width} is too small: {names} need at least {least}")
    elastic = [column for column in chosen if column.key in ("kernel", "params")]
    elastic = elastic or [column for column in chosen if column.is_long]
    extra = (width - least) // max(len(elastic), 1)
    return [column.width + (extra if column in elastic else 0) for column in chosen]


def _on_one_line(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: re.sub(r"\s", " ", text(value))


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
    """Write the chosen columns, aligned, with a header line.

    Text is cut to its column, paths and names of layers at their beginning, and stands on the left;
    numbers stand on the right and are never cut.
    """
    widths = share_width(chosen, width)
    write_table(
        columns,
        chosen,
        [_notation(column, each) for column, each in zip(chosen, widths, strict=True)],
        [column.header[:each].ljust(each) for column, each in zip(chosen, widths, strict=True)],
        file,
        between=" ",
    )
