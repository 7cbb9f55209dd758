"""The time line of counted steps: which work takes each moment of a GPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof._core._sweep import Sweep
from fastprof._core._take import take
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int32, Int64


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
        order, start, end = _in_order(windows, rows)
        work = lane.selected
        piece, place, ns = Sweep(work.start, work.end, work.kind).own_in(start, end)
        found.append(Own(take(work.rows, piece), take(order, place), ns))
    if not found:
        none = np.empty(0, np.int32)
        return Own(none, none, np.empty(0, np.int64))
    if len(found) == 1:
        return found[0]
    return Own._make(map(np.concatenate, zip(*found, strict=True)))


def _in_order(windows: Windows, rows: Int64) -> tuple[Int32, Int64, Int64]:
    """Some windows in order of start: their rows, starts and ends."""
    order = rows[np.argsort(windows.start[rows], kind="stable")].astype(np.int32)
    return order, windows.start[order], windows.end[order]
