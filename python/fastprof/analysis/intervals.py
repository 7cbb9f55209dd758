"""Sums over time intervals: when a GPU works, and when it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _cells
from fastprof._system.classes import NamedTuple
from fastprof.analysis.columns import numbers
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, RepeatedInts
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import devices_used


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


def busy_by_device(profile: ProfileData, rows: Bools | None = None) -> dict[int, Busy]:
    """Span and busy time of each GPU with work; empty if the file has no times.

    rows : the work to count, bool [kernels]; None for all
    """
    if "start" not in profile.names:
        return {}
    used = devices_used(profile.column("device")).tolist()
    ids, device = _ids(profile.column("device"))
    number = {each: i for i, each in enumerate(used)}
    begin, end, busy = _cells.busy(
        np.ascontiguousarray(numbers(profile, "start"), np.int64),
        np.ascontiguousarray(numbers(profile, "sil"), np.int64),
        ids,
        np.array([number.get(each, -1) for each in device.tolist()], np.int32),
        len(used),
        None if rows is None else rows.view(np.uint8),
    )
    lines = zip(used, begin.tolist(), end.tolist(), busy.tolist(), strict=True)
    return {each: Busy(last - first, time) for each, first, last, time in lines if first <= last}


def _ids(column: Column) -> tuple[Int32, npt.NDArray[Any]]:
    """The place of each number among some numbers, which contain all distinct ones."""
    if isinstance(column, RepeatedInts):
        return column.ids, column.distinct
    distinct, ids = np.unique(column.values, return_inverse=True)
    return ids.astype(np.int32), distinct


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
