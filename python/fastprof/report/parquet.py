"""Columns -> Arrow tables and Parquet files, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from fastprof._system.optional import import_optional
from fastprof.model.columns import Column, Ints, Lists, Values
from fastprof.report.columns import COLUMNS, TRACE_COLUMNS, ReportColumn

if TYPE_CHECKING:
    import pyarrow

ROWS_A_GROUP = 1 << 18

# Columns of tuples of names: the schema is not to depend on what a trace holds.
_LIST_KEYS = frozenset(column.key for column in COLUMNS + TRACE_COLUMNS if column.is_list)


def to_arrow(columns: Mapping[str, Column]) -> pyarrow.Table:
    """Make a table of columns of one length: int64, strings and lists, null for what is not known.

    Strings are dictionary encoded. There is a chunk for each 262 144 rows.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    arrow, _ = _import_pyarrow()
    return arrow.concat_tables(_tables(arrow, columns))


def write_columns(columns: Mapping[str, Column], file: BinaryIO) -> None:
    """Write columns of one length as Parquet; memory holds one group of rows.

    Raises
    ------
    MissingDependencyError
        pyarrow is not installed.
    """
    arrow, parquet = _import_pyarrow()
    tables = _tables(arrow, columns)
    first = next(tables)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def write(columns: Mapping[str, Column], chosen: Sequence[ReportColumn], file: BinaryIO) -> None:
    """Write the chosen columns of a report."""
    write_columns({column.key: columns[column.key] for column in chosen}, file)


def _import_pyarrow() -> tuple[Any, Any]:
    return import_optional("pyarrow", "Parquet needs"), import_optional(
        "pyarrow.parquet", "Parquet needs"
    )


def _tables(arrow: Any, columns: Mapping[str, Column]) -> Iterator[Any]:
    """One table for each group of rows, and at least one."""
    made = {key: _maker(arrow, key, column) for key, column in columns.items()}
    n_rows = len(next(iter(columns.values())))
    for first in range(0, max(n_rows, 1), ROWS_A_GROUP):
        group = slice(first, first + ROWS_A_GROUP)
        yield arrow.table({key: make(group) for key, make in made.items()})


def _maker(arrow: Any, key: str, column: Column) -> Callable[[slice], Any]:
    """Make a function from a slice of rows to an Arrow array; repeated values are turned once."""
    if isinstance(column, Lists):
        return lambda rows: _lists(arrow, column, rows)
    if isinstance(column, Ints):
        return lambda rows: _ints(arrow, column, rows)
    return _values(arrow, column, key in _LIST_KEYS)


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
    """Strings refer to a dictionary; lists of strings, which cannot, are copied for each row."""
    type_ = arrow.list_(arrow.string()) if is_list else arrow.string()
    distinct = arrow.array([_valid(value) for value in column.values], type=type_)

    def array(rows: slice) -> Any:
        ids = arrow.array(column.ids[rows], mask=column.ids[rows] < 0)
        return distinct.take(ids) if is_list else arrow.DictionaryArray.from_arrays(ids, distinct)

    return array


def _valid(value: Any) -> Any:
    """Texts that Arrow takes: what is no UTF-8 becomes a question mark."""
    if isinstance(value, tuple):
        return [_valid(part) for part in value]
    return str(value).encode("utf-8", "replace").decode()
