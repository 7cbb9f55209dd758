"""What host threads do besides launching: data loading, allocation, copies and synchronisation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

import numpy as np

from fastprof._core._take import take, where
from fastprof.analysis.blocking_copies import blocking_copies
from fastprof.analysis.intervals import BusyTime
from fastprof.analysis.thread_events import ThreadEvents, by_thread
from fastprof.errors import ReportError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import ALLOC, LOAD, SYNC
from fastprof.profile.instances import Instances
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile

__all__ = ["HostStates", "State", "host_states", "launching_threads", "loader_ranges"]


class State(IntEnum):
    """What a thread does. Where several apply, the first counts."""

    DATA_LOADING = 0  # fetches a batch
    ALLOC = 1  # allocates, frees or registers memory, loads a module, instantiates a graph
    BLOCKING_COPY = 2  # copies, and waits for the copy
    SYNC = 3  # waits for the GPU


class HostStates:
    """The states of each thread over time.

    Threads are indices into `profile.api.threads`, as in `profile.api.thread` and
    `profile.ranges.thread`.

    Attributes
    ----------
    events : list of ThreadEvents [states]
    """

    def __init__(self, events: Sequence[ThreadEvents]) -> None:
        """events : [states], of `profile.ranges` for DATA_LOADING, else of `profile.api`"""
        self.events = events
        self._of_thread: dict[int, list[BusyTime | None]] = {}

    def covered(self, thread: Int32, begin: Int64, end: Int64) -> Int64:
        """[windows, states] The ns that a thread spends in each state, and in none before it.

        Parameters
        ----------
        thread : int32 [windows], -1 if unknown: in no state
        begin, end : int64 [windows], ns; a window that ends before it begins is empty
        """
        found = np.zeros((len(thread), len(State)), np.int64)
        end = np.maximum(end, begin)
        for each, rows in by_thread(thread):
            united = self._unions(each)
            if united[-1] is None:
                continue
            rows = rows[_may_overlap(united[-1], begin[rows], end[rows])]
            before: Int64 = np.zeros(len(rows), np.int64)
            for state, times in zip(State, united, strict=True):
                if times is not None:
                    upto = times.until(end[rows]) - times.until(begin[rows])
                    found[rows, state] = upto - before
                    before = upto
        return found

    def _unions(self, thread: int) -> list[BusyTime | None]:
        """[states] The time in each state or one before it; None for none."""
        if thread not in self._of_thread:
            self._of_thread[thread] = list(self._united(thread))
        return self._of_thread[thread]

    def _united(self, thread: int) -> Iterator[BusyTime | None]:
        start = end = np.empty(0, np.int64)
        for events in self.events:
            own = events.thread == thread
            start = np.concatenate([start, events.start[own]])
            end = np.concatenate([end, events.end[own]])
            order = np.argsort(start, kind="stable")
            yield BusyTime(start[order], end[order]) if len(order) else None


def _may_overlap(times: BusyTime, begin: Int64, end: Int64) -> Int64:
    """The windows that may overlap the intervals; all of them unless they are in order."""
    if np.any(begin[1:] < begin[:-1]) or np.any(end[1:] < end[:-1]):
        return np.arange(len(begin))
    first = np.searchsorted(end, times.start, "right")
    last = np.maximum(np.searchsorted(begin, times.end, "left"), first)
    n = len(begin) + 1
    inside = np.cumsum(np.bincount(first, minlength=n) - np.bincount(last, minlength=n))
    return np.flatnonzero(inside[:-1])


def host_states(profile: Profile, data: str | None = None) -> HostStates:
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

    def events(instances: Instances, rows: Int64, until: Int64 | None = None) -> ThreadEvents:
        end = instances.end[rows if until is None else until]
        if (end == NEVER).any():
            end = np.where(end == NEVER, np.int64(max(_last(ranges), _last(api))), end)
        return ThreadEvents(instances.thread[rows], instances.start[rows], end, rows)

    copies, until = kept(profile, blocking_copies)
    allocs, syncs = api.call_class.where_each(
        lambda each: each in (ALLOC, LOAD), lambda each: each == SYNC
    )
    return HostStates(
        [
            events(ranges, loader_ranges(profile, data)),
            events(api, allocs),
            events(api, copies, until),
            events(api, np.setdiff1d(syncs, until)),
        ]
    )


def launching_threads(profile: Profile) -> Int32:
    """[kernels] The thread that launched each kernel, as in `HostStates`; -1 if not recorded."""
    return take(profile.api.thread, profile.api.of_kernel)


_LOADS: Final = re.compile(
    r".*DataLoader\w*\.__next__"  # torch's annotation
    r"|torch/utils/data/dataloader\.py\(\d+\): __next__"  # its Python frame
    r"|DataLoader"  # fastprof.init()
    r"|.*\.(?:train|val|test|predict)_(?:dataloader_)?next"
)
_NAMED_SO: Final = re.compile(
    r"\W*(?:data[ _-]?load(?:er|ing)?|(?:get|load|fetch|next)[ _-]?(?:data|batch))\W*", re.I
)


def loader_ranges(profile: Profile, data: str | None = None) -> Int64:
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
    is_user = meaning.kind == Kind.USER
    return bool(_LOADS.fullmatch(meaning.name) or (is_user and _NAMED_SO.fullmatch(meaning.name)))


def _last(instances: Instances) -> int:
    """The last known end, at least 0."""
    return int(instances.end[instances.end != NEVER].max(initial=0))
