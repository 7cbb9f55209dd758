"""StepsOfKernels: the steps of a profile, and the step of every kernel."""

from __future__ import annotations

from math import nan
from typing import Final

import numpy as np

from fastprof._core._cells import busy
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Int32, Int64, rows_by
from fastprof.model.columns import RepeatedInts
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.trace import NEVER, NO_TIME, Kernels, Trace

_UNITS: Final = {"none": "capture", "steady": "steady part", "part": "part"}
_SLOW_FIRST: Final = 1.5  # a first step longer than this many medians is a warm-up
_LEAST: Final = 3  # steps from which a warm-up is told


@dataclass(frozen=True, eq=False)
class StepsOfKernels:
    """The steps of a profile, one row per step and process, in order of start.

    A kernel belongs to the step in which its process launched it, whatever the thread and whenever
    the GPU ran it. A kernel of a CUDA graph belongs to the step that launched the graph.

    Attributes
    ----------
    source : str
        What marks the steps: `ProfilerStep`, `range step *` (a range, its numbers folded),
        `range:REGEX`, `iteration` (of a serving engine), `repetition`, `DataLoader`,
        `Optimizer.step`, `graph`, `anchor:REGEX`;
        `none`: the capture is one step; `steady`: what follows the start-up is one step; `part`:
        the part of `Profile.trim` is one step.
    description : str
        One line, such as `6 steps (ProfilerStep#5 to #10)`; for `none`, with the reason.
    notes : tuple of str
        What a reader of averages must know, one line each.
    number : int64 [steps]
        The number in the label of the step, else 1, 2, ... in each process.
    pid : int64 [steps]
        The process; -1: not recorded, or all processes.
    start, end : int64 [steps], ns
        Host times, end exclusive; the smallest int64 in dict lines. Where the host's end is not
        recorded (an unclosed range, the last step of a repetition), `end` is the end of the step's
        last GPU work.
    gpu_start, gpu_end : int64 [steps], ns
        Start of the first and end of the last GPU work of the step; the smallest int64 if none.
    length : int64 [steps], ns
        `gpu_length`; in a trace without GPU work, the host time of the range. -1 if unknown.
    gpu_length : int64 [steps], ns
        From the end of the GPU work of the preceding step to the end of the step's own. The first
        step begins where the GPU ends the work before it, at the earliest with its range; -1 if
        neither is known, and for a step without GPU work. These lengths divide the GPU's time line:
        a kernel that runs after the next step's last one counts there.
    is_cut : bool [steps]
        Whether the capture starts or ends within the step, or with it: where no GPU work before
        the first step is recorded, the GPU may have begun earlier or later than its range.
    is_counted : bool [steps]
        Whether means include the step: it has GPU work, is not cut, and is not a first step over
        1.5 times the median of three or more, and no launch of it is lost. Slow steps count. If no
        step of a process is like that, all with a known length count.
    of_kernel : int32 [kernels]
        Row of the step, -1: outside of all steps, or launch not recorded.
    before_first : int
        How many kernels precede the first step of their process: by launch, by start on the GPU if
        the launch is not recorded.
    confidence : float or None
        For `repetition`, the share of the GPU time that repeats in every step, 0 to 1.
    lost : int64 [steps] or None
        Launches of kernels of which the trace has no GPU work; None: none in any step.
    incomplete : str
        What the trace lacks of the steps, in a line; "" if nothing that changes the answer.
    left_out : str
        What of the capture is left out before steps are told, in a line; "" if nothing is.
    labels : tuple of str
        [steps] For `iteration`, the name of the range of each; else empty.
    """

    source: str
    description: str
    notes: tuple[str, ...]
    number: Int64
    pid: Int64
    start: Int64
    end: Int64
    gpu_start: Int64
    gpu_end: Int64
    length: Int64
    gpu_length: Int64
    is_cut: Bools
    is_counted: Bools
    of_kernel: Int32
    before_first: int = 0
    confidence: float | None = None
    left_out: str = ""
    lost: Int64 | None = None
    incomplete: str = ""
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.number)

    @property
    def unit(self) -> str:
        """What a row is: step, capture, steady part or part."""
        return _UNITS.get(self.source, "step")

    @property
    def word(self) -> str:
        """What texts call a row: `unit`, but the iterations of an engine."""
        return self.source if self.source == "iteration" else self.unit

    @property
    def _known(self) -> Int64:
        """The known lengths of the counted steps."""
        return self.length[self.is_counted & (self.length >= 0)]

    @property
    def median(self) -> float:
        """Median length of the counted steps, ns; nan if no length is known."""
        return float(np.median(self._known)) if len(self._known) else nan

    @property
    def mean(self) -> float:
        """Mean length of the counted steps, ns; nan if no length is known."""
        return float(self._known.mean()) if len(self._known) else nan

    @property
    def spread(self) -> float:
        """Sample standard deviation of the lengths of the counted steps, ns; 0 for one step."""
        return float(self._known.std(ddof=1)) if len(self._known) > 1 else 0.0

    def column(self) -> RepeatedInts:
        """The column `step`: the number of each kernel's step, -1 outside."""
        return RepeatedInts(self.of_kernel + np.int32(1), np.append(np.int64(-1), self.number))


