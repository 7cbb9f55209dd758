"""The time line of counted steps: which work and which gap takes each moment of a GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import Gaps, GpuWork, gaps, own_ns
from fastprof.analysis.idle_causes import Cause, Host, split
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int32, Int64

__all__ = ["Own", "idle_by_cause", "own_work"]

_SHORT_NS = 1000  # the causes of shorter gaps are not examined


class Own(NamedTuple):
    """The busy time of windows by the work that it belongs to; see `gpu_work.own_ns`.

    Parameters
    ----------
    row : int32 [pieces], kernel rows; a kernel has a piece in each window in which it runs
    window : int32 [pieces], rows of the windows
    ns : int64 [pieces]; the sum of a window is its busy time
    """

    row: Int32
    window: Int32
    ns: Int64


def own_work(windows: Windows) -> Own:
    """Divide the busy time of each window among its work.

    windows : those of a GPU do not overlap
    """
    found = []
    for lane, rows in windows.by_lane():
        order = rows[np.argsort(windows.start[rows], kind="stable")]
        start, end = windows.start[order], windows.end[order]
        work = lane.selected
        first = np.searchsorted(end, work.start, "right")
        last = np.searchsorted(start, np.maximum(work.end, work.start + 1), "left")
        n = np.maximum(last - first, 0)
        piece = np.repeat(np.arange(len(work)), n)
        place = np.arange(len(piece)) - np.repeat(np.cumsum(n) - n, n) + first[piece]
        begin = np.maximum(work.start[piece], start[place])
        finish = np.minimum(work.end[piece], end[place])
        by_start = np.argsort(begin, kind="stable")
        piece, place = piece[by_start], place[by_start]
        cut = GpuWork(work.rows[piece], begin[by_start], finish[by_start], work.kind[piece])
        found.append(Own(cut.rows, order[place].astype(np.int32), own_ns(cut)))
    if not found:
        none = np.empty(0, np.int32)
        return Own(none, none, np.empty(0, np.int64))
    return Own._make(map(np.concatenate, zip(*found, strict=True)))


def idle_by_cause(windows: Windows, host: Host) -> Int64:
    """The idle time of each window by `Cause`, ns [windows, causes]; the sum is its idle time.

    windows : those of a GPU do not overlap
    """
    found = np.zeros((len(windows), len(Cause)), np.int64)
    for lane, rows in windows.by_lane():
        if not len(rows):
            continue
        order = rows[np.argsort(windows.start[rows], kind="stable")]
        start, end = windows.start[order], windows.end[order]
        cut, place = _cut(_all_gaps(lane.selected, int(start[0])), start, end)
        length = cut.end - cut.start
        is_long = length >= _SHORT_NS
        np.add.at(found[:, Cause.SHORT], order[place[~is_long]], length[~is_long])
        of_gaps = Gaps._make(each[is_long] for each in cut)
        found[order] += split(of_gaps, host, place[is_long], len(order)).of_windows
        # After the last work, nothing ends the gap.
        tail = np.maximum(end - np.maximum(start, lane.selected.span[1]), 0)
        found[order, Cause.UNKNOWN] += tail
    return found


def _all_gaps(work: GpuWork, begin: int) -> Gaps:
    """The gaps of a GPU, including the time before its first work."""
    found = gaps(work)
    if not len(work) or begin >= work.start[0]:
        return found
    first = work.rows[:1]
    return Gaps(
        np.append(begin, found.start),
        np.append(work.start[0], found.end),
        np.append(first, found.before),
        np.append(first, found.after),
    )


def _cut(found: Gaps, start: Int64, end: Int64) -> tuple[Gaps, Int64]:
    """The parts of gaps within windows, and the window of each.

    start, end : of the windows, ascending, which do not overlap
    """
    first = np.searchsorted(end, found.start, "right")
    last = np.searchsorted(start, found.end, "left")
    n = np.maximum(last - first, 0)
    part = np.repeat(np.arange(len(n)), n)
    place = np.arange(len(part)) - np.repeat(np.cumsum(n) - n, n) + first[part]
    cut = Gaps(
        np.maximum(found.start[part], start[place]),
        np.minimum(found.end[part], end[place]),
        found.before[part],
        found.after[part],
    )
    return cut, place
