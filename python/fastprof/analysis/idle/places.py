"""Where to look for the cause of a gap: the range that was open, and the call that waited."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.host.events import OpenRanges, ThreadEvents, grouped
from fastprof.analysis.host.states import State
from fastprof.analysis.idle.causes import DRAINED_NS, Cause, Host, Split
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.numbers import without_numbers
from fastprof.profile.api_classes import COPY, LAUNCH
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import ApiCalls
from fastprof.profile.range_columns import operator_of

PLACES: Final = ("call", "line", "layer", "range", "op")


class _Place(NamedTuple):
    """Row of `profile.ranges` and id of the call of each gap, [gaps], -1 for none."""

    row: Int32
    call: Int32


def places(gaps: Gaps, causes: Split, host: Host) -> dict[str, Values]:
    """Where to look for the main cause of each gap, by name of `PLACES`, [gaps].

    The ranges that are open for most of the gap, until its launch returns; in calls, for most of
    the longest call. After the launch, those around the launch of the next work.
    """
    profile = host.profile
    lookups = _Lookups(profile)
    found = _Place(*(np.full(len(gaps.after), -1, np.int32) for _ in _Place._fields))
    for cause in unique(causes.main).tolist():
        rows = np.flatnonzero(causes.main == cause)
        of_cause = _of_cause(host, Cause(cause), gaps, causes, lookups, rows)
        found.row[rows], found.call[rows] = of_cause
    column = profile.source.range_columns.at(found.row)
    layer = cast(Values, column("layer")).mapped(lambda names: ":".join(names) or None)
    return {
        "call": Values(found.call, lookups.texts),
        "line": cast(Values, column("line")),
        "layer": layer,
        "range": _innermost(profile, found.row, Kind.USER).mapped(_own_range),
        "op": _innermost(profile, found.row, Kind.TORCH, Kind.ARGUMENT).mapped(operator_of),
    }


class _Lookups:
    """Ids of names of calls, and the ranges of threads."""

    def __init__(self, profile: ProfileData) -> None:
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


_VERSION: Final = regex(r"_v\d{4,}\Z")


class _Rows(NamedTuple):
    """Some gaps with one main cause.

    Parameters
    ----------
    thread, other, call : int32 [gaps], see `Split`; the launch of the next work
    begin, launch, returned : int64 [gaps], ns: the start of the gap, and the start and the end of
        the launch, within it
    """

    thread: Int32
    other: Int32
    call: Int32
    begin: Int64
    launch: Int64
    returned: Int64


def _of_cause(
    host: Host, cause: Cause, gaps: Gaps, causes: Split, lookups: _Lookups, rows: Int64
) -> _Place:
    profile = host.profile
    call = take(profile.api.of_kernel, gaps.after[rows])
    if cause >= Cause.LATENCY:
        row = take(profile.ranges.of_kernel, gaps.after[rows])
        if cause == Cause.DEPENDENCY:
            return _Place(row, _waits_for(profile, gaps, lookups, rows, call))
        is_call = cause == Cause.LATENCY
        return _Place(row, lookups.of_calls(call if is_call else np.full_like(call, -1)))
    begin, end = gaps.start[rows], gaps.end[rows]
    launch = np.clip(take(numbers(profile, "launch_start"), gaps.after[rows]), begin, end)
    chosen = _Rows(
        take(profile.api.thread, call), causes.other[rows], call, begin, launch,
        np.clip(take(profile.api.end, call), launch, end),
    )  # fmt: skip
    if cause <= max(State):
        return _in_state(host, State(int(cause)), chosen, lookups)
    return _in_python(host, cause, chosen, lookups)


def _in_state(host: Host, state: State, chosen: _Rows, lookups: _Lookups) -> _Place:
    """The longest event of the state, and the ranges around it."""
    events = host.states.events[state]
    event, spent = _event(events, chosen.thread, chosen.begin, chosen.returned)
    of_other, more = _event(events, chosen.other, chosen.begin, chosen.launch)
    event = np.where((more > spent) | (event < 0), of_other, event).astype(np.int32)
    known = np.flatnonzero(event >= 0)
    own, row = event[known], np.full(len(event), -1, np.int32)
    if state == State.DATA_LOADING:
        row[known] = events.row[own]
        return _Place(row, np.full_like(row, -1))
    # A wait before the gap is outside it.
    begin, end = events.start[own], events.end[own]
    is_inside = end > chosen.begin[known]
    begin = np.where(is_inside, np.maximum(begin, chosen.begin[known]), begin)
    end = np.where(is_inside, np.minimum(end, chosen.returned[known]), end)
    row[known] = lookups.ranges.covering(events.thread[own], begin, end)
    call = np.full_like(row, -1)
    call[known] = events.row[own]
    return _Place(row, lookups.of_calls(call))


def _in_python(host: Host, cause: Cause, chosen: _Rows, lookups: _Lookups) -> _Place:
    """The ranges that are open for most of the gap, of the launching thread or the other one."""
    threads = [chosen.thread, chosen.other]
    if cause == Cause.OTHER_THREAD:
        threads.reverse()
    row = call = np.full(len(chosen.begin), -1, np.int32)
    for thread in threads:
        of_thread = lookups.ranges.covering(thread, chosen.begin, chosen.returned)
        row = np.where(row < 0, of_thread, row)
    if cause == Cause.SYSTEM:
        event, _ = host.system.longest(chosen.thread, chosen.begin, chosen.launch)
        call = np.append(host.system.row, -1)[event].astype(np.int32)
    return _Place(row, lookups.of_system(call))


def _event(events: ThreadEvents, thread: Int32, begin: Int64, end: Int64) -> tuple[Int64, Int64]:
    """The event that takes most of each window, and its time there.

    If there is none, the last event, if it ended just before. -1 for none.
    """
    event, ns = events.longest(thread, begin, end)
    last, ended = events.last(thread, end)
    return np.where((ns == 0) & (ended >= begin - DRAINED_NS), last, event), ns


def _waits_for(
    profile: ProfileData, gaps: Gaps, lookups: _Lookups, rows: Int64, call: Int32
) -> Int32:
    """What work that was launched early waits for: an event, a copy or the work on a stream."""
    before, after = gaps.before[rows], gaps.after[rows]
    stream, kind = numbers(profile, "stream"), texts(profile, "kind")
    is_copy = kind.fits(lambda text: text.startswith("mem"))[before]
    same = stream[before] == stream[after]
    found = np.where(same, lookups.id("(same stream)"), lookups.id("(other stream)"))
    found = np.where(is_copy, lookups.id("(copy)"), found)
    event = _event_waits(profile, call)
    return np.where(event >= 0, lookups.of_calls(event), found).astype(np.int32)


def _event_waits(profile: ProfileData, call: Int32) -> Int32:
    """The call that made the stream of a launch wait for an event just before it, -1 for none."""
    api, found = profile.api, np.full(len(call), -1, np.int32)
    all_waits = api.name.where(lambda name: "StreamWait" in (name or ""))
    if not len(all_waits):
        return found
    works = api.call_class.where(lambda name: name in (LAUNCH, COPY))
    known = np.flatnonzero(call >= 0)
    own, thread = call[known].astype(np.int64), api.thread[call[known]]
    last_wait, last_launch = (_last_before(some, thread, own, api) for some in (all_waits, works))
    found[known] = np.where(last_wait > last_launch, last_wait, -1)
    return found


def _last_before(calls: Int64, thread: Int32, call: Int64, api: ApiCalls) -> Int64:
    """The last of some calls on each thread before a call, -1 for none."""
    own = grouped(api.thread[calls], calls, calls)
    place = own.first(thread, call) - 1
    return np.where(place >= own.slices(thread)[0], np.append(own.start, -1)[place], -1)


def _innermost(profile: ProfileData, row: Int32, *kinds: Kind) -> Values:
    """The name of the innermost of each range and those around it that is of some kinds."""
    ranges, row = profile.ranges, row.copy()
    fits = np.array([meaning.kind in kinds for meaning in ranges.meanings], bool)
    while (others := np.flatnonzero((row >= 0) & ~_of(fits, ranges.label, row))).size:
        row[others] = ranges.parent[row[others]]
    return Values(take(ranges.label, row), ranges.meanings).used()


def _of(fits: Bools, label: Int32, row: Int32) -> Bools:
    return np.append(fits, True)[take(label, row)]


def _own_range(meaning: Meaning) -> str:
    """A range of the user, numbers folded."""
    return without_numbers(meaning.label)
