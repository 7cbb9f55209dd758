"""The regions of all runs: API calls, and ranges of threads."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _join, _pools
from fastprof._core._column import TOGETHER
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import Kernels, RangeNames
from fastprof.readers import trace_columns
from fastprof.readers.cupti import WorkColumns
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.events import Events
from fastprof.readers.rocpd.places import Places
from fastprof.readers.rocpd.schema import CALL, COLLECTIVE, MARKER, OTHER, SKIPPED, Run
from fastprof.readers.rocpd.work import scan, texts
from fastprof.readers.sqlite.connected import Halves
from fastprof.readers.sqlite.database import Database, TableColumns

# Functions of roctx that are calls, where they record no message; others open ranges.
_ROCTX: Final = "roctx"
_PUSHED: Final = "roctxRangeStart"  # ranges with this name need not be nested
# Calls of HSA that other calls of HSA make; deeper chains are cycles.
_MOST_PARENTS: Final = 8


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of a run, in the order of the file.

    Parameters
    ----------
    kind : int8 [regions], CALL, MARKER, COLLECTIVE, OTHER or SKIPPED
    stack : int64 [regions], the id of the call, -1 for none
    event : int64 [regions], id of the event, -1 for none
    thread : int32 [regions], index into `Places.threads`
    name : int32 [regions], index into `Places.strings`
    names : the names of ranges
    parents : the calls that calls of HSA belong to: ids of both, ascending by the first
    """

    start: Int64
    end: Int64
    kind: npt.NDArray[np.int8]
    stack: Int64
    event: Int64
    thread: Int32
    name: Int32
    names: RangeNames
    parents: tuple[Int64, Int64]


def read(
    database: Database,
    halves: Halves,
    run: Run,
    places: Places,
    events: Events,
    labels: _pools.Names,
) -> Regions:
    """The regions of a run.

    labels : gets the names of ranges
    """
    table = run.table(schema.REGIONS)
    rows, configs = scan(halves, table, schema.region_fields())
    places.place(configs)
    own_names = texts(database, run, configs["name_id"])
    config = rows[TOGETHER]
    row = events.rows(rows["event_id"])
    kind = _kinds(events, take(events.category, row), config, own_names)
    names = _names(events, row, kind)
    kind[(kind == MARKER) & (names.label < 0) & _flags(own_names, _ROCTX)[config]] = CALL
    _name_by_text(names, kind, config, own_names, labels)
    thread = places.threads_of(configs["pid"], configs["tid"])
    name = np.array([places.text(text) for text in own_names], np.int32)
    return Regions(
        start=rows["start"],
        end=rows["end"],
        kind=kind,
        stack=events.stacks_of(row),
        event=rows["event_id"],
        thread=take(thread, config),
        name=take(name, config),
        names=names,
        parents=_parents(database, run, events),
    )


def _flags(own_names: list[str | None], prefix: str) -> Bools:
    return np.array([text is not None and text.startswith(prefix) for text in own_names], bool)


def _kinds(
    events: Events, category: Int32, config: Int32, own_names: list[str | None]
) -> npt.NDArray[np.int8]:
    """The kind of each region."""
    of_category = [schema.kind_of_category(text or "", None) for text in events.categories]
    of_name = [schema.kind_of_category(None, text) for text in own_names]
    kind = take(np.array(of_category, np.int8), category, SKIPPED)
    lost = np.flatnonzero(category < 0)
    kind[lost] = np.array(of_name, np.int8)[config[lost]]
    return kind


def _names(events: Events, row: Int32, kind: npt.NDArray[np.int8]) -> RangeNames:
    """[regions] The messages of markers, -1 for others."""
    label = np.full(len(row), -1, np.int32)
    seq, op_id = np.full((2, len(row)), -1, np.int64)
    rows = np.flatnonzero(kind == MARKER)
    messages, own = events.messages, row[rows]
    label[rows] = take(messages.label, own)
    seq[rows], op_id[rows] = take(messages.seq, own), take(messages.op_id, own)
    return RangeNames(label, seq, op_id)


def _name_by_text(
    names: RangeNames,
    kind: npt.NDArray[np.int8],
    config: Int32,
    own_names: list[str | None],
    labels: _pools.Names,
) -> None:
    """Name ranges without a message by the name of the region."""
    rows = np.flatnonzero((names.label < 0) & (kind != CALL) & (kind != SKIPPED))
    used, place = np.unique(config[rows], return_inverse=True)
    label, seq, op_id = _column.split_range_names(labels, [own_names[i] for i in used.tolist()])
    names.label[rows] = label[place]
    names.seq[rows] = seq[place]
    names.op_id[rows] = op_id[place]


def _parents(database: Database, run: Run, events: Events) -> tuple[Int64, Int64]:
    """The call that each call of HSA belongs to: ids of both, ascending by the first."""
    numbers = events.numbers(schema.is_hsa)
    if not numbers:
        nothing = np.empty(0, np.int64)
        return nothing, nothing
    columns = database.scan(
        run.table(schema.EVENTS),
        schema.parent_fields(),
        keep=_column.Among(numbers),
        capacity=len(events) // 2,
    )
    order = np.argsort(columns["stack_id"], kind="stable")
    return columns["stack_id"][order], columns["parent_stack_id"][order]


