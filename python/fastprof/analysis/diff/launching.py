"""How far ahead of the GPU the host is: launches, their cost, and starved kernels."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.launch_times import launch_times
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int64
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["LAUNCHING", "launching"]

LAUNCHING: Final = ("launches", "launch_ns", "launched", "starved")


def launching(profile: Profile, windows: Windows, steps: StepsOfKernels) -> dict[str, Int64]:
    """What is launched in the step of each window, by the names in LAUNCHING; int64 [rows].

    launches : API calls that launch kernels or graphs; launch_ns: their host time, ns
    launched : kernels and graphs that start after their launch; starved: those that find an empty
        queue
    """
    found = {name: np.zeros(len(windows), np.int64) for name in LAUNCHING}
    api = profile.api
    if not len(api):
        return found
    times = launch_times(profile, api)
    n = len(times.call)
    is_first, host = np.zeros(n, bool), np.zeros(n, np.int64)
    is_first[times.first], host[times.first] = True, times.host
    on_time = times.known & ~times.is_early
    one = np.ones(n, np.int64)
    sums = ((one, is_first), (host, is_first), (one, on_time), (one, times.is_starved))
    for lane, rows in windows.by_lane():
        work = lane.selected.rows
        of_steps = Grouping(take(steps.of_kernel, work), len(steps))
        for name, (values, which) in zip(LAUNCHING, sums, strict=True):
            found[name][rows] = of_steps.sum_where(values[work], which[work])[windows.step[rows]]
    return found
