"""Calls that wait for the GPU although their name does not say so.

Copies that the host waits for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.intervals import BusyTime
from fastprof.model.arrays import Bools, Int32, Int64, among, difference, union
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import COPY, LAUNCH, SYNC
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import ApiCalls
from fastprof.profile.kept import kept

FREES: Final = ("Free", "Unregister", "Unmap", "Release", "TrimTo")  # in names of calls that free

_LONG_NS: Final = 20_000  # shorter calls may end with work by accident
_RETURN_NS: Final = 20_000  # a call that waits returns sooner after the work
_EARLY_NS: Final = 1_000  # of the work's end, by the clocks
_FULL: Final = 256  # pieces of work in a queue that may have no place for more


class _Calls(NamedTuple):
    """Long calls of a process.

    Parameters
    ----------
    row : int64 [calls], of `profile.api`
    start, end : int64 [calls], ns
    queues, frees : bool [calls], whether they launch or copy; whether they free memory
    """

    row: Int64
    start: Int64
    end: Int64
    queues: Bools
    frees: Bools


def implied_waits(profile: ProfileData) -> tuple[Int64, Int64]:
    """Calls that wait, rows of `profile.api` in order, and when each wait ends, ns.

    - Calls that end as the work that they queued does, on a GPU that works meanwhile.
    - Calls that queue nothing, and end as all work launched before does. Those that free memory
      may go on: their wait ends with that work.
    - Launches and copies into a full queue, which end as work does.
    """
    api = profile.api
    end = np.where(api.end == NEVER, api.start, api.end)
    long = np.flatnonzero(end - api.start >= _LONG_NS)
    long = long[api.call_class.take(long).fits(lambda each: each != SYNC)]
    until = np.full(len(long), np.int64(-1))
    if len(long) and (api.of_kernel >= 0).any():
        names, classes = api.name.take(long), api.call_class.take(long)
        calls = _Calls(
            long, api.start[long], end[long],
            classes.fits(lambda each: each in (LAUNCH, COPY)),
            names.fits(lambda name: any(each in name for each in FREES)),
        )  # fmt: skip
        pid = take(api.threads.pid, api.thread[long])
        for of_process, queue in _queues(profile, api):
            rows = np.flatnonzero(pid == of_process)
            own = _Calls._make(each[rows] for each in calls)
            until[rows] = np.maximum(until[rows], queue.waits(own))
    waits = until >= 0
    return long[waits], until[waits]


def waits_for_copies(profile: ProfileData, waits: Int64) -> Int64:
    """Those of some calls that wait for the copy that they queued: it ends before they do."""
    api = profile.api
    copies = waits[api.name.take(waits).fits(lambda name: "Memcpy" in name)]
    end = np.full(len(api) + 1, NEVER)
    end[api.of_kernel] = numbers(profile, "start") + np.maximum(numbers(profile, "sil"), 0)
    return copies[end[copies] <= api.end[copies] + _EARLY_NS]


def _queues(profile: ProfileData, api: ApiCalls) -> Iterator[tuple[int, _Queue]]:
    """The work of each process on each GPU."""
    launched = np.flatnonzero(api.of_kernel >= 0)
    thread = api.thread[api.of_kernel[launched]]
    device = np.ascontiguousarray(numbers(profile, "device")[launched], np.int64)
    pid = np.ascontiguousarray(take(api.threads.pid, thread), np.int64)
    ids, first = alike([pid, device])
    for queue, row in enumerate(first.tolist()):
        yield int(pid[row]), _Queue(profile, api, launched[ids == queue])


class _Queue:
    """The launched work of a process on a GPU."""

    def __init__(self, profile: ProfileData, api: ApiCalls, work: Int64) -> None:
        """work : kernel rows in order of start"""
        start = numbers(profile, "start")[work]
        end = start + np.maximum(numbers(profile, "sil")[work], 0)
        call = api.of_kernel[work]
        order = np.argsort(call, kind="stable")  # calls are in order of start
        self._call, self._launch = call[order], api.start[call[order]]
        self._drained = np.maximum.accumulate(end[order])
        last = np.append(self._call[1:] != self._call[:-1], True)
        self._calls = self._call[last]
        groups = np.flatnonzero(np.append(True, last[:-1]))
        self._own_end = np.maximum.reduceat(end[order], groups)
        self._start, self._end = start, np.sort(end)
        self._busy = BusyTime(start, end)

    def waits(self, calls: _Calls) -> Int64:
        """When the wait of each call ends, ns, -1 for none."""
        works = self._busy.until(calls.end) - self._busy.until(calls.start)
        is_busy = 2 * works >= calls.end - calls.start
        before = np.searchsorted(self._launch, calls.start, "left")
        drained = np.where(before > 0, self._drained[before - 1], -1)
        place = np.minimum(np.searchsorted(self._calls, calls.row), len(self._calls) - 1)
        is_own = self._calls[place] == calls.row
        own = np.where(is_own, self._own_end[place], -1)
        # The queue has no place until work ends.
        pending = before - np.searchsorted(self._start, calls.start, "right")
        last = np.searchsorted(self._end, calls.end + _EARLY_NS, "right")
        ended = np.where(last > 0, self._end[last - 1], -1)
        is_full = is_own & calls.queues & (pending >= _FULL) & _ends_with(calls, ended)
        waits = (is_own & is_busy & _ends_with(calls, own)) | is_full
        waits |= ~is_own & ~calls.queues & is_busy & _ends_with(calls, drained)
        frees = ~waits & calls.frees & (drained > calls.start) & (drained < calls.end)
        return np.where(waits, calls.end, np.where(frees, drained, -1))


def _ends_with(calls: _Calls, work: Int64) -> Bools:
    """Whether each call ends as some work does, which ends after the call begins."""
    after = calls.end - work
    found: Bools = (work > calls.start) & (after >= -_EARLY_NS) & (after <= _RETURN_NS)
    return found


# The longest time between a copy and the call that waits for it: torch makes them back to back.
_PAIR_NS: Final = 20_000
# The shortest asynchronous copy that is said to block if the copy begins before the call returns.
_BLOCKS_NS: Final = 10_000


def blocked_ns(profile: ProfileData, rows: Int64) -> Int64:
    """The time that the host waits in the call of each copy, ns; 0 if it does not wait.

    -1 if the call is not recorded.

    rows : copies, kernel rows
    """
    api = profile.api
    calls, until = kept(profile, blocking_copies)
    known = api.end[until] != NEVER
    calls, until = calls[known], until[known]
    call = api.of_kernel[rows]
    found: Int64 = np.where(call >= 0, np.int64(0), np.int64(-1))
    if len(calls):
        last = np.searchsorted(calls, call, "right") - 1
        waits = (last >= 0) & (calls[last] == call)
        found[waits] = (api.end[until] - api.start[calls])[last[waits]]
    return found


def blocking_copies(profile: ProfileData) -> tuple[Int64, Int64]:
    """Copies that wait: rows of `profile.api`, and the call at which each ends.

    Copies without `Async`; asynchronous ones that a StreamSynchronize follows at once, with it; and
    those that return after the GPU has begun to copy, as from pageable memory.
    """
    api = profile.api
    alone, copies, waits = api.name.where_each(
        *map(_matches, (_SYNC_COPY, _ASYNC_COPY, _STREAM_WAIT))
    )
    first, second = _copies_and_waits(api, copies, waits)
    row = difference(_long_copies(profile), first)
    rows, until = np.concatenate([alone, first, row]), np.concatenate([alone, second, row])
    order = np.argsort(rows, kind="stable")
    return rows[order], until[order]


def _copies_and_waits(api: ApiCalls, copies: Int64, waits: Int64) -> tuple[Int64, Int64]:
    """Asynchronous copies, and the StreamSynchronize that follows each at once."""
    rows = union(copies, waits)
    rows = rows[np.argsort(api.thread[rows], kind="stable")]
    is_copy = among(rows, copies)
    first, second = rows[:-1], rows[1:]
    after = api.start[second] - np.minimum(api.end[first], api.start[second])
    follows = is_copy[:-1] & ~is_copy[1:] & (api.thread[first] == api.thread[second])
    follows &= after <= _PAIR_NS
    return first[follows], second[follows]


def _long_copies(profile: ProfileData) -> Int64:
    """Calls of asynchronous copies from or to the host that return after the GPU has begun them."""
    api = profile.api
    copies = texts(profile, "copy_direction").where(lambda each: "H" in each)
    copies = copies[api.of_kernel[copies] >= 0]
    call: Int32 = api.of_kernel[copies]
    end = take(api.end, call)
    blocks = (end != NEVER) & (end > numbers(profile, "start")[copies])
    blocks &= end - api.start[call] >= _BLOCKS_NS
    blocks &= api.name.take(call).fits(_matches(_ASYNC_COPY))
    found: Int64 = call[blocks].astype(np.int64)
    return found


_SYNC_COPY: Final = regex(r"(?:cuda|cu|hip)Memcpy(?!\w*Async)")
_ASYNC_COPY: Final = regex(r"(?:cuda|cu|hip)Memcpy\w*Async")
_STREAM_WAIT: Final = regex(r"(?:cuda|cu|hip)StreamSynchronize")


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    """Whether a name begins with a pattern."""
    return lambda name: bool(pattern.match(name))
