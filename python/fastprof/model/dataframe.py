"""Columns as a pandas DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastprof._system.optional import needed
from fastprof.model.column_table import COLUMN_OF_KEY
from fastprof.model.columns import Column, Ints, Lists

if TYPE_CHECKING:
    import pandas


def to_pandas(columns: Mapping[str, Column]) -> pandas.DataFrame:
    """Convert columns of one length; unknown values are missing.

    Integers become NumPy integers, or nullable ones (Int64) where some are unknown; x, y and z of a
    triple become three columns. Texts become categories, lists objects: tuples.

    Raises
    ------
    MissingDependencyError
        pandas is not installed.
    """
    pd = needed("pandas", "DataFrames need")
    data: dict[str, Any] = {}
    for key, column in columns.items():
        if not isinstance(column, Ints):
            data[key] = _objects_or_categories(pd, key, column)
        elif column.values.ndim == 1:
            data[key] = _integers(pd, column.values, column.none)
        else:
            for axis, values in zip("xyz", column.values.T, strict=True):
                data[f"{key}_{axis}"] = _integers(pd, values, column.none)
    # Every array is the frame's own: pandas needs no second copy.
    frame: pandas.DataFrame = pd.DataFrame(data, copy=False)
    return frame


def _objects_or_categories(pd: Any, key: str, column: Any) -> Any:
    if isinstance(column, Lists) or COLUMN_OF_KEY[key].kind == "texts":
        return column.array()
    return pd.Categorical.from_codes(column.ids, categories=column.values)


def _integers(pd: Any, values: npt.NDArray[Any], none: int) -> Any:
    unknown = values == none
    if not unknown.any():
        return values.copy()
    return pd.arrays.IntegerArray(np.where(unknown, 0, values), unknown)