def skip_repeated_work(regions: Regions, works: list[WorkColumns], ids: Int64) -> None:
    """Skip regions that repeat GPU work: they refer to its event, or have its times.

    ids : the events of GPU work, ascending
    """
    rows = np.flatnonzero(regions.kind == OTHER)
    if not len(rows) or not len(ids):
        return
    place = np.minimum(np.searchsorted(ids, regions.event[rows]), len(ids) - 1)
    repeated = (ids[place] == regions.event[rows]) & (regions.event[rows] >= 0)
    start = np.concatenate([*(work["start"] for work, _ in works), regions.start[rows]])
    end = np.concatenate([*(work["end"] for work, _ in works), regions.end[rows]])
    same, _ = alike([start, end])
    n = len(start) - len(rows)
    has_work = np.zeros(int(same.max()) + 1, bool)
    has_work[same[:n]] = True
    regions.kind[rows[repeated | has_work[same[n:]]]] = SKIPPED


class HostRows:
    """The calls and ranges of all runs.

    Attributes
    ----------
    calls : columns start, end, thread, name, correlation
    """

    def __init__(self, of_runs: list[Regions], process_of_thread: Int32) -> None:
        self._of_runs, self._process = of_runs, process_of_thread
        self.calls = self._columns(lambda regions: regions.kind == CALL)

    def _columns(self, chosen: Any) -> TableColumns:
        parts: list[TableColumns] = []
        for regions in self._of_runs:
            rows = np.flatnonzero(chosen(regions))
            parts.append(
                {
                    "start": regions.start[rows],
                    "end": np.maximum(regions.start[rows], regions.end[rows]),
                    "thread": regions.thread[rows],
                    "name": regions.name[rows],
                    "correlation": regions.stack[rows],
                }
            )
        return trace_columns.joined(parts)

    def launches(self, kernels: Kernels) -> TableColumns:
        """The calls that launched GPU work: start, globalTid, nameId. Sets `launch` of kernels.

        A call of HIP precedes the call of HSA that it made. Without calls in the file, ranges with
        the id of a kernel launched it, such as a call of RCCL.
        """
        columns = self.calls
        process = take(self._process, columns["thread"])
        self._follow_parents(kernels, process, columns["correlation"])
        join = _join.Join(kernels.process, kernels.correlation)
        join.offer(process, columns["correlation"])
        row = join.rows(kernels.process, kernels.correlation)
        if np.any((row < 0) & (kernels.correlation > 0)):
            others = self._columns(lambda regions: (regions.kind > CALL) & (regions.kind < SKIPPED))
            columns = trace_columns.joined([self.calls, others])
            join.offer(take(self._process, columns["thread"]), columns["correlation"])
            row = join.rows(kernels.process, kernels.correlation)
        used, place = np.unique(row[row >= 0], return_inverse=True)
        kernels.launch = np.full(len(row), -1, np.int32)
        kernels.launch[row >= 0] = place
        return {
            "start": columns["start"][used],
            "globalTid": columns["thread"][used],
            "nameId": columns["name"][used],
        }

    def _follow_parents(self, kernels: Kernels, process: Int32, correlation: Int64) -> None:
        """Replace the ids of calls of HSA that launched kernels by those of the calls around."""
        for regions in self._of_runs:
            child, parent = regions.parents
            if not len(child):
                continue
            calls = _join.Join(process, correlation)
            calls.offer(process, correlation)
            for _ in range(_MOST_PARENTS):
                place = np.minimum(np.searchsorted(child, kernels.correlation), len(child) - 1)
                rows = np.flatnonzero(
                    (child[place] == kernels.correlation) & (kernels.correlation > 0)
                )
                above = parent[place[rows]]
                is_call = calls.rows(kernels.process[rows], above) >= 0
                is_call &= (above > 0) & (above != kernels.correlation[rows])
                if not is_call.any():
                    break
                kernels.correlation[rows[is_call]] = above[is_call]

    def ranges(self) -> TableColumns:
        """The ranges: start, end, globalTid, text, text_seq, text_op_id, eventType.

        eventType : whether the range was pushed and popped, or is a call
        """
        parts: list[TableColumns] = []
        for regions in self._of_runs:
            kind, label = regions.kind, regions.names.label
            is_range = (kind == MARKER) | (kind == COLLECTIVE) | (kind == OTHER)
            rows = np.flatnonzero(is_range & (label >= 0) & (regions.thread >= 0))
            parts.append(
                {
                    "start": regions.start[rows],
                    "end": regions.end[rows],
                    "globalTid": regions.thread[rows],
                    "text": label[rows],
                    "text_seq": regions.names.seq[rows],
                    "text_op_id": regions.names.op_id[rows],
                    "nameId": regions.name[rows],
                }
            )
        return trace_columns.joined(parts)


def are_pushed(name: Int32, strings: list[str | None]) -> Bools:
    """Whether ranges were pushed and popped, as opposed to started and stopped.

    name : [ranges] of the regions, index into `strings`
    """
    started = _flags(strings, _PUSHED)
    return ~take(np.append(started, False), name) if len(strings) else np.ones(len(name), bool)
