"""Columns as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.optional import import_optional
from fastprof.model.arrays import Int32
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.model.columns import Column, Lists, RepeatedInts, SharedValues, Values

if TYPE_CHECKING:
    import pandas


class Frames:
    """Converts columns and joins them.

    Raises
    ------
    MissingDependencyError
        pandas is not installed.
    """

    def __init__(self) -> None:
        self._pandas = import_optional("pandas", "DataFrames need")

    def convert(self, key: str, column: Column) -> dict[str, Any]:
        """The pandas arrays of a column, by name.

        Integers become NumPy integers, nullable ones (Int64) where some are unknown; x, y and z of
        a triple are three arrays. Texts become categories, lists objects (tuples).
        """
        if isinstance(column, Lists) or COLUMN_OF_KEY[key].kind == "texts":
            return {key: column.array()}
        if isinstance(column, Values):
            from_codes = self._pandas.Categorical.from_codes
            return {key: from_codes(_codes(column), categories=column.values)}
        values: npt.NDArray[Any]
        ids: Int32 | None
        if isinstance(column, RepeatedInts):
            values, ids = column.distinct, column.ids
        else:
            values, ids = column.values, None
        if values.ndim == 1:
            return {key: self._integers(values, ids, column.none)}
        return {
            f"{key}_{axis}": self._integers(numbers, ids, column.none)
            for axis, numbers in zip("xyz", values.T, strict=True)
        }

    def _integers(self, values: npt.NDArray[Any], ids: Int32 | None, none: int) -> Any:
        """A new array of the values, or of those at `ids`."""
        unknown = values == none
        if not unknown.any():
            return values.copy() if ids is None else take(values, ids)
        numbers = values.copy()
        np.copyto(numbers, 0, where=unknown)
        if ids is not None:
            numbers, unknown = take(numbers, ids), take(unknown, ids)
        return self._pandas.arrays.IntegerArray(numbers, unknown) if unknown.any() else numbers

    def join(self, converted: Iterable[dict[str, Any]]) -> pandas.DataFrame:
        """The DataFrame of converted columns."""
        data = {name: values for arrays in converted for name, values in arrays.items()}
        # The arrays belong to the frame: pandas needs no copies.
        frame: pandas.DataFrame = self._pandas.DataFrame(data, copy=False)
        return frame


def _codes(column: Values) -> npt.NDArray[Any]:
    """The ids of a column, in one byte each if its rows are shared and few values are distinct."""
    if not isinstance(column, SharedValues) or len(column.values) > np.iinfo(np.int8).max:
        return column.ids
    return take(column.id_of_row.astype(np.int8), column.rows)
