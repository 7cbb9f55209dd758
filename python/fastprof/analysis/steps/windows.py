"""The windows of steps on each GPU, what they launch, and the mean step that reports quote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import place, take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.gpu_work import (
    COMMUNICATION,
    COMPUTE,
    COPY,
    GpuWork,
    PartsOfWork,
    ns_with,
    owners,
    work_of_device,
)
from fastprof.analysis.grouping import Grouping, numbers
from fastprof.analysis.host.events import piece_rows
from fastprof.analysis.host.states import SETUP, State, host_states, launching_threads
from fastprof.analysis.roofline.utilisation import model_products
from fastprof.model.arrays import Bools, Floats64, Int32, Int64, among, unique
from fastprof.model.columns import Ints
from fastprof.model.devices import Device
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats
from fastprof.model.timeline import METRICS
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels


class ProcessLane(NamedTuple):
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

    Attributes
    ----------
    work, selected : PartsOfWork, all work, and the part that counts, by lane
    """

    def __init__(self, parts: PartsOfWork, pid: Int64, device: Int64, rows: Bools | None) -> None:
        self.work, self.pid, self.device = parts, pid, device
        self.selected = parts if rows is None else parts.selected(rows)

    def __len__(self) -> int:
        return len(self.pid)

    def __getitem__(self, i: int) -> ProcessLane:
        work = some = self.work[i]
        if self.selected is not self.work:
            some = self.selected[i]
        return ProcessLane(int(self.pid[i]), int(self.device[i]), work, some)

    def __iter__(self) -> Iterator[ProcessLane]:
        return map(self.__getitem__, range(len(self)))


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

    @computed_once
    def wall(self) -> Int64:
        """[rows] Length in ns; -1 if unknown."""
        return np.where(self.is_known, self.end - self.start, -1)

    def by_lane(self) -> Iterator[tuple[ProcessLane, Int64]]:
        """Each lane with its rows."""
        order, bounds = self.in_lanes()
        for i, lane in enumerate(self.lanes):
            yield lane, order[bounds[i] : bounds[i + 1]]

    def in_lanes(self, wanted: Bools | None = None) -> tuple[Int64, Int64]:
        """The wanted rows lane by lane, and where those of each lane begin, int64 [lanes + 1].

        wanted : bool [rows]; None for all
        """
        rows = np.arange(len(self)) if wanted is None else np.flatnonzero(wanted)
        rows = rows[np.argsort(self.lane[rows], kind="stable")]
        return rows, np.searchsorted(self.lane[rows], np.arange(len(self.lanes) + 1))

    def row_of(self, lane: Int32, time: Int64) -> Int32:
        """The row in which each time of a lane is, -1 for none: the last that begins before it.

        lane : int32 [times]
        """
        rows, bounds = self.in_lanes(self.is_known)
        last = place(self.start[rows], bounds[lane], bounds[lane + 1], time, True) - 1
        row = np.append(rows, -1)[np.where(last >= bounds[lane], last, -1)].astype(np.int32)
        result: Int32 = np.where(time < np.append(self.end, NO_TIME)[row], row, np.int32(-1))
        return result

    def rows_of(self, lane: Int32, step: Int32) -> Int32:
        """The row of each pair of a lane and a step, -1 for none."""
        size = int(max(self.step.max(initial=0), step.max(initial=0))) + 1
        keys = self.lane * np.int64(size) + self.step
        order = np.append(np.argsort(keys, kind="stable"), -1).astype(np.int32)
        keys, wanted = keys[order[:-1]], lane * np.int64(size) + step
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        rows: Int32 = np.where((step >= 0) & (keys[at] == wanted), order[at], np.int32(-1))
        return rows

    def by_kernel(self, n: int) -> Int32:
        """The row in which each of n kernels starts, on its lane; -1 for none."""
        result, work = np.full(n, -1, np.int32), self.lanes.work
        result[work.work.rows] = self.row_of(work.numbers(), work.work.start)
        return result

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


def windows_of(profile: ProfileData, steps: StepsOfKernels, rows: Bools | None = None) -> Windows:
    """The windows of all steps on the GPUs of their process; those of all work are kept.

    A window ends with the GPU work of its step and starts where the window of the preceding step
    ends: windows divide the time line. The process has one window per step on all its GPUs.
    Without steps, the window of a GPU reaches from its first to its last work.

    rows : the work that counts, bool [kernels]; None for all
    """
    every = kept(profile, _windows_of, steps)
    if rows is None or not len(every):
        return every
    lanes = every.lanes
    some = replace(every, lanes=Lanes(lanes.work, lanes.pid, lanes.device, rows))
    return some.take(_with_work(some, steps))


