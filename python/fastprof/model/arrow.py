"""Columns as Arrow tables, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fastprof._system.optional import import_optional
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.model.columns import Column, Ints, Lists, Values

if TYPE_CHECKING:
    import pyarrow

ROWS_A_GROUP = 1 << 18


def to_arrow(columns: Mapping[str, Column]) -> pyarrow.Table:
    """Convert columns of one length: int64, strings and lists; unknown values are null.

    Strings are dictionary-encoded. Each chunk has up to 262 144 rows.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    return import_optional("pyarrow", "Arrow tables need").concat_tables(arrow_tables(columns))


def arrow_tables(columns: Mapping[str, Column]) -> Iterator[pyarrow.Table]:
    """Convert columns of one length: one table for each group of rows, at least one.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    arrow = import_optional("pyarrow", "Parquet needs")
    makers = {key: _maker(arrow, key, column) for key, column in columns.items()}
    n_rows = len(next(iter(columns.values())))
    for first in range(0, max(n_rows, 1), ROWS_A_GROUP):
        group = slice(first, first + ROWS_A_GROUP)
        yield arrow.table({key: make(group) for key, make in makers.items()})


def _maker(arrow: Any, key: str, column: Column) -> Callable[[slice], Any]:
    """A function from a slice of rows to an Arrow array; distinct values are converted once."""
    if isinstance(column, Lists):
        return lambda rows: _lists(arrow, column, rows)
    if isinstance(column, Ints):
        return lambda rows: _ints(arrow, column, rows)
    # The schema must not depend on the rows: an empty column of lists keeps its type.
    known = COLUMN_OF_KEY.get(key)
    return _values(arrow, column, known is not None and known.kind == "texts")


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


def _values(arrow: Any, column: Values, is_list: bool) -> Callable[[slice], Any]:
    """Strings are dictionary-encoded; Arrow cannot encode lists, so each row copies its own."""
    type_ = arrow.list_(arrow.string()) if is_list else arrow.string()
    distinct = arrow.array([_valid(value) for value in column.values], type=type_)

    def array(rows: slice) -> Any:
        ids = arrow.array(column.ids[rows], mask=column.ids[rows] < 0)
        return distinct.take(ids) if is_list else arrow.DictionaryArray.from_arrays(ids, distinct)

    return array


def _valid(value: Any) -> Any:
    """Text that Arrow accepts: invalid UTF-8 becomes a question mark."""
    if isinstance(value, tuple):
        return [_valid(part) for part in value]
    return str(value).encode("utf-8", "replace").decode()
