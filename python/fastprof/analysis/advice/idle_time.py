"""The idle time of the counted steps by cause, with places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from fastprof.analysis.advice.shares import top_shares
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.idle_causes import CAUSES, Cause, Host, Split
from fastprof.analysis.idle_places import places
from fastprof.analysis.idle_windows import WindowGaps, gaps_of_steps
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels


class IdleTime(NamedTuple):
    """The gaps of all steps on all GPUs.

    Parameters
    ----------
    inside : WindowGaps
    is_inside : bool [gaps], whether each is in a counted window
    counted : int64 [n], the counted windows
    means : float64 [causes], ns per counted window; the sum is the idle time of one
    places : where to look, by name of `idle_places.PLACES`, [gaps]
    """

    inside: WindowGaps
    is_inside: Bools
    counted: Int64
    means: Floats64
    places: dict[str, Values]

    @property
    def gaps(self) -> Gaps:
        """Those of at least 1 us."""
        return self.inside.gaps

    @property
    def causes(self) -> Split:
        """The causes of `gaps`."""
        return self.inside.causes

    def mean(self, cause: str) -> float:
        """ns per window."""
        return float(self.means[CAUSES.index(cause)])

    def of_windows(self, cause: str) -> Int64:
        """[counted windows] ns."""
        return self.inside.of_cause(Cause(CAUSES.index(cause)))[self.counted]

    def first(self, cause: str, most: int) -> float:
        """ns per window: of each gap at most so much of a cause."""
        parts, n = self.causes.parts, max(len(self.counted), 1)
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
        n, rows, causes = max(len(self.counted), 1), rows & self.is_inside, self.causes
        sums = np.bincount(causes.main[rows], causes.ns[rows], len(Cause)) / n
        return {cause: float(ns) for cause, ns in zip(CAUSES, sums.tolist(), strict=True) if ns}


def idle_time(profile: Profile, steps: StepsOfKernels, windows: Windows) -> IdleTime:
    """The gaps of the steps. Reads the file again on first use.

    windows : of all work in the steps
    """
    inside, counted = gaps_of_steps(profile, steps), np.flatnonzero(windows.is_counted)
    return IdleTime(
        inside,
        windows.is_counted[inside.window],
        counted,
        inside.totals(windows.is_counted) / max(len(counted), 1),
        kept(profile, _places, steps),
    )


def _places(profile: Profile, steps: StepsOfKernels) -> dict[str, Values]:
    inside = gaps_of_steps(profile, steps)
    return places(inside.gaps, inside.causes, Host(profile))
