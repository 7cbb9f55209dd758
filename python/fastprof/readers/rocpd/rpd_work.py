"""GPU work in files of rocmProfileData: kernels, copies and memsets are rows of rocpd_op."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core import _column, _join, _pools
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import Activity, Kernels
from fastprof.readers.rocpd import rpd_schema as schema
from fastprof.readers.rocpd.work_columns import (
    AXES,
    Columns,
    copy_columns,
    copy_kind,
    kernels_of,
    known,
    work_columns,
)
from fastprof.readers.sqlite.database import Database, Field, TableColumns

I64, KEY, TEXT = _column.I64, _column.KEY, _column.TEXT

# Kinds of GPU work by the name of its type; the first match decides, others are kernels. Barriers
# do no work.
_BARRIER: Final = -1
_TYPES: Final = (
    (_BARRIER, regex(r"(?i)\w*(?:barrier|marker)")),
    (int(Activity.MEMSET), regex(r"(?i)fill|memset")),
    (int(Activity.MEMCPY), regex(r"(?i)\w*copy|memcpy")),
)


@dataclass(frozen=True)
class Ops:
    """The rows of rocpd_op.

    Parameters
    ----------
    columns : id, start, end, gpuId, queueId; description_id and opType_id index the strings
    call : int64 [rows], id of the API call, -1 if not recorded
    """

    columns: TableColumns
    call: Int64


def read_ops(database: Database, keys: _pools.Keys) -> Ops:
    """Read the table; the ids of its strings go to `keys`."""
    columns = database.scan(
        schema.OPS,
        [
            Field("id", I64, needed=True),
            Field("start", I64, needed=True),
            Field("end", I64, needed=True),
            Field("gpuId", I64),
            Field("queueId", I64),
            Field("description_id", KEY, pool=keys, needed=True),
            Field("opType_id", KEY, pool=keys, needed=True),
        ],
    )
    fields = [Field("api_id", I64, needed=True), Field("op_id", I64, needed=True)]
    links = database.scan(schema.LINKS, fields)
    row = _rows_of(columns["id"], links["op_id"])
    return Ops(columns, take(links["api_id"], row, -1))


def _rows_of(wanted: Int64, ids: Int64) -> Int32:
    """The first row with each wanted id, -1 for none."""
    join = _join.Join(np.zeros(len(wanted), np.int32), wanted)
    join.offer(np.zeros(len(ids), np.int32), ids)
    return join.rows(np.zeros(len(wanted), np.int32), wanted)


def read_work(database: Database, ops: Ops, strings: list[str | None], copies: bool) -> Kernels:
    """GPU work in order of start, without launches and processes.

    strings : those of the file, which get the names of copies
    copies : also read memory copies and memsets
    """
    texts = [*strings, None]
    kind_of = np.array([_kind_of(name or "") for name in texts], np.int64)
    kind = kind_of[ops.columns["opType_id"]]
    streams = _pools.Names()
    works = [_kernels(database, ops, kind == Activity.KERNEL, texts, streams)]
    if copies:
        works.append(_copies(database, ops, kind == Activity.MEMCPY, strings, streams))
        works.append(_memsets(ops, kind == Activity.MEMSET))
    for work in works if len(streams) == 0 else ():
        work["stream"] = work["queue"]
    for work in works:
        del work["queue"]
    return kernels_of(works, copies)


def _kind_of(name: str) -> int:
    return next((kind for kind, pattern in _TYPES if pattern.match(name)), int(Activity.KERNEL))


def _common(ops: Ops, rows: Bools) -> Columns:
    own = {key: column[rows] for key, column in ops.columns.items()}
    columns = work_columns(own["start"], own["end"])
    columns["correlation"] = known(ops.call[rows])
    columns["device"] = known(own["gpuId"])
    columns["queue"] = known(own["queueId"])
    columns["name"] = own["opType_id"].astype(np.int64)
    return columns


def _sizes_of(
    database: Database,
    ops: Ops,
    rows: Bools,
    tables: tuple[tuple[str, str], ...],
    names: tuple[str, ...],
    streams: _pools.Names,
) -> Columns:
    """Columns of the first of two tables that the file has, for each row; `stream` is a number."""
    present = [pair for pair in tables if pair[0] in database.tables]
    table, key = present[0] if present else tables[0]
    fields = [Field(key, I64, needed=True), *(Field(name, I64) for name in names)]
    columns = database.scan(table, [*fields, Field("stream", TEXT, pool=streams)])
    wanted = ops.call[rows] if key == tables[0][1] else ops.columns["id"][rows]
    row = _rows_of(wanted, columns.pop(key))
    return {name: take(column.astype(np.int64), row, -1) for name, column in columns.items()}


def _kernels(
    database: Database, ops: Ops, rows: Bools, texts: list[str | None], streams: _pools.Names
) -> Columns:
    columns = _common(ops, rows)
    described = ops.columns["description_id"][rows].astype(np.int64)
    has_name = np.array([bool(text) for text in texts], bool)[described]
    columns["name"] = np.where(has_name, described, columns["name"])
    names = tuple(f"{size}{axis.upper()}" for size in ("grid", "workgroup") for axis in AXES)
    sizes = _sizes_of(database, ops, rows, schema.OF_KERNELS, (*names, "groupSegmentSize"), streams)
    columns["stream"] = sizes["stream"]
    columns["shared_memory"] = known(sizes["groupSegmentSize"])
    grid, block = (
        np.stack([sizes[f"{size}{axis.upper()}"] for axis in AXES])
        for size in ("grid", "workgroup")
    )
    if _counts_items(grid, block):
        grid = np.where(block > 0, grid // np.maximum(block, 1), -1)
    for i, axis in enumerate(AXES):
        columns[f"grid_{axis}"], columns[f"block_{axis}"] = known(grid[i]), known(block[i])
    return columns


def _counts_items(grid: Int64, block: Int64) -> bool:
    """Whether the file has sizes of grids in work items, as with rocprofiler-sdk.

    With roctracer they are in work groups. The file does not tell: it is work items if each size is
    a multiple of its group's, which is exact unless all grids of a file are so large by chance.

    grid, block : [3, kernels]
    """
    is_known = np.all(block > 0, axis=0) & np.all(grid > 0, axis=0)
    grid, block = grid[:, is_known], block[:, is_known]
    return bool(grid.size) and bool(np.all(grid % block == 0))


def _copies(
    database: Database, ops: Ops, rows: Bools, strings: list[str | None], streams: _pools.Names
) -> Columns:
    """The columns of memory copies. Several of one API call have no sizes of their own."""
    columns = _common(ops, rows)
    names = ("size", "srcDevice", "dstDevice")
    sizes = _sizes_of(database, ops, rows, schema.OF_COPIES, names, streams)
    columns["stream"] = sizes["stream"]
    columns["kind"] = np.full(len(sizes["size"]), Activity.MEMCPY, np.int64)
    call = columns["correlation"]
    _, place, counts = np.unique(call, return_inverse=True, return_counts=True)
    is_alone = (counts[place] == 1) | (call < 0)
    columns["bytes"] = np.where(is_alone, known(sizes["size"]), -1)
    used, ids = np.unique(columns["name"], return_inverse=True)
    kinds = [copy_kind(strings[name] if name >= 0 else None, False) for name in used.tolist()]
    numbers: dict[str, int] = {}

    def add(name: str) -> int:
        if name not in numbers:
            numbers[name] = len(strings)
            strings.append(name)
        return numbers[name]

    return columns | copy_columns(kinds, ids.astype(np.int32), add)


def _memsets(ops: Ops, rows: Bools) -> Columns:
    columns = _common(ops, rows)
    columns["kind"] = np.full(len(columns["start"]), Activity.MEMSET, np.int64)
    return columns
