"""Columns as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.optional import import_optional
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.model.columns import Column, Lists, RepeatedInts, Values

if TYPE_CHECKING:
    import pandas

_PIECE: Final = 1 << 26  # bytes


class Frames:
    """Converts columns and joins them.

    Raises
    ------
    MissingDependencyError
        pandas is not installed.
    """

    def __init__(self) -> None:
        self._pandas = import_optional("pandas", "DataFrames need")
        self._memory = _Memory()

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
            return {key: self._integers(column.values, column.none)}
        parts = zip("xyz", column.values.T, strict=True)
        return {f"{key}_{axis}": self._integers(values, column.none) for axis, values in parts}

    def _codes(self, column: Values) -> npt.NDArray[Any]:
        """The ids of a column, in the type that pandas uses for as many categories."""
        types = (np.int8, np.int16, np.int32)
        dtype = next(each for each in types if len(column.values) < np.iinfo(each).max)
        codes = self._memory.empty(len(column), dtype)
        shared = column.shared()
        return take(shared.id_of_row.astype(dtype), shared.rows, out=codes)

    def _repeated(self, distinct: npt.NDArray[Any], column: RepeatedInts) -> Any:
        """A new array of the values of rows."""
        numbers, unknown = _known(distinct, column.none)
        room = self._memory.empty(len(column), distinct.dtype)
        take(numbers, column.ids, out=room)
        if not unknown.any():
            return room
        mask = take(unknown, column.ids, out=self._memory.empty(len(column), np.bool_))
        return self._pandas.arrays.IntegerArray(room, mask) if mask.any() else room

    def _integers(self, values: npt.NDArray[Any], none: int) -> Any:
        """A new array of the values."""
        room = self._memory.empty(len(values), values.dtype)
        np.copyto(room, values)
        unknown = values == none
        if not unknown.any():
            return room
        np.copyto(room, 0, where=unknown)
        return self._pandas.arrays.IntegerArray(room, unknown)

    def join(self, converted: Iterable[dict[str, Any]]) -> pandas.DataFrame:
        """The DataFrame of converted columns."""
        data = {name: values for arrays in converted for name, values in arrays.items()}
        # The arrays belong to the frame: pandas needs no copies.
        frame: pandas.DataFrame = self._pandas.DataFrame(data, copy=False)
        return frame


def _known(values: npt.NDArray[Any], none: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The values with 0 where unknown, and which are unknown."""
    unknown = values == none
    return np.where(unknown, values.dtype.type(0), values), unknown


class _Memory:
    """Memory for arrays, in pieces: NumPy requests huge pages for 4 MiB and more only.

    A page fault per 4 KiB would take longer than the conversion. Used from two threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._free = np.empty(0, np.uint8)

    def empty(self, n: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A new array [n]; its values are undefined."""
        size = n * np.dtype(dtype).itemsize
        with self._lock:
            if size > len(self._free):
                self._free = np.empty(max(size, _PIECE), np.uint8)
            room = self._free[:size]
            self._free = self._free[-(-size // 64) * 64 :]  # aligned
        return room.view(dtype)
