"""Nsight Systems SQLite exports of 2020 to 2026 to a Trace.

What a version of the format has is found by looking: tables by name, columns by name. Schema:
https://docs.nvidia.com/nsight-systems/UserGuide/index.html, "SQLite Schema Reference".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastprof import _join, _nest, _pools, _scan
from fastprof.errors import BadInputError
from fastprof.sources.database import EXPORT_AGAIN, Database, Field
from fastprof.trace import NEVER, Int32, Kernels, Launches, Ranges, Trace

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
LAUNCHES = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
GRAPH_NODES = "CUDA_GRAPH_NODE_EVENTS"
RANGES = ("NVTX_EVENTS", "NVTX_EVENTS_V3", "NVTX_EVENTS_V2")
STRINGS = "StringIds"

# Event types of NVTX_EVENTS; ENUM_NSYS_EVENT_TYPE has them by name where the export has it.
PUSH_POP = {"NvtxPushPopRange": 59, "NvtxtPushPopRange": 70}
START_END = {"NvtxStartEndRange": 60, "NvtxtStartEndRange": 71}

# A global thread id is hardware, virtual machine, process and thread, 8, 8, 24 and 24 bits.
PROCESS_SHIFT = 24
LOW_24_BITS = 0xFFFFFF

I64, I32, KEY, RANGE, TEXT = _scan.I64, _scan.I32, _scan.KEY, _scan.RANGE, _scan.TEXT


class _Pools:
    """What the columns of all tables refer to."""

    def __init__(self) -> None:
        self.labels = _pools.Names()
        self.strings = _pools.Keys()
        self.threads = _pools.Keys()
        self.processes = _pools.Keys()


def recognises(tables: dict[str, list[str]]) -> bool:
    """Whether these tables are those of an Nsight Systems export."""
    return STRINGS in tables and {"id", "value"} <= set(tables[STRINGS])


def read(database: Database) -> Trace:
    """Read an export.

    Raises
    ------
    BadInputError
        When the file is damaged, or lacks what every version has.
    """
    pools = _Pools()
    kernels = _read_kernels(database, pools)
    nodes = _read_graph_nodes(database, pools, kernels)
    launches = _read_launches(database, pools, kernels, nodes)
    columns, types = _read_ranges(database, pools)
    strings, warnings = _read_strings(database, pools, kernels)
    _name_registered_ranges(columns, pools, strings)
    ranges, phases = _split_phases(columns, types)
    threads = pools.threads.values()
    process_of_thread = _process_of(np.arange(len(threads)), pools, PROCESS_SHIFT)
    return Trace(
        name=database.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=phases,
        labels=pools.labels.texts(),
        strings=strings,
        threads=threads & LOW_24_BITS,
        process_of_thread=process_of_thread,
        processes=pools.processes.values() & LOW_24_BITS,
        device_names=_device_names(database),
        warnings=warnings,
        version=_version(database),
    )


def floor(database: Database) -> int:
    """Step the SELECTs that `read` steps and do nothing with the rows; how many there were."""
    pools = _Pools()
    types = _event_types(database)
    where = _where_ranges(types)
    tables: list[tuple[str, Sequence[Field], str]] = [
        (KERNELS, _kernel_fields(pools), ""),
        (GRAPHS, _graph_fields(pools), ""),
        (LAUNCHES, _launch_fields(pools), ""),
        (GRAPH_NODES, _graph_node_fields(pools), ""),
        (_range_table(database), _range_fields(pools), where),
        (STRINGS, _string_fields(pools, _pools.Names()), ""),
    ]
    return sum(
        database.floor(table, fields, where)
        for table, fields, where in tables
        if table in database.tables
    )


def _kernel_fields(pools: _Pools) -> list[Field]:
    grid = [Field(name, I32, 0) for name in _GRID + _BLOCK]
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("deviceId", I32),
        Field("contextId", I32),
        Field("streamId", I32),
        Field("correlationId", I64),
        Field("globalPid", KEY, pool=pools.processes, shift=PROCESS_SHIFT),
        Field("demangledName", KEY, pool=pools.strings),
        Field("shortName", KEY, pool=pools.strings),
        *grid,
        Field("registersPerThread", I32),
        Field("staticSharedMemory", I64, 0),
        Field("dynamicSharedMemory", I64, 0),
        Field("graphNodeId", I64),
        Field("graphId", I32),
    ]


_GRID = ["gridX", "gridY", "gridZ"]
_BLOCK = ["blockX", "blockY", "blockZ"]


def _graph_fields(pools: _Pools) -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("deviceId", I32),
        Field("contextId", I32),
        Field("streamId", I32),
        Field("correlationId", I64),
        Field("globalPid", KEY, pool=pools.processes, shift=PROCESS_SHIFT),
        Field("graphId", I32),
    ]


def _launch_fields(pools: _Pools) -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("globalTid", KEY, pool=pools.threads, needed=True),
        Field("correlationId", I64, needed=True),
        Field("nameId", KEY, pool=pools.strings),
    ]


def _graph_node_fields(pools: _Pools) -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("globalTid", KEY, pool=pools.threads, needed=True),
        Field("nameId", KEY, pool=pools.strings),
        Field("graphNodeId", I64, needed=True),
        Field("originalGraphNodeId", I64),
    ]


def _range_fields(pools: _Pools) -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("end", I64, NEVER, needed=True),
        Field("eventType", I32, needed=True),
        Field("text", RANGE, pool=pools.labels),
        Field("textId", KEY, pool=pools.strings),
        Field("globalTid", KEY, pool=pools.threads),
        Field("endGlobalTid", KEY, pool=pools.threads),
    ]


def _string_fields(pools: _Pools, texts: _pools.Names) -> list[Field]:
    return [
        Field("id", KEY, pool=pools.strings, needed=True),
        Field("value", TEXT, pool=texts, needed=True),
    ]


def _read_kernels(database: Database, pools: _Pools) -> Kernels:
    """Kernels and whole graph launches, in order of start; launch and origin still -1."""
    columns = database.scan(KERNELS, _kernel_fields(pools))
    shared = columns.pop("staticSharedMemory") + columns.pop("dynamicSharedMemory")
    grid, block = (
        np.stack([columns.pop(name) for name in names], axis=1) for names in (_GRID, _BLOCK)
    )
    no_graph = np.zeros(len(shared), np.uint8)
    columns |= {"grid": grid, "block": block, "shared": shared, "graph": no_graph}
    graphs = database.scan(GRAPHS, _graph_fields(pools))
    n = len(graphs["start"])
    if n:
        graphs["graph"] = np.ones(n, np.uint8)
        for name, column in columns.items():
            if name not in graphs:
                graphs[name] = np.full((n, *column.shape[1:]), -1, column.dtype)
            columns[name] = np.concatenate([column, graphs[name]])
    return _in_order(columns)


_KERNEL_COLUMNS = {
    "start": "start",
    "end": "end",
    "device": "deviceId",
    "context": "contextId",
    "stream": "streamId",
    "process": "globalPid",
    "correlation": "correlationId",
    "short_name": "shortName",
    "long_name": "demangledName",
    "grid": "grid",
    "block": "block",
    "registers": "registersPerThread",
    "shared_memory": "shared",
    "graph_id": "graphId",
    "graph_node": "graphNodeId",
    "graph": "graph",
}


def _in_order(columns: dict[str, Any]) -> Kernels:
    start = columns["start"]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
    none = [np.full(len(start), -1, np.int32) for _ in range(2)]
    ours = {name: columns[theirs] for name, theirs in _KERNEL_COLUMNS.items()}
    return Kernels(**ours, launch=none[0], origin=none[1])


def _read_graph_nodes(database: Database, pools: _Pools, kernels: Kernels) -> dict[str, Any] | None:
    """The calls that created graph nodes, and in `row` which of them made each kernel's node."""
    if not np.any(kernels.graph_node >= 0):
        return None
    nodes = database.scan(GRAPH_NODES, _graph_node_fields(pools))
    n = len(nodes["start"])
    process = _process_of(nodes["globalTid"], pools, PROCESS_SHIFT)
    join = _join.Join(n)
    join.add(process, nodes["graphNodeId"])
    join.offer(process, nodes["graphNodeId"])
    row = join.rows(kernels.process, kernels.graph_node)
    # Instantiating a graph copies its nodes; what the user's code did is the first original.
    original = join.rows(process, nodes["originalGraphNodeId"])
    for _ in range(_MOST_COPIES):
        further = np.where(row >= 0, original[row], -1) if n else row
        if not np.any((further >= 0) & (further != row)):
            break
        row = np.where(further >= 0, further, row).astype(np.int32)
    nodes["row"] = row
    return nodes


