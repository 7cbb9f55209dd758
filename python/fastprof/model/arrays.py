"""Names for types of NumPy arrays, and their rows by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
UInt8 = npt.NDArray[np.uint8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_AT_A_TIME: Final = 4096  # parts


def joined(parts: Iterable[Sequence[npt.NDArray[Any]]]) -> list[npt.NDArray[Any]]:
    """The columns of at least one part, concatenated some parts at a time: a tiny array takes ten
    times the memory of its number.

    parts : arrays of the same columns
    """
    some, blocks = [], []
    for each in parts:
        some.append(each)
        if len(some) == _AT_A_TIME:
            blocks.append([*map(np.concatenate, zip(*some, strict=True))])
            some = []
    return [*map(np.concatenate, zip(*blocks, *some, strict=True))]


def rows_by(values: npt.NDArray[Any]) -> Iterator[tuple[int, Int64]]:
    """Each distinct integer, ascending, and the rows that have it; linear in the rows."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    changes = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    for rows in np.split(order, changes) if len(order) else ():
        yield int(values[rows[0]]), rows