def _windows_of(profile: ProfileData, steps: StepsOfKernels) -> Windows:
    lanes = _lanes(profile)
    if not len(lanes):
        no_rows, no_times, nowhere = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, bool)
        return Windows(lanes, no_rows, no_rows, no_times, no_times, nowhere, nowhere, nowhere)
    lane_of, step = _pairs(lanes.pid, steps.pid)
    if steps.source == "none":
        start, end = (span[lane_of] for span in lanes.work.spans)
    else:
        start, end = (array[step] for array in _of_steps(steps))
    order = np.lexsort((lane_of, step))
    lane_of, step = lane_of[order], step[order]
    is_known = steps.gpu_end[step] != NO_TIME
    is_counted = steps.is_counted[step] & is_known
    if not is_counted.any():
        is_counted = is_known
    is_cut = steps.is_cut[step]
    return Windows(lanes, lane_of, step, start[order], end[order], is_known, is_cut, is_counted)


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
    work, n = windows.lanes.selected, len(steps)
    step = take(steps.of_kernel, work.work.rows)
    launched = (work.numbers().astype(np.int64) * n + step)[step >= 0]
    return np.flatnonzero(among(windows.lane.astype(np.int64) * n + windows.step, launched))


def _lanes(profile: ProfileData) -> Lanes:
    """Processes may use the same number for different GPUs."""
    parts, owner = work_of_device(profile).parts, owners(profile)
    work, device = parts.work, parts.keys.astype(np.int64)
    if not (owner != owner[:1]).any():
        return Lanes(parts, np.repeat(owner[:1], len(device)), device, None)
    pid, device = owner[work.rows], device[parts.numbers()]
    ids, first = alike([pid, device])
    order = np.lexsort((device[first], pid[first]))
    lane = np.empty(len(order), np.int32)
    lane[order] = np.arange(len(order))
    first = first[order]
    return Lanes(PartsOfWork(work, lane[ids]), pid[first], device[first], None)


def _of_steps(steps: StepsOfKernels) -> tuple[Int64, Int64]:
    """[steps] Start and end of each window."""
    end = steps.gpu_end.copy()
    for pid in unique(steps.pid):
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
    result = {name: np.full(len(windows), -1, np.int64) for name in TIMES}
    for rows, times in _times(windows):
        for name, time in times.items():
            result[name][rows] = time
    return result


def mean_times(windows: Windows) -> dict[str, float]:
    """The means of `times_of` over windows that are known."""
    sums = dict.fromkeys(TIMES, 0)
    for _, times in _times(windows):
        for name, time in times.items():
            sums[name] += int(time.sum())
    return {name: number / len(windows) for name, number in sums.items()}


