"""A change of the GPU's clock: all kernels are slower or faster by one factor."""

from __future__ import annotations

from math import exp, tanh
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import Int64

_LEAST_CHANGE: Final = 0.01  # smaller factors are no change of clocks
_SPREAD: Final = 0.02  # a kernel follows the factor if it differs by less
_LEAST_SHARE: Final = 0.6  # of the kernels, and of their time, that follow the factor
_LEAST_KERNELS: Final = 3
_SMALL: Final = 0.001  # of the time; such kernels do not count


class Clocks(NamedTuple):
    """The common factor of the kernels' time.

    Parameters
    ----------
    logarithm : of the factor, time after divided by time before; it changes its sign if the sides
        are swapped
    share : share of the compared time in kernels that follow it
    """

    logarithm: float
    share: float

    @property
    def factor(self) -> float:
        """Time after, divided by time before."""
        return exp(self.logarithm)

    @property
    def half(self) -> float:
        """(factor - 1) / (factor + 1): the change, divided by the sum of both times."""
        return tanh(self.logarithm / 2)


def clocks_of(before: Int64, after: Int64) -> Clocks | None:
    """The factor by which most kernels differ, None if there is none.

    before, after : GPU time of the same kernels, ns a launch times the launches of one side
    """
    known = (before > 0) & (after > 0) & (before + after > _SMALL * (before + after).sum())
    if np.count_nonzero(known) < _LEAST_KERNELS:
        return None
    ratio = np.log(after[known]) - np.log(before[known])
    weight = (before + after)[known].astype(np.float64)
    middle = _weighted_median(ratio, weight)
    follows = np.abs(ratio - middle) < _SPREAD
    share = float(weight[follows].sum() / weight.sum())
    if abs(middle) < _LEAST_CHANGE or min(share, follows.mean()) < _LEAST_SHARE:
        return None
    return Clocks(middle, share)


def _weighted_median(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """The mean of the lower and the upper median, so its sign changes with that of the values."""
    order = np.argsort(values, kind="stable")
    until = np.cumsum(weights[order])
    lower = values[order[np.searchsorted(until, until[-1] / 2, "left")]]
    upper = values[order[min(np.searchsorted(until, until[-1] / 2, "right"), len(order) - 1)]]
    return float(lower + upper) / 2
