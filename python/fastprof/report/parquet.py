"""Report columns -> a Parquet file, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from fastprof.columns import Column, Ints, Lists, Values
from fastprof.errors import MissingDependencyError
from fastprof.report.columns import ReportColumn

ROWS_A_GROUP = 1 << 18

# Columns of tuples of names; said here so that the schema does not depend on what a trace holds.
_LIST_KEYS = frozenset({"layer", "trace"})


def write(columns: Mapping[str, Column], chosen: Sequence[ReportColumn], file: BinaryIO) -> None:
    """Write the chosen columns: int64, strings (dictionary encoded) and lists; null for na.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    arrow, parquet = _import_pyarrow()
    made = {
        column.key: _maker(arrow, columns[column.key], column.key in _LIST_KEYS)
        for column in chosen
    }
    n_rows = len(columns[chosen[0].key])
    groups = [slice(first, first + ROWS_A_GROUP) for first in range(0, n_rows, ROWS_A_GROUP)]

    def table(group: slice) -> Any:
        return arrow.table({key: make(group) for key, make in made.items()})

    with parquet.ParquetWriter(file, table(slice(0, 0)).schema) as writer:
        for group in groups:
            writer.write_table(table(group), row_group_size=ROWS_A_GROUP)


def _import_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingDependencyError(
            "Parquet needs pyarrow: pip install 'fastprof[arrow]'"
        ) from None
    return pyarrow, parquet


def _maker(arrow: Any, column: Column, is_list: bool) -> Any:
    """Make a function from a slice of rows to an Arrow array; repeated values are turned once."""
    if isinstance(column, Lists):
        return lambda rows: _lists(arrow, column, rows)
    if isinstance(column, Ints):
        return lambda rows: _ints(arrow, column, rows)
    return _values(arrow, column, is_list)


def _ints(arrow: Any, column: Ints, rows: slice) -> Any:
    values = np.ascontiguousarray(column.values[rows], dtype=np.int64)
    if values.ndim == 1:
        return arrow.array(values, mask=values == column.none)
    offsets = np.arange(0, 3 * len(values) + 1, 3, dtype=np.int32)
    none = arrow.array(values[:, 0] == column.none)
    return arrow.ListArray.from_arrays(offsets, values.reshape(-1), mask=none)


def _lists(arrow: Any, column: Lists, rows: slice) -> Any:
    first, last, _ = rows.indices(len(column))
    offsets = column.offsets[first : last + 1]
    values = column.values[offsets[0] : offsets[-1]]
    return arrow.LargeListArray.from_arrays(offsets - offsets[0], values)


def _values(arrow: Any, column: Values, is_list: bool) -> Any:
    """Strings refer to a dictionary; lists of strings, which cannot, are copied for each row."""
    type_ = arrow.list_(arrow.string()) if is_list else arrow.string()
    distinct = arrow.array([_valid(value) for value in column.values], type=type_)

    def make(rows: slice) -> Any:
        ids = arrow.array(column.ids[rows], mask=column.ids[rows] < 0)
        return distinct.take(ids) if is_list else arrow.DictionaryArray.from_arrays(ids, distinct)

    return make


def _valid(value: Any) -> Any:
    """Texts that Arrow takes: what is no UTF-8 becomes a question mark."""
    if isinstance(value, tuple):
        return [_valid(part) for part in value]
    return str(value).encode("utf-8", "replace").decode()
