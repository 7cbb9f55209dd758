"""Steps of which the recorder has lost GPU work: launches without their kernels.

The times of such a step are too small, so means leave it out where other steps are whole. Launches
whose stacks of Python lack their outer part are counted too; their times are right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.model.arrays import Bools, Int32, Int64, rows_by, unique
from fastprof.model.trace import NO_TIME, Trace, UserRanges
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.profile.steps.window import Window

_SEVERAL: Final = 4  # steps that a line names
_MUCH: Final = 0.01  # of the launches: less is a note, since every recording ends somewhere
_TOO_SMALL: Final = "so times of the GPU are too small"


def with_losses(trace: Trace, steps: StepsOfKernels, window: Window | None) -> StepsOfKernels:
    """The steps with `lost` and `incomplete`; whole steps only are counted, where there are any.

    window : the part of the trace that the steps are of; None for all
    """
    steps = _with_truncated(trace, steps, window)
    lost = trace.lost
    begin = steps.start.min() if steps.unit == "steady part" else NO_TIME
    inside = lost.start >= begin
    if window is not None:
        inside &= window.contains(lost.start)
    if not inside.any():
        return steps
    lost = lost.take(inside)
    share = len(lost) / (len(trace.launches) + len(trace.lost))
    if steps.unit != "step":
        text = f"{_lacks(trace, len(lost))}, {_TOO_SMALL}"
        return _incomplete(steps, np.array([len(lost)], np.int64), text, share >= _MUCH)
    counts = _in_steps(trace, steps, lost.start, lost.process)
    if not (steps.is_counted & (counts > 0)).any():  # they are cut, which notes say
        return replace(steps, lost=counts) if counts.any() else steps
    is_counted = steps.is_counted & (counts == 0)
    for _, rows in rows_by(steps.pid):
        if not is_counted[rows].any():
            is_counted[rows] = steps.is_counted[rows]
    text = f"{_lacks(trace, int(counts.sum()))}, in {_named(counts > 0, steps)}"
    is_left_out = (steps.is_counted & ~is_counted).any()
    if (is_counted & (counts > 0)).any():
        text += f", {_TOO_SMALL}"
    elif is_left_out:
        text += ", which means leave out"
    is_serious = bool(is_left_out) or share >= _MUCH
    steps = replace(steps, is_counted=is_counted)
    return _incomplete(steps, counts, text, is_serious)


def _incomplete(steps: StepsOfKernels, lost: Int64, text: str, is_serious: bool) -> StepsOfKernels:
    """is_serious : whether it comes before the answer"""
    notes = (text, *steps.notes)
    return replace(steps, lost=lost, incomplete=text if is_serious else "", notes=notes)


def _with_truncated(trace: Trace, steps: StepsOfKernels, window: Window | None) -> StepsOfKernels:
    """The steps with a note on launches whose stacks of Python are not whole."""
    launches, rows = trace.launches, trace.truncated
    if len(rows) == len(launches):  # the file begins inside of all stacks
        return steps
    if window is not None:
        rows = rows[window.contains(launches.start[rows])]
    n = len(rows)
    if not n:
        return steps
    where = ""
    if steps.unit == "step":
        process = take(trace.process_of_thread, launches.thread[rows])
        counts = _in_steps(trace, steps, launches.start[rows], process)
        where = f", {int(counts.sum())} in {_named(counts > 0, steps)}" if counts.any() else ""
    text = f"{n} of {len(launches)} launches lack the callers of their Python functions{where}"
    text += ": their layers and source lines may be unknown"
    return replace(steps, notes=(*steps.notes, text))


def ranges_without_work(trace: Trace) -> int:
    """The number of the user's ranges of which the file has launches, but no GPU work of them."""
    lost, users = trace.lost, trace.user_ranges
    if not len(lost) or not len(users):
        return 0
    used = np.zeros(len(trace.launches) + 1, bool)
    used[trace.kernels.launch] = True
    launches = np.flatnonzero(used[:-1])
    time, thread = trace.launches.start[launches], trace.launches.thread[launches]
    has_lost = _counts(users, lost.start, lost.thread) > 0
    return int(np.count_nonzero(has_lost & (_counts(users, time, thread) == 0)))


def _counts(ranges: UserRanges, time: Int64, thread: Int32) -> Int64:
    """[ranges] How many instants of the thread each range contains; time : ascending"""
    counts = np.zeros(len(ranges), np.int64)
    rows_of_thread = dict(rows_by(thread))
    for number, rows in rows_by(ranges.thread):
        if number in rows_of_thread:
            own = time[rows_of_thread[number]]
            begin, end = (np.searchsorted(own, time[rows]) for time in (ranges.start, ranges.end))
            counts[rows] = end - begin
    return counts


def _in_steps(trace: Trace, steps: StepsOfKernels, start: Int64, of: Int32) -> Int64:
    """[steps] How many launches lie in each step, on its process.

    start, of : [launches], ns and index into `trace.processes`
    """
    counts = np.zeros(len(steps), np.int64)
    rows_of_process = dict(rows_by(of))
    for process, pid in enumerate(trace.processes.tolist()):
        if process not in rows_of_process:
            continue
        own = np.flatnonzero((steps.pid == pid) | (steps.pid == -1))
        if not len(own):
            continue
        time = start[rows_of_process[process]]
        place = np.searchsorted(steps.start[own], time, "right") - 1
        inside = (place >= 0) & (time < steps.end[own[place]])
        counts += np.bincount(own[place[inside]], minlength=len(steps))
    return counts


def _lacks(trace: Trace, n: int) -> str:
    total = len(trace.launches) + len(trace.lost)
    return f"the file lacks the GPU work of {n} of {total} launches"


def _named(are_lossy: Bools, steps: StepsOfKernels) -> str:
    """The numbers of some steps, in words."""
    numbers = unique(steps.number[are_lossy])
    if len(numbers) > _SEVERAL:
        return f"{len(numbers)} of {len(unique(steps.number))} steps"
    words = "step" if len(numbers) == 1 else "steps"
    return f"{words} {', '.join(map(str, numbers.tolist()))}"
