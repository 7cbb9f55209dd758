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

    def covering(self, thread: Int32, begin: Int64, end: Int64, least: Int64) -> Int32:
        """The innermost range of each thread that is open for more than `least` ns of a window.

        Of those that are open in the middle of the window, or after one or three quarters of it. A
        row, -1 for none.
        """
        ranges, found = self._ranges, np.full(len(thread), -1, np.int32)
        for quarter in (2, 1, 3):
            rest = np.flatnonzero((found < 0) & (end > begin))
            row = self.innermost(thread[rest], begin[rest] + (end - begin)[rest] * quarter // 4)
            places = np.arange(len(rest))
            while len(places):
                inside, window = row[places], rest[places]
                until = np.minimum(take(ranges.end, inside, 0), end[window])
                since = np.maximum(take(ranges.start, inside, 0), begin[window])
                places = places[(inside >= 0) & (until - since <= least[window])]
                row[places] = ranges.parent[row[places]]
            found[rest] = row
        return found

    def _of(self, thread: int) -> tuple[Int32, Int64]:
        """Its rows, with -1 at the end, and their starts."""
        if thread not in self._of_thread:
            rows = np.flatnonzero(self._ranges.thread == thread).astype(np.int32)
            self._of_thread[thread] = np.append(rows, np.int32(-1)), self._ranges.start[rows]
        return self._of_thread[thread]
