"""When host threads run operators and API calls, alone or with the other threads of a process."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from fastprof.analysis.host_states import HostStates
from fastprof.analysis.intervals import BusyTime
from fastprof.analysis.thread_events import ThreadEvents, by_thread, in_order
from fastprof.model.arrays import Int32, Int64
from fastprof.model.markers import Kind
from fastprof.model.trace import NEVER
from fastprof.profile.profile import Profile

__all__ = ["HostActivity", "system_waits"]

# A thread; all threads of its process; those, and the thread in the operating system.
Which = Literal["own", "process", "system"]


def system_waits(profile: Profile) -> ThreadEvents:
    """When threads are in functions of the operating system (rows of `profile.os_calls`), or
    switched out.

    Empty if the trace records neither; nsys does with `--trace osrt` and `--cpuctxsw`.
    """
    calls = profile.os_calls
    rows = np.arange(len(calls))
    of_calls = ThreadEvents(calls.thread, calls.start, calls.end, rows)
    return in_order([of_calls, _switched_out(profile)])


def _switched_out(profile: Profile) -> ThreadEvents:
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


class _Thread(NamedTuple):
    """Intervals of one thread: starts in order, and the last end up to each interval."""

    start: Int64
    end: Int64

    def within(self, begin: Int64, end: Int64) -> tuple[Int64, Int64]:
        """Intervals with the same union inside some windows, in any order."""
        first = np.searchsorted(self.start, begin, "left")
        counts = np.searchsorted(self.start, end, "left") - first
        rows = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        # What is open at the start of a window is one interval up to the last end.
        opened = np.flatnonzero(first > 0)
        until = self.end[first[opened] - 1]
        return (
            np.concatenate([self.start[rows], begin[opened]]),
            np.concatenate([self.end[rows], np.maximum(until, begin[opened])]),
        )


class HostActivity:
    """When threads run operators, API calls or are in one of the `HostStates`.

    Python functions and the user's own ranges do not count: a thread that waits for another one is
    inside them too. Windows of time must not overlap.

    system : see `system_waits`
    """

    def __init__(self, profile: Profile, states: HostStates, system: ThreadEvents) -> None:
        ranges, api = profile.ranges, profile.api
        operates = np.array([meaning.kind in _OPERATORS for meaning in ranges.meanings], bool)
        rows = np.flatnonzero(operates[ranges.label])
        of_ranges = ThreadEvents(ranges.thread[rows], ranges.start[rows], ranges.end[rows], rows)
        of_calls = ThreadEvents(api.thread, api.start, api.end, np.empty(0, np.int64))
        events = [of_ranges, of_calls, *states.events, system]
        self._process = api.threads.pid
        self._events = [_split(each, len(self._process)) for each in events]
        self._threads: dict[int, list[_Thread]] = {}

    def next(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """The first instant in each window at which the thread is active, else its end."""
        found: Int64 = end.copy()
        for each, rows in by_thread(thread):
            times = self._during(each, "own", begin[rows], end[rows])
            if times is not None:
                at = begin[rows]
                place = np.searchsorted(times.start, at, "right")
                later = np.append(times.start, NEVER)[place]
                is_active = (place > 0) & (times.end[place - 1] > at)
                found[rows] = np.minimum(np.where(is_active, at, later), end[rows])
        return found

    def covered(self, which: Which, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """ns [windows] during which the thread, or others, are active."""
        found = np.zeros(len(thread), np.int64)
        for each, rows in by_thread(thread):
            times = self._during(each, which, begin[rows], end[rows])
            if times is not None:
                found[rows] = times.until(end[rows]) - times.until(begin[rows])
        return found

    def _during(self, thread: int, which: Which, begin: Int64, end: Int64) -> BusyTime | None:
        """The union of the activity in some windows, None for none."""
        of_process = np.flatnonzero(self._process == self._process[thread]).tolist()
        parts = [each for other in of_process for each in self._of(other)[:-1]]
        if which == "own":
            parts = self._of(thread)[:-1]
        elif which == "system":
            parts.append(self._of(thread)[-1])
        starts, ends = zip(*(each.within(begin, end) for each in parts), strict=True)
        start = np.concatenate(starts)
        order = np.argsort(start, kind="stable")
        return BusyTime(start[order], np.concatenate(ends)[order]) if len(order) else None

    def _of(self, thread: int) -> list[_Thread]:
        """The events of a thread; the last are those of the operating system."""
        if thread not in self._threads:
            self._threads[thread] = [
                _Thread(start[rows], np.maximum.accumulate(end[rows]))
                for start, end, bounds in self._events
                for rows in [slice(bounds[thread], bounds[thread + 1])]
            ]
        return self._threads[thread]


_OPERATORS = (Kind.TORCH, Kind.ARGUMENT)


def _split(events: ThreadEvents, n_threads: int) -> tuple[Int64, Int64, list[int]]:
    """Starts and ends thread by thread, in order, and where those of each thread begin."""
    thread = events.thread
    # Numbers of 16 bits are sorted in linear time.
    is_short = n_threads < 1 << 16
    order = np.argsort(thread.astype(np.uint16) if is_short else thread, kind="stable")
    counts = np.bincount(thread[thread >= 0], minlength=n_threads)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    # Unknown threads come last as 16 bits, else first.
    unknown = 0 if is_short else np.count_nonzero(thread < 0)
    return events.start[order], events.end[order], (bounds + unknown).tolist()
