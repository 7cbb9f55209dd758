"""The idle time of GPUs in the windows of steps, by cause."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import Gaps, idle_parts
from fastprof.analysis.idle_causes import Cause, Host, Split, split
from fastprof.analysis.idle_examined import SHORTEST
from fastprof.analysis.steps_windows import Windows, windows_of
from fastprof.model.arrays import Int32, Int64, joined
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["WindowGaps", "gaps_in_windows", "gaps_of_steps"]


class WindowGaps(NamedTuple):
    """The gaps within windows, from the start of each window.

    Parameters
    ----------
    gaps : Gaps, those of at least `SHORTEST` ns; in a gap before the first work of a GPU, `before`
        is that work too
    window : int32 [gaps]
    causes : Split of `gaps`
    by_window : int64 [windows, causes], ns; the sum of a window is its idle time
    """

    gaps: Gaps
    window: Int32
    causes: Split
    by_window: Int64


def gaps_of_steps(profile: Profile, steps: StepsOfKernels) -> WindowGaps:
    """The gaps within all steps, on all GPUs; kept. Reads the file again on first use.

    Windows are those of `windows_of(profile, steps)`.
    """
    return kept(profile, _gaps_of_steps, steps)


def _gaps_of_steps(profile: Profile, steps: StepsOfKernels) -> WindowGaps:
    return gaps_in_windows(windows_of(profile, steps), Host(profile))


def gaps_in_windows(windows: Windows, host: Host) -> WindowGaps:
    """The gaps without selected work.

    windows : those of a GPU do not overlap
    """
    by_window = np.zeros((len(windows), len(Cause)), np.int64)
    *columns, window = joined(chain([(*_NONE, _NONE.after)], _idle_parts(windows, by_window)))
    gaps = Gaps(*columns)
    causes = split(gaps, host)
    by_window += causes.parts.of_windows(window, len(windows))
    return WindowGaps(gaps, window, causes, by_window)


def _idle_parts(windows: Windows, by_window: Int64) -> Iterator[tuple[Int64 | Int32, ...]]:
    """The columns of the gaps of each lane, and the window of each gap.

    by_window : int64 [windows, causes], receives the times of short gaps, and after the last work
    """
    for lane, rows in windows.by_lane():
        rows = rows[windows.is_known[rows]]
        if not len(rows):
            continue
        rows = rows[np.argsort(windows.start[rows], kind="stable")].astype(np.int32)
        start, end = windows.start[rows], windows.end[rows]
        of_lane, place, short = idle_parts(lane.selected, (start, end), SHORTEST)
        if len(place):
            yield (*of_lane, rows[place].astype(np.int32))
        by_window[rows, Cause.SHORT] = short
        # After the last work, nothing ends the gap.
        by_window[rows, Cause.UNKNOWN] = np.maximum(
            end - np.maximum(start, lane.selected.span[1]), 0
        )


_NO_TIMES, _NO_ROWS = np.empty(0, np.int64), np.empty(0, np.int32)
_NONE = Gaps(_NO_TIMES, _NO_TIMES, _NO_ROWS, _NO_ROWS)
