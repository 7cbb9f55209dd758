"""Calls that wait for the GPU although their name does not say so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.analysis.intervals import BusyTime
from fastprof.model.arrays import Bools, Int64
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import COPY, LAUNCH, SYNC
from fastprof.profile.instances import ApiCalls
from fastprof.profile.profile import Profile

__all__ = ["FREES", "Waits", "implied_waits"]

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
    queues, copies, frees : bool [calls], whether they launch work or copy; copy; free memory
    """

    row: Int64
    start: Int64
    end: Int64
    queues: Bools
    copies: Bools
    frees: Bools


class Waits(NamedTuple):
    """Calls that wait.

    Parameters
    ----------
    row : int64 [waits], of `profile.api`, in order
    until : int64 [waits], ns, when the wait ends; the call may go on
    of_copy : bool [waits], whether the call waits for the copy that it queued
    """

    row: Int64
    until: Int64
    of_copy: Bools


def implied_waits(profile: Profile) -> Waits:
    """The calls of a trace that wait, other than those that synchronise by their name.

    - Copies that end as their work does; other calls, on a GPU that works meanwhile.
    - Calls that queue nothing, and end as all work launched before does. Those that free memory
      may go on: their wait ends with that work.
    - Launches and copies into a full queue, which end as work does.
    """
    api = profile.api
    end = np.where(api.end == NEVER, api.start, api.end)
    long = np.flatnonzero(end - api.start >= _LONG_NS)
    long = long[api.call_class.take(long).fits(lambda each: each != SYNC)]
    until, of_copy = np.full(len(long), np.int64(-1)), np.zeros(len(long), bool)
    if len(long) and (api.of_kernel >= 0).any():
        names, classes = api.name.take(long), api.call_class.take(long)
        calls = _Calls(
            long, api.start[long], end[long],
            classes.fits(lambda each: each in (LAUNCH, COPY)),
            classes.fits(lambda each: each == COPY),
            names.fits(lambda name: any(each in name for each in FREES)),
        )  # fmt: skip
        pid = take(api.threads.pid, api.thread[long])
        for of_process, queue in _queues(profile, api):
            rows = np.flatnonzero(pid == of_process)
            own = _Calls._make(each[rows] for each in calls)
            ends, own_copy = queue.waits(own)
            until[rows] = np.maximum(until[rows], ends)
            of_copy[rows] |= own_copy
    waits = until >= 0
    return Waits(long[waits], until[waits], of_copy[waits])


def _queues(profile: Profile, api: ApiCalls) -> Iterator[tuple[int, _Queue]]:
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

    def __init__(self, profile: Profile, api: ApiCalls, work: Int64) -> None:
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

    def waits(self, calls: _Calls) -> tuple[Int64, Bools]:
        """When the wait of each call ends, ns, -1 for none; whether it is for its own copy."""
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
        of_own = is_own & (is_busy | calls.copies) & _ends_with(calls, own)
        waits = of_own | is_full
        waits |= ~is_own & ~calls.queues & is_busy & _ends_with(calls, drained)
        frees = ~waits & calls.frees & (drained > calls.start) & (drained < calls.end)
        until = np.where(waits, calls.end, np.where(frees, drained, -1))
        return until, of_own & calls.copies


def _ends_with(calls: _Calls, work: Int64) -> Bools:
    """Whether each call ends as some work does, which ends after the call begins."""
    after = calls.end - work
    found: Bools = (work > calls.start) & (after >= -_EARLY_NS) & (after <= _RETURN_NS)
    return found
