"""Events of host threads: which one is open, last, or longest, for many instants at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NO_TIME

__all__ = ["ThreadEvents", "by_thread", "in_order"]


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
        found, end = np.full(len(thread), -1), np.full(len(thread), NO_TIME)
        for each, places in by_thread(thread):
            own = np.flatnonzero(self.thread == each)
            number = np.searchsorted(self.start[own], time[places], "left") - 1
            places, event = places[number >= 0], own[number[number >= 0]]
            found[places], end[places] = event, self.end[event]
        return found, end

    def longest(self, thread: Int32, begin: Int64, end: Int64) -> tuple[Int64, Int64]:
        """The event of the thread that takes most of each window, and its ns there.

        (-1, 0) if there is none.
        """
        found, ns = np.full((2, len(thread)), -1)
        for each, places in by_thread(thread):
            own = np.flatnonzero(self.thread == each)
            until = np.maximum.accumulate(self.end[own])
            first = np.searchsorted(until, begin[places], "right")
            counts = np.searchsorted(self.start[own], end[places], "left") - first
            counts = np.maximum(counts, 0)
            window = np.repeat(places, counts)
            offsets = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts)
            event = own[np.repeat(first, counts) + offsets]
            inside = np.minimum(self.end[event], end[window])
            inside -= np.maximum(self.start[event], begin[window])
            order = np.argsort(inside, kind="stable")  # the last one of each window stays
            found[window[order]] = event[order]
            ns[window[order]] = inside[order]
        return np.where(ns > 0, found, -1), np.maximum(ns, 0)


def by_thread(thread: Int32) -> Iterator[tuple[int, Int64]]:
    """Each thread, and its places in an array."""
    for each in np.unique(thread[thread >= 0]).tolist():
        yield each, np.flatnonzero(thread == each)


def in_order(events: Sequence[ThreadEvents]) -> ThreadEvents:
    """Several events as one."""
    both = ThreadEvents._make(np.concatenate(each) for each in zip(*events, strict=True))
    order = np.argsort(both.start, kind="stable")
    return ThreadEvents._make(each[order] for each in both)
