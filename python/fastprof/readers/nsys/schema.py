"""The schema of Nsight Systems SQLite exports of 2020 to 2026, as data.

Columns are read by name, since every version adds columns. Source of names and meanings:
https://docs.nvidia.com/nsight-systems/UserGuide/index.html, "SQLite Schema Reference".

Texts of the string table of an export.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np

from fastprof._core import _column, _pools
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NEVER
from fastprof.readers import cupti as cupti_schema
from fastprof.readers.sqlite.database import Database, Field

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
LAUNCHES = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
SETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH_NODES = "CUDA_GRAPH_NODE_EVENTS"
MEMORY = "CUDA_GPU_MEMORY_USAGE_EVENTS"
RANGES = ("NVTX_EVENTS", "NVTX_EVENTS_V3", "NVTX_EVENTS_V2")
STRINGS = "StringIds"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
OS_CALLS = "OSRT_API"
SAMPLES = "COMPOSITE_EVENTS"
CALL_CHAINS = "SAMPLING_CALLCHAINS"
SWITCHES = "SCHED_EVENTS"
CPU_FAULTS = "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
GPU_FAULTS = "CUDA_UM_GPU_PAGE_FAULT_EVENTS"

# Event types of NVTX_EVENTS, unless the table ENUM_NSYS_EVENT_TYPE redefines them.
PUSH_POP = {"NvtxPushPopRange": 59, "NvtxtPushPopRange": 70}
START_END = {"NvtxStartEndRange": 60, "NvtxtStartEndRange": 71}

# The event that names an NVTX domain.
DOMAIN = {"NvtxDomainCreate": 75}

# nsys numbers kinds of memory from 0 for pageable (ENUM_CUDA_MEM_KIND), CUPTI from 1.
FIRST_MEMORY = 1

# A global thread id is hardware, virtual machine, process and thread, 8, 8, 24 and 24 bits.
PROCESS_SHIFT = 24
LOW_24_BITS = 0xFFFFFF

# Files of tables in directories of Parquet or Arrow files; one of the tables is in every export.
SUFFIXES = (".parquet", ".arrow", ".arrows")
_SIGNS = ("META_DATA_EXPORT", "EXPORT_META_DATA", STRINGS)


def is_export_directory(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a directory of Parquet or Arrow files, as `nsys export` writes it."""
    return os.path.isdir(path) and any(
        os.path.isfile(os.path.join(os.fsdecode(path), f"{sign}{suffix}"))
        for sign in _SIGNS
        for suffix in SUFFIXES
    )


I64, I32, KEY, RANGE, TEXT = _column.I64, _column.I32, _column.KEY, _column.RANGE, _column.TEXT
LENGTH = _column.LENGTH


_TEXTS = ("name", "value", "text", "metricName")


def table_rows(
    database: Database, table: str, columns: str, where: str = ""
) -> list[tuple[Any, ...]]:
    """Rows of a small table, or a few of a large one; none if the table or a column is missing.

    Names and texts are bytes.

    columns : separated by spaces
    where : a condition of SQL, "" for all rows
    """
    present = {name.lower() for name in database.tables.get(table, ())}
    names = columns.split()
    if not {name.lower() for name in names} <= present:
        return []
    # Texts from Windows are in its code page, not UTF-8.
    chosen = ", ".join(
        f'CAST("{name}" AS BLOB)' if name in _TEXTS else f'"{name}"' for name in names
    )
    return database.rows(f'SELECT {chosen} FROM "{table}"{" WHERE " + where if where else ""}')


PAYLOAD: Final = "binaryData"  # of a range, see `readers/nsys/host_events`


class NsysPools:
    """The interned values that columns of all tables refer to."""

    def __init__(self) -> None:
        self.labels = _pools.Names()
        self.payloads = _pools.Names()
        self.strings = _pools.Keys()
        self.threads = _pools.Keys()
        self.processes = _pools.Keys()

    def adopt(self, other: NsysPools) -> dict[str, Int32]:
        """Merge other pools into these, except processes.

        Returns
        -------
        dict of column to int32
            The id in these pools for each id in the others, for columns whose ids change.
        """
        result = {}
        for place, names in (
            (self.labels.adopt(other.labels), ("text",)),
            (self.payloads.adopt(other.payloads), (PAYLOAD,)),
            (self.strings.adopt(other.strings), ("nameId", "textId")),
            (self.threads.adopt(other.threads), ("globalTid", "endGlobalTid")),
        ):
            if not np.array_equal(place, np.arange(len(place))):  # ids change
                result.update(dict.fromkeys(names, place))
        return result

    def thread_ids(self) -> list[tuple[int, int]]:
        """Thread id and process id of each of `threads`, as the operating system numbers them."""
        values = self.threads.values()
        processes = process_ids(values >> PROCESS_SHIFT)
        return list(zip((values & LOW_24_BITS).tolist(), processes.tolist(), strict=True))


def kernel_fields(pools: NsysPools, name: str = "demangledName") -> list[Field]:
    """`name` is the column that names the kernel."""
    return [
        *graph_fields(pools),
        cupti_schema.config_field(name, KEY, pools.strings),
        *cupti_schema.kernel_fields(),
    ]


def graph_fields(pools: NsysPools) -> list[Field]:
    return [
        *cupti_schema.work_fields(),
        Field("correlationId", I64),
        Field("globalPid", KEY, pool=pools.processes, shift=PROCESS_SHIFT),
    ]


