"""What host threads do besides launching (loading, allocation, copies, waits), and when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, Literal

import numpy as np

from fastprof._core import _grouped
from fastprof._core._take import place, take, where
from fastprof._system.classes import NamedTuple
from fastprof._system.regex import regex
from fastprof._system.threads import computed_once
from fastprof.analysis.host.events import (
    BusyThreads,
    Grouped,
    ThreadEvents,
    grouped,
    in_order,
    piece_rows,
    united,
)
from fastprof.analysis.host.waits import (
    FREES,
    blocking_copies,
    compilation,
    compiling_calls,
    creation,
    implied_waits,
    loading,
    waits_for_copies,
)
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools, Int32, Int64, among, difference
from fastprof.model.markers import WAITING_FOR_GIL, Kind, Meaning
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import ALLOC, SYNC
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.instances import ApiCalls, Instances
from fastprof.profile.steps.marked import LOADER_ENDS


class State(IntEnum):
    """What a thread does. Where several apply, the first counts."""

    DATA_LOADING = 0  # fetches a batch
    COMPILATION = 1  # compiles code at run time
    CODE_LOADING = 2  # loads code: a module, a graph, a kernel at its first launch
    CREATION = 3  # creates a stream, event, context or handle
    ALLOC = 4  # allocates, maps or registers memory
    FREE = 5  # frees memory
    BLOCKING_COPY = 6  # copies, and waits for the copy
    SYNC = 7  # waits for the GPU
    GARBAGE = 8  # collects Python's garbage
    GIL = 9  # waits for Python's global interpreter lock


# What a program that runs steadily does once or seldom.
SETUP: Final = (
    State.COMPILATION, State.CODE_LOADING, State.CREATION, State.ALLOC, State.FREE,
)  # fmt: skip


class HostStates:
    """The states of each thread over time.

    Threads are indices into `profile.api.threads`, as in `profile.api.thread` and
    `profile.ranges.thread`.

    Attributes
    ----------
    events : list of ThreadEvents [states]
    """

    def __init__(self, events: Sequence[ThreadEvents]) -> None:
        """events : [states], of `profile.ranges` for DATA_LOADING, else of `profile.api`

        The row is -1 where the thread is in no call: in ranges of compilers, libraries and Python.
        """
        self.events = events

    def covered(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """[windows, states] The ns that a thread spends in each state, and in none before it.

        Parameters
        ----------
        thread : int32 [windows], -1 if unknown: in no state
        begin, end : int64 [windows], ns; a window that ends before it begins is empty
        """
        result = np.zeros((len(thread), len(State)), np.int64)
        end = np.maximum(end, begin)
        united = self._united
        rows = np.flatnonzero(united[-1].covered(thread, begin, end))
        thread, begin, end = thread[rows], begin[rows], end[rows]
        before: Int64 = np.zeros(len(rows), np.int64)
        for state, times in zip(State, united, strict=True):
            if len(self.events[state].start):
                upto = times.covered(thread, begin, end)
                result[rows, state] = upto - before
                before = upto
        return result

    @computed_once
    def _united(self) -> list[BusyThreads]:
        """[states] The time in each state or one before it."""
        united: list[BusyThreads] = []
        thread, start, end = np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
        for events in self.events:
            if len(events.start) or not united:
                thread = np.concatenate([thread, events.thread])
                start = np.concatenate([start, events.start])
                end = np.concatenate([end, events.end])
                order = np.argsort(start, kind="stable")
                thread, start, end = thread[order], start[order], end[order]
                times = BusyThreads(grouped(thread, start, end))
            united.append(times)
        return united


def host_states(profile: ProfileData, data: str | None = None) -> HostStates:
    """The states of all threads of a trace. Reads the file again on first use.

    data : a regular expression for names of further ranges that load data

    Raises
    ------
    ReportError
        The expression is invalid.
    BadInputError
        The file has changed, or it is dict lines.
    """
    ranges, api = profile.ranges, profile.api

    last = np.int64(max(_last(ranges), _last(api)))

    def events(instances: Instances, rows: Int64, until: Int64 | None = None) -> ThreadEvents:
        start, end = instances.start[rows], instances.end[rows] if until is None else until
        end = np.where(end == NEVER, last, end)
        return ThreadEvents(instances.thread[rows], start, end, rows)

    waits, until = kept(profile, implied_waits)
    whole = waits[until == api.end[waits]]  # the other ones free memory after their wait
    copies, copied = _copies(profile, waits_for_copies(profile, waits))
    alloc, syncs = api.call_class.where_each(lambda each: each == ALLOC, lambda each: each == SYNC)
    frees = _is_named(api, alloc, FREES)
    loads = difference(loading(profile), np.concatenate([whole, compiling_calls(profile)]))
    creates, handles = creation(profile)
    compiles = compilation(profile)
    own = ~among(waits, copies)
    garbage, gil = (
        events(ranges, rows)._replace(row=np.full(len(rows), -1))
        for rows in (_of_python(profile, COLLECTIONS), _of_python(profile, (WAITING_FOR_GIL,)))
    )
    return HostStates(
        [
            events(ranges, loader_ranges(profile, data)),
            compiles._replace(end=np.where(compiles.end == NEVER, last, compiles.end)),
            events(api, loads),
            in_order(
                [
                    events(api, difference(creates, whole)),
                    events(ranges, handles)._replace(row=np.full(len(handles), -1)),
                ]
            ),
            events(api, difference(alloc[~frees], whole)),
            _after(events(api, difference(alloc[frees], whole)), waits, until),
            events(api, copies, api.end[copied]),
            in_order(
                [
                    events(api, difference(syncs, copied)),
                    events(api, waits[own], until[own]),
                ]
            ),
            garbage,
            gil,
        ]
    )


# `record_python_gc_info` of torch.profiler records collections; stacks have calls of gc.collect().
COLLECTIONS: Final = ("Python GC", "<built-in function collect>")


def _of_python(profile: ProfileData, names: Sequence[str]) -> Int64:
    """The rows of `profile.ranges` of what Python does by itself."""
    meanings = profile.ranges.meanings
    fits = np.array([m.kind == Kind.HIDDEN and m.name in names for m in meanings], bool)
    return where(fits, profile.ranges.label)


def _copies(profile: ProfileData, more: Int64) -> tuple[Int64, Int64]:
    """Copies that wait, and some more: rows of `profile.api`, and the call each ends with."""
    copies, until = kept(profile, blocking_copies)
    more = difference(more, copies)
    both, ends = np.concatenate([copies, more]), np.concatenate([until, more])
    order = np.argsort(both, kind="stable")
    return both[order], ends[order]


def _is_named(api: ApiCalls, rows: Int64, parts: tuple[str, ...]) -> Bools:
    """Whether the names of some calls contain any of some texts."""
    return api.name.take(rows).fits(lambda name: any(part in name for part in parts))


def _after(calls: ThreadEvents, waits: Int64, until: Int64) -> ThreadEvents:
    """Calls, in order, from the end of their waits on."""
    start = calls.start.copy()
    _, place, wait = np.intersect1d(calls.row, waits, assume_unique=True, return_indices=True)
    start[place] = until[wait]
    return in_order([calls._replace(start=start)])


def launching_threads(profile: ProfileData) -> Int32:
    """[kernels] The thread that launched each kernel, as in `HostStates`; -1 if not recorded."""
    return take(profile.api.thread, profile.api.of_kernel)


_LOADS: Final = regex(
    r".*DataLoader\w*\.__next__"  # torch's annotation
    r"|torch/utils/data/dataloader\.py\(\d+\): __next__"  # its Python frame
    r"|DataLoader"  # fastprof.init()
    r"|.*\.(?:train|val|test|predict)_(?:dataloader_)?next"
)
_NAMED_SO: Final = regex(
    r"\W*(?:data[ _-]?load(?:er|ing)?|(?:get|load|fetch|next)[ _-]?(?:data|batch))\W*", re.I
)


def loader_ranges(profile: ProfileData, data: str | None = None) -> Int64:
    """The rows of `profile.ranges` that fetch a batch.

    Ranges of torch's DataLoader and of Lightning, your own ranges with such a name (`data_load`,
    `next batch`), and those that the regular expression `data` is found in.

    Raises
    ------
    ReportError
        The expression is invalid.
    """
    try:
        wanted = None if data is None else re.compile(data)
    except re.error as error:
        raise ReportError(f"invalid regular expression {data!r}: {error}") from None
    meanings = profile.ranges.meanings
    fits = np.array([_loads(meaning, wanted) for meaning in meanings], bool)
    return where(fits, profile.ranges.label)


def _loads(meaning: Meaning, wanted: re.Pattern[str] | None) -> bool:
    if wanted is not None and wanted.search(meaning.name):
        return True
    if meaning.kind == Kind.ARGUMENT:
        return meaning.call is not None and meaning.call.op == "DataLoader"
    name, is_user = meaning.name, meaning.kind == Kind.USER
    if name.endswith(LOADER_ENDS) and _LOADS.fullmatch(name):
        return True
    return is_user and _NAMED_SO.fullmatch(name) is not None


def _last(instances: Instances) -> int:
    """The last known end, at least 0."""
    last = int(instances.end.max(initial=0))
    return last if last != NEVER else int(instances.end[instances.end != NEVER].max(initial=0))


# Operators and API calls of a thread, with its states; these states; operators, API calls and
# states of all threads of its process; its calls of the operating system; when it does not run.
Which = Literal["own", "states", "process", "system", "off"]


def system_waits(profile: ProfileData) -> ThreadEvents:
    """When threads are in functions of the operating system, or switched out.

    Empty if the trace records neither; nsys does with `--trace osrt` and `--cpuctxsw`.
    """
    return in_order([kept(profile, system_calls), kept(profile, switched_out)])


def system_calls(profile: ProfileData) -> ThreadEvents:
    """When threads are in functions of the operating system: rows of `profile.os_calls`."""
    calls = profile.os_calls
    return in_order([ThreadEvents(calls.thread, calls.start, calls.end, np.arange(len(calls)))])


def switched_out(profile: ProfileData) -> ThreadEvents:
    """From where each thread ceased to run to where it ran again."""
    switches = profile.cpu_switches
    order = np.argsort(switches.thread, kind="stable")
    thread, start = switches.thread[order], switches.start[order]
    is_out = switches.name.fits(lambda name: name == "out")[order]
    out = is_out[:-1] & ~is_out[1:] & (thread[1:] == thread[:-1])  # else a switch is lost
    rows = np.flatnonzero(out)
    return in_order(
        [ThreadEvents(thread[rows], start[rows], start[rows + 1], np.full(len(rows), -1))]
    )


class _Pieces(NamedTuple):
    """Intervals inside windows, which they do not leave."""

    window: Int64
    start: Int64
    end: Int64


def _within(events: Grouped, thread: Int32, begin: Int64, end: Int64) -> _Pieces:
    """Intervals with the same union inside some windows of threads, in any order."""
    if not len(events.start):
        return _Pieces(*np.empty((3, 0), np.int64))
    low, high = events.slices(thread)
    first = place(events.start, low, high, begin)
    counts = np.maximum(place(events.start, low, high, end) - first, 0)
    window, rows = np.repeat(np.arange(len(first)), counts), piece_rows(first, counts)
    # What is open at the start of a window is one interval up to the last end.
    opened = np.flatnonzero(first > low)
    until = np.minimum(events.end[first[opened] - 1], end[opened])
    return _Pieces(
        np.concatenate([window, opened]),
        np.concatenate([events.start[rows], begin[opened]]),
        np.concatenate(
            [np.minimum(events.end[rows], end[window]), np.maximum(until, begin[opened])]
        ),
    )


# Events, and the labels that choose among them.
_Chosen = tuple[ThreadEvents, Int32 | None, Bools | None]


def _joined(start: Int64, end: Int64) -> tuple[Int64, Int64]:
    """The same time as intervals in order, which do not overlap."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    apart = start[1:] > end[:-1]
    return start[np.append(True, apart)[: len(start)]], end[np.append(apart, True)[: len(end)]]


