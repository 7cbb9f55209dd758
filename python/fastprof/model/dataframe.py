"""Columns as a pandas DataFrame, and as Arrow tables, a group of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.optional import import_optional
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.model.columns import Column, Ints, Lists, RepeatedInts, Values

if TYPE_CHECKING:
    import pandas
    import pyarrow


_PIECE: Final = 1 << 26  # bytes


class FrameBuilder:
    """Converts columns and joins them.

    Parameters
    ----------
    shared : the Series of columns, by name, which share memory with the columns and with all frames
        of them. pandas copies a column before a frame changes it, as long as the Series lives.

    Raises
    ------
    MissingDependencyError
        pandas is not installed.
    """

    def __init__(self, shared: dict[str, pandas.Series[Any]]) -> None:
        self._pandas = import_optional("pandas", "DataFrames need")
        self._memory = _Memory()
        self._shared = shared
        # Before pandas 3, writing to a frame would change the column.
        self._copies_on_write = int(self._pandas.__version__.split(".")[0]) >= 3

    def convert(self, key: str, column: Column) -> dict[str, Any]:
        """The pandas arrays of a column, by name.

        Integers become NumPy integers, nullable ones (Int64) where some are unknown; x, y and z of
        a triple are three arrays. Texts become categories, lists objects (tuples).
        """
        if isinstance(column, Lists) or COLUMN_OF_KEY[key].kind == "texts":
            return {key: column.array()}
        if isinstance(column, Values):
            from_codes = self._pandas.Categorical.from_codes
            return {key: from_codes(self._codes(column), categories=column.values)}
        if isinstance(column, RepeatedInts):
            if column.distinct.ndim == 1:
                return {key: self._repeated(column.distinct, column)}
            parts = zip("xyz", column.distinct.T, strict=True)
            return {f"{key}_{axis}": self._repeated(values, column) for axis, values in parts}
        if column.values.ndim == 1:
            is_whole = column.values.flags.writeable  # not one value for all rows
            if is_whole and self._copies_on_write:
                return {key: self._together(key, column)}
            return {key: self._integers(column.values, column.none)}
        parts = zip("xyz", column.values.T, strict=True)
        return {f"{key}_{axis}": self._integers(values, column.none) for axis, values in parts}

    def _codes(self, column: Values) -> npt.NDArray[Any]:
        """The ids of a column, in the type that pandas uses for as many categories."""
        types = (np.int8, np.int16, np.int32)
        dtype = next(type_ for type_ in types if len(column.values) < np.iinfo(type_).max)
        codes = self._memory.zeros(len(column), dtype)
        shared = column.shared()
        return take(shared.id_of_row.astype(dtype), shared.rows, out=codes)

    def _repeated(self, distinct: npt.NDArray[Any], column: RepeatedInts) -> Any:
        """A new array of the values of rows."""
        numbers, unknown = _known(distinct, column.none)
        room = self._memory.zeros(len(column), distinct.dtype)
        if numbers.any():
            take(numbers, column.ids, out=room)
        if not unknown.any():
            return room
        mask = take(unknown, column.ids, out=self._memory.zeros(len(column), np.bool_))
        return self._pandas.arrays.IntegerArray(room, mask) if mask.any() else room

    def _integers(self, values: npt.NDArray[Any], none: int) -> Any:
        """A new array of the values."""
        unknown = values == none
        room = self._memory.zeros(len(values), values.dtype)
        if not unknown.all():
            np.copyto(room, values)
            np.copyto(room, 0, where=unknown)
        return self._pandas.arrays.IntegerArray(room, unknown) if unknown.any() else room

    def _together(self, key: str, column: Ints) -> pandas.Series[Any]:
        """The Series that shares memory with a column."""
        if key not in self._shared:
            values, unknown = column.values, column.values == column.none
            data = self._pandas.arrays.IntegerArray(values, unknown) if unknown.any() else values
            self._shared[key] = self._pandas.Series(data, copy=False)
        return self._shared[key]

    def join(self, converted: Iterable[dict[str, Any]]) -> pandas.DataFrame:
        """The DataFrame of converted columns."""
        data = {name: values for arrays in converted for name, values in arrays.items()}
        # New arrays belong to the frame: pandas needs no copies.
        frame: pandas.DataFrame = self._pandas.DataFrame(data, copy=False)
        return frame


def _known(values: npt.NDArray[Any], none: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The values with 0 where unknown, and which are unknown."""
    unknown = values == none
    return np.where(unknown, values.dtype.type(0), values), unknown


class _Memory:
    """Memory for arrays, in large pieces. Used from two threads.

    The memory is not NumPy's, which requests huge pages: with them, a frame of 10^6 kernels took
    0.30 s instead of 0.24 s where the host of a virtual machine has to find them.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._free = np.empty(0, np.uint8)

    def zeros(self, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A new array [n] of zeros; takes no memory until something is written to it."""
        import mmap

        size = n * np.dtype(dtype).itemsize
        with self._lock:
            if size > len(self._free):
                piece = mmap.mmap(-1, max(size, _PIECE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                self._free = np.frombuffer(piece, np.uint8)
            room = self._free[:size]
            self._free = self._free[-(-size // 64) * 64 :]  # aligned
        return room.view(dtype)


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