def copy_fields(pools: NsysPools) -> list[Field]:
    """Of memory copies and memsets."""
    return [*graph_fields(pools), *cupti_schema.copy_fields()]


def launch_fields(pools: NsysPools) -> list[Field]:
    return [
        Field("globalTid", KEY, pool=pools.threads, needed=True),  # filtered by the first three
        Field("correlationId", I64, needed=True),
        Field("nameId", KEY, pool=pools.strings),
        Field("start", I64, needed=True),
    ]


def call_fields(pools: NsysPools) -> list[Field]:
    """Of all API calls, with their ends."""
    return [*launch_fields(pools), Field("end", I64, NEVER)]


def sync_fields(pools: NsysPools) -> list[Field]:
    return [
        *cupti_schema.sync_fields(),
        Field("globalPid", KEY, pool=pools.processes, shift=PROCESS_SHIFT),
        Field("deviceId", I64),
        Field("syncType", I64),
    ]


def os_call_fields(pools: NsysPools) -> list[Field]:
    return [*event_fields(pools), Field("end", I64), Field("nameId", KEY, pool=pools.strings)]


def event_fields(pools: NsysPools) -> list[Field]:
    """Of events of threads."""
    return [
        Field("start", I64, needed=True),
        Field("globalTid", KEY, pool=pools.threads, needed=True),
    ]


def sample_fields(pools: NsysPools) -> list[Field]:
    return [*event_fields(pools), Field("id", I64)]


def call_chain_fields(pools: NsysPools) -> list[Field]:
    return [
        Field("stackDepth", I64, needed=True),  # the filter column
        Field("id", I64, needed=True),
        Field("symbol", KEY, pool=pools.strings),
    ]


def switch_fields(pools: NsysPools) -> list[Field]:
    return [*event_fields(pools), Field("isSchedIn", I64)]


def fault_fields(pools: NsysPools) -> list[Field]:
    """Of page faults of the CPU in unified memory."""
    return [
        Field("start", I64, needed=True),
        Field("globalPid", KEY, pool=pools.threads, needed=True),
    ]


def graph_node_fields(pools: NsysPools) -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("globalTid", KEY, pool=pools.threads, needed=True),
        Field("nameId", KEY, pool=pools.strings),
        Field("graphNodeId", I64, needed=True),
        Field("originalGraphNodeId", I64),
    ]


def memory_fields() -> list[Field]:
    return [
        Field("start", I64, needed=True),
        Field("globalPid", I64),
        Field("deviceId", I32),
        Field("address", I64),
        Field("bytes", I64, needed=True),
        Field("memKind", I32),
        Field("memoryOperationType", I32, needed=True),
        Field("correlationId", I64),
    ]


def range_fields(pools: NsysPools) -> list[Field]:
    return [
        Field("eventType", I32, needed=True),  # the filter column
        Field("start", I64, needed=True),
        Field("end", I64, NEVER, needed=True),
        Field("text", RANGE, pool=pools.labels),
        Field("textId", KEY, pool=pools.strings),
        Field("globalTid", KEY, pool=pools.threads),
        Field("endGlobalTid", KEY, pool=pools.threads),
    ]


def ranges_with_payloads(pools: NsysPools) -> list[Field]:
    return [*range_fields(pools), *payload_fields(pools)]


def payload_fields(pools: NsysPools) -> list[Field]:
    return [Field("domainId", I64, needed=True), Field(PAYLOAD, TEXT, pool=pools.payloads)]


def time_fields(pools: NsysPools) -> list[Field]:
    """Of ranges, with the lengths of their texts, which are -1 for none, and their domains."""
    fields = [field for field in range_fields(pools) if field.name != "text"]
    return [*fields, Field("text", LENGTH), Field("domainId", I64)]


def domain_fields(pools: NsysPools) -> list[Field]:
    """Of the events that name domains."""
    return [
        Field("eventType", I32, needed=True),  # the filter column
        Field("text", TEXT, pool=pools.labels),
        Field("textId", KEY, pool=pools.strings),
        Field("globalTid", KEY, pool=pools.threads),
        Field("domainId", I64),
    ]


def string_fields(strings: _pools.Keys, texts: _pools.Names) -> list[Field]:
    return [
        Field("id", KEY, pool=strings, needed=True),
        Field("value", TEXT, pool=texts, needed=True),
    ]


def process_ids(processes: Int64) -> Int32:
    """Process ids of the operating system; -1 for 0, which means unknown."""
    ids = (processes & LOW_24_BITS).astype(np.int32)
    return np.where(ids > 0, ids, np.int32(-1))


def recognises(tables: Mapping[str, Collection[str]]) -> bool:
    """Whether a file with these tables is an Nsight Systems export."""
    return {"id", "value"} <= set(tables.get(STRINGS, []))


def texts_of(database: Database, wanted: _pools.Keys) -> list[str | None]:
    """The texts of string ids, None for those that the table lacks."""
    texts = _pools.Names()
    columns = database.scan(STRINGS, string_fields(wanted, texts), keep=_column.KnownKeys(wanted))
    results: list[str | None] = [None] * len(wanted)
    text_of = texts.texts()
    for key, text in zip(columns["id"].tolist(), columns["value"].tolist(), strict=True):
        results[key] = text_of[text] if text >= 0 else None
    return results
