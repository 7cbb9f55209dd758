"""Integers of 64 bits from larger ones, which only damaged files have.

Sums are of numbers that are not negative; those of integers are exact, at most 2**63 - 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _path
from fastprof.model.arrays import Int32, Int64

Numbers = npt.NDArray[Any]

_LARGEST: Final = 2**63 - 1
_SAFE: Final = 2.0**62


def limited(values: Iterable[int]) -> Int64:
    """int64 [n]; integers beyond 64 bits are the largest or the smallest one."""
    generator = (max(-_LARGEST, min(value, _LARGEST)) for value in values)
    return np.fromiter(generator, np.int64)


def in_subtrees(parent: Int32, own: Numbers) -> Numbers:
    """[n, ...] The sums of numbers [n, ...] of each node and all nodes inside it.

    parent : int32 [n], -1 for roots; parents precede their children
    """
    if own.dtype.kind == "f":
        return _floats_in_subtrees(parent, own)
    result = np.empty(own.shape, np.int64)
    columns = own.reshape(len(own), -1).T, result.reshape(len(own), -1).T
    for column, sums in zip(*columns, strict=True):
        sums[:] = _path.sums(parent, np.ascontiguousarray(column, np.int64))
    if _is_small(own):
        return result
    return _limited(result, _floats_in_subtrees(parent, own.astype(np.float64)))


def scattered(values: Numbers, index: Any, shape: tuple[int, ...]) -> Numbers:
    """An array of a shape, 0 but for the values added at the indices of its first axes."""
    result = np.zeros(shape, values.dtype)
    np.add.at(result, index, values)
    if values.dtype.kind == "f" or _is_small(values):
        return result
    return _limited(result, scattered(values.astype(np.float64), index, shape))


def across(values: Numbers) -> Numbers:
    """[n] The sums of the rows of numbers [n, m]."""
    result: Numbers = values.sum(1)
    if values.dtype.kind == "f" or _is_small(values):
        return result
    return _limited(result, values.astype(np.float64).sum(1))


def _is_small(values: Numbers) -> bool:
    return bool(values.sum(dtype=np.float64) < _SAFE)


def _limited(exact: Numbers, rounded: Numbers) -> Numbers:
    return np.where(rounded >= _LARGEST, _LARGEST, exact)


def _floats_in_subtrees(parent: Int32, own: Numbers) -> Numbers:
    floats: Numbers = own.copy()
    level = _path.levels(parent)
    inwards = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[inwards], np.arange(int(level.max(initial=0)) + 2))
    for depth in range(len(starts) - 2, 0, -1):
        rows = inwards[starts[depth] : starts[depth + 1]]
        np.add.at(floats, parent[rows], floats[rows])
    return floats
