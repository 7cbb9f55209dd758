"""The gaps of GPUs in the windows of steps, with their causes and the places to look at."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._pools import pairs
from fastprof._core._take import place, take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex
from fastprof._system.threads import computed_once
from fastprof.analysis.gpu_work import Gaps, WorkOfDevices, answered_work
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.host.events import Grouped, OpenRanges, ThreadEvents, grouped, piece_rows
from fastprof.analysis.host.states import State
from fastprof.analysis.idle.causes import DRAINED_NS, Cause, Host, Split, split
from fastprof.analysis.steps.windows import Windows, windows_of
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.numbers import without_numbers
from fastprof.profile.api_classes import COPY_CALL, LAUNCH
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.instances import ApiCalls
from fastprof.profile.range_columns import operator_of
from fastprof.profile.steps.kernel_steps import StepsOfKernels

SHORTEST: Final = 1000  # ns; the causes of shorter gaps are not examined


@dataclass(frozen=True)
class Examined:
    """The gaps of GPUs.

    Parameters
    ----------
    devices : the numbers of the GPUs, ascending
    gaps, device : those that are long enough, and int32 [gaps], indices into `devices`
    short, short_device : the other ones
    causes : Split of `gaps`
    data : see `examine`
    is_kept : whether these are all gaps of a profile, which are kept
    """

    devices: Int64
    gaps: Gaps
    device: Int32
    short: Gaps
    short_device: Int32
    causes: Split
    data: str | None
    is_kept: bool


def examine(
    profile: ProfileData,
    work: WorkOfDevices,
    shortest: int = SHORTEST,
    data: str | None = None,
) -> Examined:
    """Find the causes of all gaps of at least `shortest` ns; see `host_states` for `data`.

    Those of `answered_work` are kept, with the default values of the other parameters.
    """
    if work is answered_work(profile) and shortest == SHORTEST and data is None:
        return kept(profile, _of_all)
    return _examined(profile, work, shortest, data)


def _of_all(profile: ProfileData) -> Examined:
    return _examined(profile, answered_work(profile), SHORTEST, None, True)


def _examined(
    profile: ProfileData,
    work: WorkOfDevices,
    shortest: int,
    data: str | None,
    is_kept: bool = False,
) -> Examined:
    host, gaps = Host(profile, data), work.parts.gaps()
    part = work.parts.by_kernel(len(profile))[gaps.after]
    is_long = gaps.end - gaps.start >= shortest
    long, short = (Gaps._make(gap[of] for gap in gaps) for of in (is_long, ~is_long))
    return Examined(
        work.parts.keys.astype(np.int64), long, part[is_long], short, part[~is_long],
        split(long, host), data, is_kept,
    )  # fmt: skip


def places_of(profile: ProfileData, examined: Examined) -> dict[str, Values]:
    """Where to look for the causes of `found.gaps`, by name of `PLACES`, [gaps]."""
    return kept(profile, _places_of_all) if examined.is_kept else _places(profile, examined)


def _places(profile: ProfileData, examined: Examined) -> dict[str, Values]:
    return places(examined.gaps, examined.causes, Host(profile, examined.data))


def _places_of_all(profile: ProfileData) -> dict[str, Values]:
    return _places(profile, kept(profile, _of_all))


class WindowGaps(NamedTuple):
    """The gaps within windows, from the start of each window.

    Parameters
    ----------
    gaps : Gaps, those of at least `SHORTEST` ns; in a gap before the first work of a GPU, `before`
        is that work too
    window : int32 [gaps]
    causes : Split of `gaps`
    short, after : int64 [windows], ns, the sum of the shorter gaps, and the time after the last
        work of the GPU, which no gap has
    """

    gaps: Gaps
    window: Int32
    causes: Split
    short: Int64
    after: Int64

    def by_window(self, rows: Int64 | None = None) -> Int64:
        """The time of each cause, ns [rows, causes]; the sum of a window is its idle time.

        rows : some windows, each once; None for all
        """
        n, place = len(self.short), self.window
        if rows is not None:
            n, of_window = len(rows), np.full(n, -1, np.int32)
            of_window[rows] = np.arange(n, dtype=np.int32)
            place = take(of_window, self.window)
        of_windows = self.causes.parts.time_by_window(place, n)
        of_windows[:, Cause.SHORT] += self.short if rows is None else self.short[rows]
        of_windows[:, Cause.UNKNOWN] += self.after if rows is None else self.after[rows]
        return of_windows

    def time_by_cause(self, cause: Cause) -> Int64:
        """The time of a cause in each window, ns [windows]."""
        parts = self.causes.parts
        is_wanted = (parts.cause == cause).view(np.uint8)
        window = take(self.window, parts.gap)
        result = sum_where(window, parts.ns, is_wanted, len(self.short))
        if cause == Cause.SHORT:
            result += self.short
        if cause == Cause.UNKNOWN:
            result += self.after
        return result

    def totals(self, wanted: Bools) -> Int64:
        """The time of each cause in the wanted windows, ns [causes]; wanted : bool [windows]."""
        parts = self.causes.parts
        inside = take(wanted, self.window)
        result = sum_where(
            parts.cause.astype(np.int32), parts.ns, inside[parts.gap].view(np.uint8), len(Cause)
        )
        result[Cause.SHORT] += self.short[wanted].sum()
        result[Cause.UNKNOWN] += self.after[wanted].sum()
        return result


def gaps_of_steps(profile: ProfileData, steps: StepsOfKernels) -> WindowGaps:
    """The gaps within all steps, on all GPUs; kept. Reads the file again on first use.

    Windows are those of `windows_of(profile, steps)`.
    """
    return kept(profile, _gaps_of_steps, steps)


def _gaps_of_steps(profile: ProfileData, steps: StepsOfKernels) -> WindowGaps:
    return gaps_in_windows(windows_of(profile, steps), Host(profile))


def gaps_in_windows(windows: Windows, host: Host) -> WindowGaps:
    """The gaps without selected work.

    windows : those of a GPU do not overlap
    """
    order, bounds = windows.in_lanes(windows.is_known)
    order = order[np.lexsort((windows.start[order], windows.lane[order]))]
    start, end, work = windows.start[order], windows.end[order], windows.lanes.selected
    gaps, place, of_short = work.idle((start, end), bounds, SHORTEST)
    short, after = np.zeros((2, len(windows)), np.int64)
    short[order] = of_short
    last = work.spans[1][windows.lane[order]]
    after[order] = np.maximum(end - np.maximum(start, last), 0)
    return WindowGaps(gaps, take(order.astype(np.int32), place), split(gaps, host), short, after)


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
    place = _Place(*(np.full(len(gaps.after), -1, np.int32) for _ in _Place._fields))
    for cause in unique(causes.main).tolist():
        rows = np.flatnonzero(causes.main == cause)
        of_cause = _of_cause(host, Cause(cause), gaps, causes, lookups, rows)
        place.row[rows], place.call[rows] = of_cause
    column = profile.source.range_columns.at(place.row)
    layer = cast(Values, column("layer")).mapped(lambda names: ":".join(names) or None)
    return {
        "call": Values(place.call, lookups.texts),
        "line": cast(Values, column("line")),
        "layer": layer,
        "range": _innermost(profile, place.row, Kind.USER).mapped(_own_range),
        "op": _innermost(profile, place.row, Kind.TORCH, Kind.ARGUMENT).mapped(operator_of),
    }


class _Lookups:
    """Ids of names of calls, and the ranges of threads."""

    def __init__(self, profile: ProfileData) -> None:
        self._profile = profile
        self._ids: dict[str, int] = {}
        self._of_api = self._many(profile.api.name.values)
        self._of_system = self._many(profile.os_calls.name.values)
        self._api, self._system = profile.api.name, profile.os_calls.name
        self.ranges = OpenRanges(profile)

    def _many(self, values: list[str | None]) -> Int32:
        ids = [-1 if value is None else self.id(_VERSION.sub("", value)) for value in values]
        return np.array(ids, np.int32)

    def id(self, text: str) -> int:
        return self._ids.setdefault(text, len(self._ids))

    @property
    def texts(self) -> list[str]:
        return list(self._ids)

    def ranges_of_calls(self, rows: Int32) -> Int32:
        """Of rows of `profile.api`, -1 for none."""
        return take(self._of_api, take(self._api.ids, rows))

    def ranges_of_system_calls(self, rows: Int32) -> Int32:
        """Of rows of `profile.os_calls`, -1 for none."""
        return take(self._of_system, take(self._system.ids, rows))

    def sampled(self, chosen: _Rows) -> Int32:
        """The function in most of the CPU samples of the launching thread in each gap."""
        names, events = self._samples
        most = np.full(len(chosen.begin), -1, np.int32)
        low, high = events.slices(chosen.thread)
        first = place(events.start, low, high, chosen.begin)
        counts = np.maximum(place(events.start, low, high, chosen.launch) - first, 0)
        gap = np.repeat(np.arange(len(first), dtype=np.int32), counts)
        name = take(names, events.order[piece_rows(first, counts)].astype(np.int32))
        known = np.flatnonzero(name >= 0)
        pair, heads = pairs(gap[known], name[known])
        order = np.argsort(np.bincount(pair, minlength=len(heads)), kind="stable")
        rows = known[heads[order]]  # the last one of each gap stays
        most[gap[rows]] = name[rows]
        return most

    @computed_once
    def _samples(self) -> tuple[Int32, Grouped]:
        """Of CPU samples: the id of the function, and when each thread was sampled."""
        samples = self._profile.cpu_samples
        ids = [-1 if name is None else self.id(name) for name in samples.name.values]
        names = take(np.array(ids, np.int32), samples.name.ids)
        return names, grouped(samples.thread, samples.start, samples.start)


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
        return _Place(row, lookups.ranges_of_calls(call if is_call else np.full_like(call, -1)))
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
    return _Place(row, lookups.ranges_of_calls(call))


def _in_python(host: Host, cause: Cause, chosen: _Rows, lookups: _Lookups) -> _Place:
    """The ranges that are open for most of the gap, of the launching thread or the other one."""
    threads = [chosen.thread, chosen.other]
    if cause == Cause.OTHER_THREAD:
        threads.reverse()
    row = call = np.full(len(chosen.begin), -1, np.int32)
    for thread in threads:
        of_thread = lookups.ranges.covering(thread, chosen.begin, chosen.returned)
        row = np.where(row < 0, of_thread, row)
    if cause in (Cause.HOST_BOUND, Cause.LAUNCH_BOUND):
        return _Place(row, lookups.sampled(chosen))
    if cause == Cause.SYSTEM:
        event, _ = host.system.longest(chosen.thread, chosen.begin, chosen.launch)
        call = np.append(host.system.row, -1)[event].astype(np.int32)
    return _Place(row, lookups.ranges_of_system_calls(call))


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
    result = np.where(same, lookups.id("(same stream)"), lookups.id("(other stream)"))
    result = np.where(is_copy, lookups.id("(copy)"), result)
    event = _event_waits(profile, call)
    return np.where(event >= 0, lookups.ranges_of_calls(event), result).astype(np.int32)


def _event_waits(profile: ProfileData, call: Int32) -> Int32:
    """The call that made the stream of a launch wait for an event just before it, -1 for none."""
    api, result = profile.api, np.full(len(call), -1, np.int32)
    all_waits = api.name.where(lambda name: "StreamWait" in (name or ""))
    if not len(all_waits):
        return result
    works = api.call_class.where(lambda name: name in (LAUNCH, COPY_CALL))
    known = np.flatnonzero(call >= 0)
    own, thread = call[known].astype(np.int64), api.thread[call[known]]
    last_wait, last_launch = (_last_before(some, thread, own, api) for some in (all_waits, works))
    result[known] = np.where(last_wait > last_launch, last_wait, -1)
    return result


def _last_before(calls: Int64, thread: Int32, call: Int64, api: ApiCalls) -> Int64:
    """The last of some calls on each thread before a call, -1 for none."""
    own = grouped(api.thread[calls], calls, calls)
    place = own.first(thread, call) - 1
    return np.where(place >= own.slices(thread)[0], np.append(own.start, -1)[place], -1)


def _innermost(profile: ProfileData, row: Int32, *kinds: Kind) -> Values:
    """The name of the innermost of each range and those around it that is of some kinds."""
    ranges, row = profile.ranges, row.copy()
    fits = np.array([meaning.kind in kinds for meaning in ranges.meanings], bool)
    others = np.flatnonzero((row >= 0) & ~_of(fits, ranges.label, row))
    while others.size:
        above = row[others] = ranges.parent[row[others]]
        others = others[(above >= 0) & ~_of(fits, ranges.label, above)]
    return Values(take(ranges.label, row), ranges.meanings).used()


def _of(fits: Bools, label: Int32, row: Int32) -> Bools:
    return np.append(fits, True)[take(label, row)]


def _own_range(meaning: Meaning) -> str:
    """A range of the user, numbers folded."""
    return without_numbers(meaning.label)
