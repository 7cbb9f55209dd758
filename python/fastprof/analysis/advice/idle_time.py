"""The idle time of the counted steps by cause, with places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fastprof.analysis.advice.shares import top_shares
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.idle_causes import CAUSES, Cause, Host, Split
from fastprof.analysis.idle_places import places
from fastprof.analysis.idle_windows import gaps_of_steps
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["IdleTime", "idle_time"]


class IdleTime(NamedTuple):
    """The gaps of all steps on all GPUs.

    Parameters
    ----------
    gaps : Gaps, those of at least 1 us
    causes : Split of `gaps`
    is_inside : bool [gaps], whether each is in a counted window
    by_window : int64 [counted windows, causes], ns; adds up to the idle time of each
    places : where to look, by name of `idle_places.PLACES`, [gaps]
    """

    gaps: Gaps
    causes: Split
    is_inside: Bools
    by_window: Int64
    places: dict[str, Values]

    def mean(self, cause: str) -> float:
        """ns per window."""
        return float(self.by_window[:, CAUSES.index(cause)].mean()) if len(self.by_window) else 0.0

    def of_windows(self, cause: str) -> Int64:
        """[counted windows] ns."""
        column: Int64 = self.by_window[:, CAUSES.index(cause)]
        return column

    def first(self, cause: str, most: int) -> float:
        """ns per window: of each gap at most so much of a cause."""
        parts, n = self.causes.parts, max(len(self.by_window), 1)
        own = (parts.cause == CAUSES.index(cause)) & self.is_inside[parts.gap]
        return float(np.minimum(parts.ns[own], most).sum()) / n

    def is_mainly(self, *causes: str) -> Bools:
        """[gaps] Whether each is in a counted window and one of these causes takes most."""
        wanted = np.isin(CAUSES, causes)
        return wanted[self.causes.main] & self.is_inside

    def top(self, place: str, rows: Bools, most: int = 3) -> list[tuple[str, float]]:
        """The places that take most of some gaps, with their share of the time of these gaps."""
        chosen = np.flatnonzero(rows)
        ns = self.causes.ns[chosen].astype(np.float64)
        return top_shares(self.places[place].take(chosen), ns, most)

    def by_cause(self, rows: Bools) -> Mapping[str, float]:
        """The time of the main cause of some gaps in counted windows, ns per window."""
        n, rows, causes = max(len(self.by_window), 1), rows & self.is_inside, self.causes
        sums = np.bincount(causes.main[rows], causes.ns[rows], len(Cause)) / n
        return {cause: float(ns) for cause, ns in zip(CAUSES, sums.tolist(), strict=True) if ns}


def idle_time(profile: Profile, steps: StepsOfKernels, windows: Windows) -> IdleTime:
    """The gaps of the steps. Reads the file again on first use.

    windows : of all work in the steps
    """
    inside = gaps_of_steps(profile, steps)
    return IdleTime(
        inside.gaps,
        inside.causes,
        windows.is_counted[inside.window],
        inside.by_window[windows.is_counted],
        kept(profile, _places, steps),
    )


def _places(profile: Profile, steps: StepsOfKernels) -> dict[str, Values]:
    inside = gaps_of_steps(profile, steps)
    return places(inside.gaps, inside.causes, Host(profile))
