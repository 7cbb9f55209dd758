"""Events of host threads: open, last or longest ones for many instants; CPU time and memory.

Python functions, layers and annotations are not events: their time belongs to the event around.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof._core import _grouped, _nest, _path
from fastprof._core._take import place, take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.grouping import Grouping, texts
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.metadata import About, Memory
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import Instances
from fastprof.profile.range_columns import RangeColumns


class Grouped(NamedTuple):
    """Intervals of threads, or of groups of threads: thread by thread, each in order of start.

    Parameters
    ----------
    start : int64 [intervals], ns
    end : int64 [intervals], ns, the last end of this interval and of those of its thread before it
    bounds : int64 [threads + 1], where the intervals of each thread begin
    order : int64 [intervals], the events that they were; empty in the result of `united`
    """

    start: Int64
    end: Int64
    bounds: Int64
    order: Int64

    def first(self, thread: Int32, time: Int64, *, after: bool = False) -> Int64:
        """The first interval of each thread that starts at a time or later; or `after` it."""
        low, high = self.slices(thread)
        return place(self.start, low, high, time, after)

    def slices(self, thread: Int32) -> tuple[Int64, Int64]:
        """Where the intervals of each thread begin and end; threads without any: an empty slice."""
        known = (thread >= 0) & (thread < len(self.bounds) - 1)
        number = np.where(known, thread, 0)
        low = self.bounds[number]
        return low, np.where(known, self.bounds[np.minimum(number + 1, len(self.bounds) - 1)], low)


class BusyThreads:
    """The time during which at least one interval of each thread runs."""

    def __init__(self, intervals: Grouped) -> None:
        self._own, start, end = intervals, intervals.start, intervals.end
        before = np.concatenate([start[:1], end[:-1]])
        firsts = intervals.bounds[:-1][np.diff(intervals.bounds) > 0]
        before[firsts] = start[firsts]
        self._busy = np.cumsum(np.maximum(end - np.maximum(start, before), 0))

    def covered(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """ns [windows] of busy time of each thread in a window."""
        if not len(self._busy):
            return np.zeros(len(thread), np.int64)
        return self._until(thread, end) - self._until(thread, begin)

    def _until(self, thread: Int32, time: Int64) -> Int64:
        """ns of busy time before each time, and that of all threads before this one."""
        n = self._own.first(thread, time) - 1
        running = np.append(self._own.end, 0)[n] - time
        ran = n >= self._own.slices(thread)[0]
        return np.append(self._busy, 0)[n] - np.where(ran, np.maximum(running, 0), 0)


class ThreadEvents(NamedTuple):
    """Events of threads, in order of start; they may overlap.

    Parameters
    ----------
    thread : int32 [events], an index into `profile.api.threads`, -1 if unknown
    start, end : int64 [events], ns
    row : int64 [events], the row in the table that they come from, -1 for none
    """

    thread: Int32
    start: Int64
    end: Int64
    row: Int64

    def last(self, thread: Int32, time: Int64) -> tuple[Int64, Int64]:
        """The last event that each thread began before each time, and its end.

        (-1, NO_TIME) if there is none.
        """
        if not len(self.thread):
            return np.full(len(thread), -1), np.full(len(thread), NO_TIME)
        own = grouped(self.thread, self.start, self.end)
        number = own.first(thread, time) - 1
        known = number >= own.slices(thread)[0]
        event = np.append(own.order, -1)[np.where(known, number, -1)]
        return event, np.append(self.end, NO_TIME)[event]

    def longest(self, thread: Int32, begin: Int64, end: Int64) -> tuple[Int64, Int64]:
        """The event of the thread that takes most of each window, and its ns there.

        (-1, 0) if there is none.
        """
        result, ns = np.full((2, len(thread)), -1)
        if not len(self.thread):
            return result, np.zeros(len(thread), np.int64)
        own = grouped(self.thread, self.start, self.end)
        first = place(own.end, *own.slices(thread), begin, True)
        counts = np.maximum(own.first(thread, end) - first, 0)
        window = np.repeat(np.arange(len(thread)), counts)
        event = own.order[piece_rows(first, counts)]
        inside = np.minimum(self.end[event], end[window])
        inside -= np.maximum(self.start[event], begin[window])
        order = np.argsort(inside, kind="stable")  # the last one of each window stays
        result[window[order]] = event[order]
        ns[window[order]] = inside[order]
        return np.where(ns > 0, result, -1), np.maximum(ns, 0)


def piece_rows(first: Int64, counts: Int64) -> Int64:
    """The numbers first, first + 1, ... of several slices, one slice after another."""
    return np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())


def grouped(thread: Int32, start: Int64, end: Int64, n_threads: int | None = None) -> Grouped:
    """Events in order of start, thread by thread; those of no thread (-1) are left out.

    n_threads : by default, up to the last thread with an event
    """
    n = int(thread.max(initial=-1)) + 1 if n_threads is None else n_threads
    ends = None if end is start else np.ascontiguousarray(end)
    columns = np.ascontiguousarray(thread), np.ascontiguousarray(start), ends
    return Grouped(*_grouped.by_thread(*columns, n))


def united(
    events: ThreadEvents, group: Int32, label: Int32 | None = None, wanted: Bools | None = None
) -> Grouped:
    """Events by group of threads, without those within earlier ones: the same time has events.

    group : int32 [threads], 0, 1, ...
    label, wanted : int32 [events] and bool [labels], to include the events of some labels only
    """
    start, end = np.ascontiguousarray(events.start), np.ascontiguousarray(events.end)
    thread, n_groups = np.ascontiguousarray(events.thread), int(group.max(initial=-1)) + 1
    result = _grouped.united(thread, start, end, group, n_groups, label, wanted)
    return Grouped(*result, np.empty(0, np.int64))


def in_order(events: Sequence[ThreadEvents]) -> ThreadEvents:
    """Several events as one."""
    both = ThreadEvents._make(np.concatenate(members) for members in zip(*events, strict=True))
    order = np.argsort(both.start, kind="stable")
    return ThreadEvents._make(array[order] for array in both)


class OpenRanges:
    """Looks up the ranges that are open on threads."""

    def __init__(self, profile: ProfileData) -> None:
        self._ranges = profile.ranges

    @computed_once
    def _own(self) -> Grouped:
        return grouped(self._ranges.thread, self._ranges.start, self._ranges.start)

    def innermost(self, thread: Int32, time: Int64) -> Int32:
        """The innermost range that is open on each thread at each time, a row, -1 for none."""
        if not np.any(thread >= 0):
            return np.full(len(thread), -1, np.int32)
        ranges, own = self._ranges, self._own
        place = own.first(thread, time, after=True) - 1
        known = place >= own.slices(thread)[0]
        row = np.where(known, np.append(own.order, -1)[place], -1).astype(np.int32)
        while (closed := np.flatnonzero(take(ranges.end, row, NEVER) <= time)).size:
            row[closed] = ranges.parent[row[closed]]
        return row

    def covering(self, thread: Int32, begin: Int64, end: Int64) -> Int32:
        """The innermost range of each thread that is open for most of a window, a row, -1 for none.

        It is open in the middle of the window, or does not take most of it.
        """
        ranges, result = self._ranges, self.innermost(thread, begin + (end - begin) // 2)
        places = np.arange(len(result))
        while len(places):
            row = result[places]
            since = np.maximum(take(ranges.start, row, 0), begin[places])
            until = np.minimum(take(ranges.end, row, 0), end[places])
            is_short = 2 * (until - since) <= (end - begin)[places]
            places = places[(row >= 0) & is_short]
            result[places] = ranges.parent[result[places]]
        return result


_MEMORY_OUTSIDE: Final = "[memory]"  # allocations outside of all events, as in torch's tables
_EVENTS: Final = (Kind.TORCH, Kind.ARGUMENT, Kind.USER)
# torch.profiler does not count these operators.
_NOT_COUNTED: Final = frozenset(
    {
        *("profiler::_record_function_enter", "profiler::_record_function_enter_new"),
        *("profiler::_record_function_exit", "aten::is_leaf", "aten::output_nr", "aten::_version"),
    }
)
_OF_OPERATORS: Final = frozenset({"op", "mod", "params"})  # an API call does not have its caller's
_NONE: Final = np.iinfo(np.int64).min
_MOST_CROSSED: Final = 64  # events around an event that end before it
# c10::DeviceType: CPU, MKLDNN, IDEEP; CUDA, HIP, XPU, PrivateUse1.
_DEVICE_TYPES: Final = {"cpu": (0, 2, 5), "gpu": (1, 6, 12, 20)}


class Measure(NamedTuple):
    """A measure of events: with and without the events inside; int64 [events]."""

    total: Int64
    own: Int64


@dataclass(frozen=True, eq=False)
class CpuEvents:
    """Operators, user ranges and API calls, in order of start; allocations outside of these last.

    An event without events inside except one of the same name is one event with it.

    Parameters
    ----------
    ranges : columns of the ranges of the trace
    row : int32 [events], the range, or the innermost one around an API call; -1 if none
    parent : int32 [events], the event around on the same thread, -1 if none
    op : operator, name of a user range with numbers folded, or API function
    is_range : bool [events]
    thread : int32 [events], index into `ranges.ranges.threads`
    time : ns
    memory : net bytes allocated while an event is open, by any thread: "cpu", "gpu"; without those
        of which the trace records no allocation
    """

    ranges: RangeColumns
    row: Int32
    parent: Int32
    op: Values
    is_range: Bools
    thread: Int32
    time: Measure
    memory: dict[str, Measure]

    def __len__(self) -> int:
        return len(self.row)

    @property
    def about(self) -> About:
        """The metadata of the trace."""
        return self.ranges.about

    @computed_once
    def names(self) -> list[str]:
        """The columns: those of ranges."""
        return self.ranges.names

    def column(self, name: str) -> Column:
        """A column of `names`."""
        threads = self.ranges.ranges.threads
        if name in ("tid", "pid"):
            return Ints(take(threads.tid if name == "tid" else threads.pid, self.thread))
        if name == "op":
            return self.op
        column = self.ranges.column(name)
        if isinstance(column, Ints):
            return Ints(take(column.values, self.row, column.none), column.none)
        own = name in _OF_OPERATORS
        row = np.where(self.is_range, self.row, np.int32(-1)) if own else self.row
        of_ranges = texts(self.ranges, name)
        return Values(take(of_ranges.ids, row), of_ranges.values)


class _Spans(NamedTuple):
    """Ranges and API calls together, in order of (start, -end)."""

    start: Int64
    end: Int64
    thread: Int32
    source: Int32  # the row of the range; then the API calls, from `n_ranges` on
    around: Int32  # the innermost span around, -1 if none


def cpu_events(profile: ProfileData) -> CpuEvents:
    """The CPU events of a trace; reads its times from the file on first use.

    Raises
    ------
    BadInputError
        The file has changed, or it is dict lines.
    """
    columns, api = profile.source.range_columns, profile.api
    ranges = columns.ranges
    n_ranges = ranges.n_own
    spans = _spans(ranges, n_ranges, api)
    name_of_label = Values(ranges.label[:n_ranges], ranges.meanings).mapped(_name)
    name = joined_ids(name_of_label, api.name)
    is_event = (spans.end != NEVER) & (name[spans.source] >= 0)
    rows = np.flatnonzero(is_event).astype(np.int32)
    around = _renumbered(_containing(spans, is_event)[rows], rows)
    start, end, name = spans.start[rows], spans.end[rows], name[spans.source[rows]]
    merged = _merged(around, name)
    own = np.arange(len(rows), dtype=np.int32)
    into = _path.innermost(around, np.where(merged, np.int32(-1), own))
    kept = np.flatnonzero(~merged).astype(np.int32)
    memory = _Allocations(profile.about.memory, start, end)
    n_outside = int(memory.outside.sum())

    def measure(total: Int64, outside: Int64) -> Measure:
        without = _sums(into, total - _sums(around, total))
        return Measure(
            np.concatenate([total[kept], outside]), np.concatenate([without[kept], outside])
        )

    source = np.where(spans.source < n_ranges, spans.source, -1).astype(np.int32)
    row = _path.innermost(spans.around, source)[rows[kept]]
    none = np.full(n_outside, -1, np.int32)
    return CpuEvents(
        ranges=columns,
        row=np.concatenate([row, none]),
        parent=np.concatenate([_renumbered(take(into, around)[kept], kept), none]),
        op=_ops(columns, api.name, spans.source[rows[kept]], n_ranges, n_outside),
        is_range=np.concatenate([source[rows[kept]] >= 0, none >= 0]),
        thread=np.concatenate([spans.thread[rows[kept]], none]),
        time=measure(end - start, np.zeros(n_outside, np.int64)),
        memory={
            place: measure(memory.inside(place), size[memory.outside])
            for place, size in memory.bytes.items()
        },
    )


def counted(events: CpuEvents, groups: Grouping, nested: bool) -> Bools:
    """[events] Whether the totals of a group include the event.

    nested : whether they include events directly inside an event of the same group, as in the
        tables of torch.profiler
    """
    inner = (groups.ids[events.parent] == groups.ids) & (events.parent >= 0)
    return np.full(len(events), True) if nested else ~inner


def _name(meaning: Meaning) -> str | None:
    """Equal for events that are one if nested; None for ranges that are not events."""
    if meaning.kind not in _EVENTS or meaning.name in _NOT_COUNTED:
        return None
    call = meaning.call
    if meaning.kind == Kind.ARGUMENT and call is not None:
        return call.op  # the operator's own range is inside
    return meaning.name.removeprefix("aten::")  # aten::detach contains detach


def joined_ids(left: Values, right: Values) -> Int32:
    """The ids of two columns, those of the second after those of the first."""
    after = np.where(right.ids < 0, np.int32(-1), right.ids + np.int32(len(left.values)))
    return np.concatenate([left.ids, after])


def _spans(ranges: Instances, n_ranges: int, api: Instances) -> _Spans:
    calls = np.flatnonzero(api.thread >= 0)
    start = np.concatenate([ranges.start[:n_ranges], api.start[calls]])
    end = np.concatenate([ranges.end[:n_ranges], api.end[calls]])
    thread = np.concatenate([ranges.thread[:n_ranges], api.thread[calls]])
    source = np.concatenate([np.arange(n_ranges), n_ranges + calls]).astype(np.int32)
    order = _nest.order(start, end)
    if order is not None:
        start, end, thread, source = start[order], end[order], thread[order], source[order]
    no_point, no_thread = np.empty(0, np.int64), np.empty(0, np.int32)
    n_threads = len(ranges.threads.tid)
    parent, span, frame, _ = _nest.sweep(start, end, thread, no_point, no_thread, n_threads)
    return _Spans(start, end, thread, source, take(span, take(parent, frame)))


def _containing(spans: _Spans, is_event: Bools) -> Int32:
    """[spans] The innermost event around that does not end earlier, -1 if none."""
    own = np.where(is_event, np.arange(len(is_event), dtype=np.int32), np.int32(-1))
    outer = take(_path.innermost(spans.around, own), spans.around)
    result: Int32 = outer.copy()
    crossed = np.flatnonzero(take(spans.end, result, NEVER) < spans.end)
    for _ in range(_MOST_CROSSED):
        if not len(crossed):
            return result
        result[crossed] = outer[result[crossed]]
        crossed = crossed[take(spans.end, result[crossed], NEVER) < spans.end[crossed]]
    result[crossed] = -1
    return result


def _sums(into: Int32, values: Int64) -> Int64:
    """[n] Sums of [n] values by index, -1 for none; exact up to 2^53."""
    return np.bincount(into + 1, values, len(into) + 1)[1:].astype(np.int64)


def _renumbered(parent: Int32, rows: Int32) -> Int32:
    """The parents of some rows, which are among these rows or -1, as indices into these rows."""
    place = np.empty(int(rows.max(initial=-1)) + 1, np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    return take(place, parent)


def _merged(around: Int32, name: Int32) -> Bools:
    """Whether an event is the only one directly inside an event of the same name."""
    children = np.bincount(around + 1, minlength=len(around) + 1)[1:]
    alone = np.append(children == 1, False)[around]
    merged: Bools = alone & (name == take(name, around, -2))
    return merged


class _Allocations:
    """The allocations and frees of a trace.

    Attributes
    ----------
    bytes : int64 [allocations], by place, "cpu" and "gpu"; 0 for those of another place. Without
        places that have none
    outside : bool [allocations], whether no event is open
    """

    def __init__(self, memory: Memory, start: Int64, end: Int64) -> None:
        """Sort the allocations into events, which are in order of start."""
        of = {place: np.isin(memory.device_type, types) for place, types in _DEVICE_TYPES.items()}
        known = (memory.time != _NONE) & (memory.bytes != _NONE) & np.logical_or(*of.values())
        rows = np.flatnonzero(known)
        rows = rows[np.argsort(memory.time[rows], kind="stable")]
        time = memory.time[rows]
        self.bytes = {
            place: np.where(own[rows], memory.bytes[rows], 0)
            for place, own in of.items()
            if own[rows].any()
        }
        self.outside: Bools = np.empty(0, bool)
        if not len(rows):
            return
        self._first = np.searchsorted(time, start, "left")
        self._last = np.searchsorted(time, end, "right")
        opened = np.searchsorted(start, time, "right")
        closed = np.searchsorted(np.sort(end), time, "left")
        self.outside = opened == closed

    def inside(self, place: str) -> Int64:
        """[events] Net bytes."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.bytes[place])])
        return np.asarray(before[self._last] - before[self._first])


def _ops(
    columns: RangeColumns, api_name: Values, source: Int32, n_ranges: int, n_outside: int
) -> Values:
    """The operators of events; then `[memory]` for each allocation outside."""
    of_ranges = texts(columns, "op")
    ids = joined_ids(Values(of_ranges.ids[:n_ranges], of_ranges.values), api_name)[source]
    names = [*of_ranges.values, *api_name.values, _MEMORY_OUTSIDE]
    last = np.full(n_outside, len(names) - 1, np.int32)
    return Values(np.concatenate([ids, last]), names).mapped(str)  # merges equal names
