"""Groups of kernels by any keys, and sums over them, linear in the kernels; columns by form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import GroupStats, distinct_ids, sum_where
from fastprof._core._pools import pairs
from fastprof._core._take import distinct, ranks
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Values
from fastprof.model.metadata import About

Floats64 = npt.NDArray[np.float64]

# Combinations of keys that are counted in a table rather than hashed.
_DIRECT: Final = 1 << 22


@dataclass(frozen=True)
class Grouping:
    """The group of each kernel.

    Parameters
    ----------
    ids : int32 [kernels], 0 .. n - 1, -1 for kernels that are not selected
    n : number of groups
    """

    ids: Int32
    n: int

    @computed_once
    def first(self) -> npt.NDArray[np.intp]:
        """[groups] The first kernel of each group."""
        first = np.empty(self.n + 1, np.intp)  # the last for kernels in no group
        first[self.ids[::-1]] = np.arange(len(self.ids) - 1, -1, -1)
        return first[: self.n]

    @computed_once
    def counts(self) -> Int64:
        """[groups] The number of kernels."""
        return np.bincount(self.ids + 1, minlength=self.n + 1)[1:].astype(np.int64)

    def stats(self, values: npt.NDArray[Any], none: int = -1) -> GroupStats:
        """Count, sum, minimum, maximum and spread of the known values of each group."""
        numbers = np.ascontiguousarray(values, np.int64)
        return GroupStats(self.ids, numbers, self.n, none)

    def sums(self, values: npt.NDArray[Any], rows: Bools | None = None) -> Floats64:
        """[groups] Sums of numbers, of some kernels."""
        weights = values if rows is None else np.where(rows, values, 0.0)
        return np.bincount(self.ids + 1, weights, self.n + 1)[1:].astype(np.float64)

    def sum_where(self, values: Int64, mask: Bools) -> Int64:
        """[groups] Sums of the positive numbers of some kernels."""
        return sum_where(self.ids, values, mask.view(np.uint8), self.n)

    def distinct_counts(self, ids: Int32) -> Int64:
        """[groups] The number of distinct ids, counted from 0; -1 is not counted."""
        counts, home = distinct_ids(self.ids, ids, self.n, int(ids.max(initial=-1)) + 1)
        if (home == _SEVERAL).any():
            rows = np.flatnonzero((np.append(home, -1)[ids] == _SEVERAL) & (self.ids >= 0))
            _, first = pairs(self.ids[rows], ids[rows])
            counts += np.bincount(self.ids[rows[first]], minlength=self.n)
        return counts


_SEVERAL: Final = -2  # see distinct_ids


def group(keys: Sequence[Values], n_kernels: int, rows: Bools | None = None) -> Grouping:
    """Group kernels that agree in all keys, in order of the keys' ids.

    Parameters
    ----------
    keys : the keys, each [kernels]; unknown values are a group of their own
    rows : the selected kernels; None for all
    """
    place, n = np.zeros(n_kernels, np.int32), min(n_kernels, 1)
    for key in keys:
        size = len(key.values) + 1
        if n * size <= _DIRECT:
            place, n = _numbered(place * np.int32(size) + (key.ids + np.int32(1)), n * size)
        else:
            place, firsts = pairs(place, key.ids)
            n = len(firsts)
    if rows is not None:
        place = ranks(np.where(rows, place, np.int32(-1)), n)
        n = int(place.max(initial=-1)) + 1
    return Grouping(place, n)


def _numbered(index: Int32, n_values: int) -> tuple[Int32, int]:
    """The place of each index among the distinct ones, and their number.

    A table of all values is fast if it is small; bits for them take a twentieth of its memory.
    """
    if n_values < len(index):
        used, place = distinct(index, n_values)
        return place, len(used)
    place = ranks(index, n_values)
    return place, int(place.max(initial=-1)) + 1


class Columns(Protocol):
    """Columns by name: a Profile has those of kernels, `CpuEvents` those of CPU events."""

    @property
    def about(self) -> About: ...
    @property
    def names(self) -> list[str]: ...
    def column(self, name: str) -> Column: ...
    def __len__(self) -> int: ...


@runtime_checkable
class OwnKeys(Protocol):
    """Columns of rows that stand for several kernels, such as those of `analysis.cells`."""

    def own_key(self, name: str) -> Values | None:
        """The values of a grouping key that columns cannot tell; None if they can."""


def numbers(source: Columns, name: str) -> npt.NDArray[Any]:
    """A column of integers; -1 is unknown."""
    return cast("npt.NDArray[Any]", source.column(name).values)


def texts(source: Columns, name: str) -> Values:
    """A column of texts."""
    return cast(Values, source.column(name))
