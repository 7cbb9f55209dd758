"""Report columns -> CSV: every field quoted, the quote in a field doubled, lines end in \\n."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO

from fastprof.columns import Column
from fastprof.report.cells import Notation
from fastprof.report.columns import ReportColumn
from fastprof.report.table import write_table


def _quoted(text: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: text(value).replace('"', '""')


def _notation(column: ReportColumn) -> Notation:
    return Notation(
        none="na",
        empty="-",
        triple=(b"", b",", b""),
        numbers=(b"", b",", b""),
        text=_quoted(column.text),
    )


def write(columns: Mapping[str, Column], chosen: Sequence[ReportColumn], file: BinaryIO) -> None:
    """Write the chosen columns as CSV with a header line."""
    write_table(
        columns,
        chosen,
        [_notation(column) for column in chosen],
        [column.header for column in chosen],
        file,
        between='","',
        around='"',
    )
