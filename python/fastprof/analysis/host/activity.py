"""When host threads run operators and API calls, alone or with the other threads of a process."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from fastprof._core._take import place, take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.host.events import Grouped, ThreadEvents, grouped, in_order, piece_rows
from fastprof.analysis.host.states import HostStates
from fastprof.model.arrays import Int32, Int64
from fastprof.model.markers import Kind
from fastprof.profile.data import ProfileData

# A thread; all threads of its process; those, and the thread in the operating system.
Which = Literal["own", "process", "system"]


def system_waits(profile: ProfileData) -> ThreadEvents:
    """When threads are in functions of the operating system (rows of `profile.os_calls`), or
    switched out.

    Empty if the trace records neither; nsys does with `--trace osrt` and `--cpuctxsw`.
    """
    calls = profile.os_calls
    rows = np.arange(len(calls))
    of_calls = ThreadEvents(calls.thread, calls.start, calls.end, rows)
    return in_order([of_calls, _switched_out(profile)])


def _switched_out(profile: ProfileData) -> ThreadEvents:
    """From where each thread ceased to run to where it ran again."""
    switches = profile.cpu_switches
    order = np.argsort(switches.thread, kind="stable")
    thread, start = switches.thread[order], switches.start[order]
    is_out = switches.name.fits(lambda name: name == "out")[order]
    out = is_out[:-1] & (thread[1:] == thread[:-1])
    rows = np.flatnonzero(out)
    return in_order(
        [ThreadEvents(thread[rows], start[rows], start[rows + 1], np.full(len(rows), -1))]
    )


class _Pieces(NamedTuple):
    """Intervals inside windows, which they do not leave."""

    window: Int64
    start: Int64
    end: Int64


def _within(events: Grouped, thread: Int32, begin: Int64, end: Int64) -> _Pieces:
    """Intervals with the same union inside some windows of threads, in any order."""
    low, high = events.slices(thread)
    first = place(events.start, low, high, begin)
    counts = np.maximum(place(events.start, low, high, end) - first, 0)
    window, rows = np.repeat(np.arange(len(first)), counts), piece_rows(first, counts)
    # What is open at the start of a window is one interval up to the last end.
    opened = np.flatnonzero(first > low)
    until = np.minimum(events.end[first[opened] - 1], end[opened])
    return _Pieces(
        np.concatenate([window, opened]),
        np.concatenate([events.start[rows], begin[opened]]),
        np.concatenate(
            [np.minimum(events.end[rows], end[window]), np.maximum(until, begin[opened])]
        ),
    )


class HostActivity:
    """When threads run operators, API calls or are in one of the `HostStates`.

    Python functions and the user's own ranges do not count: a thread that waits for another one is
    inside them too. Windows of time must not overlap.

    system : see `system_waits`
    """

    def __init__(self, profile: ProfileData, states: HostStates, system: ThreadEvents) -> None:
        ranges, api = profile.ranges, profile.api
        operates = np.array([meaning.kind in _OPERATORS for meaning in ranges.meanings], bool)
        rows = np.flatnonzero(operates[ranges.label])
        of_ranges = ThreadEvents(ranges.thread[rows], ranges.start[rows], ranges.end[rows], rows)
        of_calls = ThreadEvents(api.thread, api.start, api.end, np.empty(0, np.int64))
        _, process = np.unique(api.threads.pid, return_inverse=True)
        self._process = process.astype(np.int32)
        self._events = [of_ranges, of_calls, *states.events]
        self._system = grouped(system.thread, system.start, system.end)

    @cached_property
    def _own(self) -> list[Grouped]:
        return [grouped(each.thread, each.start, each.end) for each in self._events]

    @cached_property
    def _of_process(self) -> list[Grouped]:
        return [
            grouped(take(self._process, each.thread), each.start, each.end) for each in self._events
        ]

    def next(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """The first instant in each window at which the thread is active, else its end."""
        found: Int64 = end.copy()
        for each in self._own:
            pieces = _within(each, thread, begin, end)
            is_active = pieces.end > pieces.start
            np.minimum.at(found, pieces.window[is_active], pieces.start[is_active])
        return found

    def covered(self, which: Which, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """ns [windows] during which the thread, or others, are active."""
        if which == "own":
            pieces = [_within(each, thread, begin, end) for each in self._own]
        else:
            process = take(self._process, thread)
            pieces = [_within(each, process, begin, end) for each in self._of_process]
        if which == "system":
            pieces.append(_within(self._system, thread, begin, end))
        window, start, until = map(np.concatenate, zip(*pieces, strict=True))
        order = np.lexsort((start, begin[window]))  # windows do not overlap
        window, start, until = window[order], start[order], until[order]
        until = np.maximum.accumulate(until)
        before = np.concatenate([start[:1], until[:-1]])
        busy = np.maximum(until - np.maximum(start, before), 0)
        found = np.zeros(len(thread), np.int64)
        np.add.at(found, window, busy)
        return found


_OPERATORS = (Kind.TORCH, Kind.ARGUMENT)
