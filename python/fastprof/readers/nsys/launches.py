"""API calls of an Nsight Systems export that launched a kernel or created a graph node.

API calls of an Nsight Systems export that captured work into a graph.

They launched nothing, so `read` skips them unless the export is given as a capture file. They do
not record kernel names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastprof._core import _join
from fastprof._core._take import take
from fastprof.model.arrays import Int32, Int64
from fastprof.model.timeline import KeptHost
from fastprof.model.trace import Activity, Captured, Kernels, Launches, LostLaunches
from fastprof.readers import trace_columns
from fastprof.readers.graph_captures import (
    BEGINS,
    ENDS,
    capture_names,
    captured_in,
    graphs_of_calls,
)
from fastprof.readers.lost_launches import lost_launches
from fastprof.readers.nsys import schema
from fastprof.readers.nsys.pieces import Pieces
from fastprof.readers.nsys.schema import texts_of
from fastprof.readers.sqlite.database import Database, TableColumns
from fastprof.readers.trace_columns import text

# Depth of graph clones; deeper chains of originals are cycles.
_MAX_COPIES = 64


class LaunchReading:
    """The table of API calls while it is read; only those are kept that launch kernels.

    Attributes
    ----------
    lost : LostLaunches, known after `finish`
    """

    def __init__(self, database: Database, pools: schema.NsysPools, kernels: Kernels) -> None:
        self._shift = schema.PROCESS_SHIFT
        if "globalPid" not in database.tables.get(schema.KERNELS, ["globalPid"]):
            self._shift = 63  # no process ids in the export: treat all as one process
            kernels.process[:] = pools.processes.intern(0)
        self._join = _join.Join(kernels.process, kernels.correlation)
        self._effects = _effects(database)
        self._filters: list[_join.LaunchFilter] = []
        self.lost = LostLaunches()
        self.pieces = self._pieces(database, pools, len(kernels))

    def _pieces(self, database: Database, pools: schema.NsysPools, n_kernels: int) -> Pieces:
        join, processes, shift = self._join, pools.processes, self._shift
        names = np.array(list(self._effects), np.int64)

        def keep() -> _join.LaunchFilter:
            self._filters.append(_join.LaunchFilter(join, processes, shift, names))
            return self._filters[-1]

        return Pieces(database, schema.LAUNCHES, schema.launch_fields, keep, n_kernels)

    def adopt(self, pools: schema.NsysPools) -> None:
        """Merge the ids of the launches into `pools`, after reading has ended."""
        self.pieces.adopt(pools)

    def _columns(self) -> TableColumns:
        """The launches, in the order of the file."""
        return self.pieces.together()

    def finish(
        self, pools: schema.NsysPools, kernels: Kernels, nodes: dict[str, Any] | None
    ) -> Launches:
        """Launches and node creations, sorted by time. Sets indices of kernels. Call once."""
        columns = self._columns()
        process = process_of(columns["globalTid"], pools, self._shift)
        if any(keep.n_unmatched for keep in self._filters):
            rows = self._join.matching(process, columns["correlationId"])
            self.lost = self._lost(columns, rows, pools)
            columns = {name: column[rows] for name, column in columns.items()}
            process = process[rows]
        self._join.offer(process, columns.pop("correlationId"))
        kernels.launch = self._join.rows(kernels.process, kernels.correlation)
        n = len(columns["start"])
        if nodes is not None:
            kernels.origin = np.where(nodes["row"] >= 0, nodes["row"] + np.int32(n), np.int32(-1))
            columns = {name: np.concatenate([columns[name], nodes[name]]) for name in columns}
        columns = trace_columns.launches_in_order(columns, kernels)
        return Launches(columns["start"], columns["globalTid"], columns["nameId"])

    def _lost(self, columns: TableColumns, rows: Int64, pools: schema.NsysPools) -> LostLaunches:
        """The launches of kernels among calls of which `rows` have GPU work."""
        worked = np.zeros(len(columns["start"]), bool)
        worked[rows] = True
        of_thread = process_of(np.arange(len(pools.threads), dtype=np.int32), pools, self._shift)
        meaning = take(self._effects_of(pools), columns["nameId"])
        return lost_launches(meaning, columns["start"], columns["globalTid"], worked, of_thread)

    def _effects_of(self, pools: schema.NsysPools) -> Int32:
        """int32 [names of a pool], the effect of calls of each name."""
        effects = [self._effects.get(name, -1) for name in pools.strings.values().tolist()]
        return np.array(effects, np.int32)

    def host(self, database: Database) -> KeptHost | None:
        """All API calls, if they were kept. Call once, after `finish`."""
        return None


def without_failed(database: Database, lost: LostLaunches) -> LostLaunches:
    """Those of the calls that did not fail: a call that fails launches nothing."""
    names = [name for name, effect in _effects(database).items() if effect == Activity.KERNEL]
    if not len(lost) or not names:
        return lost
    where = f"returnValue <> 0 AND nameId IN ({', '.join(map(str, names))})"
    rows = schema.table_rows(database, schema.LAUNCHES, "start nameId returnValue", where)
    failed = [start for start, _, _ in rows if isinstance(start, int)]
    return lost.take(~np.isin(lost.start, failed))


_MOST_NAMES = 32  # that the filter compares


def _effects(database: Database) -> dict[int, int]:
    """By string id, the effect of calls that launch kernels or capture graphs.

    See `fastprof.readers.graph_captures.capture_names`. Empty if the export does not name calls.
    """
    if "nameid" not in {name.lower() for name in database.tables.get(schema.LAUNCHES, ())}:
        return {}
    patterns = ("cu*Launch*", "hip*Launch*", "cu*StreamBeginCapture*", "cu*StreamEndCapture*")
    where = " OR ".join(f"value GLOB '{pattern}'" for pattern in patterns)
    rows = schema.table_rows(database, schema.STRINGS, "id value", where)
    known = [(number, text(name) or "") for number, name in rows if isinstance(number, int)]
    effects = capture_names([name for _, name in known]).tolist()
    result = {
        number: effect
        for (number, _), effect in zip(known, effects[:-1], strict=True)
        if effect in (Activity.KERNEL, BEGINS, ENDS)
    }
    return result if len(result) <= _MOST_NAMES else {}


def read_graph_nodes(
    database: Database, pools: schema.NsysPools, kernels: Kernels
) -> dict[str, Any] | None:
    """The calls that created graph nodes; `row` is the call of each kernel's node."""
    graph_node = kernels.configs.graph_node
    if not np.any(graph_node >= 0):
        return None
    nodes = database.scan(schema.GRAPH_NODES, schema.graph_node_fields(pools))
    process = process_of(nodes["globalTid"], pools, schema.PROCESS_SHIFT)
    join = _join.Join(process, nodes["graphNodeId"])
    join.offer(process, nodes["graphNodeId"])
    row = join.rows(kernels.process, take(graph_node, kernels.config))
    # Instantiating a graph copies its nodes. The user's code created the first original.
    original = np.append(join.rows(process, nodes["originalGraphNodeId"]), np.int32(-1))
    for _ in range(_MAX_COPIES):
        further = original[row]
        if not np.any((further >= 0) & (further != row)):
            break
        row = np.where(further >= 0, further, row)
    nodes["row"] = row
    return nodes


