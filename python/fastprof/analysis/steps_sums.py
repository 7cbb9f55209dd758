"""What is launched in each step, and what the host does meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.host_states import (
    SETUP,
    State,
    host_states,
    launching_threads,
)
from fastprof.analysis.steps_windows import Windows
from fastprof.analysis.thread_events import piece_rows
from fastprof.analysis.utilisation import model_products
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Ints
from fastprof.model.devices import Device
from fastprof.model.table import Cells, Floats
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

HOST_TIMES = ("sync_ns", "data_loading_ns", "alloc_ns")


def launched_work(
    profile: Profile, windows: Windows, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, Cells]:
    """The work launched in each step on each GPU: kernels, flops and mfu, [rows]."""
    flops, model = numbers(profile, "flops"), model_products(profile, devices)
    work = windows.lanes.selected
    rows = work.work.rows
    groups = Grouping(windows.rows_of(work.numbers(), take(steps.of_kernel, rows)), len(windows))
    own = take(flops, rows)
    sums = groups.stats(own)
    mfu = np.full(len(windows), np.nan)
    if model is not None:
        peaks = np.array([model[1].get(each, np.nan) for each in windows.lanes.device.tolist()])
        wall = windows.wall.astype(np.float64)
        capacity = np.where(wall > 0, wall * 1e-9 * peaks[windows.lane], np.nan)
        mfu = groups.sum_where(own, take(model[0], rows, False)) / capacity
    known = np.where(sums.count > 0, sums.sum, -1)
    return {"kernels": Ints(groups.counts), "flops": Ints(known), "mfu": Floats(mfu)}


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
    every, bounds = windows.in_lanes()
    lane, thread = _launching(windows, launching, len(profile.api.threads.tid))
    counts = np.diff(bounds)[lane]
    for some in np.array_split(np.arange(len(lane)), int(counts.sum()) // _AT_ONCE + 1):
        rows = every[piece_rows(bounds[lane[some]], counts[some])]
        begin, end = (each[windows.step[rows]] for each in (steps.start, steps.end))
        time = states.covered(np.repeat(thread[some], counts[some]), begin, end)
        _add(found["sync_ns"], rows, time[:, State.SYNC] + time[:, State.BLOCKING_COPY])
        _add(found["alloc_ns"], rows, time[:, list(SETUP)].sum(axis=1))
        if has_loader:
            _add(found["data_loading_ns"], rows, time[:, State.DATA_LOADING])
    return found


_AT_ONCE: Final = 1 << 16  # windows of threads


def _launching(windows: Windows, launching: Int32, n_threads: int) -> tuple[Int64, Int32]:
    """The threads that launch work of a lane: the lane and the thread of each pair."""
    work = windows.lanes.work
    thread = take(launching, work.work.rows)
    pairs = np.unique((work.numbers() * np.int64(n_threads) + thread)[thread >= 0])
    return pairs // n_threads, (pairs % n_threads).astype(np.int32)


def _add(column: Int64, rows: Int64, ns: Int64) -> None:
    """Add to rows, which may repeat; -1 is unknown and becomes known."""
    column[rows] = np.maximum(column[rows], 0)
    np.add.at(column, rows, ns)