# A graph cloned from a clone of a clone: deeper than this the originals form a cycle.
_MOST_COPIES = 64


def _read_launches(
    database: Database, pools: _Pools, kernels: Kernels, nodes: dict[str, Any] | None
) -> Launches:
    """API calls that launched a kernel, then those that created a node; sets kernels' indices."""
    join = _join.Join(len(kernels))
    has_process = "globalPid" in database.tables.get(KERNELS, []) or not len(kernels)
    shift = PROCESS_SHIFT if has_process else 63
    if not has_process:
        kernels.process[:] = pools.processes.intern(0)
    join.add(kernels.process, kernels.correlation)
    columns = database.scan(
        LAUNCHES,
        _launch_fields(pools),
        keep=lambda names: _join.LaunchFilter(
            join, pools.processes, names.index("globalTid"), names.index("correlationId"), shift
        ),
        capacity=len(kernels),
    )
    process = _process_of(columns["globalTid"], pools, shift)
    join.offer(process, columns["correlationId"])
    kernels.launch[:] = join.rows(kernels.process, kernels.correlation)
    n = len(columns["start"])
    if nodes is not None:
        kernels.origin[:] = np.where(nodes["row"] >= 0, nodes["row"] + n, -1)
        for name in ("start", "end", "globalTid", "nameId"):
            columns[name] = np.concatenate([columns[name], nodes[name]])
    start, end = columns["start"], columns["end"]
    thread, name = columns["globalTid"], columns["nameId"]
    order = _nest.order(start, end)
    if order is not None:
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        for index in (kernels.launch, kernels.origin):
            index[:] = np.where(index >= 0, place[index], -1)
        start, end, thread, name = (column[order] for column in (start, end, thread, name))
    return Launches(start, end, thread, name)


