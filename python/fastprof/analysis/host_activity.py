"""When host threads run operators and API calls, alone or with the other threads of a process."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from fastprof.analysis.host_states import HostStates, by_thread
from fastprof.analysis.intervals import BusyTime
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.markers import Kind
from fastprof.model.trace import NEVER
from fastprof.profile.profile import Profile

__all__ = ["HostActivity", "Times", "system_waits"]

# A thread; all threads of its process; those, and the thread in the operating system.
Which = Literal["own", "process", "system"]


class Times(NamedTuple):
    """Intervals of threads, in order of start; threads are indices as in `HostStates`."""

    thread: Int32
    start: Int64
    end: Int64


def system_waits(profile: Profile) -> Times:
    """When threads are in functions of the operating system, or switched out.

    Empty if the trace records neither; nsys does with `--trace osrt` and `--cpuctxsw`.
    """
    calls = profile.os_calls
    return _together([Times(calls.thread, calls.start, calls.end), _switched_out(profile)])


def _switched_out(profile: Profile) -> Times:
    """From where each thread ceased to run to where it ran again."""
    switches = profile.cpu_switches
    order = np.argsort(switches.thread, kind="stable")
    thread, start = switches.thread[order], switches.start[order]
    is_out = np.array([*(each == "out" for each in switches.name.values), False], bool)
    out = is_out[switches.name.ids[order]][:-1] & (thread[1:] == thread[:-1])
    rows = np.flatnonzero(out)
    return _together([Times(thread[rows], start[rows], start[rows + 1])])


class HostActivity:
    """When threads run operators, API calls or are in one of the `HostStates`.

    Python functions and the user's own ranges do not count: a thread that waits for another one is
    inside them too.

    system : see `system_waits`
    """

    def __init__(self, profile: Profile, states: HostStates, system: Times) -> None:
        ranges, api = profile.ranges, profile.api
        operates = np.array([meaning.kind in _OPERATORS for meaning in ranges.meanings], bool)
        rows = np.flatnonzero(operates[ranges.label])
        of_ranges = Times(ranges.thread[rows], ranges.start[rows], ranges.end[rows])
        of_calls = Times(api.thread, api.start, api.end)
        of_states = [Times(*each) for each in states.events()]
        self._events = [of_ranges, of_calls, *of_states]
        self._system, self._process = system, api.threads.pid
        self._last = max(int(each.end[each.end != NEVER].max(initial=0)) for each in self._events)
        self._times: dict[tuple[int, Which], BusyTime | None] = {}

    def next(self, thread: Int32, time: Int64, end: Int64) -> Int64:
        """The first instant at or after each time at which the thread is active, at most `end`."""
        found = end.copy()
        for each, rows in by_thread(thread):
            times = self._united(each, "own")
            if times is None:
                continue
            at = time[rows]
            place = np.searchsorted(times.start, at, "right")
            later = np.append(times.start, NEVER)[place]
            is_active = (place > 0) & (times.end[place - 1] > at)
            found[rows] = np.minimum(np.where(is_active, at, later), end[rows])
        return found

    def covered(self, which: Which, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """ns [windows] during which the thread, or others, are active."""
        found = np.zeros(len(thread), np.int64)
        for each, rows in by_thread(thread):
            times = self._united(each, which)
            if times is not None:
                found[rows] = times.until(end[rows]) - times.until(begin[rows])
        return found

    def has_company(self, thread: Int32) -> Bools:
        """Whether another thread of the same process is active at some time."""
        seen = np.unique(np.concatenate([np.unique(each.thread) for each in self._events]))
        pids, counts = np.unique(self._process[seen[seen >= 0]], return_counts=True)
        several = np.isin(self._process, pids[counts > 1])
        return np.append(several, False)[thread]

    def _united(self, thread: int, which: Which) -> BusyTime | None:
        if (thread, which) not in self._times:
            own = np.arange(len(self._process)) == thread
            chosen = own if which == "own" else self._process == self._process[thread]
            events = [_of_threads(each, chosen) for each in self._events]
            if which == "system":
                events.append(_of_threads(self._system, own))
            both = _together(events)
            end = np.where(both.end == NEVER, self._last, both.end)
            self._times[thread, which] = BusyTime(both.start, end) if len(end) else None
        return self._times[thread, which]


_OPERATORS = (Kind.TORCH, Kind.ARGUMENT)


def _of_threads(events: Times, chosen: Bools) -> Times:
    """The events of some threads, bool [threads]."""
    known = events.thread < len(chosen)  # threads of the operating system may be others
    rows = np.append(chosen, False)[np.where(known, events.thread, -1)]
    return events if rows.all() else Times(*(each[rows] for each in events))


def _together(events: list[Times]) -> Times:
    both = Times(*(np.concatenate(each) for each in zip(*events, strict=True)))
    order = np.argsort(both.start, kind="stable")  # fast, as each part is in order
    return Times(*(each[order] for each in both))
