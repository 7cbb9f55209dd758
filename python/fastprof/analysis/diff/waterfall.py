"""The change of a step, divided among groups of kernels, the clock and causes of idle time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import exp, isnan, tanh
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.diff.matching import TYPES, Matched, matched, without_number
from fastprof.analysis.diff.side import COMPUTE, UNIT_KEYS, Side
from fastprof.analysis.keys import without_types
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
        result = np.zeros(n_rows, np.int64)
        np.add.at(result, self.row, values)
        return result


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
    clocks: ClockChange | None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.matched.how)

    @property
    def halves(self) -> tuple[Half, Half]:
        """Both sides."""
        return self.before, self.after

    @computed_once
    def wall_ns(self) -> tuple[int, int]:
        """The length of the step before and after, ns: all groups and idle causes together."""
        before, after = (int(half.own_ns.sum() + half.idle_ns.sum()) for half in self.halves)
        return before, after

    @computed_once
    def has_equal_calls(self) -> Bools:
        """[rows] Whether a step has as many calls on both sides."""
        before, after = self.halves
        n, m = before.side.n_windows, after.side.n_windows
        same: Bools = before.sums(before.side.calls, self.n_rows) * m == (
            after.sums(after.side.calls, self.n_rows) * n
        )
        return same

    @computed_once
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
    result = matched(before, after)
    n = len(result.how)
    halves = (_plain(before, result.before), _plain(after, result.after))
    unit = STEPS
    if not (before.has_steps and after.has_steps):
        plain = Waterfall(*halves, result, WINDOWS, None)
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
    return Waterfall(*halves, result, unit, clocks)


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
        own, gpu = (_scaled(array, fewer[half.row], calls) for array in (side.own, side.gpu_ns))
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
        result: dict[tuple[int, str | None], tuple[int, int]] = {}
        names, parts = half.side.texts("kernel"), half.side.texts("part")
        numbers = zip(
            half.row.tolist(), names, parts, half.gpu_ns.tolist(),
            half.side.kernels.tolist(), strict=True,
        )  # fmt: skip
        for row, name, part, ns, count in numbers:
            if part == COMPUTE:
                old = result.get((row, name), (0, 0))
                result[row, name] = (old[0] + ns, old[1] + count)
        tables.append(result)
    n, m = before.side.n_windows, after.side.n_windows
    pairs = [
        (ns, tables[1][key][0])
        for key, (ns, count) in tables[0].items()
        if key in tables[1] and count * m == tables[1][key][1] * n
    ]
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _with_clocks(half: Half, clocks: ClockChange, shared: Bools) -> Half:
    parts = np.array([part == COMPUTE for part in half.side.texts("part")], bool)
    explained = np.rint(clocks.half * half.own_ns).astype(np.int64)
    ns = np.where(parts & shared[half.row], explained, 0)
    return Half(half.side, half.row, half.own_ns, half.gpu_ns, ns, half.idle_ns)


_LEAST_CHANGE: Final = 0.01  # smaller factors are no change of clocks
_SPREAD: Final = 0.02  # a kernel follows the factor if it differs by less
_LEAST_SHARE: Final = 0.6  # of the kernels, and of their time, that follow the factor
_LEAST_KERNELS: Final = 3
_SMALL: Final = 0.001  # of the time; such kernels do not count


class ClockChange(NamedTuple):
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


def clocks_of(before: Int64, after: Int64) -> ClockChange | None:
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
    return ClockChange(middle, share)


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


_SAME_REASON: Final = 0.02  # of the time: smaller changes are noise
_ERRORS: Final = 2  # standard errors
_LEAST: Final = 0.05  # share of a row's time in kernels that the other side does not run
# The work differs, not only its time.
_WORK: Final = ("removed", "added", "replaced", "calls", "shape", "kernel")


def noise_of(error_ns: float, before_ns: int, after_ns: int) -> float:
    """The change of a time that may be noise, ns.

    error_ns : standard error of the change; NaN if unknown
    """
    least = _SAME_REASON * max(before_ns, after_ns)
    return least if isnan(error_ns) else max(least, _ERRORS * error_ns)


class Reasons:
    """Why rows of a waterfall changed.

    Attributes
    ----------
    of_rows : list of str, [rows]
        same; slower, faster; overlaps more, overlaps less: GPU time is the same, but other work
        runs at the same time; removed, added, replaced; calls, shape or kernel: they differ
    """

    def __init__(self, found: Waterfall) -> None:
        self._found = found
        self._kernels = [_times_of_kernels(half) for half in found.halves]
        self.of_rows = self._of_rows()

    def of(self, changes: Mapping[int, int], is_noise: bool, calls: tuple[float, float]) -> str:
        """Why several rows together changed: the reason that makes most of their change.

        Parameters
        ----------
        changes : change in ns by row
        is_noise : whether their change may be noise
        calls : calls a step before and after
        """
        delta = sum(changes.values())
        by_reason: dict[str, int] = {}
        for row, change in changes.items():
            reason = self.of_rows[row]
            by_reason[reason] = by_reason.get(reason, 0) + change
        if by_reason.keys() == {"removed", "added"}:
            return "removed and added"
        if is_noise and (len(by_reason) > 1 or not by_reason.keys() <= set(_WORK)):
            return "same"
        sign = 1 if delta >= 0 else -1
        main = max(by_reason, key=lambda reason: (by_reason[reason] * sign, reason))
        rows = [row for row in changes if self.of_rows[row] == main]
        return self._text(
            main, max(rows, key=lambda row: (changes[row] * sign, -row)), delta, calls
        )

    def is_compared(self, rows: Iterable[int]) -> bool:
        """Whether both sides have work of any of these rows."""
        return any(self.of_rows[row] not in ("removed", "added") for row in rows)

    def _text(self, reason: str, row: int, delta: int, calls: tuple[float, float]) -> str:
        """A reason with its details, those of one row."""
        if reason == "calls":
            if calls[0] == calls[1]:
                return "slower" if delta > 0 else "faster"
            more = "more" if calls[1] > calls[0] else "fewer"
            return f"{more} calls ({calls[0]:.4g} -> {calls[1]:.4g})"
        if reason == "kernel":
            return f"other kernel: {self._kernel_pair(row)}"
        if reason == "shape":
            return f"other shape: {self._shapes[row]}"
        if reason == "replaced":
            return f"replaced by {self._main_ops[row]}"
        return reason

    def _of_rows(self) -> list[str]:
        result, n = self._found, self._found.n_rows
        used = [np.bincount(half.row, minlength=n) > 0 for half in result.halves]
        own, gpu = ([half.sums(getattr(half, name), n) for half in result.halves]
                    for name in ("own_ns", "gpu_ns"))  # fmt: skip
        delta = own[1] - own[0] - sum(half.sums(half.clocks_ns, n) for half in result.halves)
        fewer_or_more = ~result.has_equal_calls & (result.unit != CALLS)
        made = []
        for row, how in enumerate(result.matched.how):
            if not used[0][row] or not used[1][row]:
                made.append("removed" if used[0][row] else "added")
            elif how == "position":
                made.append("replaced")
            elif fewer_or_more[row]:
                made.append("calls")
            elif how == "shape":
                made.append("shape")
            elif how == "kernel" or self._runs_other_kernels(row):
                made.append("kernel")
            elif abs(int(delta[row])) <= _SAME_REASON * max(own[0][row], own[1][row]):
                made.append("same")
            elif abs(int(gpu[1][row] - gpu[0][row])) <= abs(int(delta[row])) / 2:
                made.append("overlaps less" if delta[row] > 0 else "overlaps more")
            else:
                made.append("slower" if delta[row] > 0 else "faster")
        return made

    def _runs_other_kernels(self, row: int) -> bool:
        before, after = (kernel.get(row, Counter()) for kernel in self._kernels)
        return any(
            sum(ns for name, ns in own.items() if name not in other) > _LEAST * own.total()
            for own, other in ((before, after), (after, before))
        )

    def _kernel_pair(self, row: int) -> str:
        """The kernel with most time on each side, of those that the other side does not run."""
        before, after = (kernel[row] for kernel in self._kernels)
        gone = {name: ns for name, ns in before.items() if name not in after} or before
        new = {name: ns for name, ns in after.items() if name not in before} or after
        old, other = (
            max(mapping, key=lambda name: (mapping[name], name)) for mapping in (gone, new)
        )
        return f"{old} -> {other}"

    @computed_once
    def _main_ops(self) -> dict[int, str]:
        """The operator with most time after, by row; the kernel where the operator is unknown."""
        half = self._found.after
        most: dict[int, tuple[int, str]] = {}
        names = zip(half.side.texts("op"), half.side.texts("kernel"), strict=True)
        for row, (op, kernel), ns in zip(
            half.row.tolist(), names, half.gpu_ns.tolist(), strict=True
        ):
            most[row] = max(most.get(row, (-1, "")), (ns, op or kernel or "unnamed"))
        return {row: name for row, (_, name) in most.items()}

    @computed_once
    def _shapes(self) -> dict[int, str | None]:
        """The shapes of both sides, by row."""
        before, _ = labels(self._found, "shape")
        return dict(zip(self._found.before.row.tolist(), before, strict=True))


def _times_of_kernels(half: Half) -> dict[int, Counter[str]]:
    """The GPU time of each kernel of each row, by name, ns."""
    times: dict[int, Counter[str]] = {}
    names = half.side.texts("kernel")
    for row, name, ns in zip(half.row.tolist(), names, half.gpu_ns.tolist(), strict=True):
        times.setdefault(row, Counter())[without_number(name or "unnamed")] += ns
    return times


_MOST: Final = 3  # names of one side


def labels(found: Waterfall, key: str) -> tuple[list[str | None], list[str | None]]:
    """The value of a key for the groups of both sides.

    The groups of a row have the same value: `linear -> addmm` if the sides differ. Kinds and names
    of kernels stay those of each group.
    """
    texts = [half.side.texts(key) for half in found.halves]
    if key not in UNIT_KEYS:
        return texts[0], texts[1]
    if key == "shape" and TYPES in found.matched.ignored:
        texts = [[text and without_types(text) for text in members] for members in texts]
    times: list[tuple[Counter[str | None], Counter[str | None]]] = [
        (Counter(), Counter()) for _ in range(found.n_rows)
    ]
    for side, half in enumerate(found.halves):
        numbers = zip(half.row.tolist(), texts[side], half.own_ns.tolist(), strict=True)
        for row, text, ns in numbers:
            times[row][side][text] += ns + 1
    of_rows = [_both(before, after) for before, after in times]
    before, after = ([of_rows[row] for row in half.row.tolist()] for half in found.halves)
    return before, after


def _both(before: Counter[str | None], after: Counter[str | None]) -> str | None:
    if not before or not after:
        return _names(before or after)
    if set(before) == set(after) or before.keys() == {None} or after.keys() == {None}:
        return _names(before + after)
    return f"{_names(before)} -> {_names(after)}"


def _names(times: Counter[str | None]) -> str | None:
    """The names, those with most time first."""
    ordered = sorted(times.items(), key=lambda item: (-item[1], item[0] or ""))
    names = [name for name, _ in ordered if name is not None]
    if not names:
        return None
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return " + ".join([*names[:_MOST], *more])
