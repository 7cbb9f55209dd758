"""The causes of idle time in a step, compared with the mean of others."""

from __future__ import annotations

from fastprof.analysis.idle_causes import CAUSES
from fastprof.model.arrays import Int64

__all__ = ["idle_changes"]


def idle_changes(by_window: Int64, row: int, normal: Int64, idle: float) -> dict[str, float]:
    """By cause, the time in a window less the mean of others, the largest first.

    by_window : ns [windows, causes], see `idle_by_window`
    row, normal : of the windows: the one, and those to compare with
    idle : the sum; the rest is time before the first work of the GPU
    """
    over = by_window[row] - by_window[normal].mean(axis=0)
    found = dict(zip(CAUSES, over.tolist(), strict=True))
    found["before the first work"] = float(round(idle - over.sum(), 3))
    names = sorted(found, key=lambda name: -abs(found[name]))
    return {name: found[name] for name in names if found[name]}
