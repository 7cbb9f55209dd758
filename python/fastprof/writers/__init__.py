"""Write columns to files: the reports of `fastprof prof` and the lines of `fastprof parse`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from fastprof.model.column_table import COLUMNS, TRACE_COLUMNS
from fastprof.writers.columns import DEFAULT_KEYS, select

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

# The module of each format, imported on first use: `--help` needs the column table, not numpy.
_STYLES = {
    "csv": "fastprof.writers.csv",
    "spaces": "fastprof.writers.table",
    "width": "fastprof.writers.width",
    "json": "fastprof.writers.json",
    "parquet": "fastprof.writers.parquet",
}
_FORMS = {"dict": "fastprof.writers.dict_lines", "jsonl": "fastprof.writers.jsonl"}

# Columns written as lists in every format, even where a profile holds at most one number per row.
_LIST_KEYS = {"seqId", "altSeqId", *(column.key for column in COLUMNS if column.kind == "numbers")}


def _with_lists(columns: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """The columns of these keys only, because a profile computes a column when it is read."""
    as_lists = import_module("fastprof.model.columns").as_lists
    return {key: as_lists(columns[key]) if key in _LIST_KEYS else columns[key] for key in keys}


def write_report(
    columns: Mapping[str, Column],
    keys: str | Iterable[str],
    style: Style,
    file: BinaryIO,
    width: int | None = None,
) -> None:
    """Write selected columns of a profile as a report.

    Parameters
    ----------
    columns : mapping of key to Column
        Columns of equal length, at least those in `keys`. List columns (`ColumnInfo.is_list`) are
        Values of tuples of str; seq and altseq are Lists, or Ints with at most one number per row;
        grid and block are Ints [n, 3]; all others are Ints or Values of str.
    keys : str or iterable of str
        Columns to write, left to right: `"idx,dir,op"`.
    style : str
        "csv", "spaces", "width" (aligned, requires `width`), "json" (JSON lines) or "parquet".
    file : binary file
        Flushed, not closed.
    width : int, optional
        Total width of the aligned columns, in characters.

    Raises
    ------
    UnknownColumnError, WidthError, MissingDependencyError
        Raised before anything is written.
    OSError
        Writing failed: a closed pipe, a full disk.
    """
    chosen = select(keys)
    wanted = _with_lists(columns, (column.key for column in chosen))
    options = (width or 0,) if style == "width" else ()
    import_module(_STYLES[style]).write(wanted, chosen, file, *options)
    file.flush()


def write_rows(
    columns: Mapping[str, Column | SeqMarkers], form: Literal["dict", "jsonl"], file: BinaryIO
) -> None:
    """Write one line per kernel, with the keys of PyProf's dict lines.

    Parameters
    ----------
    columns : mapping of key to Column or SeqMarkers
        Columns of equal length. Keys of `dict_lines.KEYS` that are missing are omitted.
    form : str
        "dict" (Python literals) or "jsonl".
    file : binary file
        Flushed, not closed.

    Raises
    ------
    OSError
        Writing failed: a closed pipe, a full disk.
    """
    import_module(_FORMS[form]).write(_with_lists(columns, columns), file)
    file.flush()