def _times(windows: Windows) -> Iterator[tuple[Int64, dict[str, Int64]]]:
    """Some known rows at a time, and their times."""
    every, _ = windows.in_lanes(windows.is_known)
    for rows in np.array_split(every, len(every) // _AT_ONCE + 1):
        times = windows.start[rows], windows.end[rows]
        by_mask = windows.lanes.selected.ns_by_kinds(windows.lane[rows], times)
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
        yield rows, dict(zip(TIMES, values, strict=True))


_AT_ONCE: Final = 1 << 14  # windows


HOST_TIMES = ("sync_ns", "data_loading_ns", "alloc_ns")


def launched_work(
    profile: ProfileData, windows: Windows, steps: StepsOfKernels, devices: Mapping[int, Device]
) -> dict[str, ColumnData]:
    """The work launched in each step on each GPU: kernels, flops and mfu, [rows]."""
    flops, model = numbers(profile, "flops"), model_products(profile, devices)
    work = windows.lanes.selected
    rows = work.work.rows
    groups = Grouping(windows.rows_of(work.numbers(), take(steps.of_kernel, rows)), len(windows))
    own = take(flops, rows)
    sums = groups.stats(own)
    mfu = np.full(len(windows), np.nan)
    if model is not None:
        peaks = np.array([model[1].get(number, np.nan) for number in windows.lanes.device.tolist()])
        wall = windows.wall.astype(np.float64)
        capacity = np.where(wall > 0, wall * 1e-9 * peaks[windows.lane], np.nan)
        mfu = groups.sum_where(own, take(model[0], rows, False)) / capacity
    known = np.where(sums.count > 0, sums.sum, -1)
    return {"kernels": Ints(groups.counts), "flops": Ints(known), "mfu": Floats(mfu)}


def gpu_counters(profile: ProfileData, windows: Windows) -> dict[str, Floats64]:
    """By metric of METRICS, the mean of its samples in each window, [rows]; NaN if unknown."""
    result = {name: np.full(len(windows), np.nan) for name in METRICS}
    samples = profile.source.gpu_samples()
    if samples is None:
        return result
    every, bounds = windows.in_lanes()
    for lane, device in enumerate(windows.lanes.device.tolist()):
        rows = every[bounds[lane] : bounds[lane + 1]]
        for name, means in samples.means(device, windows.start[rows], windows.end[rows]).items():
            result[name][rows] = means
    return result


def host_times(profile: ProfileData, windows: Windows, steps: StepsOfKernels) -> dict[str, Int64]:
    """The host time of the threads that launch a GPU's work, by the names in HOST_TIMES.

    int64 [rows], ns, summed over threads; -1 if no launch, or no data loading at all, is recorded.
    """
    result = {name: np.full(len(windows), -1, np.int64) for name in HOST_TIMES}
    if not len(profile.api):
        return result
    states = kept(profile, host_states)
    launching = launching_threads(profile)
    has_loader = len(states.events[State.DATA_LOADING].row) > 0
    every, bounds = windows.in_lanes()
    lane, thread = _launching(windows, launching, len(profile.api.threads.tid))
    counts = np.diff(bounds)[lane]
    for some in np.array_split(np.arange(len(lane)), int(counts.sum()) // _SUMS_AT_ONCE + 1):
        rows = every[piece_rows(bounds[lane[some]], counts[some])]
        begin, end = (array[windows.step[rows]] for array in (steps.start, steps.end))
        time = states.covered(np.repeat(thread[some], counts[some]), begin, end)
        _add(result["sync_ns"], rows, time[:, State.SYNC] + time[:, State.BLOCKING_COPY])
        _add(result["alloc_ns"], rows, time[:, list(SETUP)].sum(axis=1))
        if has_loader:
            _add(result["data_loading_ns"], rows, time[:, State.DATA_LOADING])
    return result


OTHER_CLOCK: Final = 0.03  # a smaller difference of clocks is noise
_SUMS_AT_ONCE: Final = 1 << 16  # windows of threads


def _launching(windows: Windows, launching: Int32, n_threads: int) -> tuple[Int64, Int32]:
    """The threads that launch work of a lane: the lane and the thread of each pair."""
    work = windows.lanes.work
    thread = take(launching, work.work.rows)
    pairs = unique((work.numbers() * np.int64(n_threads) + thread)[thread >= 0])
    return pairs // n_threads, (pairs % n_threads).astype(np.int32)


def _add(column: Int64, rows: Int64, ns: Int64) -> None:
    """Add to rows, which may repeat; -1 is unknown and becomes known."""
    column[rows] = np.maximum(column[rows], 0)
    np.add.at(column, rows, ns)


class StepMeans(NamedTuple):
    """Means over the counted steps and their GPUs; without steps, over the GPUs of the capture.

    Parameters
    ----------
    n_steps, n_gpus : how many of each
    n_windows : pairs of a step and a GPU; all means divide by it
    wall, median, least, most : float, ns, the length of a step; of the capture, from the first to
        the last work of a GPU
    times : by the names of `steps_windows.TIMES`, ns; busy and idle add up to `wall`
    kernels : kernels, graphs, copies and memsets that a step launches
    is_step : False if the capture is one step
    unit : what the figures are of: step, iteration, capture, steady part or part
    """

    n_steps: int
    n_gpus: int
    n_windows: int
    wall: float
    median: float
    least: float
    most: float
    times: Mapping[str, float]
    kernels: float
    is_step: bool
    unit: str

    @property
    def busy(self) -> float:
        """ns, the time with GPU work."""
        return self.times["busy_ns"]

    @property
    def idle(self) -> float:
        """ns, the time without."""
        return self.times["idle_ns"]

    def text(self) -> str:
        """One line: length, busy and idle time."""
        wall = quantity(self.wall, "ns")
        if self.unit not in ("step", "iteration"):
            length = f"{self.unit} of {wall}"
        elif self.n_steps > 1:
            length = (
                f"{self.unit} {wall} (median {quantity(self.median, 'ns')}, "
                f"{quantity(self.least, 'ns')} to {quantity(self.most, 'ns')})"
            )
        else:
            length = f"{self.unit} {wall}"
        share = self.busy / self.wall if self.wall else 0.0
        return (
            f"{length}, {self.kernels:.0f} kernels and copies; GPU busy "
            f"{quantity(self.busy, 'ns')}, {share:.1%}, idle {quantity(self.idle, 'ns')}"
        )

    def basis(self) -> str:
        """What the figures are means of, and what counts, in a line."""
        several = [f"{self.n_gpus} GPUs"] if self.n_gpus > 1 else []
        if not self.is_step:
            of = f"mean of {several[0]}, each " if several else ""
            return f"{of}from its first to its last work; copies count as work"
        steps = [f"{self.n_steps} {self.unit}s"] if self.n_steps > 1 else []
        of = f"mean of {' on '.join([*steps, *several])}, each " if steps or several else ""
        return f"{of}from the end of GPU work before to the end of its own; copies count"


def step_means(profile: ProfileData, steps: StepsOfKernels) -> StepMeans | None:
    """The mean step, kept; None if the file has no GPU work or no times."""
    return kept(profile, _step_means, steps)


def _step_means(profile: ProfileData, steps: StepsOfKernels) -> StepMeans | None:
    every = windows_of(profile, steps)
    windows = every if every.is_counted.all() else every.take(np.flatnonzero(every.is_counted))
    if not len(windows):
        return None
    wall = windows.wall
    is_counted = np.zeros(len(steps), bool)
    is_counted[windows.step] = True
    return StepMeans(
        n_steps=len(unique(steps.number[windows.step])),
        n_gpus=len(unique(windows.lane)),
        n_windows=len(windows),
        wall=float(wall.mean()),
        median=float(np.median(wall)),
        least=float(wall.min()),
        most=float(wall.max()),
        times=mean_times(windows),
        kernels=np.count_nonzero(take(is_counted, steps.of_kernel, False)) / len(windows),
        is_step=steps.source != "none",
        unit=steps.word,
    )