def step_of_launches(trace: Trace, steps: ProfilerSteps) -> Int32:
    """[launches] The step of each API call: of its process, and open at its start. -1: none."""
    out = np.full(len(trace.launches), -1, np.int32)
    process = take(trace.process_of_thread, trace.launches.thread)
    rows_of_pid, is_one = dict(rows_by(steps.pid)), len(trace.processes) == 1
    calls_of = {} if is_one else dict(rows_by(process))
    for own, pid in enumerate(trace.processes.tolist()):
        rows = rows_of_pid.get(pid)
        if rows is None or not (is_one or own in calls_of):
            continue
        calls = slice(None) if is_one else calls_of[own]
        out[calls] = _step_of(trace.launches.start[calls], steps, rows)
    return out


def _step_of(time: Int64, steps: ProfilerSteps, rows: Int64) -> Int32:
    """The last of these steps that begins at or before each time if it is open then, else -1.

    time : ascending
    """
    begin = np.searchsorted(time, steps.start[rows])
    end = np.searchsorted(time, steps.end[rows])
    further = np.append(begin[1:], len(time))
    inside = np.clip(end, begin, further) - begin
    # Times before the first step; inside of each step, and after it.
    lengths = np.stack([inside, further - begin - inside], axis=1).ravel()
    labels = np.stack([rows, np.full(len(rows), -1)], axis=1).ravel().astype(np.int32)
    return np.repeat(np.append(np.int32(-1), labels), np.append(begin[0], lengths))


