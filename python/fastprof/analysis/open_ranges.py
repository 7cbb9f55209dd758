"""The ranges that are open on a thread at a time."""

from __future__ import annotations

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.thread_events import by_thread
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NEVER
from fastprof.profile.profile import Profile

__all__ = ["OpenRanges"]


class OpenRanges:
    """Looks up the ranges that are open on threads; keeps those of each thread."""

    def __init__(self, profile: Profile) -> None:
        self._ranges = profile.ranges
        self._of_thread: dict[int, tuple[Int32, Int64]] = {}

    def innermost(self, thread: Int32, time: Int64) -> Int32:
        """The innermost range that is open on each thread at each time, a row, -1 for none."""
        ranges, found = self._ranges, np.full(len(thread), -1, np.int32)
        for each, places in by_thread(thread):
            own, start = self._of(each)
            row = own[np.searchsorted(start, time[places], "right") - 1]
            while (closed := np.flatnonzero(take(ranges.end, row, NEVER) <= time[places])).size:
                row[closed] = ranges.parent[row[closed]]
            found[places] = row
        return found

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

    def _of(self, thread: int) -> tuple[Int32, Int64]:
        """Its rows, with -1 at the end, and their starts."""
        if thread not in self._of_thread:
            rows = np.flatnonzero(self._ranges.thread == thread).astype(np.int32)
            self._of_thread[thread] = np.append(rows, np.int32(-1)), self._ranges.start[rows]
        return self._of_thread[thread]
