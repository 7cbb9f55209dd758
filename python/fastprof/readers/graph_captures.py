"""API calls of any format to those that captured GPU work into a graph.

A capture lasts from cudaStreamBeginCapture to cudaStreamEndCapture (also hip... and cu...). Calls
of its thread belong to it, as do calls of threads without captures of their own: the backward pass
runs on another thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import NEVER, Activity

Rows = npt.NDArray[np.intp]

_BEGIN = regex(r"(?:cuda|cu|hip)StreamBeginCapture")
_END = regex(r"(?:cuda|cu|hip)StreamEndCapture")
_PUTS = (
    (Activity.KERNEL, regex(r"(?:cuda|cu|hip)\w*Launch\w*Kernel|cuLaunch\Z|cudaLaunch_")),
    (Activity.MEMCPY, regex(r"(?:cuda|cu|hip)Memcpy\w*(?:Async|WithStream)")),
    (Activity.MEMSET, regex(r"(?:cuda|cu|hip)Memset\w*Async")),
)
_INSTANTIATE = regex(r"(?:cuda|cu|hip)GraphInstantiate")
BEGINS, ENDS, INSTANTIATES = -2, -3, -4
EARLIEST = -NEVER - 1


def capture_names(names: Sequence[str | None]) -> Int32:
    """The effect of a call of each name during a capture, and of a call without a name at the end.

    The `Activity` that it adds to the graph; -1 for none; below -1, that it begins, ends or
    instantiates a capture.
    """
    results = [_meaning(name) if name else -1 for name in names]
    return np.array([*results, -1], np.int32)


def _meaning(name: str) -> int:
    if _BEGIN.match(name):
        return BEGINS
    if _END.match(name):
        return ENDS
    if _INSTANTIATE.match(name):
        return INSTANTIATES
    return next((int(kind) for kind, pattern in _PUTS if pattern.match(name)), -1)


def graphs_of_calls(
    meaning: Int32, start: Int64, thread: Int32, process_of_thread: Int32
) -> Int32 | None:
    """The capture that each call adds work to, numbered from 0 in order of time, -1 for none.

    Parameters
    ----------
    meaning : int32 [calls], see `capture_names`
    start, thread : [calls]

    Returns
    -------
    int32 [calls], or None if nothing was captured.
    """
    captures = _captures(meaning, start, thread)
    if not captures:
        return None
    busy = {of_thread for _, _, of_thread in captures}
    puts = np.flatnonzero(meaning >= 0)
    puts = puts[np.argsort(start[puts], kind="stable")]
    time, on, process = start[puts], thread[puts], take(process_of_thread, thread[puts])
    is_busy = np.isin(on, list(busy))
    graph = np.full(len(puts), -1, np.int32)
    for number, (begin, end, of_thread) in enumerate(captures):
        here = slice(np.searchsorted(time, begin, "right"), np.searchsorted(time, end))
        same = process[here] == (process_of_thread[of_thread] if of_thread >= 0 else -1)
        inside = same & ((on[here] == of_thread) | ~is_busy[here]) & (graph[here] < 0)
        graph[here][inside] = number
    graphs = np.full(len(meaning), -1, np.int32)
    graphs[puts] = graph
    return graphs


def graphs_without_marks(meaning: Int32, start: Int64, worked: Bools) -> Int32 | None:
    """`graphs_of_calls` for a capture file without begin and end of the captures.

    A capture consists of the calls that started no work before each instantiation of a graph. None
    if most calls started work.

    worked : [calls], whether a call started work on a GPU
    """
    puts = meaning >= 0
    if np.sum(worked[puts]) * 2 >= np.sum(puts):
        return None
    cuts = np.sort(start[meaning == INSTANTIATES])
    graph = np.searchsorted(cuts, start).astype(np.int32)
    return np.where(puts & ~worked, graph, np.int32(-1))


def captured_in(
    graph: Int32, worked: Bools, start: Int64, correlation: Int64
) -> tuple[Rows, Int32]:
    """The calls that added work to a graph, in order of time, and their graphs, renumbered.

    graph : [calls], see `graphs_of_calls`
    worked : [calls], whether a call started work on a GPU and therefore captured nothing
    correlation : of calls with the same id only the first counts: a runtime call may be recorded
        again as a driver call
    """
    rows = np.flatnonzero((graph >= 0) & ~worked)
    rows = rows[np.argsort(start[rows], kind="stable")]
    first = np.zeros(len(rows), bool)
    first[np.unique(correlation[rows], return_index=True)[1]] = True
    rows = rows[first | (correlation[rows] < 0)]
    _, number = np.unique(graph[rows], return_inverse=True)
    return rows, number.astype(np.int32)


def _captures(meaning: Int32, start: Int64, thread: Int32) -> list[tuple[int, int, int]]:
    """Begin, end and thread of each capture. A missing begin or end is that of the trace."""
    rows = np.flatnonzero((meaning == BEGINS) | (meaning == ENDS))
    rows = rows[np.argsort(start[rows], kind="stable")]
    open_since: dict[int, int] = {}
    seen: set[int] = set()
    results = []
    for what, time, on in zip(
        meaning[rows].tolist(), start[rows].tolist(), thread[rows].tolist(), strict=True
    ):
        if what == BEGINS:
            open_since.setdefault(on, time)
        elif on in open_since or on not in seen:
            results.append((open_since.pop(on, EARLIEST), time, on))
        seen.add(on)
    results += [(begin, NEVER, on) for on, begin in open_since.items()]
    return sorted(results)
