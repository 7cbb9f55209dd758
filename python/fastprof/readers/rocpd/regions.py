"""The regions of all runs: API calls, and ranges of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _join, _pools
from fastprof._core._column import TOGETHER
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.timeline import RecordedCalls
from fastprof.model.trace import Kernels, LostLaunches, RangeNames
from fastprof.readers import trace_columns
from fastprof.readers.cupti import WorkColumns
from fastprof.readers.lost_launches import lost_calls
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.events import Events
from fastprof.readers.rocpd.places import Places
from fastprof.readers.rocpd.schema import CALL, COLLECTIVE, MARKER, OTHER, SKIPPED, Run
from fastprof.readers.rocpd.work import pieces_together, scan_pieces, texts
from fastprof.readers.sqlite.connected import BothThreads
from fastprof.readers.sqlite.database import Database, TableColumns
from fastprof.readers.sqlite.pages import escaped

# Functions of roctx that are calls, where they record no message; others open ranges.
_ROCTX: Final = "roctx"
_PUSHED: Final = "roctxRangeStart"  # ranges with this name need not be nested
# Calls of HSA that other calls of HSA make; deeper chains are cycles.
_MOST_PARENTS: Final = 8
_UNKNOWN: Final = -1  # kind of a region without a category


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of a run, in the order of the file.

    Parameters
    ----------
    kind : int8 [regions], CALL, MARKER, COLLECTIVE, OTHER or SKIPPED
    stack : int32 or int64 [regions], the id of the call, -1 for none
    event : int32 [regions], row of the event, -1 for none
    thread : int32 [regions], index into `Places.threads`
    name : int32 [regions], index into `Places.strings`
    message : int32 [regions], index into `messages`, -1 for none
    messages : the names of ranges
    parents : the calls that calls of HSA belong to: ids of both, ascending by the first
    """

    start: Int64
    end: Int64
    kind: npt.NDArray[np.int8]
    stack: Int64
    event: Int32
    thread: Int32
    name: Int32
    message: Int32
    messages: RangeNames
    parents: tuple[Int64, Int64]


def read(
    database: Database,
    threads: BothThreads,
    run: Run,
    places: Places,
    events: Events,
    labels: _pools.Names,
    works: Sequence[WorkColumns] | None = None,
) -> Regions:
    """The regions of a run.

    labels : gets the names of ranges
    works : most of the calls that launched none of this work are left out; None: all calls
    events : keep only their ids and messages, see `Events.release`
    """
    table = run.table(schema.REGIONS)
    parents = _parents(database, run, events)
    reduced = _reducing(events, parents, works, _launching(database, run))
    pieces = scan_pieces(threads, table, schema.region_fields(), reduced)
    events.release()
    rows, configs = pieces_together(pieces)
    places.place(configs)
    own_names = texts(database, run, configs["name_id"])
    config, kind, message = (rows.pop(name) for name in (TOGETHER, "kind", "message"))
    _classify(kind, config, own_names)
    kind[(kind == MARKER) & (message < 0) & _flags(own_names, _ROCTX)[config]] = CALL
    messages = _name_by_text(events.messages, message, kind, config, own_names, labels)
    thread = take(places.threads_of(configs["pid"], configs["tid"]), config)
    kind[thread < 0] = SKIPPED  # a call or range of no thread has no place
    name = np.array([places.text(text) for text in own_names], np.int32)
    if run.number:
        rows["stack"] = rows["stack"].astype(np.int64)  # room for the number of the run
    return Regions(
        kind=kind,
        thread=thread,
        name=take(name, config),
        message=message,
        messages=messages,
        parents=parents,
        **rows,
    )


def _launching(database: Database, run: Run) -> Int64:
    """The ids of names of calls that launch kernels, or begin and end the capture of a graph."""
    table = run.table(schema.STRINGS)
    if table not in database.tables:
        return np.empty(0, np.int64)
    patterns = ("hip*Launch*Kernel*", "hip*StreamBeginCapture*", "hip*StreamEndCapture*")
    where = " OR ".join(f"string GLOB '{pattern}'" for pattern in patterns)
    rows = database.rows(f'SELECT id FROM "{escaped(table)}" WHERE {where}')
    return np.array([number for (number,) in rows if isinstance(number, int)], np.int64)


