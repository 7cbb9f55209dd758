"""The ranges and API calls of a trace, read again from its file on first use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastprof._core import _join, _nest, _path
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.metadata import Memory
from fastprof.model.timeline import KeptHost, Recorded, RecordedCalls, RecordedHost, RecordedSyncs
from fastprof.model.trace import NEVER, NO_TIME, Trace, label_text
from fastprof.profile.api_classes import class_of
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.instances import (
    ApiCalls,
    EndedElsewhere,
    RangeInstances,
    RangeKinds,
    Synchronisations,
    Threads,
    named,
    synchronisations_of,
)


class DiffersError(Exception):
    """The file no longer contains the trace that was read."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """The ranges, in the order of `Attribution.ranges`, and API calls of a trace.

    memory : allocations
    """

    ranges: RangeInstances
    api: ApiCalls
    syncs: RecordedSyncs
    processes: Int32
    memory: Memory

    @computed_once
    def synchronisations(self) -> Synchronisations:
        """What calls waited for."""
        return synchronisations_of(self.syncs, self.processes, self.api)

    def launch_ends(self) -> Ints:
        """[kernels] The end of the launching API call."""
        end = take(self.api.end, self.api.of_kernel, NEVER)
        end[end == NEVER] = NO_TIME
        return Ints(end, none=NO_TIME)


def no_timeline(n_kernels: int) -> Timeline:
    """A timeline without ranges and API calls."""
    int64, int32 = np.empty(0, np.int64), np.empty(0, np.int32)
    of_kernel = np.full(n_kernels, -1, np.int32)
    threads, texts = Threads(int64, int64), Values(int32, [])
    kinds = RangeKinds(texts, np.empty(0, bool), EndedElsewhere(int64, int64, texts, texts))
    ranges = RangeInstances(
        start=int64,
        end=int64,
        thread=int32,
        threads=threads,
        label=int32,
        seq=int64,
        op_id=int64,
        of_events=False,
        meanings=[],
        n_own=0,
        n_ended_elsewhere=0,
        _places=_NoPlaces(int32, int32, int32, of_kernel, int32),
        _find_kinds=lambda: kinds,
    )
    api = ApiCalls(int64, int64, int32, threads, texts, texts, int64, of_kernel)
    syncs = RecordedSyncs(int64, int64, int32, int32, int32, int32, int64)
    return Timeline(ranges, api, syncs, int32, Memory())


class RangeTimes(NamedTuple):
    """Times of ranges, in the order of `Recording.ranges`; `thread` indexes `Trace.threads`."""

    start: Int64
    end: Int64
    thread: Int32


def timeline_of(trace: Trace, attribution: Attribution, recorded: Recorded) -> Timeline:
    """The timeline of a trace from a second reading of its file.

    Raises
    ------
    DiffersError
        The second reading differs from the first.
    """
    thread_of, threads = _threads(trace, recorded)
    own, more = recorded.ranges, trace.appended.ranges
    kinds = RangeKinds(
        domain=Values(np.append(own.domain.ids, np.full(more, -1, np.int32)), own.domain.values),
        is_push_pop=np.append(own.is_push_pop, np.ones(more, bool)),
        ended_elsewhere=EndedElsewhere(
            trace.phases.start,
            trace.phases.end,
            Values(trace.phases.label, [label_text(label) for label in trace.labels]),
            recorded.phase_domain,
        ),
    )
    times = RangeTimes(own.start, own.end, take(thread_of, own.thread))
    ranges = _ranges(trace, attribution, times, threads, lambda: kinds)
    _refer(recorded.calls, thread_of)
    api = _api(recorded, threads, _calls_of_kernels(trace, recorded.calls, threads))
    return Timeline(ranges, api, recorded.syncs, recorded.processes, recorded.memory)


class KeptTimes(NamedTuple):
    """The times of a trace from the first reading of its file."""

    host: KeptHost
    ranges: RangeTimes


def timeline_of_kept(
    trace: Trace, attribution: Attribution, kept: KeptTimes, again: Callable[[], Timeline]
) -> Timeline:
    """The timeline of a trace from the first reading of its file.

    again : the timeline from a second reading
    """
    host = kept.host
    thread_of, threads = _threads(trace, host)
    ranges = _ranges(trace, attribution, kept.ranges, threads, lambda: again().ranges.kinds)
    _refer(host.calls, thread_of)
    api = _api(host, threads, host.call_of_kernel)
    return Timeline(ranges, api, host.syncs, host.processes, host.memory)


def _refer(calls: RecordedCalls, thread_of: Int32) -> None:
    """Refer to the threads of the trace."""
    if not np.array_equal(thread_of, np.arange(len(thread_of))):
        calls.thread = take(thread_of, calls.thread)


def _api(recorded: RecordedHost, threads: Threads, row: Int32) -> ApiCalls:
    """row : [kernels] the call that launched each kernel"""
    calls = recorded.calls
    order = _nest.order(calls.start, calls.end)
    if order is not None:
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        row = take(place, row)
        for name in vars(calls):
            setattr(calls, name, getattr(calls, name)[order])
    names = named(Values(calls.name, recorded.strings))
    return ApiCalls(
        start=calls.start,
        end=calls.end,
        thread=calls.thread,
        name=names,
        call_class=names.mapped(class_of),
        correlation=calls.correlation,
        of_kernel=row,
        threads=threads,
    )


def _threads(trace: Trace, recorded: RecordedHost) -> tuple[Int32, Threads]:
    """The thread of the trace for each thread of the second reading, and all threads.

    Threads that only called API functions without launching anything are new; they come last.
    """
    known = _pairs(trace.threads, take(trace.processes, trace.process_of_thread))
    again = _pairs(recorded.threads, take(recorded.processes, recorded.process_of_thread))
    own = known[: len(known) - trace.appended.threads]
    # Threads without a numeric id differ by position only.
    places = list(range(len(own)))
    if again != own:
        place_of: dict[tuple[int, int], int] = {}
        for place, pair in enumerate(own):
            place_of.setdefault(pair, place)
        new = [pair for pair in dict.fromkeys(again) if pair not in place_of]
        place_of |= {pair: place for place, pair in enumerate(new, len(known))}
        known += new
        places = [place_of[pair] for pair in again]
    both = np.array(known, np.int64).reshape(-1, 2)
    threads = Threads(np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1]))
    return np.array(places, np.int32), threads


def _ranges(
    trace: Trace,
    attribution: Attribution,
    times: RangeTimes,
    threads: Threads,
    find_kinds: Callable[[], RangeKinds],
) -> RangeInstances:
    names, captured = attribution.ranges, trace.appended
    n_own = len(names) - captured.ranges
    if len(times.start) != n_own:
        raise DiffersError
    start, end, thread = times
    if captured.ranges:
        start = np.concatenate([start, captured.start])
        end = np.concatenate([end, captured.end])
        thread = np.concatenate([thread, captured.thread])
    return RangeInstances(
        start=start,
        end=end,
        thread=thread,
        threads=threads,
        label=names.label,
        seq=names.seq,
        op_id=names.op_id,
        of_events=trace.about.format == "kineto",
        meanings=attribution.meanings,
        n_own=n_own,
        n_ended_elsewhere=len(trace.phases.start),
        _places=_Places(trace, attribution, thread),
        _find_kinds=find_kinds,
    )


class _NoPlaces(NamedTuple):
    """The `RangePlaces` of no ranges."""

    level: Int32
    parent: Int32
    forward: Int32
    of_kernel: Int32
    waiting: Int32


class _Places:
    """`RangePlaces`, each computed on first use."""

    def __init__(self, trace: Trace, attribution: Attribution, thread: Int32) -> None:
        self._trace, self._attribution, self._thread = trace, attribution, thread

    @computed_once
    def level(self) -> Int32:
        attribution = self._attribution
        return take(_path.levels(attribution.frame_parent), attribution.frame_of_range)

    @computed_once
    def parent(self) -> Int32:
        attribution = self._attribution
        return take(
            attribution.frame_range, take(attribution.frame_parent, attribution.frame_of_range)
        )

    @computed_once
    def forward(self) -> Int32:
        return _forward(self._attribution)

    @computed_once
    def of_kernel(self) -> Int32:
        return _around_launches(self._trace, self._attribution, self._thread)

    @computed_once
    def waiting(self) -> Int32:
        attribution = self._attribution
        if attribution.caller_of_frame is None:
            return np.full(len(attribution.ranges), -1, np.int32)
        caller = _path.innermost(attribution.frame_parent, attribution.caller_of_frame)
        return take(attribution.frame_range, take(caller, attribution.frame_of_range))


def _forward(attribution: Attribution) -> Int32:
    """[ranges] The forward range of each outermost range of a backward call, -1 for others."""
    frames = np.arange(len(attribution.frame_range), dtype=np.int32)
    meaning = attribution.meaning_of_frame
    linked = np.flatnonzero((attribution.backward_of_frame == frames) & (meaning != frames))
    forward = np.full(len(attribution.ranges), -1, np.int32)
    forward[attribution.frame_range[linked]] = attribution.frame_range[meaning[linked]]
    return forward


def _around_launches(trace: Trace, attribution: Attribution, thread: Int32) -> Int32:
    """The innermost range around each launch; not that of a thread that waits for the launch's."""
    row = take(attribution.frame_range, attribution.launch_frame_of_kernel)
    of_launch = take(trace.launches.thread, trace.kernels.launch)
    return np.where(take(thread, row) == of_launch, row, np.int32(-1))


def _calls_of_kernels(trace: Trace, calls: RecordedCalls, threads: Threads) -> Int32:
    """The call that launched each kernel, by (process, correlation id), -1 if none."""
    kernels, launches = trace.kernels, trace.launches
    _, dense = np.unique(threads.pid, return_inverse=True)
    process_of_thread = dense.astype(np.int32)
    process = take(process_of_thread, take(launches.thread, kernels.launch))
    join = _join.Join(process, kernels.correlation)
    join.offer(take(process_of_thread, calls.thread), calls.correlation)
    row = join.rows(process, kernels.correlation)
    start, launch_start = take(calls.start, row), take(launches.start, kernels.launch)
    if np.any((start != launch_start) & (row >= 0)):
        raise DiffersError
    return row


def _pairs(tid: Int32 | Int64, pid: Int32) -> list[tuple[int, int]]:
    return list(zip(tid.tolist(), pid.tolist(), strict=True))
