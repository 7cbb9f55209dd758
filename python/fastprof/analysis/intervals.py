"""Sums over time intervals: when a GPU works, and when it does not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import COMMUNICATION, COMPUTE, COPY, ns_with, sweep, work_of_device
from fastprof.model.arrays import Bools, Int64
from fastprof.profile.profile import Profile

__all__ = ["Busy", "BusyTime", "busy_by_device"]


class Busy(NamedTuple):
    """The time line of a GPU, ns.

    Parameters
    ----------
    span : from the start of its first to the end of its last work
    busy : during which at least one kernel, copy or memset runs, on any stream
    """

    span: int
    busy: int

    @property
    def idle(self) -> int:
        """The rest of the span."""
        return self.span - self.busy


def busy_by_device(profile: Profile, rows: Bools | None = None) -> dict[int, Busy]:
    """Span and busy time of each GPU with work; empty if the file has no times.

    rows : the work to count, bool [kernels]; None for all
    """
    found = {}
    for device, work in work_of_device(profile, rows).items():
        if device < 0:
            continue
        first, last = work.span
        by_mask = sweep(work, (np.array([first]), np.array([last])))
        busy = ns_with(by_mask, COMPUTE | COMMUNICATION | COPY)
        found[device] = Busy(last - first, int(busy[0]))
    return found


class BusyTime:
    """The time during which at least one of some intervals runs.

    Attributes
    ----------
    start : int64 [intervals], ns
    end : int64 [intervals], ns, the last end of this interval and those before it
    """

    def __init__(self, start: Int64, end: Int64) -> None:
        """Add up intervals, which are in order of start."""
        self.start, self.end = start, np.maximum.accumulate(end)
        before = np.concatenate([start[:1], self.end[:-1]])
        self._busy = np.cumsum(np.maximum(end - np.maximum(start, before), 0))

    def until(self, time: Int64) -> Int64:
        """ns [times] of busy time before each time."""
        n = np.searchsorted(self.start, time, "left") - 1
        running = np.maximum(self.end[n] - time, 0)
        return np.where(n >= 0, self._busy[n] - running, 0)
