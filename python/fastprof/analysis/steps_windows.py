"""The time line of each GPU, divided into the windows of steps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.analysis.gpu_work import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    N_MASKS,
    GpuWork,
    PartsOfWork,
    ns_with,
    owners,
    sweep,
    work_of_device,
)
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import NO_TIME
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["TIMES", "Lane", "Lanes", "Windows", "times_of", "windows_of"]


class Lane(NamedTuple):
    """The work of a process on a GPU.

    Parameters
    ----------
    pid, device : -1 if not recorded
    work : all its work
    selected : the part that counts; `work` itself if all of it does
    """

    pid: int
    device: int
    work: GpuWork
    selected: GpuWork


class Lanes:
    """The lanes of a profile, in order of process and GPU; each is made when it is asked for.

    Parameters
    ----------
    parts : all work, by lane
    pid, device : int64 [lanes], -1 if not recorded
    rows : the work that counts, bool [kernels]; None for all
    """

    def __init__(self, parts: PartsOfWork, pid: Int64, device: Int64, rows: Bools | None) -> None:
        self._parts, self.pid, self.device = parts, pid, device
        self._selected = parts if rows is None else parts.selected(rows)

    def __len__(self) -> int:
        return len(self.pid)

    def __getitem__(self, i: int) -> Lane:
        work = some = self._parts[i]
        if self._selected is not self._parts:
            some = self._selected[i]
        return Lane(int(self.pid[i]), int(self.device[i]), work, some)

    def __iter__(self) -> Iterator[Lane]:
        return map(self.__getitem__, range(len(self)))

    def kernel_lanes(self, n: int) -> Int32:
        """The lane of each of n kernels."""
        found = np.full(n, -1, np.int32)
        found[self._parts.work.rows] = self._parts.numbers()
        return found


@dataclass(frozen=True)
class Windows:
    """The time of each step on each GPU: one row per step and lane, in order of step.

    Parameters
    ----------
    lanes : the lanes
    lane : int32 [rows], index into `lanes`
    step : int32 [rows], row of the StepsOfKernels
    start, end : int64 [rows], ns; equal where the step has no GPU work
    is_known : bool [rows], False without GPU work
    is_cut : bool [rows], whether the capture cuts the step; the window then starts at the step's
        first GPU work if the end of the work before is not recorded
    is_counted : bool [rows], whether means over steps and GPUs include the row; where the capture
        has only steps that do not count, they do
    """

    lanes: Lanes
    lane: Int32
    step: Int32
    start: Int64
    end: Int64
    is_known: Bools
    is_cut: Bools
    is_counted: Bools

    def __len__(self) -> int:
        return len(self.step)

    @cached_property
    def wall(self) -> Int64:
        """[rows] Length in ns; -1 if unknown."""
        return np.where(self.is_known, self.end - self.start, -1)

    def by_lane(self) -> Iterator[tuple[Lane, Int64]]:
        """Each lane with its rows."""
        order = np.argsort(self.lane, kind="stable")
        first = np.searchsorted(self.lane[order], np.arange(len(self.lanes) + 1))
        for lane, begin, end in zip(self.lanes, first[:-1], first[1:], strict=True):
            yield lane, order[begin:end]

    def row_of(self, time: Int64, rows: Int64) -> Int32:
        """The row in which each time is, -1 for none.

        time : ascending
        rows : those of one lane
        """
        rows = rows[self.is_known[rows]]
        first = np.append(np.searchsorted(time, self.start[rows]), len(time))
        after = np.minimum(np.searchsorted(time, self.end[rows]), first[1:])
        after = np.maximum(after, first[:-1])
        changes = np.column_stack([first[:-1], after]).ravel()
        lengths = np.diff(changes, prepend=0, append=len(time))
        row = np.full(len(lengths), -1, np.int32)
        row[1::2] = rows
        return np.repeat(row, lengths)

    def take(self, rows: Int64) -> Windows:
        """Some rows, in this order."""
        return Windows(
            self.lanes,
            self.lane[rows],
            self.step[rows],
            self.start[rows],
            self.end[rows],
            self.is_known[rows],
            self.is_cut[rows],
            self.is_counted[rows],
        )


def windows_of(profile: Profile, steps: StepsOfKernels, rows: Bools | None = None) -> Windows:
    """The windows of all steps on the GPUs of their process; those of all work are kept.

    A window ends with the GPU work of its step and starts where the window of the preceding step
    ends: windows divide the time line. The process has one window per step on all its GPUs.
    Without steps, the window of a GPU reaches from its first to its last work.

    rows : the work that counts, bool [kernels]; None for all
    """
    return kept(profile, _windows_of, steps) if rows is None else _windows_of(profile, steps, rows)


def _windows_of(profile: Profile, steps: StepsOfKernels, rows: Bools | None = None) -> Windows:
    lanes = _lanes(profile, rows)
    if not len(lanes):
        no_rows, no_times, nowhere = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, bool)
        return Windows(lanes, no_rows, no_rows, no_times, no_times, nowhere, nowhere, nowhere)
    lane_of, step = _pairs(lanes.pid, steps.pid)
    if steps.source == "none":
        start, end = np.array([lane.work.span for lane in lanes], np.int64)[lane_of].T
    else:
        start, end = (each[step] for each in _of_steps(steps))
    order = np.lexsort((lane_of, step))
    lane_of, step = lane_of[order], step[order]
    is_known = steps.gpu_end[step] != NO_TIME
    is_counted = steps.is_counted[step] & is_known
    if not is_counted.any():
        is_counted = is_known
    is_cut = steps.is_cut[step]
    made = Windows(
        lanes, lane_of, step, start[order], end[order], is_known, is_cut, is_counted
    )  # fmt: skip
    return made if rows is None else made.take(_with_work(made, steps))


def _pairs(lane: Int64, step: Int64) -> tuple[Int32, Int32]:
    """The lanes and steps that belong together: those of one process, or of an unknown one.

    lane, step : pid of each; those of lanes ascend
    """
    order = np.argsort(step, kind="stable").astype(np.int32)
    in_order = step[order]
    pids, first = np.unique(lane, return_index=True)
    ends = [np.searchsorted(in_order, pids, side) for side in ("left", "right")]
    unknown = order[: np.searchsorted(in_order, -1, "right")]
    lanes, steps = [], []
    for pid, begin, end, of, to in zip(pids, first, [*first[1:], len(lane)], *ends, strict=True):
        own = order if pid == -1 else np.concatenate([unknown, order[of:to]])
        lanes.append(np.repeat(np.arange(begin, end, dtype=np.int32), len(own)))
        steps.append(np.tile(own, end - begin))
    return np.concatenate(lanes), np.concatenate(steps)


def _with_work(windows: Windows, steps: StepsOfKernels) -> Int64:
    """The rows whose step launched selected work."""
    has_work = np.zeros(len(windows), bool)
    for lane, rows in windows.by_lane():
        of_steps = take(steps.of_kernel, lane.selected.rows)
        counts = np.bincount(of_steps + 1, minlength=len(steps) + 1)[1:]
        has_work[rows] = counts[windows.step[rows]] > 0
    return np.flatnonzero(has_work)


def _lanes(profile: Profile, rows: Bools | None) -> Lanes:
    """Processes may use the same number for different GPUs."""
    parts, owner = work_of_device(profile).parts, owners(profile)
    work, device = parts.work, parts.keys.astype(np.int64)
    if not (owner != owner[:1]).any():
        return Lanes(parts, np.repeat(owner[:1], len(device)), device, rows)
    pid, device = owner[work.rows], device[parts.numbers()]
    ids, first = alike([pid, device])
    order = np.lexsort((device[first], pid[first]))
    lane = np.empty(len(order), np.int32)
    lane[order] = np.arange(len(order))
    first = first[order]
    return Lanes(PartsOfWork(work, lane[ids]), pid[first], device[first], rows)


def _of_steps(steps: StepsOfKernels) -> tuple[Int64, Int64]:
    """[steps] Start and end of each window."""
    end = steps.gpu_end.copy()
    for pid in np.unique(steps.pid):
        own = np.flatnonzero((steps.pid == pid) & (end != NO_TIME))
        end[own] = np.maximum.accumulate(end[own])
    has_work = end != NO_TIME
    own = end - np.where(has_work, steps.gpu_start, end)
    length = np.where(steps.gpu_length < 0, own, steps.gpu_length)
    return end - np.maximum(length, 0), end


TIMES = (
    "busy_ns", "compute_ns", "communication_ns", "exposed_communication_ns",
    "hidden_communication_ns", "copy_ns", "exposed_copy_ns", "idle_ns",
)  # fmt: skip


def times_of(windows: Windows) -> dict[str, Int64]:
    """What the GPU does in each window, by the names in TIMES; int64 [rows], ns; -1 if unknown.

    busy_ns + idle_ns, and compute_ns + exposed_communication_ns + exposed_copy_ns + idle_ns, are
    the length of the window.
    """
    by_mask = np.zeros((len(windows), N_MASKS), np.int64)
    for lane, rows in windows.by_lane():
        rows = rows[windows.is_known[rows]]
        by_mask[rows] = sweep(lane.selected, (windows.start[rows], windows.end[rows]))
    communication = ns_with(by_mask, COMMUNICATION)
    exposed = ns_with(by_mask, COMMUNICATION, without=COMPUTE)
    values = (
        ns_with(by_mask, COMPUTE | COMMUNICATION | COPY),
        ns_with(by_mask, COMPUTE),
        communication,
        exposed,
        communication - exposed,
        ns_with(by_mask, COPY),
        ns_with(by_mask, COPY, without=COMPUTE | COMMUNICATION),
        by_mask[:, 0],
    )
    return {
        name: np.where(windows.is_known, each, -1) for name, each in zip(TIMES, values, strict=True)
    }
