"""What is launched in each step, and what the host does meanwhile."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fastprof._core._take import distinct, take
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.host_states import (
    SETUP,
    State,
    host_states,
    launching_threads,
)
from fastprof.analysis.steps_windows import Windows
from fastprof.analysis.utilisation import model_products
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints
from fastprof.model.devices import Device
from fastprof.model.table import Cells, Floats
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["HOST_TIMES", "host_times", "launched_work"]

HOST_TIMES = ("sync_ns", "data_loading_ns", "alloc_ns")


def launched_work(
    profile: Profile, windows: Windows, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, Cells]:
    """The work launched in each step on each GPU: kernels, flops and mfu, [rows]."""
    flops, model = numbers(profile, "flops"), model_products(profile, devices)
    kernels, known = np.zeros(len(windows), np.int64), np.full(len(windows), -1, np.int64)
    mfu = np.full(len(windows), np.nan)
    for lane, rows in windows.by_lane():
        work = lane.selected.rows
        of_steps = Grouping(take(steps.of_kernel, work), len(steps))
        step = windows.step[rows]
        kernels[rows] = of_steps.counts[step]
        own = take(flops, work)
        sums = of_steps.stats(own)
        known[rows] = np.where(sums.count > 0, sums.sum, -1)[step]
        if model is not None and lane.device in model[1]:
            wall = windows.wall[rows].astype(np.float64)
            capacity = np.where(wall > 0, wall * 1e-9 * model[1][lane.device], np.nan)
            mfu[rows] = of_steps.sum_where(own, take(model[0], work, False))[step] / capacity
    return {"kernels": Ints(kernels), "flops": Ints(known), "mfu": Floats(mfu)}


def host_times(profile: Profile, windows: Windows, steps: StepsOfKernels) -> dict[str, Int64]:
    """The host time of the threads that launch a GPU's work, by the names in HOST_TIMES.

    int64 [rows], ns, summed over threads; -1 if no launch, or no data loading at all, is recorded.
    """
    found = {name: np.full(len(windows), -1, np.int64) for name in HOST_TIMES}
    if not len(profile.api):
        return found
    states = kept(profile, host_states)
    launching = launching_threads(profile)
    has_loader = len(states.events[State.DATA_LOADING].row) > 0
    for lane, rows in windows.by_lane():
        used, _ = distinct(take(launching, lane.work.rows), len(profile.api.threads.tid))
        threads = [each for each in used if each >= 0]
        if not threads:
            continue
        begin, end = (each[windows.step[rows]] for each in (steps.start, steps.end))
        time = np.zeros((len(rows), len(State)), np.int64)
        for thread in threads:
            time += states.covered(np.full(len(rows), thread, np.int32), begin, end)
        found["sync_ns"][rows] = time[:, State.SYNC] + time[:, State.BLOCKING_COPY]
        found["alloc_ns"][rows] = time[:, list(SETUP)].sum(axis=1)
        if has_loader:
            found["data_loading_ns"][rows] = time[:, State.DATA_LOADING]
    return found