def _reducing(
    events: Events,
    parents: tuple[Int64, Int64],
    works: Sequence[WorkColumns] | None,
    launching: Int64,
) -> Callable[[TableColumns, TableColumns], TableColumns]:
    """What links regions to their events, and says which to keep: all but most of the calls that
    launched none of this work.

    With calls of HSA, whose callers count as well, all.

    launching : ids of names of calls to keep in any case
    """
    of_category = [schema.kind_of_category(text or "", None) for text in events.categories]
    kind_of_category = np.array([*of_category, _UNKNOWN], np.int8)
    join = None
    if works is not None and not len(parents[0]):
        stacks = np.concatenate([work["correlationId"] for work, _ in works])
        join = _join.Join(np.zeros(len(stacks), np.int32), stacks)

    def reduced(columns: TableColumns, configs: TableColumns) -> TableColumns:
        row = events.rows(columns.pop("event_id"))
        columns |= {
            "event": row,
            "kind": kind_of_category[take(events.category, row)],
            "stack": events.stacks_of(row),
        }
        if join is not None:
            keep = (columns["kind"] != CALL) & (columns["kind"] != SKIPPED)
            stack = columns["stack"].astype(np.int64, copy=False)
            keep[join.matching(np.zeros(len(row), np.int32), stack)] = True
            keep |= np.isin(configs["name_id"], launching)[columns[TOGETHER]]
            kept = np.flatnonzero(keep)
            columns = {name: column[kept] for name, column in columns.items()}
        message = events.messages_of(columns["event"])
        columns["message"] = np.where(columns["kind"] == MARKER, message, np.int32(-1))
        return columns

    return reduced


def _flags(own_names: list[str | None], prefix: str) -> Bools:
    return np.array([text is not None and text.startswith(prefix) for text in own_names], bool)


def _classify(kind: npt.NDArray[np.int8], config: Int32, own_names: list[str | None]) -> None:
    """Set the kind of regions without a category, by their names."""
    lost = np.flatnonzero(kind == _UNKNOWN)
    of_name = [schema.kind_of_category(None, text) for text in own_names]
    kind[lost] = np.array(of_name, np.int8)[config[lost]]


def _name_by_text(
    messages: RangeNames,
    message: Int32,
    kind: npt.NDArray[np.int8],
    config: Int32,
    own_names: list[str | None],
    labels: _pools.Names,
) -> RangeNames:
    """Name ranges without a message by the name of the region; the messages and these names."""
    rows = np.flatnonzero((message < 0) & (kind != CALL) & (kind != SKIPPED))
    if not len(rows):
        return messages
    used, place = np.unique(config[rows], return_inverse=True)
    names = _column.split_range_names(labels, [own_names[i] for i in used.tolist()])
    message[rows] = place + len(messages)
    return _one_after_the_other([messages, RangeNames(*names)])


def _one_after_the_other(names: Sequence[RangeNames]) -> RangeNames:
    columns = zip(*((own.label, own.seq, own.op_id) for own in names), strict=True)
    return RangeNames(*map(np.concatenate, columns))


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


def skip_repeated_work(regions: Regions, works: list[WorkColumns], event: Int32) -> None:
    """Skip regions that repeat GPU work: they refer to its event, or have its times.

    event : [GPU work] rows of the events
    """
    rows = np.flatnonzero(regions.kind == OTHER)
    if not len(rows) or not len(event):
        return
    repeated = np.isin(regions.event[rows], event[event >= 0])
    start = np.concatenate([*(work["start"] for work, _ in works), regions.start[rows]])
    end = np.concatenate([*(work["end"] for work, _ in works), regions.end[rows]])
    same, _ = alike([start, end])
    n = len(start) - len(rows)
    has_work = np.zeros(int(same.max()) + 1, bool)
    has_work[same[:n]] = True
    regions.kind[rows[repeated | has_work[same[n:]]]] = SKIPPED


