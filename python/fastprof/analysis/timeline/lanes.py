"""The lanes of a time line: streams, gaps, ranges and calls, with their level of detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.analysis.gpu_work import Gaps, work_of_device
from fastprof.analysis.grouping import numbers
from fastprof.analysis.host.states import system_waits
from fastprof.analysis.idle.causes import Cause
from fastprof.analysis.idle.gaps import Examined, examine
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Bools, Int32, Int64, place_in, unique
from fastprof.model.trace import NEVER
from fastprof.profile.cells import numbered
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.instances import ApiCalls, Instances

LEVELS: Final = 64  # deeper ranges are omitted
LANES: Final = 400  # of streams, and of threads; the less busy ones are omitted


class TimeWindow(NamedTuple):
    """The time that a time line shows, ns on the clock of the trace."""

    start: int
    end: int


class Lane(NamedTuple):
    """A lane: events that seldom overlap.

    Parameters
    ----------
    kind : str
        idle (causes of gaps of a GPU), work (of a stream), ranges (of a level of a thread), calls
        (of the CUDA or HIP API by a thread) or system (calls of the operating system, and a thread
        that is switched out).
    pid, device, stream, tid : int
        -1 if not recorded, or if the lane has none.
    level : int
        Of ranges: how many ranges are open at their start.
    """

    kind: str
    pid: int = -1
    device: int = -1
    stream: int = -1
    tid: int = -1
    level: int = 0


class LaneSelection(NamedTuple):
    """Lanes with their events, how many ranges are too deep to be shown, and how many lanes are
    omitted."""

    lanes: list[tuple[Lane, LaneEvents]]
    n_deep: int
    n_omitted: int


class LaneSources:
    """What the lanes of a profile need, once for all windows.

    Attributes
    ----------
    has_gpu, has_host : bool
        Whether the file records the times of GPU work, and the host side.
    """

    def __init__(self, profile: ProfileData) -> None:
        self.profile = profile
        self.has_gpu = "start" in profile.names and len(profile) > 0
        self.has_host = "start" in profile.names and (len(profile.api) + len(profile.ranges) > 0)

    @computed_once
    def idle(self) -> Examined:
        """The gaps of all GPUs."""
        return examine(self.profile, work_of_device(self.profile))

    @computed_once
    def end(self) -> Int64:
        """int64 [kernels], ns, the end of the work; its start if the length is unknown."""
        start = numbers(self.profile, "start")
        end: Int64 = start + np.maximum(numbers(self.profile, "sil"), 0)
        return end

    @computed_once
    def stream(self) -> tuple[Int32, list[Lane]]:
        """int32 [kernels], the lane of each, and the lanes."""
        names = ("device", "process", "stream")
        columns = [key_of(self.profile, name) for name in names]
        of_kernel, first = numbered([column.ids for column in columns], len(self.profile))
        places = [
            tuple(-1 if (value := column.at(row)) is None else int(value) for column in columns)
            for row in first.tolist()
        ]
        return of_kernel, [Lane("work", pid, device, number) for device, pid, number in places]


def lanes_between(recorded: LaneSources, window: TimeWindow) -> LaneSelection:
    """The lanes with events in a window: first the GPUs, then the threads, the busiest first.

    Events that cross the limits of the window are undivided. Calls that launched work of the window
    are included wherever they are.
    """
    profile = recorded.profile
    lanes: list[tuple[Lane, LaneEvents]] = []
    work, n_omitted = np.empty(0, np.int64), 0
    if recorded.has_gpu:
        work = _inside(numbers(profile, "start"), recorded.end, window)
        streams = _of_streams(recorded, work)
        n_omitted = max(len(streams) - LANES, 0)
        lanes += _of_gpus(recorded, window, work, _busiest(streams))
    if not recorded.has_host:
        return LaneSelection(lanes, 0, n_omitted)
    ranges, n_deep = _range_rows(profile, window)
    rows = _Rows(ranges, _call_rows(profile, window, work), _wait_rows(recorded, window))
    n_threads = _n_lanes(recorded, rows)
    if n_threads > LANES:
        rows = _of_busiest(recorded, window, rows)
    threads = [
        *_of_ranges(profile, window, rows.ranges),
        *_of_calls(profile.api, rows.calls),
        *_of_system(recorded, rows.waits),
    ]
    ns: dict[tuple[int, int], int] = {}
    for lane, events in threads:
        if lane.kind != "system":
            own = int((events.end - events.start).sum())
            ns[lane.pid, lane.tid] = ns.get((lane.pid, lane.tid), 0) + own
    # A sort keeps the order of the lanes of a thread: ranges by level, calls, system.
    threads.sort(
        key=lambda pair: (-ns.get((pair[0].pid, pair[0].tid), 0), pair[0].pid, pair[0].tid)
    )
    n_omitted += max(n_threads - LANES, 0)
    return LaneSelection([*lanes, *threads[:LANES]], n_deep, n_omitted)


def _inside(start: Int64, end: Int64, window: TimeWindow) -> Int64:
    """Rows, in order of start, that overlap a window; work without length counts at its start."""
    first, last = np.searchsorted(start, [window.start, window.end])
    before = np.flatnonzero(end[:first] > window.start)
    return np.concatenate([before, np.arange(first, last)])


def _of_streams(recorded: LaneSources, rows: Int64) -> list[tuple[Lane, Int64]]:
    """The streams of each GPU, with the places of their work in `rows`."""
    of_kernel, lanes = recorded.stream
    streams = [(lanes[i], own) for i, own in _by(of_kernel[rows].astype(np.int64))]
    streams.sort(key=lambda pair: (pair[0].device, pair[0].pid, pair[0].stream))
    return streams


def _busiest(streams: list[tuple[Lane, Int64]]) -> list[tuple[Lane, Int64]]:
    """The streams with the most work, in the same order."""
    if len(streams) <= LANES:
        return streams
    order = sorted(range(len(streams)), key=lambda i: -len(streams[i][1]))
    return [streams[i] for i in sorted(order[:LANES])]


def _of_gpus(
    recorded: LaneSources, window: TimeWindow, rows: Int64, streams: list[tuple[Lane, Int64]]
) -> Iterator[tuple[Lane, LaneEvents]]:
    """The idle time of the GPU of each stream, and the work of the stream."""
    start, end = numbers(recorded.profile, "start")[rows], recorded.end[rows]
    what = recorded.profile.source.cells.of_kernel[rows]
    for device, of_gpu in groupby(streams, key=lambda pair: pair[0].device):
        if recorded.has_host:
            gpu = place_in(recorded.idle.devices, device)
            idle = idle_between(recorded.idle, gpu, *window)
            yield Lane("idle", device=device), single(idle.start, idle.end, idle.cause, idle.after)
        for lane, own in of_gpu:
            yield lane, single(start[own], end[own], what[own], rows[own])


class _Rows(NamedTuple):
    """The events of threads in a window.

    ranges : int64, rows of `Profile.ranges`
    calls : int64, rows of `Profile.api`
    waits : int64, rows of `system_waits`
    """

    ranges: Int64
    calls: Int64
    waits: Int64


def _n_lanes(recorded: LaneSources, rows: _Rows) -> int:
    """The number of lanes of threads."""
    ranges, waits = recorded.profile.ranges, kept(recorded.profile, system_waits)
    lane = ranges.thread[rows.ranges].astype(np.int64) * LEVELS + ranges.level[rows.ranges]
    threads = lane, recorded.profile.api.thread[rows.calls], waits.thread[rows.waits]
    return sum(len(unique(lanes)) for lanes in threads)


def _of_busiest(recorded: LaneSources, window: TimeWindow, rows: _Rows) -> _Rows:
    """The events of the threads of the first LANES lanes: an object for each lane takes 1 kB."""
    profile, waits = recorded.profile, kept(recorded.profile, system_waits)
    ranges, api = profile.ranges, profile.api
    tid, pid = ranges.threads.tid, ranges.threads.pid
    ns, has_lane = np.zeros(len(tid)), np.zeros(len(tid), bool)
    for events, own, last in ((ranges, rows.ranges, window.end), (api, rows.calls, None)):
        start, end = events.start[own], events.end[own]
        end = np.where(end == NEVER, start if last is None else last, end)
        ns += np.bincount(events.thread[own], np.maximum(end - start, 0), len(tid))
        has_lane[events.thread[own]] = True
    has_lane[waits.thread[rows.waits]] = True
    order = np.lexsort([tid, pid, -ns])
    chosen = np.zeros(len(tid), bool)
    chosen[order[has_lane[order]][:LANES]] = True
    return _Rows(
        rows.ranges[chosen[ranges.thread[rows.ranges]]],
        rows.calls[chosen[api.thread[rows.calls]]],
        rows.waits[chosen[waits.thread[rows.waits]]],
    )


def _call_rows(profile: ProfileData, window: TimeWindow, work: Int64) -> Int64:
    """Calls in a window, and those that launched work in it."""
    api = profile.api
    inside = _inside(api.start, api.end, window)
    inside = inside[(api.end[inside] != NEVER) | (api.start[inside] >= window.start)]
    rows: Int64 = np.union1d(inside, api.of_kernel[work])
    rows = rows[rows >= 0]
    return rows[api.thread[rows] >= 0]


def _range_rows(profile: ProfileData, window: TimeWindow) -> tuple[Int64, int]:
    """The ranges of threads in a window; how many are deeper than LEVELS."""
    ranges = profile.ranges
    rows = _inside(ranges.start, ranges.end, window)
    rows = rows[(rows < ranges.n_own) & (ranges.thread[rows] >= 0)]
    is_deep = ranges.level[rows] >= LEVELS
    return rows[~is_deep], int(np.count_nonzero(is_deep))


def _of_ranges(
    profile: ProfileData, window: TimeWindow, rows: Int64
) -> Iterator[tuple[Lane, LaneEvents]]:
    """The ranges of each thread by level."""
    ranges = profile.ranges
    level, thread = ranges.level[rows], ranges.thread[rows]
    end = np.where(ranges.end[rows] == NEVER, window.end, ranges.end[rows])
    end = np.maximum(end, ranges.start[rows])
    for key, own in _by(thread.astype(np.int64) * LEVELS + level):
        number, depth = divmod(key, LEVELS)
        lane = _of_thread("ranges", ranges, number)._replace(level=depth)
        some = rows[own]
        yield lane, single(ranges.start[some], end[own], ranges.label[some], some)


def _of_calls(api: ApiCalls, rows: Int64) -> Iterator[tuple[Lane, LaneEvents]]:
    """The calls of each thread; a call whose end is not recorded ends at its start."""
    for thread, own in _by(api.thread[rows].astype(np.int64)):
        some = rows[own]
        start, end = api.start[some], api.end[some]
        end = np.where(end == NEVER, start, end)
        events = single(start, end, api.name.take(some).ids, some)
        yield _of_thread("calls", api, thread), events


def _wait_rows(recorded: LaneSources, window: TimeWindow) -> Int64:
    """The waits in a window, but of threads without ranges and API calls."""
    waits = kept(recorded.profile, system_waits)
    rows = _inside(waits.start, waits.end, window)
    n_threads = len(recorded.profile.api.threads.tid)
    return rows[(waits.thread[rows] >= 0) & (waits.thread[rows] < n_threads)]


def _of_system(recorded: LaneSources, rows: Int64) -> Iterator[tuple[Lane, LaneEvents]]:
    """Calls of the operating system; the last name is that of being switched out."""
    waits, calls = kept(recorded.profile, system_waits), recorded.profile.os_calls
    out = len(calls.name.values)
    what = np.append(calls.name.ids, np.int32(out))[waits.row[rows]]
    for thread, own in _by(waits.thread[rows].astype(np.int64)):
        some = rows[own]
        events = single(waits.start[some], waits.end[some], what[own], waits.row[some])
        yield _of_thread("system", recorded.profile.api, thread), events


def _of_thread(kind: str, events: Instances, thread: int) -> Lane:
    tid, pid = int(events.threads.tid[thread]), int(events.threads.pid[thread])
    return Lane(kind, pid=pid, tid=tid)


def _by(keys: Int64) -> Iterator[tuple[int, Int64]]:
    """Each key, ascending, and its places in order.

    keys : small numbers
    """
    counts = np.bincount(keys)
    # NumPy sorts numbers of 16 bits in linear time.
    order = np.argsort(keys.astype(np.uint16) if len(counts) < 1 << 16 else keys, kind="stable")
    ends = np.cumsum(counts)
    for key in np.flatnonzero(counts).tolist():
        yield key, order[ends[key] - counts[key] : ends[key]]


# The host prepares the launch, the call runs, the GPU begins.
_ORDER: Final = np.array(
    [*(cause for cause in Cause if cause not in (Cause.LATENCY, Cause.DEPENDENCY)),
     Cause.LATENCY, Cause.DEPENDENCY]
)  # fmt: skip
_PLACE: Final = np.argsort(_ORDER)  # of each cause


class IdleParts(NamedTuple):
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


def idle_between(examined: Examined, device: int, begin: int, end: int) -> IdleParts:
    """The gaps of a GPU that overlap a window, undivided by its limits.

    device : index into `found.devices`
    begin, end : ns, the window
    """
    long = _idle_inside(examined.gaps, examined.device, device, begin, end)
    short = _idle_inside(examined.short, examined.short_device, device, begin, end)
    parts = examined.causes.parts
    rows = slice(*np.searchsorted(parts.gap, [long.start, long.stop]))
    n_long, n_short = long.stop - long.start, short.stop - short.start
    chosen = (
        Gaps._make(gap[own] for gap in gaps)
        for gaps, own in ((examined.gaps, long), (examined.short, short))
    )
    some = Gaps._make(map(np.concatenate, zip(*chosen, strict=True)))
    gap = np.concatenate([parts.gap[rows] - long.start, np.arange(n_long, n_long + n_short)])
    cause = np.concatenate([parts.cause[rows], np.full(n_short, Cause.SHORT)])
    length = np.concatenate([parts.ns[rows], (some.end - some.start)[n_long:]])
    order = np.lexsort((_PLACE[cause], gap, some.start[gap]))
    order = order[length[order] != 0]
    gap, cause, length = gap[order], cause[order], length[order]
    until = np.cumsum(length)
    first = np.flatnonzero(np.diff(gap, prepend=-1))
    before = np.repeat((until - length)[first], np.diff(np.append(first, len(gap))))
    start, after = some.start[gap] + until - length - before, some.after[gap]
    return IdleParts(start, start + length, cause.astype(np.int32), after.astype(np.int64))


def _idle_inside(gaps: Gaps, of_gaps: Int32, device: int, begin: int, end: int) -> slice:
    """The gaps of a GPU that overlap a window."""
    first, last = np.searchsorted(of_gaps, [device, device + 1]).tolist()
    return slice(
        first + int(np.searchsorted(gaps.end[first:last], begin, "right")),
        first + int(np.searchsorted(gaps.start[first:last], end)),
    )


class LaneEvents(NamedTuple):
    """Events of a lane in order of start.

    An event with `counts` above 1 is a run of short neighbours. Its `what` and `row` are those of
    the longest event of the kind that takes most of its time.

    Parameters
    ----------
    start, end : int64 [events], ns on the clock of the trace
    busy : int64 [events], ns, the union of what was merged; `end - start` for single events
    counts : int32 [events], the events of each run, 1 for single ones
    what : int32 [events], row of the names of its kind of lane
    row : int64 [events], row of the table that it comes from, -1 for none
    """

    start: Int64
    end: Int64
    busy: Int64
    counts: Int32
    what: Int32
    row: Int64


class EventRuns(NamedTuple):
    """Merged events, and the place in them of each original event, int32 [originals]."""

    events: LaneEvents
    place: Int32


def single(start: Int64, end: Int64, what: Int32, row: Int64) -> LaneEvents:
    """Events that are not merged."""
    return LaneEvents(start, end, end - start, np.ones(len(start), np.int32), what, row)


def pixel_for(lanes: Sequence[LaneEvents], span: int, most: int) -> int:
    """The power of two of ns that leaves about `most` events after merging; 0: all fit unmerged.

    span : ns, the length of the time line
    """
    if sum(len(lane_events.start) for lane_events in lanes) <= most:
        return 0
    # A lane has at most span / pixel pixels that begin a run.
    pixel = 1 << max(span * len(lanes) // most, 1).bit_length()
    for bits in (2, 1):
        while pixel >> bits:
            if sum(int(np.count_nonzero(_begins(e, pixel >> bits))) for e in lanes) > most:
                break
            pixel >>= bits
    return pixel


def _begins(events: LaneEvents, pixel: int) -> Bools:
    """[events] Whether a run begins: a pixel, a gap as long as one, or a long event.

    pixel : a power of two of ns
    """
    start, end, bits = events.start, events.end, pixel.bit_length() - 1
    begins = np.ones(len(start), bool)
    if len(start) > 1:
        is_long = end - start >= pixel
        until = np.maximum.accumulate(end)
        begins[1:] = start[1:] >> bits != start[:-1] >> bits
        begins[1:] |= start[1:] - until[:-1] >= pixel
        begins[1:] |= is_long[1:] | is_long[:-1]
    return begins


def merged(events: LaneEvents, pixel: int, kinds: Int32) -> EventRuns:
    """Merge neighbouring events that start in the same pixel and are shorter than one.

    Runs contain no gap as long as a pixel. With pixel 0, nothing is merged.

    kinds : int32 [whats], the kind of each `what`, from 0
    """
    n = len(events.start)
    if not pixel or n < 2:
        return EventRuns(events, np.arange(n, dtype=np.int32))
    begins = _begins(events, pixel)
    first = np.flatnonzero(begins)
    place = (np.cumsum(begins) - 1).astype(np.int32)
    until = np.maximum.accumulate(events.end)
    before = np.concatenate([events.start[:1], until[:-1]])
    before[first] = events.start[first]  # an event of another run may still be open
    own = np.maximum(events.end - np.maximum(events.start, before), 0)
    main = _longest_of_main_kind(events, place, len(first), kinds)
    return EventRuns(
        LaneEvents(
            events.start[first],
            np.maximum.reduceat(events.end, first),
            np.add.reduceat(own, first),
            np.diff(np.append(first, n)).astype(np.int32),
            events.what[main],
            events.row[main],
        ),
        place,
    )


def _longest_of_main_kind(events: LaneEvents, place: Int32, n: int, kinds: Int32) -> Int64:
    """[runs] The longest event of the kind that takes most of the time of each run."""
    length = events.end - events.start
    kind = kinds[events.what]
    n_kinds = int(kinds.max(initial=0)) + 1
    ns = np.bincount(place * np.int64(n_kinds) + kind, length + 1, n * n_kinds)
    main = ns.reshape(n, n_kinds).argmax(axis=1)
    key = np.where(kind == main[place], length, -1)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    rows = np.flatnonzero(key == np.maximum.reduceat(key, first)[place])[::-1]
    result = np.empty(n, np.int64)
    result[place[rows]] = rows  # the first one of each run stays
    return result
