"""The ranges that are open on a thread at a time."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.thread_events import Grouped, grouped
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NEVER
from fastprof.profile.profile import Profile


class OpenRanges:
    """Looks up the ranges that are open on threads."""

    def __init__(self, profile: Profile) -> None:
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