def steps_of_kernels(
    trace: Trace,
    steps: ProfilerSteps,
    source: str,
    description: str,
    *,
    ends_known: bool = True,
    starts_known: bool | None = None,
    may_be_cut: int | None = None,
    are_closed: bool = False,
    are_alike: bool = True,
    confidence: float | None = None,
) -> StepsOfKernels:
    """Assign the kernels to steps, of which those of one process do not overlap.

    ends_known : whether the host's end of each step is recorded
    starts_known : whether its start is; by default as `ends_known`
    may_be_cut : the step that the capture may cut: 0 the first, -1 the last; None if ranges mark
        both ends of each step
    are_closed : whether the program closed all steps, whose numbers of kernels may differ: none is
        cut
    are_alike : whether the steps do alike work, so that a long first one is a warm-up
    """
    starts_known = ends_known if starts_known is None else starts_known
    of_kernel = take(step_of_launches(trace, steps), trace.kernels.launch)
    gpu_start, gpu_end = _gpu_times(trace.kernels, of_kernel, len(steps))
    end = np.where(steps.end == NEVER, np.maximum(gpu_end, steps.start), steps.end)
    gpu_length, notes = np.full(len(steps), -1, np.int64), []
    is_cut, is_slow = np.zeros(len(steps), bool), np.zeros(len(steps), bool)
    counts = np.bincount(of_kernel + 1, minlength=len(steps) + 1)[1:]
    with_work = np.flatnonzero(gpu_end != NO_TIME)
    rows_of_pid = dict(rows_by(steps.pid[with_work]))
    for process, pid in enumerate(trace.processes.tolist()):
        if pid not in rows_of_pid:
            continue
        rows = with_work[rows_of_pid[pid]]
        first, ends = rows[0], np.maximum.accumulate(gpu_end[rows])
        before = _end_before(trace, process, of_kernel, steps.start[first], first, gpu_start[first])
        begin = max(before, steps.start[first]) if starts_known else before
        gpu_length[rows[1:]] = np.diff(ends)
        # With clocks that differ, the work may end before its range starts.
        gpu_length[first] = ends[0] - begin if NO_TIME != begin <= ends[0] else -1
        is_slow[first], slow = _is_warm_up(gpu_length[rows]) if are_alike else (False, "")
        reasons = {int(first): slow} if slow else {}
        for place in (0, -1) if may_be_cut is None else (may_be_cut,):
            if not are_closed and _has_less(counts[rows], place, may_be_cut is None):
                is_cut[rows[place]] = True
                reasons.setdefault(int(rows[place]), _CUT[place])
        if before == NO_TIME or gpu_length[first] < 0:
            is_cut[first] = True
            reasons.setdefault(int(first), _NO_START)
        if len(rows) > 1:
            notes += [text.format(steps.number[row]) for row, text in reasons.items()]
    length = gpu_length if len(trace.kernels) or not ends_known else end - steps.start
    is_counted = (length >= 0) & ~is_cut & ~is_slow
    for pid in trace.processes.tolist():
        rows = steps.pid == pid
        if not is_counted[rows].any():
            is_counted[rows] = length[rows] >= 0
    return StepsOfKernels(
        source, description, tuple(dict.fromkeys(notes)), steps.number, steps.pid, steps.start,
        end, gpu_start, gpu_end, length, gpu_length, is_cut, is_counted, of_kernel,
        _before_first(trace, steps, of_kernel), confidence,
    )  # fmt: skip


def one_step(trace: Trace, reason: str) -> StepsOfKernels:
    """The capture as one step; `reason` explains why it has no steps."""
    kernels = trace.kernels
    of_kernel = np.zeros(len(kernels), np.int32)
    gpu_start, gpu_end = _gpu_times(kernels, of_kernel, 1)
    launched = trace.launches.start[kernels.launch[kernels.launch >= 0]]
    first = min(launched.min(initial=NEVER), gpu_start[0]) if len(kernels) else 0
    start = np.array([first], np.int64)
    end = np.maximum(gpu_end, start)
    length = np.where(gpu_end == NO_TIME, end, gpu_end) - np.where(
        gpu_start == NO_TIME, start, gpu_start
    )
    pid = trace.processes if len(trace.processes) == 1 else [-1]
    return StepsOfKernels(
        "none", f"one step, all of the capture: {reason}", (), np.array([1]),
        np.array(pid, np.int64), start, end, gpu_start, gpu_end, length, length,
        np.array([False]), np.array([True]), of_kernel,
    )  # fmt: skip


def part_step(
    trace: Trace, is_inside: Bools, begin: int, source: str, description: str
) -> StepsOfKernels:
    """A part of the capture as one step of all processes.

    It lasts from the end of the GPU work before, or the part's begin if that is later, to the end
    of its own work; without work before, from the start of its own.

    is_inside : [kernels], at least one
    begin : ns, on the host; the smallest int64 if the capture's begin is
    source : steady or part
    """
    kernels = trace.kernels
    of_kernel = np.where(is_inside, 0, -1).astype(np.int32)
    gpu_start, gpu_end = _gpu_times(kernels, of_kernel, 1)
    before = np.flatnonzero(~is_inside & (kernels.start < gpu_start[0]))
    ends = kernels.start[before] + np.maximum(kernels.duration[before], 0)
    since = max(int(ends.max()), begin) if len(before) else gpu_start[0]
    launched = trace.launches.start[kernels.launch[is_inside & (kernels.launch >= 0)]]
    start = launched.min(initial=gpu_start[0]) if begin == NO_TIME else begin
    pid = trace.processes if len(trace.processes) == 1 else [-1]
    length = gpu_end - np.minimum(since, gpu_start)
    return StepsOfKernels(
        source, description, (), np.array([1]), np.array(pid, np.int64),
        np.array([start], np.int64), gpu_end, gpu_start, gpu_end, length, length,
        np.array([False]), np.array([True]), of_kernel, len(before),
    )  # fmt: skip


