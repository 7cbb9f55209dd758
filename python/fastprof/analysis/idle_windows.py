"""The causes of idle time in the windows of steps."""

from __future__ import annotations

import numpy as np

from fastprof.analysis.idle_causes import Cause
from fastprof.analysis.idle_examined import Examined, examine
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int32, Int64
from fastprof.profile.profile import Profile

__all__ = ["examined_in", "idle_by_window"]


def idle_by_window(profile: Profile, windows: Windows) -> Int64:
    """The time of each cause in each window, ns [windows, causes]. Reads the file on first use.

    It adds up to the idle time after the first work of a window.
    """
    if not windows.lanes:
        return np.zeros((len(windows), len(Cause)), np.int64)
    found, window, short = examined_in(profile, windows)
    return found.of_windows(window, short, len(windows))


def examined_in(profile: Profile, windows: Windows) -> tuple[Examined, Int32, Int32]:
    """The gaps of the lanes, and the windows of `gaps` and of `short`, -1 for none."""
    found = examine(profile, {i: lane.work for i, lane in enumerate(windows.lanes)})

    def window_of(start: Int64, lane: Int32) -> Int32:
        of_lanes = np.split(start, np.searchsorted(lane, range(1, len(windows.lanes))))
        both = zip(of_lanes, windows.by_lane(), strict=True)
        return np.concatenate([windows.row_of(each, rows) for each, (_, rows) in both])

    window = window_of(found.gaps.start, found.device)
    return found, window, window_of(found.short.start, found.short_device)