def process_of(thread: Int32, pools: schema.NsysPools, shift: int) -> Int32:
    """The process of each thread index, -1 for thread -1."""
    of_thread = [pools.processes.intern(int(x) >> shift) for x in pools.threads.values()]
    known: Int32 = np.array([*of_thread, -1], np.int32)
    return known[thread]


def add(
    database: Database,
    pools: schema.NsysPools,
    kernels: Kernels,
    launches: Launches,
    strings: list[str | None],
) -> tuple[Launches, Captured | None]:
    """Merge captured calls into the launches, sorted by time, and return both.

    Updates the launch indices of kernels and appends names of calls to `strings`.

    kernels : with copies and memsets, to identify calls that were not captured
    """
    own = schema.NsysPools()
    calls = database.scan(schema.LAUNCHES, schema.launch_fields(own))
    names = texts_of(database, own.strings)
    threads = np.array([pools.threads.intern(key) for key in own.threads.values().tolist()] + [-1])
    thread = threads.astype(np.int32)[calls["globalTid"]]
    process_of_thread = process_of(
        np.arange(len(pools.threads), dtype=np.int32), pools, schema.PROCESS_SHIFT
    )
    meaning = capture_names(names)[calls["nameId"]]
    graph = graphs_of_calls(meaning, calls["start"], thread, process_of_thread)
    if graph is None:
        return launches, None
    process = np.append(process_of_thread, np.int32(-1))[thread]
    join = _join.Join(process, calls["correlationId"])
    join.offer(kernels.process, kernels.correlation)
    worked = join.rows(process, calls["correlationId"]) >= 0
    rows, number = captured_in(graph, worked, calls["start"], calls["correlationId"])
    n, nothing = len(launches), np.full(len(rows), -1, np.int32)
    columns = {
        "start": np.concatenate([launches.start, calls["start"][rows]]),
        "thread": np.concatenate([launches.thread, thread[rows]]),
        "name": np.concatenate([launches.name, calls["nameId"][rows] + np.int32(len(strings))]),
        "captured": np.arange(n + len(rows)) - n,
    }
    strings += names
    columns = trace_columns.launches_in_order(columns, kernels)
    at = columns.pop("captured")
    sizes = np.full((len(rows), 3), -1, np.int32)
    captured = Captured(nothing.copy(), number, nothing, sizes, sizes, meaning[rows])
    captured.launch[at[at >= 0]] = np.flatnonzero(at >= 0)
    return Launches(**columns), captured
