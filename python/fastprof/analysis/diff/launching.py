"""How far ahead of the GPU the host is: launches, their cost, and starved kernels."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._launched import NO_GROUP, OTHER, launched
from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.analysis.launch_times import STARVED
from fastprof.analysis.stats.gpu import of_kinds
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int64
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

LAUNCHING: Final = ("launches", "launch_ns", "launched", "starved")


def launching(profile: Profile, windows: Windows, steps: StepsOfKernels) -> dict[str, Int64]:
    """What is launched in the step of each window, by the names in LAUNCHING; int64 [rows].

    launches : API calls that launch kernels or graphs; launch_ns: their host time, ns
    launched : kernels and graphs that start after their launch; starved: those that find an empty
        queue
    """
    api, n_steps = profile.api, len(steps)
    group = np.full(len(profile), NO_GROUP, np.int32)
    for i, lane in enumerate(windows.lanes):
        work = lane.selected.rows
        step = take(steps.of_kernel, work)
        group[work] = np.where(step < 0, np.int32(NO_GROUP), step + np.int32(i * n_steps))
    np.copyto(group, np.int32(OTHER), where=~of_kinds(profile, "kernel", "graph"))
    sums = launched(
        (group, api.of_kernel, numbers(profile, "start")),
        (api.start, api.end),
        n_steps * len(windows.lanes),
        STARVED,
    )
    place = windows.lane * np.int64(n_steps) + windows.step
    return {name: each[place] for name, each in zip(LAUNCHING, sums, strict=True)}
