"""StepsOfKernels: the steps of a profile, and the step of every kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np

from fastprof._core._cells import busy
from fastprof._core._take import take
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import RepeatedInts
from fastprof.model.metadata import Steps
from fastprof.model.trace import NEVER, NO_TIME, Kernels, Trace

_SLOW_FIRST: Final = 1.5  # a first step longer than this many medians is a warm-up


@dataclass(frozen=True, eq=False)
class StepsOfKernels:
    """The steps of a profile, one row per step and process, in order of start.

    A kernel belongs to the step in which its process launched it, whatever the thread and whenever
    the GPU ran it. A kernel of a CUDA graph belongs to the step that launched the graph.

    Attributes
    ----------
    source : str
        What marks the steps: `ProfilerStep`, `range step *` (a range, its numbers folded),
        `range:REGEX`, `repetition`, `DataLoader`, `Optimizer.step`, `graph`, `anchor:REGEX`, or
        `none`: the capture is one step.
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
        Host time of a range; of steps without ranges (repetition, marks, anchor), `gpu_length`. -1
        if unknown.
    gpu_length : int64 [steps], ns
        From the end of the GPU work of the preceding step to the end of the step's own. The first
        step begins with its range, or where the GPU ends the work before; -1 if it has neither,
        and for a step without GPU work. These lengths divide the GPU's time line: a kernel that
        runs after the next step's last one counts there.
    is_counted : bool [steps]
        Whether averages include the step. False for a first step over 1.5 times the median, and for
        a last step by anchor that the end of the capture cuts.
    of_kernel : int32 [kernels]
        Row of the step, -1: outside of all steps, or launch not recorded.
    before_first : int
        How many kernels precede the first step of their process: by launch, by start on the GPU if
        the launch is not recorded.
    confidence : float or None
        For `repetition`, the share of the GPU time that repeats in every step, 0 to 1.
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
    is_counted: Bools
    of_kernel: Int32
    before_first: int = 0
    confidence: float | None = None

    def __len__(self) -> int:
        return len(self.number)

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


def of_launches(trace: Trace, steps: Steps) -> Int32:
    """[launches] The step of each API call: of its process, and open at its start. -1: none."""
    out = np.full(len(trace.launches), -1, np.int32)
    process = take(trace.process_of_thread, trace.launches.thread)
    for own, pid in enumerate(trace.processes.tolist()):
        rows = np.flatnonzero(steps.pid == pid)
        if not len(rows):
            continue
        calls = slice(None) if len(trace.processes) == 1 else np.flatnonzero(process == own)
        out[calls] = _step_of(trace.launches.start[calls], steps, rows)
    return out


def _step_of(time: Int64, steps: Steps, rows: Int64) -> Int32:
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
    steps: Steps,
    source: str,
    description: str,
    *,
    ends_known: bool = True,
    starts_known: bool | None = None,
    may_be_cut: int | None = None,
    confidence: float | None = None,
) -> StepsOfKernels:
    """Assign the kernels to steps, of which those of one process do not overlap.

    ends_known : whether the host's end of each step is recorded
    starts_known : whether its start is; by default as `ends_known`
    may_be_cut : 0: the capture may start within the first step, -1: end within the last
    """
    starts_known = ends_known if starts_known is None else starts_known
    of_kernel = take(of_launches(trace, steps), trace.kernels.launch)
    gpu_start, gpu_end = _gpu_times(trace.kernels, of_kernel, len(steps))
    end = np.where(steps.end == NEVER, np.maximum(gpu_end, steps.start), steps.end)
    gpu_length = np.full(len(steps), -1, np.int64)
    rows_of_process = [
        (process, np.flatnonzero(steps.pid == pid))
        for process, pid in enumerate(trace.processes.tolist())
    ]
    for process, rows in rows_of_process:
        rows = rows[gpu_end[rows] != NO_TIME]
        if len(rows):
            before = _end_before(trace.kernels, process, of_kernel, gpu_start[rows[0]])
            first = max(before, steps.start[rows[0]]) if starts_known else before
            ends = np.maximum.accumulate(gpu_end[rows])
            gpu_length[rows[1:]] = np.diff(ends)
            # With clocks that differ, the work may end before its range starts.
            gpu_length[rows[0]] = ends[0] - first if NO_TIME != first <= ends[0] else -1
    length = end - steps.start if ends_known else gpu_length
    is_counted, notes = np.ones(len(steps), bool), set()
    for _, rows in rows_of_process:
        is_counted[rows[:1]], note = _first_counts(length[rows])
        notes.add(note)
        if may_be_cut is not None and _is_cut(of_kernel, rows, may_be_cut):
            is_counted[rows[may_be_cut]] = False
            notes.add(_CUT[may_be_cut])
    return StepsOfKernels(
        source, description, tuple(sorted(notes - {""})), steps.number, steps.pid, steps.start,
        end, gpu_start, gpu_end, length, gpu_length, is_counted, of_kernel,
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
    pid = trace.processes if len(trace.processes) == 1 else [-1]
    return StepsOfKernels(
        "none", f"one step, all of the capture: {reason}", (), np.array([1]),
        np.array(pid, np.int64), start, end, gpu_start, gpu_end, end - start, end - start,
        np.array([True]), of_kernel,
    )  # fmt: skip


def timeless_step(n_kernels: int, reason: str) -> StepsOfKernels:
    """All kernels as one step of unknown times; `reason` explains why."""
    unknown, length = np.full(1, NO_TIME), np.array([-1])
    return StepsOfKernels(
        "none", f"one step, all kernels: {reason}", (), np.array([1]), np.array([-1]),
        unknown, unknown, unknown, unknown, length, length, np.array([True]),
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


def _end_before(kernels: Kernels, process: int, of_kernel: Int32, time: int) -> int:
    """End of the last GPU work of a process outside of all steps that starts before a time."""
    rows = np.flatnonzero((kernels.process == process) & (of_kernel < 0) & (kernels.start < time))
    ends = kernels.start[rows] + np.maximum(kernels.duration[rows], 0)
    return int(ends.max(initial=NO_TIME))


def _first_counts(length: Int64) -> tuple[bool, str]:
    """Whether averages include the first of these steps; the reason if not."""
    known = length[length >= 0]
    if len(known) < 2 or length[0] <= _SLOW_FIRST * np.median(known):
        return True, ""
    times = length[0] / max(np.median(known), 1)
    return False, f"averages exclude the first step: it takes {times:.1f} times the median"


def _is_cut(of_kernel: Int32, rows: Int64, which: int) -> bool:
    """Whether one of these steps has fewer kernels than each of the others."""
    counts = np.bincount(of_kernel + 1)[1:]
    counts = np.append(counts, np.zeros(rows.max(initial=-1) + 1, np.int64))[rows]
    return len(counts) > 1 and bool((counts[which] < np.delete(counts, which)).all())


_CUT: Final = {
    0: "averages exclude the first step: the capture starts within it",
    -1: "averages exclude the last step: the capture ends within it",
}


def _before_first(trace: Trace, steps: Steps, of_kernel: Int32) -> int:
    """How many kernels precede the first step of their process."""
    kernels, found = trace.kernels, 0
    outside = np.flatnonzero(of_kernel < 0)
    launch = take(trace.launches.start, kernels.launch[outside], NO_TIME)
    time = np.where(launch == NO_TIME, kernels.start[outside], launch)
    process = kernels.process[outside]
    for own, pid in enumerate(trace.processes.tolist()):
        starts = steps.start[steps.pid == pid]
        if len(starts):
            found += int(np.count_nonzero((time < starts[0]) & (process == own)))
    return found