def _overlapping(
    events: ThreadEvents,
    times: tuple[Int64, Int64],
    label: Int32 | None = None,
    wanted: Bools | None = None,
) -> ThreadEvents:
    """The events that overlap some windows, and have a wanted label."""
    start, end = np.ascontiguousarray(events.start), np.ascontiguousarray(events.end)
    rows = _grouped.overlapping(start, end, times, label, wanted)
    return ThreadEvents(events.thread[rows], start[rows], end[rows], np.empty(0, np.int64))


class HostActivity:
    """When threads run operators, API calls or are in one of the `HostStates`.

    Python functions and the user's own ranges do not count: a thread that waits for another one is
    inside them too. Windows of time must not overlap.

    system, off : see `system_calls` and `switched_out`
    windows : start and end, int64 [windows] each, ns, in any order: all that is asked for is
        within these; None: any time is
    """

    def __init__(
        self,
        profile: ProfileData,
        states: HostStates,
        system: ThreadEvents,
        off: ThreadEvents,
        windows: tuple[Int64, Int64] | None = None,
    ) -> None:
        ranges, api = profile.ranges, profile.api
        none = np.empty(0, np.int64)
        operations = ThreadEvents(ranges.thread, ranges.start, ranges.end, none)
        label = np.ascontiguousarray(ranges.label)
        operates = np.array([meaning.kind in _OPERATORS for meaning in ranges.meanings], bool)
        self._events = [ThreadEvents(api.thread, api.start, api.end, none), *states.events]
        if windows is None:
            self._operations: _Chosen = operations, label, operates
        else:
            times = _joined(*windows)
            self._operations = _overlapping(operations, times, label, operates), None, None
            self._events = [_overlapping(events, times) for events in self._events]
        _, process = np.unique(api.threads.pid, return_inverse=True)
        self._process = process.astype(np.int32)
        self._system, self._off = (
            grouped(events.thread, events.start, events.end) for events in (system, off)
        )

    def _by(self, group: Int32) -> list[Grouped]:
        """When groups of threads are active; group : int32 [threads]"""
        operations, label, operates = self._operations
        of_ranges = united(operations, group, label, operates)
        return [of_ranges, *(united(events, group) for events in self._events)]

    @computed_once
    def _own(self) -> list[Grouped]:
        return self._by(np.arange(len(self._process), dtype=np.int32))

    @computed_once
    def _of_process(self) -> list[Grouped]:
        return self._by(self._process)

    def next(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """The first instant in each window at which the thread is active, else its end."""
        result: Int64 = end.copy()
        for each in self._own:
            pieces = _within(each, thread, begin, end)
            is_active = pieces.end > pieces.start
            np.minimum.at(result, pieces.window[is_active], pieces.start[is_active])
        return result

    def covered(self, thread: Int32, begin: Int64, end: Int64, *which: Which) -> Int64:
        """ns [windows] during which at least one of `which` is the case for the thread."""
        pieces: list[_Pieces] = []
        for kind in which:
            of = take(self._process, thread) if kind == "process" else thread
            pieces += [_within(some, of, begin, end) for some in self._grouped(kind)]
        window, start, until = map(np.concatenate, zip(*pieces, strict=True))
        order = np.lexsort((start, begin[window]))  # windows do not overlap
        window, start, until = window[order], start[order], until[order]
        until = np.maximum.accumulate(until)
        before = np.concatenate([start[:1], until[:-1]])
        busy = np.maximum(until - np.maximum(start, before), 0)
        result = np.zeros(len(thread), np.int64)
        np.add.at(result, window, busy)
        return result

    def _grouped(self, which: Which) -> list[Grouped]:
        if which == "process":
            return self._of_process
        if which in ("system", "off"):
            return [self._system if which == "system" else self._off]
        return self._own if which == "own" else self._own[_STATES:]


_STATES: Final = 2  # the first of the states among the events of `HostActivity`
_OPERATORS = (Kind.TORCH, Kind.ARGUMENT)
