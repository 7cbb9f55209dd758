"""The gaps of a GPU on its time line: a segment per gap and cause."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.idle_causes import Cause, Host, split
from fastprof.model.arrays import Int32, Int64

__all__ = ["SHORTEST", "Idle", "idle_between"]

SHORTEST: Final = 1000  # ns: shorter gaps are not examined, as in the report `idle`
# The host prepares the launch, the call runs, the GPU begins.
_ORDER: Final = np.array(
    [*(each for each in Cause if each not in (Cause.LATENCY, Cause.DEPENDENCY)),
     Cause.LATENCY, Cause.DEPENDENCY]
)  # fmt: skip


class Idle(NamedTuple):
    """The parts of gaps, in order of start; the parts of a gap follow each other.

    The length of each part is that of the report `idle`; within a gap, parts are in order of cause,
    not of time.

    Parameters
    ----------
    start, end : int64 [parts], ns
    cause : int32 [parts], a `Cause`
    after : int64 [parts], kernel row of the work that begins at the end of the gap
    """

    start: Int64
    end: Int64
    cause: Int32
    after: Int64


def idle_between(every: Gaps, host: Host, begin: int, end: int) -> Idle:
    """The gaps of a GPU that overlap a window, undivided by its limits.

    every : the gaps of the GPU
    begin, end : ns, the window
    """
    inside = np.flatnonzero((every.end > begin) & (every.start < end))
    some = Gaps._make(each[inside] for each in every)
    ns = np.zeros((len(inside), len(Cause)), np.int64)
    is_long = some.end - some.start >= SHORTEST
    ns[~is_long, Cause.SHORT] = (some.end - some.start)[~is_long]
    long = np.flatnonzero(is_long)
    parts = split(Gaps._make(each[long] for each in some), host).parts
    ns[long[parts.gap], parts.cause] = parts.ns
    ns = ns[:, _ORDER]
    gap, place = np.nonzero(ns)
    length = ns[gap, place]
    until = np.cumsum(length)
    before = np.concatenate([[0], until])[np.searchsorted(gap, gap)]
    start = some.start[gap] + until - length - before
    return Idle(
        start, start + length, _ORDER[place].astype(np.int32), some.after[gap].astype(np.int64)
    )
