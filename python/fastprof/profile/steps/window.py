"""A part of a capture: the only part in which steps are looked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.markers import Meaning
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.quantity import quantity
from fastprof.model.trace import NEVER, NO_TIME, Trace, UserRanges
from fastprof.profile.steps import labels

_NS: Final = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_TIME: Final = regex(r"(?:(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|min)|0)?")
_EXPECTED: Final = "expected A:B with times such as 1.5s:4s or 200ms:, or the name of a range"


class Window(NamedTuple):
    """A part of a capture.

    Parameters
    ----------
    begin, end : ns on the clock of the trace; work is in the window that was launched in it
    text : the part in words, "" for all of the capture
    """

    begin: int
    end: int
    text: str = ""

    def contains(self, time: Int64) -> Bools:
        """Whether each time is in the window."""
        return (time >= self.begin) & (time < self.end)

    def encloses(self, start: Int64, end: Int64) -> Bools:
        """Whether each range is in the window; those that were never closed may be."""
        found: Bools = self.contains(start) & ((end <= self.end) | (end == NEVER))
        return found


def window_of(trace: Trace, meanings: Sequence[Meaning], text: str) -> Window:
    """The window that a user asks for.

    text : `A:B`, times since the first GPU work, of which each may be missing; or the name or glob
        pattern of ranges: from the first start to the last end of those that match

    Raises
    ------
    StepsError
        No range matches, or the times are in the wrong order or after the capture.
    """
    times = [_TIME.fullmatch(each.strip()) for each in text.split(":")]
    if len(times) != 2 or None in times:
        return _of_ranges(trace, meanings, text)
    first, last = span(trace)
    begin, end = (None if match is None or not match[0] else first + _ns(match) for match in times)
    if begin is None and end is None:
        return Window(int(NO_TIME), NEVER)
    window = Window(
        int(NO_TIME) if begin is None else begin,
        NEVER if end is None else end,
        text.replace(" ", ""),
    )
    if window.begin >= window.end:
        raise StepsError(f"{trace.name}: {text!r} ends before it begins: {_EXPECTED}")
    if window.begin >= last or window.end <= first:
        raise StepsError(
            f"{trace.name}: {text!r} has no work: the capture takes {quantity(last - first, 'ns')}"
        )
    return window


def _ns(time: re.Match[str]) -> int:
    """The ns of a match of `_TIME`."""
    return round(float(time[1]) * _NS[time[2]]) if time[1] else 0


def _of_ranges(trace: Trace, meanings: Sequence[Meaning], text: str) -> Window:
    own = trace.user_ranges
    used, place = np.unique(own.label, return_inverse=True)
    names = [meanings[each].name for each in used.tolist()]
    fits = np.array([name == text or fnmatchcase(name, text) for name in names], bool)
    if not fits.any():
        known = (
            f"; nearest: {labels.nearest(text, names)}" if names else "; the trace has no ranges"
        )
        raise StepsError(f"{trace.name}: no range matches {text!r}: {_EXPECTED}{known}")
    rows = np.flatnonzero(fits[place])
    begin, end = int(own.start[rows].min()), int(own.end[rows].max())
    return Window(begin, end, labels.shown(text))


def span(trace: Trace) -> tuple[int, int]:
    """The start of the first and the end of the last GPU work, ns; 0, 0 without any."""
    kernels = trace.kernels
    known = kernels.start != NO_TIME
    if not known.any():
        return 0, 0
    end = kernels.start[known] + np.maximum(kernels.duration[known], 0)
    return int(kernels.start[known].min()), int(end.max())


def inside(trace: Trace, window: Window) -> Bools:
    """[kernels] Whether each was launched in the window; without a launch, started in it."""
    kernels = trace.kernels
    launched = take(trace.launches.start, kernels.launch, NO_TIME)
    return window.contains(np.where(kernels.launch < 0, kernels.start, launched))


def within(trace: Trace, window: Window) -> Trace:
    """A trace with the launches, ranges and marks in the window, and all of its GPU work."""
    kernels, launches, about = trace.kernels, trace.launches, trace.about
    first, last = (
        int(each) for each in np.searchsorted(launches.start, [window.begin, window.end])
    )
    is_inside = (kernels.launch >= first) & (kernels.launch < last)
    steps = about.steps
    keep = window.encloses(steps.start, steps.end)
    return replace(
        trace,
        kernels=replace(
            kernels, launch=np.where(is_inside, kernels.launch - first, -1).astype(np.int32)
        ),
        launches=replace(
            launches,
            start=launches.start[first:last],
            thread=launches.thread[first:last],
            name=launches.name[first:last],
        ),
        about=replace(
            about,
            steps=ProfilerSteps(
                steps.number[keep], steps.start[keep], steps.end[keep], steps.pid[keep]
            ),
        ),
        user_ranges=_ranges_within(trace.user_ranges, window),
        step_marks=_ranges_within(trace.step_marks, window),
    )


def _ranges_within(ranges: UserRanges, window: Window) -> UserRanges:
    rows = np.flatnonzero(window.encloses(ranges.start, ranges.end))
    return UserRanges(ranges.start[rows], ranges.end[rows], ranges.thread[rows], ranges.label[rows])
