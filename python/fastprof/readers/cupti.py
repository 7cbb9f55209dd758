"""CUPTI's tables and columns common to both SQLite formats: GPU work to Kernels, synchronisation.

Source of names and meanings: the activity structures of https://docs.nvidia.com/cupti/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core import _column
from fastprof._core._column import TOGETHER
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.timeline import SYNC_KINDS, RecordedSyncs
from fastprof.model.trace import Activity, Configs, Kernels
from fastprof.readers.sqlite.database import ALL_ROWS, Database, Field, TableColumns, TableRows
from fastprof.readers.trace_columns import joined

I64, I32 = _column.I64, _column.I32

SIZES, AXES = ("grid", "block"), "XYZ"
# Kinds of memory: of a copy, and of a memset in Nsight Systems exports and in NVProf files.
MEMORY = ("srcKind", "dstKind", "memKind", "memoryKind")


def config_field(name: str, kind: int = I32, pool: Any = None) -> Field:
    """A field of the launch configuration; distinct configurations are stored once."""
    return Field(name, kind, pool=pool, together=True)


def work_fields() -> list[Field]:
    """Fields of all GPU work."""
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        *map(config_field, ("deviceId", "contextId", "streamId", "graphId")),
    ]


def kernel_fields() -> list[Field]:
    """Additional fields of kernels."""
    sizes = [size + axis for size in SIZES for axis in AXES]
    others = ("registersPerThread", "staticSharedMemory", "dynamicSharedMemory")
    return [*map(config_field, (*sizes, *others)), config_field("graphNodeId", I64)]


def copy_fields() -> list[Field]:
    """Additional fields of memory copies and memsets."""
    return [
        Field("bytes", I64),
        config_field("copyKind"),  # CUpti_ActivityMemcpyKind
        *map(config_field, MEMORY),
        config_field("graphNodeId", I64),
    ]


def sync_fields() -> list[Field]:
    """Of synchronisations."""
    return [
        Field("start", I64, needed=True),
        Field("end", I64, needed=True),
        Field("streamId", I64),
        Field("correlationId", I64),
    ]


_MEMORY_KINDS: Final = 8  # of CUPTI


class WorkColumns(NamedTuple):
    """Columns of GPU work, and of the distinct configurations that rows[TOGETHER] indexes."""

    rows: TableColumns
    configs: TableColumns


def scan(database: Database, table: str, fields: Sequence[Field]) -> WorkColumns:
    """All rows of a table."""
    rows = TableRows(database, table, fields)
    rows.read(database, ALL_ROWS)
    return WorkColumns(rows.columns(), rows.together())


def one_after_the_other(works: Sequence[WorkColumns]) -> WorkColumns:
    """Concatenate tables. Missing columns are filled with -1."""
    begin = 0
    for rows, configs in works:
        rows[TOGETHER] += begin
        begin += len(configs["deviceId"])
    configs = joined([work.configs for work in works], by="deviceId")
    return WorkColumns(joined([work.rows for work in works]), configs)


def kernels_of(
    works: Mapping[Activity, WorkColumns], process: str | None, first_memory: int = 0
) -> Kernels:
    """GPU work in order of start, without launch and origin. Empties the tables, to free their
    memory early.

    works : tables by activity; kernels must have all columns of cupti_schema and `name`
    process : the column with the process, None if not recorded
    first_memory : the number in MEMORY_KINDS of the table's memory kind 0
    """
    for kind, work in works.items():
        work.configs["kind"] = np.full(len(work.configs["deviceId"]), kind, np.int32)
    rows, configs = one_after_the_other(list(works.values()))
    for work in works.values():
        work.rows.clear()
    start = rows["start"]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        for key, column in rows.items():
            rows[key] = column[order]
        del start, column
    duration = rows["end"]
    duration -= rows["start"]
    duration[duration < 0] = -1  # ends before it starts, or exceeds 64 bits
    return Kernels(
        start=rows["start"],
        duration=duration,
        process=np.full(len(duration), -1, np.int32) if process is None else rows[process],
        correlation=rows["correlationId"],
        config=rows[TOGETHER],
        configs=_configs_of(configs, first_memory),
        launch=np.empty(0, np.int32),
        origin=None,
        copied=rows.get("bytes"),
    )


def _configs_of(columns: TableColumns, first_memory: int) -> Configs:
    source = target = None
    if all(name in columns for name in MEMORY):
        source, *targets = (_memory(columns[name], first_memory) for name in MEMORY)
        target = np.maximum.reduce(targets)
    static, dynamic = columns["staticSharedMemory"], columns["dynamicSharedMemory"]
    grid, block = (_size(columns, size) for size in SIZES)
    return Configs(
        device=columns["deviceId"],
        context=columns["contextId"],
        stream=columns["streamId"],
        name=columns["name"],
        grid=grid,
        block=block,
        registers=columns["registersPerThread"],
        shared_memory=np.where((static < 0) | (dynamic < 0), np.int32(-1), static + dynamic),
        graph_id=columns["graphId"],
        graph_node=columns["graphNodeId"],
        kind=columns["kind"],
        copy_kind=columns.get("copyKind"),
        source=source,
        target=target,
    )


def _memory(column: Int32, first: int) -> Int32:
    """Numbers of memory kinds as indices of MEMORY_KINDS; -1 for unknown."""
    result: Int32 = column + np.int32(first)
    result[(column < 0) | (column >= _MEMORY_KINDS - first)] = -1
    return result


def _size(columns: TableColumns, size: str) -> Int32:
    """x, y and z of a size; all -1 if one is unknown."""
    sides = np.stack([columns[size + axis] for axis in AXES], axis=1)
    sides[np.any(sides < 0, axis=1)] = -1
    return sides


def syncs_of(
    columns: TableColumns, process: Int32, device: Int64, kind: Int64, is_known: bool | Bools = True
) -> RecordedSyncs:
    """The synchronisations of a table with `sync_fields`.

    is_known : whether `kind` is CUPTI's number; else it is unknown
    """
    is_known &= (kind >= 0) & (kind < len(SYNC_KINDS))
    return RecordedSyncs(
        start=columns["start"],
        end=np.maximum(columns["start"], columns["end"]),
        process=process,
        device=_narrow(device),
        stream=_narrow(columns["streamId"]),
        kind=np.where(is_known, kind, 0).astype(np.int32),
        correlation=columns["correlationId"],
    )


def _narrow(column: Int64) -> Int32:
    """int64 to int32; 0xFFFFFFFF, for none, and other values out of range are -1."""
    limit = np.iinfo(np.int32).max
    return np.where((column < 0) | (column > limit), -1, column).astype(np.int32)
