"""Where to look for the cause of a gap: the range that was open, and the call that waited."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.host_states import State
from fastprof.analysis.idle_causes import DRAINED_NS, Cause, Host, Split
from fastprof.analysis.open_ranges import OpenRanges
from fastprof.analysis.thread_events import by_thread
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.markers import Kind
from fastprof.model.numbers import without_numbers
from fastprof.model.trace import NO_TIME
from fastprof.profile.api_classes import COPY, LAUNCH
from fastprof.profile.profile import Profile, range_columns

__all__ = ["PLACES", "places"]

PLACES: Final = ("call", "line", "layer", "range", "op")


class _Place(NamedTuple):
    """Row of `profile.ranges` and id of the call of each gap, [gaps], -1 for none."""

    row: Int32
    call: Int32


def places(gaps: Gaps, causes: Split, host: Host) -> dict[str, Values]:
    """Where to look for the main cause of each gap, by name of `PLACES`, [gaps].

    Where the host waits in a call, the place of the call; where it runs Python, that in the middle
    of the gap; else that of the launch of the next work.
    """
    profile = host.profile
    lookups = _Lookups(profile)
    of_launch = take(profile.ranges.of_kernel, gaps.after)
    found = _Place(of_launch.copy(), np.full(len(of_launch), -1, np.int32))
    for cause in np.unique(causes.main).tolist():
        rows = np.flatnonzero(causes.main == cause)
        of_cause = _of_cause(host, Cause(cause), gaps, causes, lookups, rows)
        found.row[rows] = np.where(of_cause.row < 0, found.row[rows], of_cause.row)
        found.call[rows] = of_cause.call
    columns = range_columns(profile)
    line = texts(columns, "line")
    layer = texts(columns, "layer").mapped(lambda names: ":".join(names) or None)
    operator = _around(profile, found.row, (Kind.TORCH, Kind.ARGUMENT))
    return {
        "call": Values(found.call, lookups.texts),
        "line": _or_next(line, found.row, of_launch),
        "layer": _or_next(layer, found.row, of_launch),
        "range": _own_ranges(profile, found.row),
        "op": _of_rows(texts(columns, "op"), operator),
    }


class _Lookups:
    """Ids of names of calls, and the ranges of threads."""

    def __init__(self, profile: Profile) -> None:
        self._ids: dict[str, int] = {}
        self._of_api = self._many(profile.api.name.values)
        self._of_system = self._many(profile.os_calls.name.values)
        self._api, self._system = profile.api.name, profile.os_calls.name
        self.ranges = OpenRanges(profile)

    def _many(self, values: list[str | None]) -> Int32:
        ids = [-1 if each is None else self.id(_VERSION.sub("", each)) for each in values]
        return np.array(ids, np.int32)

    def id(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids))

    @property
    def texts(self) -> list[str]:
        return list(self._ids)

    def of_calls(self, rows: Int32) -> Int32:
        """Of rows of `profile.api`, -1 for none."""
        return take(self._of_api, take(self._api.ids, rows))

    def of_system(self, rows: Int32) -> Int32:
        """Of rows of `profile.os_calls`, -1 for none."""
        return take(self._of_system, take(self._system.ids, rows))


_VERSION: Final = re.compile(r"_v\d{4,}\Z")


def _of_cause(
    host: Host, cause: Cause, gaps: Gaps, causes: Split, lookups: _Lookups, rows: Int64
) -> _Place:
    profile = host.profile
    begin, end = gaps.start[rows], gaps.end[rows]
    after, other = gaps.after[rows], causes.other[rows]
    call = take(profile.api.of_kernel, after)
    thread = take(profile.api.thread, call)
    launch = take(numbers(profile, "launch_start"), after)
    launch = np.where(launch != NO_TIME, np.clip(launch, begin, end), NO_TIME)
    none = np.full(len(rows), -1, np.int32)
    if cause <= max(State):
        state = State(int(cause))
        event, spent = _event(host, state, thread, begin, launch)
        of_other, more = _event(host, state, other, begin, launch)
        event = np.where((more > spent) | (event < 0), of_other, event)
        if cause == Cause.DATA_LOADING:
            return _Place(event, none)
        # The launch itself may load code.
        inside = np.minimum(take(profile.api.end, call), end) - launch
        loads = (event < 0) | ((inside > np.maximum(more, spent)) & (cause == Cause.ALLOC))
        event = np.where(loads, call, event)
        start = take(profile.api.start, event)
        return _Place(
            lookups.ranges.innermost(take(profile.api.thread, event), start),
            lookups.of_calls(event),
        )
    middle = begin + (launch - begin) // 2
    if cause in (Cause.LAUNCH_BOUND, Cause.HOST_BOUND):
        return _Place(lookups.ranges.innermost(thread, middle), none)
    if cause == Cause.OTHER_THREAD:
        return _Place(lookups.ranges.innermost(np.where(other < 0, thread, other), middle), none)
    if cause == Cause.SYSTEM:
        row, _ = host.system.longest(thread, begin, launch)
        return _Place(
            lookups.ranges.innermost(thread, middle), lookups.of_system(row.astype(np.int32))
        )
    if cause == Cause.DEPENDENCY:
        return _Place(none, _waits_for(profile, gaps, lookups, rows, call))
    return _Place(none, lookups.of_calls(call) if cause == Cause.LATENCY else none)


def _event(
    host: Host, state: State, thread: Int32, begin: Int64, launch: Int64
) -> tuple[Int32, Int64]:
    """The row of the event of a state that takes most of each gap, and its time there.

    If there is none, the last event, if it ended just before the gap. -1 for none.
    """
    events = host.states.events[state]
    row, ns = events.longest(thread, begin, launch)
    last, end = events.last(thread, launch)
    row = np.where((ns == 0) & (end >= begin - DRAINED_NS), last, row)
    return row.astype(np.int32), ns


def _waits_for(profile: Profile, gaps: Gaps, lookups: _Lookups, rows: Int64, call: Int32) -> Int32:
    """What work that was launched early waits for: an event, a copy or the work on a stream."""
    before, after = gaps.before[rows], gaps.after[rows]
    stream, kind = numbers(profile, "stream"), texts(profile, "kind")
    is_copy = kind.fits(lambda text: text.startswith("mem"))[before]
    same = stream[before] == stream[after]
    found = np.where(same, lookups.id("(same stream)"), lookups.id("(other stream)"))
    found = np.where(is_copy, lookups.id("(copy)"), found)
    event = _event_waits(profile, call)
    return np.where(event >= 0, lookups.of_calls(event), found).astype(np.int32)


def _event_waits(profile: Profile, call: Int32) -> Int32:
    """The call that made the stream of a launch wait for an event just before it, -1 for none."""
    api, found = profile.api, np.full(len(call), -1, np.int32)
    all_waits = api.name.where(lambda name: "StreamWait" in (name or ""))
    if not len(all_waits):
        return found
    works = api.call_class.where(lambda name: name in (LAUNCH, COPY))
    known = np.flatnonzero(call >= 0)
    for each, rows in by_thread(api.thread[call[known]]):
        waits, launches = (some[api.thread[some] == each] for some in (all_waits, works))
        own = call[known[rows]]
        last_wait = np.append(waits, -1)[np.searchsorted(waits, own) - 1]
        last_launch = np.append(launches, -1)[np.searchsorted(launches, own) - 1]
        found[known[rows]] = np.where(last_wait > last_launch, last_wait, -1)
    return found


def _around(profile: Profile, row: Int32, kinds: tuple[Kind, ...]) -> Int32:
    """The innermost of each range and those around it that is of some kinds, -1 for none."""
    ranges, row = profile.ranges, row.copy()
    fits = np.array([meaning.kind in kinds for meaning in ranges.meanings], bool)
    while (others := np.flatnonzero((row >= 0) & ~_of(fits, ranges.label, row))).size:
        row[others] = ranges.parent[row[others]]
    return row


def _of(fits: Bools, label: Int32, row: Int32) -> Bools:
    return np.append(fits, True)[take(label, row)]


def _own_ranges(profile: Profile, row: Int32) -> Values:
    """The user's innermost range, numbers folded."""
    ranges = profile.ranges
    label = take(ranges.label, _around(profile, row, (Kind.USER,)))
    return Values(label, ranges.meanings).mapped(lambda meaning: without_numbers(meaning.label))


def _of_rows(column: Values, row: Int32) -> Values:
    known = row >= 0
    found = np.full(len(row), -1, np.int32)
    found[known] = column.take(row[known]).ids
    return Values(found, column.values)


def _or_next(column: Values, row: Int32, of_launch: Int32) -> Values:
    """The values of some ranges; where unknown, of those around the launch."""
    own = _of_rows(column, row).ids
    return Values(np.where(own < 0, _of_rows(column, of_launch).ids, own), column.values)
