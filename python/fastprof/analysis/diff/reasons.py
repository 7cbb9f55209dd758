"""Why a row of a comparison changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof.analysis.diff.waterfall import Half, Waterfall
from fastprof.model.arrays import Int64

__all__ = ["REASONS", "kernels_of", "reasons"]

REASONS: Final = (
    "same", "slower", "faster", "removed", "added", "replaced", "calls", "shape", "kernel",
)  # fmt: skip
_SAME: Final = 0.02  # of the time
_LEAST: Final = 0.05  # share of a row's time in kernels that the other side does not run


def reasons(found: Waterfall) -> list[str]:
    """[rows] Of REASONS."""
    n = found.n_rows
    before, after = (half.sums(half.own_ns + 0, n) for half in found.halves)
    clocks = sum(half.sums(half.clocks_ns, n) for half in found.halves)
    delta = after - before - clocks
    calls = [
        half.sums(half.side.calls, n) * other.side.n_windows
        for half, other in zip(found.halves, found.halves[::-1], strict=True)
    ]
    used = [np.bincount(half.row, minlength=n) > 0 for half in found.halves]
    other = _other_kernels(found)
    made = []
    for i, how in enumerate(found.matched.how):
        if not used[0][i] or not used[1][i]:
            made.append("removed" if used[0][i] else "added")
        elif how == "position":
            made.append("replaced")
        elif calls[0][i] != calls[1][i] and found.unit != "calls":
            made.append("calls")
        elif how == "shape":
            made.append("shape")
        elif i in other or how == "kernel":
            made.append("kernel")
        elif abs(int(delta[i])) <= _SAME * max(before[i], after[i]):
            made.append("same")
        else:
            made.append("slower" if delta[i] > 0 else "faster")
    return made


def _other_kernels(found: Waterfall) -> set[int]:
    """The rows in which kernels run that the other side does not run there."""
    times = [kernels_of(half, half.own_ns) for half in found.halves]
    rows = set()
    for own, other in (times, times[::-1]):
        for row, names in own.items():
            total = sum(names.values())
            new = sum(ns for name, ns in names.items() if name not in other.get(row, {}))
            if new > _LEAST * total:
                rows.add(row)
    return rows


def kernels_of(half: Half, ns: Int64) -> dict[int, Counter[str]]:
    """The time of each kernel in each row, by name."""
    found: dict[int, Counter[str]] = {}
    names: Sequence[str | None] = half.side.texts("kernel")
    for row, name, time in zip(half.row.tolist(), names, ns.tolist(), strict=True):
        found.setdefault(row, Counter())[name or "unnamed"] += time
    return found
