"""The ranges and all API calls of a trace of torch.profiler, with their times and threads.

To parse the text takes nearly all of the time of reading: `open` keeps what is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core._kineto import NONE, TEXT_PLACE
from fastprof.model.arrays import Int32, Int64, unique
from fastprof.model.columns import unknown
from fastprof.model.timeline import Recorded, RecordedCalls, RecordedRanges, RecordedSyncs
from fastprof.model.trace import NEVER, Ranges
from fastprof.readers.kineto.event_columns import KinetoFile

# Kineto's names of CUPTI's types of synchronisation, in the order of SYNC_KINDS.
_SYNC_NAMES = ("Unknown Sync", "Event Sync", "Stream Wait Event", "Stream Sync", "Context Sync")


def recorded(file: KinetoFile, threads: KinetoThreads, ranges: Ranges) -> Recorded:
    """The events of ranges and API calls, runtime calls first."""
    events = file.tables["launches"]
    rows = api_calls(file)
    thread = threads.find(events["pid"][rows], events["tid"][rows])
    known = (events["start"][rows] != NONE) & (thread >= 0)
    rows, thread = rows[known], thread[known]
    start, duration = events["start"][rows], events["duration"][rows]
    return Recorded(
        ranges=RecordedRanges(
            start=ranges.start,
            end=ranges.end,
            thread=ranges.thread,
            domain=unknown(len(ranges)),
            is_push_pop=np.ones(len(ranges), bool),
        ),
        phase_domain=unknown(0),
        calls=RecordedCalls(
            start=start,
            end=np.where(duration == NONE, NEVER, start + np.maximum(duration, 0)),
            thread=thread,
            name=events["name"][rows],
            correlation=events["correlation"][rows],
        ),
        syncs=_syncs(file),
        strings=list(file.names),
        threads=threads.numbers,
        process_of_thread=threads.process,
        processes=threads.process_numbers.astype(np.int32),
    )


def api_calls(file: KinetoFile) -> npt.NDArray[np.intp]:
    """The rows of the launch table, those of driver calls last."""
    is_driver = np.array(["driver" in name.lower() for name in file.categories] + [False])
    return np.argsort(is_driver[file.tables["launches"]["category"]], kind="stable")


def _syncs(file: KinetoFile) -> RecordedSyncs:
    """CUPTI's records of synchronisation (`enable_cuda_sync_events`), without their process."""
    events = file.tables["syncs"]
    rows = np.flatnonzero(events["start"] != NONE)
    start, duration = events["start"][rows], events["duration"][rows]
    number = {name: kind for kind, name in enumerate(_SYNC_NAMES)}
    kinds = np.array([number.get(name, 0) for name in [*file.names, ""]], np.int32)
    return RecordedSyncs(
        start=start,
        end=np.where(duration == NONE, NEVER, start + np.maximum(duration, 0)),
        process=np.full(len(rows), -1, np.int32),
        device=events["device"][rows],
        stream=events["stream"][rows],
        kind=kinds[events["name"][rows]],
        correlation=events["correlation"][rows],
    )


class KinetoThreads:
    """All threads with ranges or API calls.

    torch gives Python threads of which it knows nothing else the pid 0. Without API calls there,
    they belong to the other process, if there is one other.

    Attributes
    ----------
    numbers : int64 [threads] the tid, -1 for a text
    process : int32 [threads], index into process_numbers
    process_numbers : int64 [processes] the pid, -1 for a text
    """

    def __init__(self, all_tables: Mapping[str, Mapping[str, npt.NDArray[Any]]]) -> None:
        tables = [all_tables[name] for name in ("ranges", "launches")]
        self._pids = _distinct([table["pid"] for table in tables])
        self._tids = _distinct([table["tid"] for table in tables])
        pairs = _distinct([self._pair(table["pid"], table["tid"]) for table in tables])
        self._pairs = pairs[pairs >= 0]
        width = max(len(self._tids), 1)
        self.numbers = numbers_of(self._tids[self._pairs % width])
        self.process = (self._pairs // width).astype(np.int32)
        self.process_numbers = numbers_of(self._pids)
        callers = _distinct([all_tables["launches"]["pid"]])
        others = np.flatnonzero(self.process_numbers > 0)
        if len(others) == 1 and set(callers) <= {NONE, self._pids[others[0]]}:
            self.process_numbers = self.process_numbers[others]
            self.process = np.zeros(len(self.process), np.int32)

    def places(self) -> list[tuple[int, int]]:
        """The pid and tid of each thread; -1 for a text."""
        pids = self.process_numbers[self.process]
        return list(zip(pids.tolist(), self.numbers.tolist(), strict=True))

    def find(self, pid: Int64, tid: Int64) -> Int32:
        """The thread of each pair, -1 if unknown."""
        pair = self._pair(pid, tid)
        place = np.searchsorted(self._pairs, pair)
        known = place < len(self._pairs)
        known[known] = self._pairs[place[known]] == pair[known]
        return np.where(known, place, -1).astype(np.int32)

    def _pair(self, pid: Int64, tid: Int64) -> Int64:
        # An id for each pair; -1 if either is unknown.
        places = [np.searchsorted(self._pids, pid), np.searchsorted(self._tids, tid)]
        pair = places[0] * len(self._tids) + places[1]
        known = np.ones(len(pair), bool)
        for values, place, wanted in zip((self._pids, self._tids), places, (pid, tid), strict=True):
            known &= place < len(values)
            known[known] = values[place[known]] == wanted[known]
        return np.where(known & (pid != NONE) & (tid != NONE), pair, -1)


def _distinct(columns: Sequence[Int64]) -> Int64:
    """The distinct values, ascending. Optimised for long runs of one value."""
    heads = [
        column[np.flatnonzero(np.append(True, column[1:] != column[:-1]))]
        if len(column)
        else column
        for column in columns
    ]
    return unique(np.concatenate(heads)) if heads else np.empty(0, np.int64)


def numbers_of(places: Int64) -> Int64:
    """Process or thread ids; -1 for a text and if not recorded."""
    return np.where(places <= TEXT_PLACE, -1, places)
