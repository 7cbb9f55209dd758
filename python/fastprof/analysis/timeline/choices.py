"""Which stretches of a capture a time line offers: typical and slow steps, else the capture."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.columns import numbers
from fastprof.analysis.timeline.lanes import LaneSources, TimeWindow
from fastprof.model.arrays import Int64
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.steps.kernel_steps import StepsOfKernels


class Choice(NamedTuple):
    """A stretch to show.

    Parameters
    ----------
    title : such as "step 12 (median)"
    window : from its first to its last event of host or GPU, ns
    gpu : the step on the GPU, as in the report `steps`, ns; the window if not known
    is_step : whether it is a step
    """

    title: str
    window: TimeWindow
    gpu: TimeWindow
    is_step: bool


def choices_of(recorded: LaneSources, steps: str | None, most: int) -> list[Choice]:
    """The median, the slowest and the first step, without repetition; else the capture.

    A stretch of more than `most` events is preceded by its first `most` ones.
    """
    if not (recorded.has_gpu or recorded.has_host):
        return []
    found = recorded.profile.find_steps(steps) if recorded.has_gpu else None
    starts = _starts(recorded)
    chosen = _of_capture(recorded) if found is None or found.source == "none" else _of_steps(found)
    if not chosen:
        chosen = _of_capture(recorded)
    first = chosen[0]
    end = _end_of_first(starts, first.window, most)
    if end < first.window.end:
        window = TimeWindow(first.window.start, end)
        name = "start of the capture" if not first.is_step else f"start of {first.title}"
        chosen.insert(0, Choice(name, window, window, False))
    return chosen


def _of_capture(recorded: LaneSources) -> list[Choice]:
    """From the first to the last event; with a GPU side, of its work and their launches."""
    profile = recorded.profile
    if recorded.has_gpu:
        start, launch = numbers(profile, "start"), numbers(profile, "launch_start")
        launched = launch[launch != NO_TIME]
        first = min(int(start.min()), int(launched.min(initial=NEVER)))
        window = TimeWindow(first, int(recorded.end.max()))
    else:
        tables = [each for each in (profile.ranges, profile.api) if len(each)]
        ends = np.concatenate([np.where(t.end == NEVER, t.start, t.end) for t in tables])
        window = TimeWindow(min(int(t.start[0]) for t in tables), int(ends.max()))
    return [Choice("entire capture", window, window, False)]


def _of_steps(steps: StepsOfKernels) -> list[Choice]:
    length = np.where(steps.gpu_length >= 0, steps.gpu_length, steps.length)
    known = np.flatnonzero((length >= 0) & (steps.gpu_end != NO_TIME))
    counted = known[steps.is_counted[known]]
    counted = counted if len(counted) else known
    if not len(counted):
        return []
    order = counted[np.argsort(length[counted], kind="stable")]
    names: dict[int, list[str]] = {}
    for row, name in (
        (int(order[(len(order) - 1) // 2]), "median"),
        (int(order[-1]), "slowest"),
        (int(known[0]), "first"),
    ):
        names.setdefault(row, []).append(name)
    several = len(np.unique(steps.pid)) > 1
    return [
        Choice(
            f"step {int(steps.number[row])}"
            + (f" of process {int(steps.pid[row])}" if several else "")
            + f" ({', '.join(each)})",
            *_windows(steps, row, int(length[row])),
            True,
        )
        for row, each in names.items()
    ]


def _windows(steps: StepsOfKernels, row: int, length: int) -> tuple[TimeWindow, TimeWindow]:
    """The window of a step, and its part on the GPU."""
    end = int(steps.gpu_end[row])
    begin = end - length if steps.gpu_length[row] >= 0 else int(steps.gpu_start[row])
    host = int(steps.start[row])
    start = min(begin, host) if host != NO_TIME else begin
    return TimeWindow(start, max(end, int(steps.end[row]))), TimeWindow(begin, end)


def _starts(recorded: LaneSources) -> list[Int64]:
    """The starts of all events, in order, by table."""
    profile, found = recorded.profile, []
    if recorded.has_gpu:
        # Work, and about two parts of idle time before it.
        found += [numbers(profile, "start")] * _PARTS
    if recorded.has_host:
        found += [profile.api.start, profile.ranges.start]
    return found


_PARTS: Final = 3


def _end_of_first(starts: list[Int64], window: TimeWindow, most: int) -> int:
    """The end of the part of a window with its first `most` events."""
    inside = [each[slice(*np.searchsorted(each, window))] for each in starts]
    if sum(map(len, inside)) <= most:
        return window.end
    return int(np.partition(np.concatenate(inside), most)[most])
