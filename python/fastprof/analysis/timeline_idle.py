"""The gaps of a GPU on its time line: a segment per gap and cause."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.idle_causes import Cause
from fastprof.analysis.idle_examined import Examined
from fastprof.model.arrays import Int32, Int64

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


def idle_between(found: Examined, device: int, begin: int, end: int) -> Idle:
    """The gaps of a GPU that overlap a window, undivided by its limits.

    device : index into `found.devices`
    begin, end : ns, the window
    """
    long = _inside(found.gaps, found.device, device, begin, end)
    short = _inside(found.short, found.short_device, device, begin, end)
    parts = found.causes.parts
    rows = slice(*np.searchsorted(parts.gap, [long.start, long.stop]))
    n_long, n_short = long.stop - long.start, short.stop - short.start
    chosen = (
        Gaps._make(each[own] for each in gaps)
        for gaps, own in ((found.gaps, long), (found.short, short))
    )
    some = Gaps._make(map(np.concatenate, zip(*chosen, strict=True)))
    ns = np.zeros((n_long + n_short, len(Cause)), np.int64)
    ns[parts.gap[rows] - long.start, parts.cause[rows]] = parts.ns[rows]
    ns[n_long:, Cause.SHORT] = (some.end - some.start)[n_long:]
    order = np.argsort(some.start, kind="stable")
    ns = ns[order][:, _ORDER]
    gap, place = np.nonzero(ns)
    length = ns[gap, place]
    until = np.cumsum(length)
    before = np.concatenate([[0], until])[np.searchsorted(gap, gap)]
    start, after = some.start[order][gap] + until - length - before, some.after[order][gap]
    return Idle(start, start + length, _ORDER[place].astype(np.int32), after.astype(np.int64))


def _inside(gaps: Gaps, of_gaps: Int32, device: int, begin: int, end: int) -> slice:
    """The gaps of a GPU that overlap a window."""
    first, last = np.searchsorted(of_gaps, [device, device + 1]).tolist()
    return slice(
        first + int(np.searchsorted(gaps.end[first:last], begin, "right")),
        first + int(np.searchsorted(gaps.start[first:last], end)),
    )
