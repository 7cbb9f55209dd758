"""Why a GPU has no work: what the host did during each gap before it launched the next work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache, partial
from typing import Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.analysis.gpu_work import Gaps
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.host.events import ThreadEvents
from fastprof.analysis.host.states import (
    HostActivity,
    HostStates,
    State,
    Which,
    host_states,
    switched_out,
    system_calls,
)
from fastprof.model.arrays import Bools, Int32, Int64, UInt8
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData, kept


class Cause(IntEnum):
    """Why the GPU waits. The first ones are the `State` of a host thread."""

    DATA_LOADING = State.DATA_LOADING
    COMPILATION = State.COMPILATION
    CODE_LOADING = State.CODE_LOADING
    CREATION = State.CREATION
    ALLOC = State.ALLOC
    FREE = State.FREE
    BLOCKING_COPY = State.BLOCKING_COPY
    SYNC = State.SYNC
    GARBAGE = State.GARBAGE
    GIL = State.GIL
    OTHER_THREAD = 10
    SYSTEM = 11
    OFF_CPU = 12
    LAUNCH_BOUND = 13
    HOST_BOUND = 14
    LATENCY = 15
    DEPENDENCY = 16
    UNKNOWN = 17
    PAGE_FAULT = 18
    SHORT = 19  # gaps that are too short to be examined


CAUSES: Final = (
    "data loading", "JIT compilation", "code loading", "creation", "allocation", "deallocation",
    "blocking copy", "sync", "garbage collection", "GIL", "other thread", "operating system",
    "off CPU", "launch-bound", "host-bound", "launch latency", "dependency", "unknown",
    "page fault", "short gaps",
)  # fmt: skip

_LATENCY_NS: Final = 30_000  # the GPU begins work sooner after its launch
_BETWEEN_NS: Final = 5_000  # and after the work before it
DRAINED_NS: Final = 20_000  # a call that waits for the GPU returns sooner after its last work
_RESUMES_NS: Final = 50_000  # after a wait, the thread can launch again sooner
_SHORT_NS: Final = 50_000  # a gap that one operator can fill


class Host:
    """What the host threads of a trace do.

    data : a regular expression for names of further ranges that load data
    """

    def __init__(self, profile: ProfileData, data: str | None = None) -> None:
        self.profile, self._is_asked_again = profile, False
        self.states: HostStates = (
            kept(profile, host_states) if data is None else host_states(profile, data)
        )

    @computed_once
    def system(self) -> ThreadEvents:
        """Waits in the operating system. Reads the file again."""
        return kept(self.profile, system_calls)

    @computed_once
    def off(self) -> ThreadEvents:
        """When threads do not run. Reads the file again."""
        return kept(self.profile, switched_out)

    def activity(self, gaps: Gaps) -> HostActivity:
        """When each thread is active within gaps. Takes longer than the other ones.

        From the second call on, one for any time.
        """
        if self._is_asked_again:
            return self._activity
        self._is_asked_again = True
        return HostActivity(
            self.profile, self.states, self.system, self.off, (gaps.start, gaps.end)
        )

    @computed_once
    def _activity(self) -> HostActivity:
        return HostActivity(self.profile, self.states, self.system, self.off)


class Parts(NamedTuple):
    """The parts of gaps by cause, in order of gap; a part takes at least 1 ns.

    Parameters
    ----------
    gap : int32 [parts], index of the gap
    cause : uint8 [parts], a `Cause`
    ns : int64 [parts]
    """

    gap: Int32
    cause: UInt8
    ns: Int64

    def time_by_window(self, window: Int32, n_windows: int) -> Int64:
        """The time of each cause, ns [windows, causes]; window : int32 [gaps], -1 for none."""
        n = len(Cause)
        key = take(window, self.gap) * np.int32(n) + self.cause
        return sum_where(key, self.ns, None, n_windows * n).reshape(n_windows, n)


class Split(NamedTuple):
    """The causes of gaps.

    Parameters
    ----------
    main : uint8 [gaps], the `Cause` that takes most of each gap
    ns : int64 [gaps], the time that it takes
    other : int32 [gaps], the thread that ran in the gap before the one that launched the next work,
        -1 for none
    parts : Parts; the sum is that of the gaps
    n_late : how many launches start after their work
    """

    main: UInt8
    ns: Int64
    other: Int32
    parts: Parts
    n_late: int


def split(gaps: Gaps, host: Host) -> Split:
    """Divide each gap of a GPU among its causes."""
    firsts = range(0, len(gaps.start) or 1, _AT_ONCE)
    activity = cache(partial(host.activity, gaps))
    results = [
        _split(Gaps._make(gap[first : first + _AT_ONCE] for gap in gaps), host, activity)
        for first in firsts
    ]
    return _joined(results, firsts)


def _joined(splits: Sequence[Split], firsts: Sequence[int]) -> Split:
    """Several as one; firsts : the index of the first gap of each."""
    *columns, parts, n_late = zip(*splits, strict=True)
    gap, cause, ns = zip(*parts, strict=True)
    gaps = [each + np.int32(first) for each, first in zip(gap, firsts, strict=True)]
    together = Parts._make(map(np.concatenate, (gaps, cause, ns)))
    return Split._make([*map(np.concatenate, columns), together, sum(n_late)])


_AT_ONCE: Final = 1 << 14  # gaps


def _split(gaps: Gaps, host: Host, activity: Callable[[], HostActivity]) -> Split:
    profile, begin, end = host.profile, gaps.start, gaps.end
    call = take(profile.api.of_kernel, gaps.after)
    thread = take(profile.api.thread, call)
    launch = take(numbers(profile, "launch_start"), gaps.after)
    known = launch != NO_TIME
    end_of_call = take(profile.api.end, call, NEVER)
    done = np.maximum(np.where(end_of_call == NEVER, NO_TIME, end_of_call), launch)
    ns = np.zeros((len(begin), len(Cause)), np.int64)
    # The host prepares the launch, the call runs, the GPU begins.
    called = np.where(known, np.clip(launch, begin, end), end)
    returned = np.clip(done, called, end)
    _of_gpu(ns, begin, end, returned, np.where(known, done, end))
    _of_call(host, ns, gaps, called, returned)
    rows = np.flatnonzero(known & (called > begin))
    late = _Late(rows, thread[rows], call[rows], begin[rows], called[rows], (end - begin)[rows])
    other = np.full(len(begin), -1, np.int32)
    other[rows] = _of_host(host, ns, late, activity)
    ns[~known, Cause.UNKNOWN] = (end - begin)[~known]
    _of_faults(profile, ns, gaps, np.flatnonzero(~known))
    main, place = ns.argmax(axis=1), np.flatnonzero(ns)
    parts = Parts(
        (place // len(Cause)).astype(np.int32),
        (place % len(Cause)).astype(np.uint8),
        ns.ravel()[place],
    )
    return Split(
        main.astype(np.uint8),
        ns[np.arange(len(main)), main],
        other,
        parts,
        int(np.count_nonzero(launch > end)),
    )


def _of_gpu(ns: Int64, begin: Int64, end: Int64, returned: Int64, done: Int64) -> None:
    """The time after the call that launches has returned."""
    waits = (end - done >= _LATENCY_NS) & (end - begin >= _BETWEEN_NS)
    ns[:, Cause.DEPENDENCY] = np.where(waits, end - returned, 0)
    ns[:, Cause.LATENCY] = np.where(waits, 0, end - returned)


def _of_call(host: Host, ns: Int64, gaps: Gaps, called: Int64, returned: Int64) -> None:
    """The time within the call that launches: it may copy and wait, or load code."""
    rows = np.flatnonzero(returned > called)
    after, spent = gaps.after[rows], (returned - called)[rows]
    api = host.profile.api
    call = take(api.of_kernel, after)
    inside = host.states.covered(api.thread[call], called[rows], returned[rows])
    ns[rows, : len(State)] += inside
    ns[rows, Cause.LATENCY] += spent - inside.sum(axis=1)


def _of_faults(profile: ProfileData, ns: Int64, gaps: Gaps, rows: Int64) -> None:
    """The time from a page fault of the CPU to the migration of unified memory that ends the gap.

    rows : gaps whose next work has no launch; migrations have none
    """
    kind = texts(profile, "copy_direction")
    moves = kind.fits(lambda name: name.startswith("unified"))
    rows = rows[moves[gaps.after[rows]]]
    if not len(rows):
        return
    faults = profile.source.host_events("page_faults")
    pid = take(faults.threads.pid, faults.thread)
    of_work = numbers(profile, "pid")[gaps.after[rows]]
    for process in np.intersect1d(pid, of_work).tolist():
        own, times = rows[of_work == process], np.sort(faults.start[pid == process])
        first = np.searchsorted(times, gaps.start[own])
        since = np.append(times, NEVER)[first]
        spent = np.maximum(gaps.end[own] - since, 0)
        ns[own, Cause.PAGE_FAULT] = spent
        ns[own, Cause.UNKNOWN] -= spent


class _Late(NamedTuple):
    """Gaps during which the next work is launched, up to the launch.

    Parameters
    ----------
    rows : int64 [late], the gaps
    thread, call : int32 [late], of the launch
    begin, end : int64 [late], ns, from the start of the gap to the launch
    length : int64 [late], ns, of the gap
    """

    rows: Int64
    thread: Int32
    call: Int32
    begin: Int64
    end: Int64
    length: Int64

    def take(self, rows: Int64) -> _Late:
        return _Late._make(array[rows] for array in self)


def _of_host(host: Host, ns: Int64, late: _Late, activity: Callable[[], HostActivity]) -> Int32:
    """The time before the launch. Returns the thread that ran before, int32 [late]."""
    inside = host.states.covered(late.thread, late.begin, late.end)
    ns[late.rows, : len(State)] += inside
    rest = late.end - late.begin - inside.sum(axis=1)
    other = np.full(len(rest), -1, np.int32)
    rows = np.flatnonzero((rest > 0) & _may_follow(host.profile, late))
    rows = rows[_has_company(host.profile, late.thread[rows])]
    if len(rows):
        result, other[rows] = _of_others(host, ns, late.take(rows), activity())
        rest[rows] -= result
    if len(host.system.thread):
        rest -= _of_system(activity(), ns, late)
    if len(host.off.thread):
        rest -= _off_cpu(activity(), ns, late, rest)
    for thread in (late.thread, other):
        state, resumes = _waited(host.states, late, thread)
        resumes = np.minimum(resumes, rest)
        ns[late.rows, state] += resumes
        rest -= resumes
    by_length = np.where(late.length < _SHORT_NS, Cause.LAUNCH_BOUND, Cause.HOST_BOUND)
    ns[late.rows, by_length] += rest
    return other


def _has_company(profile: ProfileData, thread: Int32) -> Bools:
    """Whether the process of each thread has other threads."""
    pids, counts = np.unique(profile.api.threads.pid, return_counts=True)
    result: Bools = np.isin(profile.api.threads.pid, pids[counts > 1])[thread]
    return result


def _may_follow(profile: ProfileData, late: _Late) -> Bools:
    """Whether the launching thread may have waited for another one.

    The gap is long, or another thread made the API call before the launch.
    """
    before = profile.api.thread[np.maximum(late.call - 1, 0)]
    result: Bools = (late.length >= _SHORT_NS) | (before != late.thread)
    return result


def _thread_before(profile: ProfileData, thread: Int32, time: Int64) -> Int32:
    """The thread that made the last API call before each time, -1 unless another of the process."""
    api, pid = profile.api, profile.api.threads.pid
    call = np.searchsorted(api.start, time, "left") - 1
    before = np.where(call >= 0, api.thread[call], np.int32(-1))
    differs = (before >= 0) & (before != thread) & (pid[before] == pid[thread])
    return np.where(differs, before, np.int32(-1))


def _of_others(host: Host, ns: Int64, late: _Late, activity: HostActivity) -> tuple[Int64, Int32]:
    """The time during which the launching thread is idle and others of its process are active.

    Returns it, and the thread that ran before the launching thread, [late].
    """
    begin = activity.next(late.thread, late.begin, late.end)
    other = _thread_before(host.profile, late.thread, begin)
    inside = host.states.covered(other, late.begin, begin)
    ns[late.rows, : len(State)] += inside
    window = late.thread, late.begin, late.end
    active = activity.covered(*window, "process") - activity.covered(*window, "own")
    spent = np.maximum(active, inside.sum(axis=1))
    ns[late.rows, Cause.OTHER_THREAD] += spent - inside.sum(axis=1)
    return spent, other


def _of_system(activity: HostActivity, ns: Int64, late: _Late) -> Int64:
    """The rest of the time during which the launching thread is in the operating system."""
    window = late.thread, late.begin, late.end
    result = activity.covered(*window, "process", "system") - activity.covered(*window, "process")
    ns[late.rows, Cause.SYSTEM] += result
    return result


def _off_cpu(activity: HostActivity, ns: Int64, late: _Late, rest: Int64) -> Int64:
    """The rest of the time during which the launching thread does not run; at most `rest`.

    It is in no call of the operating system, and in no state that explains the wait: the thread is
    inside operators or API calls, or no thread of its process is.
    """

    def covered(*which: Which) -> Int64:
        return activity.covered(late.thread, late.begin, late.end, *which)

    alone = covered("process", "system", "off") - covered("process", "system")
    # |A - X and B - X| = |A or X| + |B or X| - |A or B or X| - |X|
    inside = covered("own", "system") + covered("states", "system", "off")
    inside -= covered("own", "system", "off") + covered("states", "system")
    result = np.minimum(alone + inside, rest)
    ns[late.rows, Cause.OFF_CPU] += result
    return result


def _waited(states: HostStates, late: _Late, thread: Int32) -> tuple[Int64, Int64]:
    """The state in which the thread waited for the GPU until about the start of the gap.

    And the time until it can have launched again, which nothing ahead of time could fill: 0 without
    such a wait.
    """
    result, until = np.full(len(thread), np.int64(State.SYNC)), late.begin - DRAINED_NS
    waited = np.zeros(len(thread), bool)
    for state in (State.SYNC, State.BLOCKING_COPY):
        _, end = states.events[state].last(thread, late.begin + 1)
        waits = end >= until
        waited |= waits
        until = np.where(waits, end, until)
        result = np.where(waits, state, result)
    rows, resumes = np.flatnonzero(waited), np.zeros(len(thread), np.int64)
    begin, end = np.maximum(until, late.begin), np.minimum(until + _RESUMES_NS, late.end)
    window = thread[rows], begin[rows], end[rows]
    resumes[rows] = np.maximum(end - begin, 0)[rows] - states.covered(*window).sum(axis=1)
    return result, resumes