class RegionRows:
    """The calls and ranges of all runs."""

    def __init__(self, of_runs: list[Regions], process_of_thread: Int32) -> None:
        self._parents = [regions.parents for regions in of_runs if len(regions.parents[0])]
        self._process = process_of_thread
        self._is_used = np.empty(0, bool)
        n_messages = 0
        for regions in of_runs:
            regions.message[regions.message >= 0] += n_messages
            n_messages += len(regions.messages)
        self._messages = of_runs[0].messages
        if len(of_runs) > 1:
            self._messages = _one_after_the_other([regions.messages for regions in of_runs])
        self._rows = trace_columns.joined(
            [
                {
                    "start": regions.start,
                    "end": regions.end,
                    "kind": regions.kind,
                    "stack": regions.stack,
                    "globalTid": regions.thread,
                    "nameId": regions.name,
                    "message": regions.message,
                }
                for regions in of_runs
            ]
        )

    def calls(self) -> RecordedCalls:
        """All API calls."""
        rows = np.flatnonzero(self._rows["kind"] == CALL)
        start, end, thread, name, stack = (
            self._rows[column][rows] for column in ("start", "end", "globalTid", "nameId", "stack")
        )
        stack = stack.astype(np.int64, copy=False)
        return RecordedCalls(start, np.maximum(start, end), thread, name, stack)

    def launches(self, kernels: Kernels) -> TableColumns:
        """The calls that launched GPU work: start, globalTid, nameId. Sets `launch` of kernels.

        A call of HIP precedes the call of HSA that it made. Without a call, a range with the id of
        a kernel launched it, such as a call of RCCL.
        """
        kind = self._rows["kind"]
        calls = np.flatnonzero(kind == CALL)
        row = self._launch_rows(kernels, calls, bool(self._parents))
        lost = np.flatnonzero((row < 0) & (kernels.correlation > 0))
        if len(lost):
            others = np.flatnonzero((kind > CALL) & (kind < SKIPPED))
            row[lost] = self._launch_rows(kernels, others)[lost]
        is_used = np.zeros(len(kind), bool)
        is_used[row[row >= 0]] = True
        self._is_used = is_used
        used = np.flatnonzero(is_used)
        place = np.full(len(kind), -1, np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        kernels.launch = take(place, row)
        return {name: self._rows[name][used] for name in ("start", "globalTid", "nameId")}

    def lost(self, kernels: Kernels, strings: list[str | None]) -> LostLaunches:
        """The calls that launched kernels which the database lacks; none if it has no kernels.

        kernels : with the ids of their launches, after `launches`
        """
        if not len(kernels):
            return LostLaunches()
        is_call = (self._rows["kind"] == CALL) & (self._rows["stack"] > 0)
        rows = np.flatnonzero(is_call & ~self._is_used)  # few
        names = ("nameId", "start", "globalTid", "stack")
        name, start, thread, stack = (self._rows[column][rows] for column in names)
        ids = take(self._process, thread), stack.astype(np.int64, copy=False)
        join = _join.Join(*ids)
        join.offer(kernels.process, kernels.correlation)
        worked = join.rows(*ids) >= 0
        return lost_calls(strings, name, start, thread, worked, self._process)

    def _launch_rows(
        self, kernels: Kernels, rows: npt.NDArray[np.intp], follow: bool = False
    ) -> Int32:
        """[kernels] The region that launched each kernel, of some regions; -1 for none.

        follow : whether to replace calls of HSA by those around them
        """
        process = take(self._process, self._rows["globalTid"][rows])
        stack = self._rows["stack"][rows].astype(np.int64, copy=False)
        if follow:
            self._follow_parents(kernels, process, stack)
        join = _join.Join(kernels.process, kernels.correlation)
        join.offer(process, stack)
        place = join.rows(kernels.process, kernels.correlation)
        return take(rows.astype(np.int32), place)

    def _follow_parents(self, kernels: Kernels, process: Int32, stack: Int64) -> None:
        """Replace the ids of calls of HSA that launched kernels by those of the calls around.

        process, stack : of all calls
        """
        calls = _join.Join(process, stack)
        calls.offer(process, stack)
        for child, parent in self._parents:
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

    def ranges(self, last: bool) -> TableColumns:
        """The ranges: start, end, globalTid, text, text_seq, text_op_id, nameId.

        last : nothing else is needed; memory is freed early
        """
        kind, names = self._rows["kind"], self._messages
        rows = np.flatnonzero((kind == MARKER) | (kind == COLLECTIVE) | (kind == OTHER))
        is_named = np.append(names.label >= 0, False)[self._rows["message"][rows]]
        rows = rows[is_named & (self._rows["globalTid"][rows] >= 0)]
        columns = self._rows if last else dict(self._rows)
        del columns["kind"], columns["stack"]
        message = columns.pop("message")[rows]
        for name in list(columns):
            columns[name] = columns[name][rows]
        columns["text"] = take(names.label, message)
        columns["text_seq"] = take(names.seq, message)
        columns["text_op_id"] = take(names.op_id, message)
        return columns


def are_pushed(name: Int32, strings: list[str | None]) -> Bools:
    """Whether ranges were pushed and popped, as opposed to started and stopped.

    name : [ranges] of the regions, index into `strings`
    """
    started = _flags(strings, _PUSHED)
    return ~take(np.append(started, False), name) if len(strings) else np.ones(len(name), bool)
