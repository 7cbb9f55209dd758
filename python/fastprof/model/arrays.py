"""Names for types of NumPy arrays, and their rows by value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
UInt8 = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


def rows_by(values: npt.NDArray[Any]) -> Iterator[tuple[int, Int64]]:
    """Each distinct integer, ascending, and the rows that have it; linear in the rows."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    changes = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    for rows in np.split(order, changes) if len(order) else ():
        yield int(values[rows[0]]), rows