def _process_of(thread: np.ndarray[Any, Any], pools: _Pools, shift: int) -> Int32:
    """The process of each thread index, -1 for thread -1."""
    of_thread = [pools.processes.intern(int(x) >> shift) for x in pools.threads.values()]
    return np.array([*of_thread, -1], np.int32)[thread]


def _range_table(database: Database) -> str:
    """The table of ranges under the first of its names that has any rows."""
    present = [table for table in RANGES if table in database.tables]
    filled = [table for table in present if database.count(table)]
    return (filled or present or list(RANGES))[0]


def _event_types(database: Database) -> tuple[list[int], list[int]]:
    """The event types of push/pop and of start/end ranges in this export."""
    known = PUSH_POP | START_END
    if {"id", "name"} <= set(database.tables.get("ENUM_NSYS_EVENT_TYPE", [])):
        rows = database.rows("SELECT name, id FROM ENUM_NSYS_EVENT_TYPE")
        known |= {name: int(number) for name, number in rows if name in known}
    return [known[name] for name in PUSH_POP], [known[name] for name in START_END]


def _where_ranges(types: tuple[list[int], list[int]]) -> str:
    return f"eventType IN ({', '.join(str(number) for number in types[0] + types[1])})"


def _read_ranges(
    database: Database, pools: _Pools
) -> tuple[dict[str, Any], tuple[list[int], list[int]]]:
    types = _event_types(database)
    table = _range_table(database)
    return database.scan(table, _range_fields(pools), _where_ranges(types)), types


