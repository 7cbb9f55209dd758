"""Nsight Systems SQLite exports to a Trace."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastprof import _join, _nest, _pools, _scan
from fastprof.errors import BadInputError
from fastprof.sources import nsys_ranges as ranges_of
from fastprof.sources import nsys_schema as schema
from fastprof.sources.database import EXPORT_AGAIN, Database, Field
from fastprof.trace import Int32, Kernels, Launches, Trace

Result = TypeVar("Result")


def recognises(tables: dict[str, list[str]]) -> bool:
    """Whether these tables are those of an Nsight Systems export."""
    return {"id", "value"} <= set(tables.get(schema.STRINGS, []))


def expect_export(database: Database) -> None:
    """Raise unless the file is an Nsight Systems export.

    Raises
    ------
    BadInputError
    """
    if recognises(database.tables):
        return
    what = "no Nsight Systems export"
    if "StringTable" in database.tables:
        what = "an NVProf database, which cannot be read yet"
    has = ", ".join(sorted(database.tables)[:6]) or "no tables at all"
    raise BadInputError(
        f"{database.name}: {what}: no table {schema.STRINGS}; it has {has}. "
        "Record with: nsys profile -t cuda,nvtx, then nsys export --type sqlite"
    )


def read(database: Database) -> Trace:
    """Read an export, on two cores: the ranges and half of the API calls on the second.

    Raises
    ------
    BadInputError
        When the file is damaged, or lacks what every version has.
    """
    pools = schema.Pools()
    with _Beside(database) as beside:
        running = beside.run(ranges_of.Reading)
        kernels = _read_kernels(database, pools)
        nodes = _read_graph_nodes(database, pools, kernels)
        launches = _read_launches(database, pools, kernels, nodes, beside)
        reading = running.result()
    reading.share_pools(pools)
    strings, warnings = _read_strings(database, pools, kernels)
    ranges, phases = reading.finish(strings)
    threads = pools.threads.values()
    process_of_thread = _process_of(np.arange(len(threads)), pools, schema.PROCESS_SHIFT)
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
        warnings=warnings,
    )


def floor(database: Database) -> int:
    """Step the SELECTs that `read` steps and do nothing with the rows; how many there were."""
    pools = schema.Pools()
    ranges = ranges_of.table_of(database)
    tables: list[tuple[str, Sequence[Field], str]] = [
        (schema.KERNELS, schema.kernel_fields(pools), ""),
        (schema.GRAPHS, schema.graph_fields(pools), ""),
        (schema.LAUNCHES, schema.launch_fields(pools), ""),
        (schema.GRAPH_NODES, schema.graph_node_fields(pools), ""),
        (ranges, schema.range_fields(pools), ranges_of.where(ranges_of.event_types(database))),
        (schema.STRINGS, schema.string_fields(pools, _pools.Names()), ""),
    ]
    return sum(
        database.floor(table, fields, where)
        for table, fields, where in tables
        if table in database.tables
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


def _read_kernels(database: Database, pools: schema.Pools) -> Kernels:
    """Kernels and whole graph launches, in order of start; launch and origin come later."""
    has_names = "demangledName" in database.tables.get(schema.KERNELS, ["demangledName"])
    name = "demangledName" if has_names else "shortName"
    columns = database.scan(schema.KERNELS, schema.kernel_fields(pools, name))
    static, dynamic = (columns.pop(f"{kind}SharedMemory") for kind in ("static", "dynamic"))
    shared = np.where((static < 0) | (dynamic < 0), np.int32(-1), static + dynamic)
    for size in (columns["grid"], columns["block"]):
        if len(size) and size.min() < 0:
            size[np.any(size < 0, axis=1)] = -1  # one side is not known: none is
    no_graph = np.zeros(len(shared), np.uint8)
    columns |= {"shared": shared, "graph": no_graph}
    graphs = database.scan(schema.GRAPHS, schema.graph_fields(pools))
    n = len(graphs["start"])
    if n:
        graphs["graph"] = np.ones(n, np.uint8)
        for key, column in columns.items():
            if key not in graphs:
                graphs[key] = np.full((n, *column.shape[1:]), -1, column.dtype)
            columns[key] = np.concatenate([column, graphs[key]])
    start = columns["start"]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        columns = {key: column[order] for key, column in columns.items()}
    duration = columns["end"]
    duration -= columns["start"]
    duration[duration < 0] = -1  # it ended before it began, or took longer than 64 bits hold
    return Kernels(
        start=columns["start"],
        duration=duration,
        device=columns["deviceId"],
        context=columns["contextId"],
        stream=columns["streamId"],
        process=columns["globalPid"],
        correlation=columns["correlationId"],
        name=columns[name],
        grid=columns["grid"],
        block=columns["block"],
        registers=columns["registersPerThread"],
        shared_memory=columns["shared"],
        graph_id=_once(columns["graphId"]),
        graph_node=_once(columns["graphNodeId"]),
        graph=columns["graph"],
        launch=np.empty(0, np.int32),
        origin=None,
    )


def _once(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column that says "none" in every row, kept as one value; others as they are."""
    return column if np.any(column != -1) else np.broadcast_to(column[:1], column.shape)


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

    def scan(database: Database, into: schema.Pools, where: str) -> dict[str, Any]:
        keep = _join.LaunchFilter(join, pools.processes, shift)
        fields = schema.launch_fields(into)
        return database.scan(schema.LAUNCHES, fields, where, keep, len(kernels))

    first, last = database.row_ids(schema.LAUNCHES)
    middle = first + (last - first) // 2
    others = schema.Pools()
    second = beside.run(scan, others, f"rowid > {middle}") if first < last else None
    columns = scan(database, pools, f"rowid <= {middle}" if second else "")
    if second:
        further = second.result()
        pools.adopt(others, further)
        for name, column in columns.items():  # longer in place: half is not copied
            n = len(column)
            column.resize(n + len(further[name]), refcheck=False)
            column[n:] = further.pop(name)
    join.offer(_process_of(columns["globalTid"], pools, shift), columns.pop("correlationId"))
    kernels.launch = join.rows(kernels.process, kernels.correlation)
    n = len(columns["start"])
    if nodes is not None:
        kernels.origin = np.where(nodes["row"] >= 0, nodes["row"] + np.int32(n), np.int32(-1))
        columns = {name: np.concatenate([columns[name], nodes[name]]) for name in columns}
    order = _nest.order(columns["start"], columns["end"])
    if order is not None:
        place = np.full(len(order) + 1, -1, np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        kernels.launch = place[kernels.launch]
        if kernels.origin is not None:
            kernels.origin = place[kernels.origin]
        columns = {name: column[order] for name, column in columns.items()}
    return Launches(columns["start"], columns["end"], columns["globalTid"], columns["nameId"])


def _process_of(thread: npt.NDArray[Any], pools: schema.Pools, shift: int) -> Int32:
    """The process of each thread index, -1 for thread -1."""
    of_thread = [pools.processes.intern(int(x) >> shift) for x in pools.threads.values()]
    return np.array([*of_thread, -1], np.int32)[thread]


def _process_ids(processes: npt.NDArray[np.int64]) -> Int32:
    """The ids that the operating system gave; -1 for 0, which stands for "not told"."""
    ids = (processes & schema.LOW_24_BITS).astype(np.int32)
    return np.where(ids > 0, ids, np.int32(-1))


def _read_strings(
    database: Database, pools: schema.Pools, kernels: Kernels
) -> tuple[list[str | None], list[str]]:
    """The texts of all string ids met so far, and what was wrong with them."""
    wanted = pools.strings
    texts = _pools.Names()
    columns = database.scan(
        schema.STRINGS,
        schema.string_fields(pools, texts),
        keep=_scan.KnownKeys(wanted),
        capacity=len(wanted),
    )
    strings: list[str | None] = [None] * len(wanted)
    text_of = texts.texts()
    for key, text in zip(columns["id"].tolist(), columns["value"].tolist(), strict=True):
        strings[key] = text_of[text] if text >= 0 else None
    known = np.array([text is not None for text in strings] + [True])
    lost = np.unique(kernels.name[~known[kernels.name]])
    warnings = []
    if len(lost):
        ids = ", ".join(str(wanted.values()[index]) for index in lost[:3])
        warnings.append(
            f"{database.name}: {len(lost)} kernel names are not in {schema.STRINGS} "
            f"(ids {ids}); they print as na. {EXPORT_AGAIN[0].upper()}{EXPORT_AGAIN[1:]}"
        )
    return strings, warnings
