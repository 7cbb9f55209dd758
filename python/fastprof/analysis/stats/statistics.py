"""Statistics as nsys prints them: rounded, with the standard deviation of a sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import GroupStats
from fastprof._core._take import take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Rows
from fastprof.model.derived import DerivedFloats, DerivedInts
from fastprof.model.table import ColumnData, Floats
from fastprof.model.trace import NEVER

Floats64 = npt.NDArray[np.float64]

_BYTES_OF_MB = 1e6

_FEW_GROUPS = 1 << 16


def rounded(values: Floats64) -> Floats:
    """Numbers with one decimal, as nsys prints them."""
    return Floats(_half_away(values))


def _half_away(values: Floats64) -> Floats64:
    """Rounded to one decimal as SQLite's round() does for nsys: half away from zero."""
    tenths = values * 10
    result: Floats64 = np.trunc(tenths + np.copysign(0.5, tenths)) / 10
    return result


def _in_mb(n_bytes: npt.NDArray[np.number]) -> Floats:
    """MB with three decimals; rounded as by printf."""
    return Floats(np.array([round(number, 3) for number in (n_bytes / _BYTES_OF_MB).tolist()]))


def known_duration(start: Int64, end: Int64) -> Int64:
    """End - start; -1 if the end is unknown."""
    duration = end - start
    duration[end == NEVER] = -1
    return duration


def mean(total: npt.NDArray[np.number], count: Int64) -> Floats64:
    """total / count; NaN if the count is 0."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


class Statistics:
    """Count, sum and spread of the known numbers of each group.

    Parameters
    ----------
    ids : int32 [n], the group of each number, -1 for none
    values : int64 [n], -1 is unknown
    n : number of groups
    """

    def __init__(self, ids: Int32, values: Int64, n: int) -> None:
        self._ids, self._values, self._n = ids, np.ascontiguousarray(values, np.int64), n
        self._stats = GroupStats(ids, self._values, n)
        self.count, self.sum = self._stats.count, self._stats.sum

    def spread(self) -> list[ColumnData]:
        """Mean, median, minimum, maximum and standard deviation of each group."""
        stats = self._stats
        return [
            self._rounded(self._mean),
            self._rounded(self._medians()),
            DerivedInts(self._n, lambda rows: stats.min[rows]),
            DerivedInts(self._n, lambda rows: stats.max[rows]),
            self._rounded(self._deviation),
        ]

    def spread_in_mb(self) -> list[ColumnData]:
        """The same of bytes, in MB."""
        stats, every = self._stats, slice(None)
        numbers = (
            self._mean(every), stats.median(), stats.min, stats.max, self._deviation(every)
        )  # fmt: skip
        known = stats.count > 0
        return [_in_mb(np.where(known, number, np.nan)) for number in numbers]

    def sum_in_mb(self) -> Floats:
        """The sum of bytes, in MB."""
        return _in_mb(self.sum)

    def times(self) -> list[ColumnData]:
        """Percentage of the total, total, count and spread: the first columns of most tables."""
        percent = 100 / max(float(self.sum.sum()), 1.0)
        share = self._rounded(lambda rows: np.asarray(self.sum[rows] * percent, np.float64))
        total = DerivedInts(self._n, lambda rows: self.sum[rows])
        count = DerivedInts(self._n, lambda rows: self.count[rows])
        return [share, total, count, *self.spread()]

    def _rounded(self, make: Callable[[Rows | slice], Floats64]) -> DerivedFloats:
        return DerivedFloats(self._n, lambda rows: _half_away(make(rows)))

    def _mean(self, rows: Rows | slice) -> Floats64:
        return mean(self.sum[rows], self.count[rows])

    def _medians(self) -> Callable[[Rows | slice], Floats64]:
        """The medians of some groups; of few, without those of the others."""
        if self._n <= _FEW_GROUPS:
            every = self._stats.median()
            return lambda rows: every[rows]

        def median(rows: Rows | slice) -> Floats64:
            if isinstance(rows, slice) or len(rows) > _FEW_GROUPS:
                return self._stats.median()[rows]
            place = np.full(self._n, -1, np.int32)
            place[rows] = np.arange(len(rows), dtype=np.int32)
            return GroupStats(take(place, self._ids), self._values, len(rows)).median()

        return median

    def _deviation(self, rows: Rows | slice) -> Floats64:
        """Of a sample; 0 for fewer than two numbers."""
        variance = self._stats.squares[rows] / np.maximum(self.count[rows] - 1, 1)
        return np.sqrt(variance)
