"""Sums over subtrees."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _path
from fastprof.model.arrays import Int32

__all__ = ["in_subtrees"]

_LARGEST: Final = np.iinfo(np.int64).max
_SAFE: Final = 2.0**62


def in_subtrees(parent: Int32, own: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[n, ...] The sums of numbers [n, ...] of each node and all nodes inside it.

    Integers are not negative; their sums are exact, at most 2**63 - 1.

    parent : int32 [n], -1 for roots; parents precede their children
    """
    if own.dtype.kind == "f":
        return _floats(parent, own)
    columns = own.reshape(len(own), -1).astype(np.int64).T
    sums = [_path.sums(parent, np.ascontiguousarray(each)) for each in columns]
    found: npt.NDArray[Any] = np.stack(sums, 1).reshape(own.shape)
    if own.astype(np.float64).sum() < _SAFE:
        return found
    return np.where(_floats(parent, own.astype(np.float64)) >= _LARGEST, _LARGEST, found)


def _floats(parent: Int32, own: npt.NDArray[Any]) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = own.copy()
    level = _path.levels(parent)
    inwards = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[inwards], np.arange(int(level.max(initial=0)) + 2))
    for depth in range(len(starts) - 2, 0, -1):
        rows = inwards[starts[depth] : starts[depth + 1]]
        np.add.at(found, parent[rows], found[rows])
    return found
