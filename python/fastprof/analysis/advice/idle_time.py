"""The idle time of typical steps by cause, with places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.advice.shares import top_shares
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.idle_causes import CAUSES, Cause
from fastprof.analysis.idle_examined import Examined, places_of
from fastprof.analysis.idle_windows import examined_in
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.profile.profile import Profile

__all__ = ["IdleTime", "idle_time"]


class IdleTime(NamedTuple):
    """The gaps of some windows.

    Parameters
    ----------
    found : all gaps
    is_inside : bool [gaps], whether each is in one of the windows
    by_window : int64 [windows, causes], ns; adds up to the idle time after the first work
    places : where to look, by name of `idle_places.PLACES`, [gaps]
    """

    found: Examined
    is_inside: Bools
    by_window: Int64
    places: dict[str, Values]

    @property
    def gaps(self) -> Gaps:
        """All gaps of at least 1 us."""
        return self.found.gaps

    def mean(self, cause: str) -> float:
        """ns per window."""
        return float(self.by_window[:, CAUSES.index(cause)].mean()) if len(self.by_window) else 0.0

    def of_windows(self, cause: str) -> Int64:
        """[windows] ns."""
        found: Int64 = self.by_window[:, CAUSES.index(cause)]
        return found

    def is_mainly(self, *causes: str) -> Bools:
        """[gaps] Whether each is in a window and one of these causes takes most."""
        wanted = np.isin(CAUSES, causes)
        return wanted[self.found.causes.main] & self.is_inside

    def top(self, place: str, rows: Bools, most: int = 3) -> list[tuple[str, float]]:
        """The places that take most of some gaps, with their share of the time of these gaps."""
        chosen = np.flatnonzero(rows)
        ns = self.found.causes.ns[chosen].astype(np.float64)
        return top_shares(self.places[place].take(chosen), ns, most)

    def by_cause(self, rows: Bools) -> Mapping[str, float]:
        """The time of the main cause of some gaps in windows, ns per window."""
        n, rows, causes = max(len(self.by_window), 1), rows & self.is_inside, self.found.causes
        sums = np.bincount(causes.main[rows], causes.ns[rows], len(Cause)) / n
        return {cause: float(ns) for cause, ns in zip(CAUSES, sums.tolist(), strict=True) if ns}


def idle_time(profile: Profile, windows: Windows, rows: Int64) -> IdleTime:
    """The gaps of some rows of the windows. Reads the file again on first use.

    Raises
    ------
    CannotJudge
        There is no GPU work.
    """
    if not windows.lanes:
        raise CannotJudge("no GPU work: record a run on a GPU")
    found, window, short = examined_in(profile, windows)
    index = np.full(len(windows) + 1, -1, np.int32)
    index[rows] = np.arange(len(rows), dtype=np.int32)
    window, short = index[window], index[short]
    by_window = found.of_windows(window, short, len(rows))
    return IdleTime(found, window >= 0, by_window, places_of(profile, found))
