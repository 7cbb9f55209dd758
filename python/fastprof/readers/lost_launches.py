"""API calls of any format to those that launch a kernel of which the trace has no GPU work.

The recorder has lost the work: its buffers were full or not yet delivered when recording ended, or
its clocks placed the work outside of the recording (pytorch issue 192021).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastprof._core._take import distinct, take
from fastprof.model.arrays import Bools, Int32, Int64, rows_by
from fastprof.model.trace import Activity, LostLaunches
from fastprof.readers.graph_captures import (
    EARLIEST,
    INSTANTIATES,
    capture_names,
    graphs_of_calls,
)


def lost_launches(
    meaning: Int32, start: Int64, thread: Int32, worked: Bools, process_of_thread: Int32
) -> LostLaunches:
    """The calls without GPU work that no graph captures.

    Parameters
    ----------
    meaning : int32 [calls], see `fastprof.readers.graph_captures.capture_names`
    start, thread : [calls], ns and index into threads
    worked : bool [calls], whether the trace has GPU work of the call
    process_of_thread : int32 [threads]
    """
    rows = np.flatnonzero((meaning == Activity.KERNEL) & ~worked)
    if not len(rows):
        return LostLaunches()
    graph = graphs_of_calls(meaning, start, thread, process_of_thread)
    if graph is not None:
        rows = rows[graph[rows] < 0]
    else:  # older recorders leave out begin and end of captures
        rows = rows[start[rows] > start[meaning == INSTANTIATES].max(initial=EARLIEST)]
    rows = rows[np.argsort(start[rows], kind="stable")]
    return LostLaunches(start[rows], take(process_of_thread, thread[rows]), thread[rows])


def lost_calls(
    strings: Sequence[str | None],
    name: Int32,
    start: Int64,
    thread: Int32,
    worked: Bools,
    process_of_thread: Int32,
) -> LostLaunches:
    """`lost_launches` of calls by their names.

    Parameters
    ----------
    strings : the names that `name` indexes, -1 for none
    name, start, thread, worked : [calls]
    """
    used, place = distinct(name, len(strings))
    of_name = capture_names([strings[i] if i >= 0 else None for i in used])
    meaning = of_name[place]
    rows = np.flatnonzero(meaning != -1)
    return lost_launches(meaning[rows], start[rows], thread[rows], worked[rows], process_of_thread)


def within_of_threads(thread: Int32, time: Int64, of: Int32, begin: Int64, end: Int64) -> Int64:
    """The instants of threads that lie in at least one interval of their thread, ascending.

    Parameters
    ----------
    thread, time : [instants]
    of, begin, end : [intervals], the thread, and ns
    """
    inside = np.zeros(len(time), bool)
    if len(of):
        intervals = dict(rows_by(of))
        for number, rows in rows_by(thread):
            own = intervals.get(number)
            if own is None:
                continue
            own = own[np.argsort(begin[own], kind="stable")]
            last = np.maximum.accumulate(end[own])
            place = np.searchsorted(begin[own], time[rows], "right") - 1
            inside[rows] = (place >= 0) & (time[rows] < last[place])
    return np.flatnonzero(inside)
