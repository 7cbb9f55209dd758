"""Columns -> files: the reports of `fastprof prof` and the lines of `fastprof parse`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from fastprof.model.column_table import COLUMNS, TRACE_COLUMNS
from fastprof.report.columns import DEFAULT_KEYS, select

if TYPE_CHECKING:
    from fastprof.model.columns import Column, SeqMarkers

__all__ = [
    "COLUMNS",
    "DEFAULT_KEYS",
    "TRACE_COLUMNS",
    "select",
    "write_report",
    "write_rows",
]

Style = Literal["csv", "spaces", "width", "json", "parquet"]

# The module of each format. It is imported when it is used, so that `--help`, which needs the
# table of columns, does not wait for numpy.
_STYLES = {
    "csv": "fastprof.report.csv",
    "spaces": "fastprof.report.spaces",
    "width": "fastprof.report.width",
    "json": "fastprof.report.json",
    "parquet": "fastprof.report.parquet",
}
_FORMS = {"dict": "fastprof.report.dict_lines", "jsonl": "fastprof.report.jsonl"}

# What is a list in every format, also where a profile knows one number at most.
_LIST_KEYS = {"seqId", "altSeqId", *(each.key for each in COLUMNS if each.kind == "numbers")}


def _with_lists(columns: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The columns of these keys, and no other: a profile makes a column when it is asked for."""
    as_lists = import_module("fastprof.model.columns").as_lists
    return {key: as_lists(columns[key]) if key in _LIST_KEYS else columns[key] for key in keys}


def write_report(
    columns: Mapping[str, Column],
    keys: str | Iterable[str],
    style: Style,
    file: BinaryIO,
    width: int | None = None,
) -> None:
    """Write some columns of a profile.

    Parameters
    ----------
    columns : mapping of key to Column
        All of one length; at least the keys asked for. Values of tuples of str where the table
        says so (layer, trace, ranges, ...), seq and altseq Lists (or Ints: one number or none),
        grid and block Ints [n, 3], the rest Ints or Values of str.
    keys : str or iterable of str
        Which columns, from left to right: `"idx,dir,op"`.
    style : str
        "csv", "spaces", "width" (aligned, needs `width`), "json" (JSON lines) or "parquet".
    file : binary file
        It is flushed and stays open.
    width : int, optional
        Width of the aligned columns together.

    Raises
    ------
    UnknownColumnError, WidthError, MissingDependencyError
        Before anything is written.
    OSError
        What the file raises: a closed pipe, a full disk.
    """
    chosen = select(keys)
    wanted = _with_lists(columns, (column.key for column in chosen))
    further = (width or 0,) if style == "width" else ()
    import_module(_STYLES[style]).write(wanted, chosen, file, *further)
    file.flush()


def write_rows(
    columns: Mapping[str, Column | SeqMarkers], form: Literal["dict", "jsonl"], file: BinaryIO
) -> None:
    """Write one line for each kernel, keyed as PyProf's dict lines.

    Parameters
    ----------
    columns : mapping of key to Column or SeqMarkers
        Keys as in `dictlines.KEYS`, all of one length; those that are missing are left out.
    form : str
        "dict" (Python literals) or "jsonl".
    file : binary file
        It is flushed and stays open.
    """
    import_module(_FORMS[form]).write(_with_lists(columns, columns), file)
    file.flush()