def timeless_step(n_kernels: int, reason: str) -> StepsOfKernels:
    """All kernels as one step of unknown times; `reason` explains why."""
    unknown, length = np.full(1, NO_TIME), np.array([-1])
    return StepsOfKernels(
        "none", f"one step, all kernels: {reason}", (), np.array([1]), np.array([-1]),
        unknown, unknown, unknown, unknown, length, length, np.array([False]), np.array([True]),
        np.zeros(n_kernels, np.int32),
    )  # fmt: skip


def _gpu_times(kernels: Kernels, of_kernel: Int32, n: int) -> tuple[Int64, Int64]:
    """[steps] Start of the first and end of the last GPU work of each step."""
    starts, ends, _ = busy(
        kernels.start,
        kernels.duration,
        of_kernel + np.int32(1),
        np.arange(-1, n, dtype=np.int32),
        n,
    )
    has_work = starts <= ends
    return np.where(has_work, starts, NO_TIME), np.where(has_work, ends, NO_TIME)


def _end_before(
    trace: Trace, process: int, of_kernel: Int32, start: int, first: int, gpu_start: int
) -> int:
    """End of the last GPU work of a process before its first step.

    That is work launched before the step, or, if its launch is not recorded, work that precedes
    the step's own on the stream. The smallest int64 if there is none.

    start : of the step on the host
    first : row of the step
    gpu_start : start of its first GPU work
    """
    kernels = trace.kernels
    is_own = kernels.process == process
    outside = np.flatnonzero(is_own & (of_kernel < 0))
    if not len(outside):
        return int(NO_TIME)
    streams, _ = alike([kernels.configs.device, kernels.configs.stream])
    stream = take(streams, kernels.config)
    begins = np.full(int(streams.max(initial=-1)) + 1, gpu_start)
    inside = np.flatnonzero(is_own & (of_kernel == first))[::-1]
    begins[stream[inside]] = kernels.start[inside]  # the first of each stream stays
    launch = take(trace.launches.start, kernels.launch[outside], NO_TIME)
    is_before = np.where(
        launch == NO_TIME, kernels.start[outside] < begins[stream[outside]], launch < start
    )
    rows = outside[is_before]
    ends = kernels.start[rows] + np.maximum(kernels.duration[rows], 0)
    return int(ends.max(initial=NO_TIME))


def _is_warm_up(length: Int64) -> tuple[bool, str]:
    """Whether the first of these steps is far longer than the others; what a reader must know."""
    if len(length) < _LEAST or length[0] <= _SLOW_FIRST * np.median(length):
        return False, ""
    times = length[0] / max(np.median(length), 1)
    return True, f"means exclude the first step: it takes {times:.1f} times the median"


def _has_less(counts: Int64, place: int, are_marked: bool) -> bool:
    """Whether a step has fewer kernels than each of the others; if both of its ends are marked,
    less than half as many.
    """
    others = np.delete(counts, place)
    factor = 2 if are_marked else 1
    return len(others) > 0 and bool((factor * counts[place] < others).all())


_NO_START: Final = "means exclude step {}: the GPU work before it is not recorded"
_CUT: Final = {
    0: "means exclude step {}: the capture starts within it",
    -1: "means exclude step {}: the capture ends within it",
}


def _before_first(trace: Trace, steps: ProfilerSteps, of_kernel: Int32) -> int:
    """How many kernels precede the first step of their process."""
    kernels, result = trace.kernels, 0
    outside = np.flatnonzero(of_kernel < 0)
    launch = take(trace.launches.start, kernels.launch[outside], NO_TIME)
    time = np.where(launch == NO_TIME, kernels.start[outside], launch)
    process = kernels.process[outside]
    for own, pid in enumerate(trace.processes.tolist()):
        starts = steps.start[steps.pid == pid]
        if len(starts):
            result += int(np.count_nonzero((time < starts[0]) & (process == own)))
    return result