def _read_strings(
    database: Database, pools: _Pools, kernels: Kernels
) -> tuple[list[str | None], list[str]]:
    """The texts of all string ids met so far, and what was wrong with them."""
    wanted = pools.strings
    texts = _pools.Names()
    columns = database.scan(
        STRINGS,
        _string_fields(pools, texts),
        keep=lambda _: _scan.KnownKeys(wanted),
        capacity=len(wanted),
    )
    strings: list[str | None] = [None] * len(wanted)
    text_of = texts.texts()
    for key, text in zip(columns["id"].tolist(), columns["value"].tolist(), strict=True):
        strings[key] = text_of[text] if text >= 0 else None
    warnings = []
    used = np.unique(kernels.long_name[kernels.long_name >= 0])
    lost = [index for index in used.tolist() if strings[index] is None]
    if lost:
        ids = ", ".join(str(wanted.values()[index]) for index in lost[:3])
        n = int(np.isin(kernels.long_name, lost).sum())
        warnings.append(
            f"{database.name}: {n} kernels have a name id that is not in {STRINGS} "
            f"(such as {ids}); their name prints as na. {EXPORT_AGAIN.capitalize()}"
        )
    return strings, warnings


def _name_registered_ranges(
    columns: dict[str, Any], pools: _Pools, strings: list[str | None]
) -> None:
    """Ranges whose text was registered have it in StringIds: give them their labels too."""
    rows = np.flatnonzero((columns["text"] < 0) & (columns["textId"] >= 0))
    if not len(rows):
        return
    ids = columns["textId"][rows]
    used = np.unique(ids)
    split = _scan.split_range_names(pools.labels, [strings[index] for index in used.tolist()])
    at = np.searchsorted(used, ids)
    for name, values in zip(("text", "text_seq", "text_op_id"), split, strict=True):
        columns[name][rows] = values[at]


def _split_phases(
    columns: dict[str, Any], types: tuple[list[int], list[int]]
) -> tuple[Ranges, Ranges]:
    """Ranges in order, and apart from them those that ended on another thread."""
    end_thread = columns.pop("endGlobalTid")
    moved = np.isin(columns.pop("eventType"), types[1])
    moved &= (end_thread >= 0) & (end_thread != columns["globalTid"])
    del columns["textId"], end_thread
    lost = (columns["globalTid"] < 0) | (columns["text"] < 0)
    ranges = _ordered(columns, ~(moved | lost))
    return ranges, _ordered(columns, moved & ~lost)


def _ordered(columns: dict[str, Any], rows: np.ndarray[Any, Any]) -> Ranges:
    names = ["start", "end", "globalTid", "text", "text_seq", "text_op_id"]
    kept = [columns[name] if rows.all() else columns[name][rows] for name in names]
    # What ended before it began encloses nothing.
    np.maximum(kept[0], kept[1], out=kept[1])
    order = _nest.order(kept[0], kept[1])
    if order is not None:
        kept = [column[order] for column in kept]
    return Ranges(*kept)


def _device_names(database: Database) -> dict[int, str]:
    if {"id", "name"} <= set(database.tables.get("TARGET_INFO_GPU", [])):
        return {
            int(device): str(name)
            for device, name in database.rows("SELECT id, name FROM TARGET_INFO_GPU")
            if device is not None and name is not None
        }
    return {}


def _version(database: Database) -> str | None:
    for table in ("META_DATA_EXPORT", "EXPORT_META_DATA"):
        if {"name", "value"} <= set(database.tables.get(table, [])):
            found = database.rows(
                f"SELECT value FROM {table} WHERE name = 'EXPORT_PRODUCT_VERSION'"
            )
            if found:
                return str(found[0][0])
    return None


def expect_export(database: Database) -> None:
    """Raise unless the file is an Nsight Systems export.

    Raises
    ------
    BadInputError
    """
    if recognises(database.tables):
        return
    has = ", ".join(sorted(database.tables)[:6]) or "no tables at all"
    what = (
        "an NVProf database, which cannot be read yet"
        if "StringTable" in database.tables
        else ("no Nsight Systems export")
    )
    raise BadInputError(
        f"{os.fspath(database.name)}: {what}: no table {STRINGS}; it has {has}. "
        "Record with: nsys profile -t cuda,nvtx, then nsys export --type sqlite"
    )
