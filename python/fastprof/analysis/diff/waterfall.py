"""The change of a step, divided among groups of kernels and causes of idle time.

A change of the GPU's clock: all kernels are slower or faster by one factor.

Means in whole ns whose sum is the mean of the sums.
"""

from __future__ import annotations

from functools import cached_property
from math import exp, tanh
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.diff.matching import Matched, matched
from fastprof.analysis.diff.side import COMPUTE, Side
from fastprof.model.arrays import Bools, Int64

# What the times of both sides are: of a step; of a capture, each with the same calls; or of the
# calls that both captures contain.
STEPS, WINDOWS, CALLS = "step", "capture", "calls"
_SAME_WORK: Final = 0.99  # share of the GPU time


@dataclass(frozen=True)
class Half:
    """One side of a waterfall.

    Parameters
    ----------
    side : the capture
    row : int64 [groups], the row of each group
    own_ns : int64 [groups], the part of the step that is the group's own, ns
    gpu_ns : int64 [groups], GPU time a step, ns
    clocks_ns : int64 [groups], its part of the change that the clocks explain, ns
    idle_ns : int64 [causes], ns
    """

    side: Side
    row: Int64
    own_ns: Int64
    gpu_ns: Int64
    clocks_ns: Int64
    idle_ns: Int64

    def sums(self, values: Int64, n_rows: int) -> Int64:
        """[rows] Sums of a number of each group."""
        found = np.zeros(n_rows, np.int64)
        np.add.at(found, self.row, values)
        return found


@dataclass(frozen=True)
class Waterfall:
    """Two captures, compared.

    Parameters
    ----------
    before, after : the sides
    matched : the rows
    unit : STEPS, WINDOWS or CALLS
    clocks : the change of the GPU's clock, None if there is none
    """

    before: Half
    after: Half
    matched: Matched
    unit: str
    clocks: Clocks | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.matched.how)

    @property
    def halves(self) -> tuple[Half, Half]:
        """Both sides."""
        return self.before, self.after

    @cached_property
    def wall_ns(self) -> tuple[int, int]:
        """The length of the step before and after, ns: all groups and idle causes together."""
        before, after = (int(each.own_ns.sum() + each.idle_ns.sum()) for each in self.halves)
        return before, after

    @cached_property
    def has_equal_calls(self) -> Bools:
        """[rows] Whether a step has as many calls on both sides."""
        before, after = self.halves
        n, m = before.side.n_windows, after.side.n_windows
        same: Bools = before.sums(before.side.calls, self.n_rows) * m == (
            after.sums(after.side.calls, self.n_rows) * n
        )
        return same

    @cached_property
    def same_work(self) -> bool:
        """Whether both sides do the same work: the calls of 99 % of the GPU time are equal."""
        same = np.array([how in _SAME for how in self.matched.how], bool)
        same &= self.has_equal_calls
        shares = [
            half.gpu_ns[same[half.row]].sum() / max(int(half.gpu_ns.sum()), 1)
            for half in self.halves
        ]
        return float(min(shares)) >= _SAME_WORK


_SAME: Final = ("same", "line", "layer", "phase", "op")


def waterfall(before: Side, after: Side) -> Waterfall:
    """Compare two sides."""
    found = matched(before, after)
    n = len(found.how)
    halves = (_plain(before, found.before), _plain(after, found.after))
    unit = STEPS
    if not (before.has_steps and after.has_steps):
        plain = Waterfall(*halves, found, WINDOWS, None)
        unit = WINDOWS if plain.same_work else CALLS
    if unit == CALLS:
        halves = _of_equal_calls(*halves, n)
    clocks = clocks_of(*_same_kernels(*halves))
    if clocks is not None:
        shared = _in_both(*halves, n)
        halves = (
            _with_clocks(halves[0], clocks, shared),
            _with_clocks(halves[1], clocks, shared),
        )
    return Waterfall(*halves, found, unit, clocks)


def _plain(side: Side, row: Int64) -> Half:
    """Means over windows."""
    n = side.n_windows
    all_means = means(np.concatenate([side.own, side.idle.sum(axis=0)]), n)
    own, idle = np.split(all_means, [side.n_groups])
    gpu = means(side.gpu_ns, n)
    return Half(side, row, own, gpu, np.zeros(side.n_groups, np.int64), idle)


def _of_equal_calls(before: Half, after: Half, n_rows: int) -> tuple[Half, Half]:
    """The times of as many calls as both sides contain; rows of one side and idle time are 0."""
    counts = [half.sums(half.side.calls, n_rows) for half in (before, after)]
    fewer = np.minimum(*counts)
    halves = []
    for half, count in zip((before, after), counts, strict=True):
        side, calls = half.side, np.maximum(count, 1)[half.row]
        own, gpu = (_scaled(each, fewer[half.row], calls) for each in (side.own, side.gpu_ns))
        gpu = np.where(fewer[half.row] > 0, gpu, half.gpu_ns)
        halves.append(Half(side, half.row, own, gpu, half.clocks_ns, np.zeros_like(half.idle_ns)))
    return halves[0], halves[1]


def _scaled(values: Int64, times: Int64, by: Int64) -> Int64:
    return np.rint(values * (times / by)).astype(np.int64)


def _in_both(before: Half, after: Half, n_rows: int) -> Bools:
    used = [np.bincount(half.row, minlength=n_rows) > 0 for half in (before, after)]
    return np.asarray(used[0] & used[1])


def _same_kernels(before: Half, after: Half) -> tuple[Int64, Int64]:
    """GPU time of compute kernels of equal name in the same row, launched equally often."""
    tables = []
    for half in (before, after):
        found: dict[tuple[int, str | None], tuple[int, int]] = {}
        names, parts = half.side.texts("kernel"), half.side.texts("part")
        numbers = zip(
            half.row.tolist(), names, parts, half.gpu_ns.tolist(),
            half.side.kernels.tolist(), strict=True,
        )  # fmt: skip
        for row, name, part, ns, count in numbers:
            if part == COMPUTE:
                old = found.get((row, name), (0, 0))
                found[row, name] = (old[0] + ns, old[1] + count)
        tables.append(found)
    n, m = before.side.n_windows, after.side.n_windows
    pairs = [
        (ns, tables[1][key][0])
        for key, (ns, count) in tables[0].items()
        if key in tables[1] and count * m == tables[1][key][1] * n
    ]
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _with_clocks(half: Half, clocks: Clocks, shared: Bools) -> Half:
    parts = np.array([part == COMPUTE for part in half.side.texts("part")], bool)
    explained = np.rint(clocks.half * half.own_ns).astype(np.int64)
    ns = np.where(parts & shared[half.row], explained, 0)
    return Half(half.side, half.row, half.own_ns, half.gpu_ns, ns, half.idle_ns)


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


def means(sums: Int64, n: int) -> Int64:
    """Sums over n windows as means, ns: whole numbers that add up to the rounded mean of all.

    Each is rounded down or up; those with the largest remainder are rounded up.
    """
    down, rest = np.divmod(sums, n)
    total = (2 * int(sums.sum()) + n) // (2 * n)
    up = np.argsort(-rest, kind="stable")[: total - int(down.sum())]
    down[up] += 1
    return down
