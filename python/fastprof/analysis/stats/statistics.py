"""Statistics as nsys prints them: rounded, with the standard deviation of a sample."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import GroupStats
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Ints
from fastprof.model.table import Cells, Floats

__all__ = ["Statistics", "mean", "rounded", "shares"]

Floats64 = npt.NDArray[np.float64]
_BYTES_OF_MB = 1e6


def rounded(values: Floats64, decimals: int = 1) -> Floats:
    """Numbers with as many decimals as nsys prints."""
    return Floats(np.round(values, decimals))


def mean(total: npt.NDArray[np.number], count: Int64) -> Floats64:
    """total / count; NaN if the count is 0."""
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def shares(total: Int64) -> Floats:
    """The percentages of a total."""
    return rounded(np.asarray(total * (100 / max(float(total.sum()), 1.0)), np.float64))


class Statistics:
    """Count, sum and spread of the known numbers of each group.

    Parameters
    ----------
    ids : int32 [n], the group of each number, -1 for none
    values : int64 [n], -1 is unknown
    n : number of groups
    """

    def __init__(self, ids: Int32, values: Int64, n: int) -> None:
        self._stats = GroupStats(ids, np.ascontiguousarray(values, np.int64), n)
        self.count, self.sum = self._stats.count, self._stats.sum

    def spread(self) -> list[Cells]:
        """Mean, median, minimum, maximum and standard deviation of each group."""
        stats = self._stats
        return [
            rounded(mean(stats.sum, stats.count)),
            rounded(stats.median()),
            Ints(stats.min),
            Ints(stats.max),
            rounded(self._deviation()),
        ]

    def spread_in_mb(self) -> list[Cells]:
        """The same of bytes, in MB."""
        stats = self._stats
        numbers = (
            mean(stats.sum, stats.count), stats.median(), stats.min, stats.max, self._deviation()
        )  # fmt: skip
        known = stats.count > 0
        return [rounded(np.where(known, each / _BYTES_OF_MB, np.nan), 3) for each in numbers]

    def sum_in_mb(self) -> Floats:
        """The sum of bytes, in MB."""
        return rounded(self.sum / _BYTES_OF_MB, 3)

    def times(self) -> list[Cells]:
        """Percentage of the total, total, count and spread: the first columns of most tables."""
        return [shares(self.sum), Ints(self.sum), Ints(self.count), *self.spread()]

    def _deviation(self) -> Floats64:
        """Of a sample; 0 for a single number, NaN for none."""
        count = self.count
        variance = self._stats.squares / np.maximum(count - 1, 1)
        return np.where(count > 0, np.sqrt(variance), np.nan)
