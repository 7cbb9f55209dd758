"""Nsight Systems SQLite exports to a Trace."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastprof import _join, _pools
from fastprof.sources import nsys_about, steps
from fastprof.sources import nsys_ranges as ranges_of
from fastprof.sources import nsys_schema as schema
from fastprof.sources.database import EXPORT_AGAIN, Database, Field
from fastprof.trace import Activity, Int32, Kernels, Launches, Trace

Result = TypeVar("Result")


def recognises(tables: Mapping[str, Collection[str]]) -> bool:
    """Whether these tables are those of an Nsight Systems export."""
    return {"id", "value"} <= set(tables.get(schema.STRINGS, []))


def read(database: Database, copies: bool = False) -> Trace:
    """Read an export, on two cores: the ranges on the second, and API calls on both.

    copies : whether memory copies and memsets get rows as kernels do

    Raises
    ------
    BadInputError
        When the file is damaged, or lacks what every version has.
    """
    pools = schema.Pools()
    with _Beside(database) as beside:
        running = beside.run(ranges_of.Reading)
        kernels = _read_kernels(database, pools, copies)
        nodes = _read_graph_nodes(database, pools, kernels)
        launches = _read_launches(database, pools, kernels, nodes, beside)
        reading = running.result()
    reading.share_pools(pools)
    strings, warnings = steps.read_strings(
        database, schema.STRINGS, schema.string_fields, pools.strings, kernels, EXPORT_AGAIN
    )
    ranges, phases = reading.finish(strings)
    threads = pools.threads.values()
    process_of_thread = _process_of(
        np.arange(len(threads), dtype=np.int32), pools, schema.PROCESS_SHIFT
    )
    shift, low = schema.PROCESS_SHIFT, schema.LOW_24_BITS
    about, problems = nsys_about.read(
        database, [(number >> shift & low, number & low) for number in threads.tolist()]
    )
    return Trace(
        name=database.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=phases,
        labels=reading.labels(),
        strings=strings,
        threads=(threads & schema.LOW_24_BITS).astype(np.int32),
        process_of_thread=process_of_thread,
        processes=_process_ids(pools.processes.values()),
        warnings=warnings + problems,
        about=about,
    )


def floor(database: Database) -> int:
    """Step the SELECTs that `read` steps and do nothing with the rows; how many there were."""
    pools = schema.Pools()
    ranges = ranges_of.table_of(database)
    tables: list[tuple[str, Sequence[Field]]] = [
        (schema.KERNELS, schema.kernel_fields(pools)),
        (schema.GRAPHS, schema.graph_fields(pools)),
        (schema.LAUNCHES, schema.launch_fields(pools)),
        (schema.GRAPH_NODES, schema.graph_node_fields(pools)),
        (ranges, schema.range_fields(pools)),
        (schema.STRINGS, schema.string_fields(pools.strings, _pools.Names())),
    ]
    return sum(
        database.floor(table, fields) for table, fields in tables if table in database.tables
    )


class _Beside:
    """A second core: runs functions on a thread of its own, through a connection of its own.

    Leaving early stops what runs there at its next few rows.
    """

    def __init__(self, database: Database) -> None:
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(1)
        self._own = database.another(self._go_on)

    def run(self, function: Callable[..., Result], *arguments: Any) -> Future[Result]:
        """Start function(connection, *arguments) when what was started before is done."""
        run = contextvars.copy_context().run  # with the memory that arrays get here
        return self._pool.submit(run, function, self._own, *arguments)

    def _go_on(self, table: str, rows: int, total: int) -> None:
        if self._stop.is_set():
            raise InterruptedError(f"reading {table} was stopped")

    def __enter__(self) -> _Beside:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        self._own.close()


def _read_kernels(database: Database, pools: schema.Pools, copies: bool) -> Kernels:
    """GPU work in order of start; launch and origin still -1."""
    has_names = "demangledName" in database.tables.get(schema.KERNELS, ["demangledName"])
    name = "demangledName" if has_names else "shortName"
    kernels = database.scan(schema.KERNELS, schema.kernel_fields(pools, name))
    kernels["name"] = kernels.pop(name)
    graphs = database.scan(schema.GRAPHS, schema.graph_fields(pools))
    kinds = {Activity.KERNEL: kernels, Activity.GRAPH: graphs}
    if copies:
        for kind, table in ((Activity.MEMCPY, schema.COPIES), (Activity.MEMSET, schema.SETS)):
            kinds[kind] = database.scan(table, schema.copy_fields(pools))
    return steps.kernels_of(kinds, "globalPid")


def _read_graph_nodes(
    database: Database, pools: schema.Pools, kernels: Kernels
) -> dict[str, Any] | None:
    """The calls that created graph nodes, and in `row` which of them made each kernel's node."""
    if not np.any(kernels.graph_node >= 0):
        return None
    nodes = database.scan(schema.GRAPH_NODES, schema.graph_node_fields(pools))
    process = _process_of(nodes["globalTid"], pools, schema.PROCESS_SHIFT)
    join = _join.Join(process, nodes["graphNodeId"])
    join.offer(process, nodes["graphNodeId"])
    row = join.rows(kernels.process, kernels.graph_node)
    # Instantiating a graph copies its nodes; what the user's code did is the first original.
    original = np.append(join.rows(process, nodes["originalGraphNodeId"]), np.int32(-1))
    for _ in range(_MOST_COPIES):
        further = original[row]
        if not np.any((further >= 0) & (further != row)):
            break
        row = np.where(further >= 0, further, row)
    nodes["row"] = row
    return nodes


