"""Why a row of a comparison changed.

The values of keys that both sides of a comparison have in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import isnan
from typing import Final

import numpy as np

from fastprof.analysis.diff.matching import TYPES, without_number
from fastprof.analysis.diff.side import UNIT_KEYS
from fastprof.analysis.diff.waterfall import CALLS, Half, Waterfall
from fastprof.analysis.keys import without_types

_SAME: Final = 0.02  # of the time: smaller changes are noise
_ERRORS: Final = 2  # standard errors
_LEAST: Final = 0.05  # share of a row's time in kernels that the other side does not run
# The work differs, not only its time.
_WORK: Final = ("removed", "added", "replaced", "calls", "shape", "kernel")


def noise_of(error_ns: float, before_ns: int, after_ns: int) -> float:
    """The change of a time that may be noise, ns.

    error_ns : standard error of the change; NaN if unknown
    """
    least = _SAME * max(before_ns, after_ns)
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
        found, n = self._found, self._found.n_rows
        used = [np.bincount(half.row, minlength=n) > 0 for half in found.halves]
        own, gpu = ([half.sums(getattr(half, name), n) for half in found.halves]
                    for name in ("own_ns", "gpu_ns"))  # fmt: skip
        delta = own[1] - own[0] - sum(half.sums(half.clocks_ns, n) for half in found.halves)
        fewer_or_more = ~found.has_equal_calls & (found.unit != CALLS)
        made = []
        for row, how in enumerate(found.matched.how):
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
            elif abs(int(delta[row])) <= _SAME * max(own[0][row], own[1][row]):
                made.append("same")
            elif abs(int(gpu[1][row] - gpu[0][row])) <= abs(int(delta[row])) / 2:
                made.append("overlaps less" if delta[row] > 0 else "overlaps more")
            else:
                made.append("slower" if delta[row] > 0 else "faster")
        return made

    def _runs_other_kernels(self, row: int) -> bool:
        before, after = (each.get(row, Counter()) for each in self._kernels)
        return any(
            sum(ns for name, ns in own.items() if name not in other) > _LEAST * own.total()
            for own, other in ((before, after), (after, before))
        )

    def _kernel_pair(self, row: int) -> str:
        """The kernel with most time on each side, of those that the other side does not run."""
        before, after = (each[row] for each in self._kernels)
        gone = {name: ns for name, ns in before.items() if name not in after} or before
        new = {name: ns for name, ns in after.items() if name not in before} or after
        old, other = (max(each, key=lambda name: (each[name], name)) for each in (gone, new))
        return f"{old} -> {other}"

    @cached_property
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

    @cached_property
    def _shapes(self) -> dict[int, str | None]:
        """The shapes of both sides, by row."""
        before, _ = labels(self._found, "shape")
        return dict(zip(self._found.before.row.tolist(), before, strict=True))


def _times_of_kernels(half: Half) -> dict[int, Counter[str]]:
    """The GPU time of each kernel of each row, by name, ns."""
    found: dict[int, Counter[str]] = {}
    names = half.side.texts("kernel")
    for row, name, ns in zip(half.row.tolist(), names, half.gpu_ns.tolist(), strict=True):
        found.setdefault(row, Counter())[without_number(name or "unnamed")] += ns
    return found


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
        texts = [[text and without_types(text) for text in each] for each in texts]
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
