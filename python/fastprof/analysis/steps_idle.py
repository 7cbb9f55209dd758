"""The causes of idle time in some steps, compared with the mean of others."""

from __future__ import annotations

import numpy as np

from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.idle_causes import CAUSES, Host, split
from fastprof.analysis.steps_windows import Lane, Windows
from fastprof.model.arrays import Int64
from fastprof.profile.profile import Profile

__all__ = ["IdleCauses"]


class IdleCauses:
    """The time of each cause in the windows of a lane."""

    def __init__(
        self, profile: Profile, lane: Lane, windows: Windows, rows: Int64, normal: Int64
    ) -> None:
        """Find the causes in the rows that others are compared with.

        rows, normal : of the windows: all of the lane, those to compare with
        """
        self._host, self._gaps = Host(profile), lane.work.gaps
        self._row = windows.row_of(self._gaps.start, rows)
        self._mean = self._totals(normal) / len(normal)

    def _totals(self, rows: Int64) -> Int64:
        chosen = np.isin(self._row, rows)
        totals: Int64 = split(Gaps._make(each[chosen] for each in self._gaps), self._host).totals
        return totals

    def changes(self, row: int, idle: float) -> dict[str, float]:
        """By cause, the time in a row less the mean, the largest first.

        idle : the sum; the rest is time before the first work of the GPU
        """
        over = self._totals(np.array([row])) - self._mean
        found = dict(zip(CAUSES, over.tolist(), strict=True))
        found["before the first work"] = float(round(idle - over.sum(), 3))
        names = sorted(found, key=lambda name: -abs(found[name]))
        return {name: found[name] for name in names if found[name]}
