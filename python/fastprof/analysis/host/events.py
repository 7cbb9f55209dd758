"""Events of host threads: which one is open, last, or longest, for many instants at once.

The ranges that are open on a thread at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from fastprof._core._take import place, take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData


class Grouped(NamedTuple):
    """Intervals of threads, or of groups of threads: thread by thread, each in order of start.

    Parameters
    ----------
    start : int64 [intervals], ns
    end : int64 [intervals], ns, the last end of this interval and of those of its thread before it
    bounds : int64 [threads + 1], where the intervals of each thread begin
    order : int64 [intervals], the events that they were
    """

    start: Int64
    end: Int64
    bounds: Int64
    order: Int64

    def first(self, thread: Int32, time: Int64, *, after: bool = False) -> Int64:
        """The first interval of each thread that starts at a time or later; or `after` it."""
        low, high = self.slices(thread)
        return place(self.start, low, high, time, after)

    def slices(self, thread: Int32) -> tuple[Int64, Int64]:
        """Where the intervals of each thread begin and end; threads without any: an empty slice."""
        known = (thread >= 0) & (thread < len(self.bounds) - 1)
        number = np.where(known, thread, 0)
        low = self.bounds[number]
        return low, np.where(known, self.bounds[np.minimum(number + 1, len(self.bounds) - 1)], low)


class BusyThreads:
    """The time during which at least one interval of each thread runs."""

    def __init__(self, intervals: Grouped) -> None:
        self._own, start, end = intervals, intervals.start, intervals.end
        before = np.concatenate([start[:1], end[:-1]])
        firsts = intervals.bounds[:-1][np.diff(intervals.bounds) > 0]
        before[firsts] = start[firsts]
        self._busy = np.cumsum(np.maximum(end - np.maximum(start, before), 0))

    def covered(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """ns [windows] of busy time of each thread in a window."""
        return self._until(thread, end) - self._until(thread, begin)

    def _until(self, thread: Int32, time: Int64) -> Int64:
        """ns of busy time before each time, and that of all threads before this one."""
        n = self._own.first(thread, time) - 1
        running = np.append(self._own.end, 0)[n] - time
        ran = n >= self._own.slices(thread)[0]
        return np.append(self._busy, 0)[n] - np.where(ran, np.maximum(running, 0), 0)


class ThreadEvents(NamedTuple):
    """Events of threads, in order of start; they may overlap.

    Parameters
    ----------
    thread : int32 [events], an index into `profile.api.threads`, -1 if unknown
    start, end : int64 [events], ns
    row : int64 [events], the row in the table that they come from, -1 for none
    """

    thread: Int32
    start: Int64
    end: Int64
    row: Int64

    def last(self, thread: Int32, time: Int64) -> tuple[Int64, Int64]:
        """The last event that each thread began before each time, and its end.

        (-1, NO_TIME) if there is none.
        """
        own = grouped(self.thread, self.start, self.end)
        number = own.first(thread, time) - 1
        known = number >= own.slices(thread)[0]
        event = np.append(own.order, -1)[np.where(known, number, -1)]
        return event, np.append(self.end, NO_TIME)[event]

    def longest(self, thread: Int32, begin: Int64, end: Int64) -> tuple[Int64, Int64]:
        """The event of the thread that takes most of each window, and its ns there.

        (-1, 0) if there is none.
        """
        found, ns = np.full((2, len(thread)), -1)
        own = grouped(self.thread, self.start, self.end)
        first = place(own.end, *own.slices(thread), begin, True)
        counts = np.maximum(own.first(thread, end) - first, 0)
        window = np.repeat(np.arange(len(thread)), counts)
        event = own.order[piece_rows(first, counts)]
        inside = np.minimum(self.end[event], end[window])
        inside -= np.maximum(self.start[event], begin[window])
        order = np.argsort(inside, kind="stable")  # the last one of each window stays
        found[window[order]] = event[order]
        ns[window[order]] = inside[order]
        return np.where(ns > 0, found, -1), np.maximum(ns, 0)


def piece_rows(first: Int64, counts: Int64) -> Int64:
    """The numbers first, first + 1, ... of several slices, one slice after another."""
    return np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


def grouped(thread: Int32, start: Int64, end: Int64, n_threads: int | None = None) -> Grouped:
    """Events in order of start, thread by thread; those of no thread (-1) are left out.

    n_threads : by default, up to the last thread with an event
    """
    n = int(thread.max(initial=-1)) + 1 if n_threads is None else n_threads
    # Numbers of 16 bits are sorted in linear time; the unknown thread is the last one.
    is_short = n < 1 << 16
    order = np.argsort(thread.astype(np.uint16) if is_short else thread, kind="stable")
    counts = np.bincount(thread[thread >= 0], minlength=n)
    unknown = len(thread) - int(counts.sum())
    order = order[: len(order) - unknown] if is_short else order[unknown:]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    starts = start[order]
    until = starts if end is start else end[order]
    if np.any((until[1:] < until[:-1]) & (thread[order[1:]] == thread[order[:-1]])):
        for first, last in pairwise(bounds.tolist()):
            np.maximum.accumulate(until[first:last], out=until[first:last])
    return Grouped(starts, until, bounds, order)


def in_order(events: Sequence[ThreadEvents]) -> ThreadEvents:
    """Several events as one."""
    both = ThreadEvents._make(np.concatenate(each) for each in zip(*events, strict=True))
    order = np.argsort(both.start, kind="stable")
    return ThreadEvents._make(each[order] for each in both)


class OpenRanges:
    """Looks up the ranges that are open on threads."""

    def __init__(self, profile: ProfileData) -> None:
        self._ranges = profile.ranges

    @cached_property
    def _own(self) -> Grouped:
        return grouped(self._ranges.thread, self._ranges.start, self._ranges.start)

    def innermost(self, thread: Int32, time: Int64) -> Int32:
        """The innermost range that is open on each thread at each time, a row, -1 for none."""
        if not np.any(thread >= 0):
            return np.full(len(thread), -1, np.int32)
        ranges, own = self._ranges, self._own
        place = own.first(thread, time, after=True) - 1
        known = place >= own.slices(thread)[0]
        row = np.where(known, np.append(own.order, -1)[place], -1).astype(np.int32)
        while (closed := np.flatnonzero(take(ranges.end, row, NEVER) <= time)).size:
            row[closed] = ranges.parent[row[closed]]
        return row

    def covering(self, thread: Int32, begin: Int64, end: Int64) -> Int32:
        """The innermost range of each thread that is open for most of a window, a row, -1 for none.

        It is open in the middle of the window, or does not take most of it.
        """
        ranges, found = self._ranges, self.innermost(thread, begin + (end - begin) // 2)
        places = np.arange(len(found))
        while len(places):
            row = found[places]
            since = np.maximum(take(ranges.start, row, 0), begin[places])
            until = np.minimum(take(ranges.end, row, 0), end[places])
            is_short = 2 * (until - since) <= (end - begin)[places]
            places = places[(row >= 0) & is_short]
            found[places] = ranges.parent[found[places]]
        return found
