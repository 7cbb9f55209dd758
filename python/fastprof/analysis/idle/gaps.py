"""The gaps of GPUs with their causes and places.

The idle time of GPUs in the windows of steps, by cause.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.gpu_work import Gaps, WorkOfDevices, answered_work
from fastprof.analysis.idle.causes import Cause, Host, Split, split
from fastprof.analysis.idle.places import places
from fastprof.analysis.steps.windows import Windows, windows_of
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.profile.data import ProfileData
from fastprof.profile.kept import kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels

SHORTEST: Final = 1000  # ns; the causes of shorter gaps are not examined


@dataclass(frozen=True)
class Examined:
    """The gaps of GPUs.

    Parameters
    ----------
    devices : the numbers of the GPUs, ascending
    gaps, device : those that are long enough, and int32 [gaps], indices into `devices`
    short, short_device : the other ones
    causes : Split of `gaps`
    data : see `examine`
    is_kept : whether these are all gaps of a profile, which are kept
    """

    devices: Int64
    gaps: Gaps
    device: Int32
    short: Gaps
    short_device: Int32
    causes: Split
    data: str | None
    is_kept: bool


def examine(
    profile: ProfileData,
    work: WorkOfDevices,
    shortest: int = SHORTEST,
    data: str | None = None,
) -> Examined:
    """Find the causes of all gaps of at least `shortest` ns; see `host_states` for `data`.

    Those of `answered_work` are kept, with the default values of the other parameters.
    """
    if work is answered_work(profile) and shortest == SHORTEST and data is None:
        return kept(profile, _of_all)
    return _examined(profile, work, shortest, data)


def _of_all(profile: ProfileData) -> Examined:
    return _examined(profile, answered_work(profile), SHORTEST, None, True)


def _examined(
    profile: ProfileData,
    work: WorkOfDevices,
    shortest: int,
    data: str | None,
    is_kept: bool = False,
) -> Examined:
    host, gaps = Host(profile, data), work.parts.gaps()
    part = work.parts.of_kernels(len(profile))[gaps.after]
    is_long = gaps.end - gaps.start >= shortest
    long, short = (Gaps._make(each[of] for each in gaps) for of in (is_long, ~is_long))
    return Examined(
        work.parts.keys.astype(np.int64), long, part[is_long], short, part[~is_long],
        split(long, host), data, is_kept,
    )  # fmt: skip


def places_of(profile: ProfileData, found: Examined) -> dict[str, Values]:
    """Where to look for the causes of `found.gaps`, by name of `PLACES`, [gaps]."""
    return kept(profile, _places_of_all) if found.is_kept else _places(profile, found)


def _places(profile: ProfileData, found: Examined) -> dict[str, Values]:
    return places(found.gaps, found.causes, Host(profile, found.data))


def _places_of_all(profile: ProfileData) -> dict[str, Values]:
    return _places(profile, kept(profile, _of_all))


class WindowGaps(NamedTuple):
    """The gaps within windows, from the start of each window.

    Parameters
    ----------
    gaps : Gaps, those of at least `SHORTEST` ns; in a gap before the first work of a GPU, `before`
        is that work too
    window : int32 [gaps]
    causes : Split of `gaps`
    short, after : int64 [windows], ns, the sum of the shorter gaps, and the time after the last
        work of the GPU, which no gap has
    """

    gaps: Gaps
    window: Int32
    causes: Split
    short: Int64
    after: Int64

    def by_window(self, rows: Int64 | None = None) -> Int64:
        """The time of each cause, ns [rows, causes]; the sum of a window is its idle time.

        rows : some windows, each once; None for all
        """
        n, place = len(self.short), self.window
        if rows is not None:
            n, of_window = len(rows), np.full(n, -1, np.int32)
            of_window[rows] = np.arange(n, dtype=np.int32)
            place = take(of_window, self.window)
        found = self.causes.parts.of_windows(place, n)
        found[:, Cause.SHORT] += self.short if rows is None else self.short[rows]
        found[:, Cause.UNKNOWN] += self.after if rows is None else self.after[rows]
        return found

    def of_cause(self, cause: Cause) -> Int64:
        """The time of a cause in each window, ns [windows]."""
        parts = self.causes.parts
        is_wanted = (parts.cause == cause).view(np.uint8)
        window = take(self.window, parts.gap)
        found = sum_where(window, parts.ns, is_wanted, len(self.short))
        if cause == Cause.SHORT:
            found += self.short
        if cause == Cause.UNKNOWN:
            found += self.after
        return found

    def totals(self, wanted: Bools) -> Int64:
        """The time of each cause in the wanted windows, ns [causes]; wanted : bool [windows]."""
        parts = self.causes.parts
        inside = take(wanted, self.window)
        found = sum_where(
            parts.cause.astype(np.int32), parts.ns, inside[parts.gap].view(np.uint8), len(Cause)
        )
        found[Cause.SHORT] += self.short[wanted].sum()
        found[Cause.UNKNOWN] += self.after[wanted].sum()
        return found


def gaps_of_steps(profile: ProfileData, steps: StepsOfKernels) -> WindowGaps:
    """The gaps within all steps, on all GPUs; kept. Reads the file again on first use.

    Windows are those of `windows_of(profile, steps)`.
    """
    return kept(profile, _gaps_of_steps, steps)


def _gaps_of_steps(profile: ProfileData, steps: StepsOfKernels) -> WindowGaps:
    return gaps_in_windows(windows_of(profile, steps), Host(profile))


def gaps_in_windows(windows: Windows, host: Host) -> WindowGaps:
    """The gaps without selected work.

    windows : those of a GPU do not overlap
    """
    order, bounds = windows.in_lanes(windows.is_known)
    order = order[np.lexsort((windows.start[order], windows.lane[order]))]
    start, end, work = windows.start[order], windows.end[order], windows.lanes.selected
    gaps, place, of_short = work.idle((start, end), bounds, SHORTEST)
    short, after = np.zeros((2, len(windows)), np.int64)
    short[order] = of_short
    last = work.spans[1][windows.lane[order]]
    after[order] = np.maximum(end - np.maximum(start, last), 0)
    return WindowGaps(gaps, take(order.astype(np.int32), place), split(gaps, host), short, after)