# The API calls are read in so many pieces, by whichever core is free. What one has to do before
# depends on the names of the ranges, and is not known.
_PIECES = 16
# A graph cloned from a clone of a clone: deeper than this the originals form a cycle.
_MOST_COPIES = 64


def _read_launches(
    database: Database,
    pools: schema.Pools,
    kernels: Kernels,
    nodes: dict[str, Any] | None,
    beside: _Beside,
) -> Launches:
    """API calls that launched a kernel, and those that created a node; sets kernels' indices."""
    shift = schema.PROCESS_SHIFT
    if "globalPid" not in database.tables.get(schema.KERNELS, ["globalPid"]):
        shift = 63  # the export does not tell processes apart: all are one, without a number
        kernels.process[:] = pools.processes.intern(0)
    join = _join.Join(kernels.process, kernels.correlation)

    pieces = database.pieces(schema.LAUNCHES, _PIECES)
    waiting = deque(range(len(pieces)))

    def scan(database: Database, into: schema.Pools) -> dict[int, dict[str, Any]]:
        """Those pieces of the table that nobody else takes."""
        read: dict[int, dict[str, Any]] = {}
        while True:
            try:
                piece = waiting.popleft()
            except IndexError:
                return read
            keep = _join.LaunchFilter(join, pools.processes, shift)
            fields, room = schema.launch_fields(into), len(kernels) // len(pieces)
            read[piece] = database.scan(schema.LAUNCHES, fields, pieces[piece], keep, room)

    others = schema.Pools()
    second = beside.run(scan, others)
    read = scan(database, pools)
    for piece, further in second.result().items():
        pools.adopt(others, further)
        read[piece] = further
    columns = {
        name: np.concatenate([read[piece].pop(name) for piece in range(len(pieces))])
        for name in list(read[0])
    }
    join.offer(_process_of(columns["globalTid"], pools, shift), columns.pop("correlationId"))
    kernels.launch = join.rows(kernels.process, kernels.correlation)
    n = len(columns["start"])
    if nodes is not None:
        kernels.origin = np.where(nodes["row"] >= 0, nodes["row"] + np.int32(n), np.int32(-1))
        columns = {name: np.concatenate([columns[name], nodes[name]]) for name in columns}
    columns = steps.launches_in_order(columns, kernels)
    return Launches(columns["start"], columns["end"], columns["globalTid"], columns["nameId"])


def _process_of(thread: Int32, pools: schema.Pools, shift: int) -> Int32:
    """The process of each thread index, -1 for thread -1."""
    of_thread = [pools.processes.intern(int(x) >> shift) for x in pools.threads.values()]
    known: Int32 = np.array([*of_thread, -1], np.int32)
    return known[thread]


def _process_ids(processes: npt.NDArray[np.int64]) -> Int32:
    """The ids that the operating system gave; -1 for 0, which stands for "not told"."""
    ids = (processes & schema.LOW_24_BITS).astype(np.int32)
    return np.where(ids > 0, ids, np.int32(-1))
