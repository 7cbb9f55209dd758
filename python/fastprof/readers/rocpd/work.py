"""Kernel dispatches and memory copies of a run, as columns of GPU work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core import _pools
from fastprof._core._column import TOGETHER
from fastprof._core._take import take
from fastprof._system.regex import regex
from fastprof.model.arrays import Int32, Int64
from fastprof.readers import cupti as gpu_work
from fastprof.readers.cupti import WorkColumns
from fastprof.readers.rocpd import schema
from fastprof.readers.rocpd.events import Events, texts_of
from fastprof.readers.rocpd.places import CPU, GPU, Agent, Places, small
from fastprof.readers.rocpd.schema import Run
from fastprof.readers.sqlite.connected import BothThreads, joined
from fastprof.readers.sqlite.database import Database, Field, TableColumns, TableRows

PROCESS: Final = "process"
_EVENT: Final = "event"  # row of

# Indices into COPY_KINDS.
_H_TO_D, _D_TO_H, _D_TO_D, _H_TO_H, _P_TO_P = 1, 2, 8, 9, 10
_DIRECTIONS: Final = (
    (_H_TO_D, regex(r"\w*HOST_TO_DEVICE")),
    (_D_TO_H, regex(r"\w*DEVICE_TO_HOST")),
    (_D_TO_D, regex(r"\w*DEVICE_TO_DEVICE")),
    (_H_TO_H, regex(r"\w*HOST_TO_HOST")),
)


def scan_pieces(
    threads: BothThreads,
    table: str,
    fields: Sequence[Field],
    reduced: Callable[[TableColumns, TableColumns], TableColumns],
) -> list[WorkColumns]:
    """The rows of a table in pieces, and their distinct combinations of fields with `together`.

    reduced : makes the columns of a piece to keep, on any thread, of all and the combinations
    """

    def convert(_: None, rows: TableRows) -> WorkColumns:
        columns, configs = rows.columns(), rows.together()
        return WorkColumns(reduced(columns, configs), configs)

    return threads.read(table, lambda: (None, fields), convert)


def pieces_together(pieces: Sequence[WorkColumns]) -> WorkColumns:
    """All rows of a table."""
    n_configs = 0
    for rows, configs in pieces:
        rows[TOGETHER] += n_configs
        n_configs += len(configs["track_id"])
    return WorkColumns(*map(joined, zip(*pieces, strict=True)))


def read_dispatches(threads: BothThreads, run: Run, places: Places, events: Events) -> WorkColumns:
    """The kernels of a run.

    `grid_size` counts threads; that of a Recording counts blocks. Rows keep their event.
    """
    table = run.table(schema.DISPATCHES)
    fields, linked = schema.dispatch_fields(), _linking(events)
    rows, configs = pieces_together(scan_pieces(threads, table, fields, linked))
    own = _common(rows, configs, places)
    own["deviceId"] = np.array(
        [agent.device for agent in places.agents(configs["agent_id"])], np.int32
    )
    symbols = places.symbols(configs["kernel_id"])
    own["name"] = np.array([symbol.name for symbol in symbols], np.int32)
    own["registersPerThread"] = np.array([symbol.registers for symbol in symbols], np.int32)
    own["staticSharedMemory"] = small(configs["group_segment_size"])
    own["dynamicSharedMemory"] = np.minimum(own["staticSharedMemory"], 0)
    for axis in schema.AXES:
        grid, block = (configs[f"{size}_{axis}"] for size in schema.SIZES)
        own[f"block{axis.upper()}"] = _size(block)
        own[f"grid{axis.upper()}"] = _size(_blocks(grid, block))
    return WorkColumns(rows, own)


def read_copies(
    database: Database, threads: BothThreads, run: Run, places: Places, events: Events
) -> WorkColumns:
    """The copies of a run. The GPU of a copy is that which sends or receives, or -1."""
    table = run.table(schema.COPIES)
    fields, linked = schema.copy_fields(), _linking(events)
    rows, configs = pieces_together(scan_pieces(threads, table, fields, linked))
    own = _common(rows, configs, places)
    rows["bytes"] = rows.pop("size")
    sources, targets, agents = (
        places.agents(configs[name]) for name in ("src_agent_id", "dst_agent_id", "agent_id")
    )
    names = texts(database, run, configs["name_id"])
    of_config = [_copy(*four) for four in zip(names, sources, targets, agents, strict=True)]
    own["copyKind"] = np.array([kind for kind, _ in of_config], np.int32)
    own["deviceId"] = np.array([device for _, device in of_config], np.int32)
    for name in gpu_work.MEMORY:
        own[name] = np.full(len(of_config), -1, np.int32)
    return WorkColumns(rows, own)


def _linking(events: Events) -> Callable[[TableColumns, TableColumns], TableColumns]:
    """What makes rows of GPU work refer to the rows of their events, and to their calls."""

    def linked(columns: TableColumns, _: TableColumns) -> TableColumns:
        row = events.rows(columns.pop("event_id"))
        stack = events.stacks_of(row).astype(np.int64, copy=False)
        return columns | {_EVENT: row, "correlationId": stack}

    return linked


def _common(rows: TableColumns, configs: TableColumns, places: Places) -> TableColumns:
    """Columns of all GPU work; sets the process of the rows."""
    places.place(configs)
    stream = small(configs["stream_id"])
    queue = small(configs["queue_id"])
    own: TableColumns = {
        "contextId": np.full(len(stream), -1, np.int32),
        "streamId": queue if _has_no_streams(stream, queue) else stream,
        "graphId": small(_or_none(configs["graph_exec_id"])),
        "graphNodeId": _or_none(configs["graph_node_id"]),
        PROCESS: places.processes(configs["pid"]),
    }
    rows[PROCESS] = take(own[PROCESS], rows[TOGETHER])
    return own


def _has_no_streams(stream: Int32, queue: Int32) -> bool:
    """Whether only queues were recorded.

    Stream 0 is that of work whose stream is unknown, and the default stream, whose work all runs
    on one queue.
    """
    return bool(np.all(stream <= 0)) and len(np.unique(queue[queue >= 0])) > 1


def _or_none(values: Int64) -> Int64:
    """0 means no graph."""
    return np.where(values > 0, values, np.int64(-1))


def _blocks(grid: Int64, block: Int64) -> Int64:
    """How many blocks of threads a grid has; -1 if a size is not positive."""
    known = (grid > 0) & (block > 0)
    result: Int64 = np.where(known, -(-grid // np.where(known, block, 1)), -1)
    return result


def _size(values: Int64) -> Int32:
    """A side of a grid or block as int32; -1 for impossible ones."""
    fits = (values >= 0) & (values <= np.iinfo(np.int32).max)
    return np.where(fits, values, -1).astype(np.int32)


def _copy(name: str | None, source: Agent, target: Agent, own: Agent) -> tuple[int, int]:
    """The kind and the GPU of a copy.

    Its name decides: rocprof-sys writes the same agent as source and target.
    """
    kind = next((kind for kind, known in _DIRECTIONS if name and known.match(name)), -1)
    types = source.type, target.type
    if kind < 0:
        kind = {
            (CPU, GPU): _H_TO_D, (GPU, CPU): _D_TO_H, (GPU, GPU): _D_TO_D, (CPU, CPU): _H_TO_H,
        }.get(types, -1)  # fmt: skip
    if kind == _D_TO_D and types == (GPU, GPU) and source.device != target.device:
        kind = _P_TO_P
    order = (target, source, own) if kind == _H_TO_D else (source, target, own)
    return kind, next((agent.device for agent in order if agent.type == GPU), -1)


def texts(database: Database, run: Run, ids: Int64) -> list[str | None]:
    """Strings by their ids; None for ids below 0 and those that the table lacks."""
    keys = _pools.Keys()
    places = [keys.intern(number) if number >= 0 else -1 for number in ids.tolist()]
    known: list[Any] = [*texts_of(database, run.table(schema.STRINGS), keys), None]
    return [known[place] for place in places]


def complete_devices(dispatches: TableColumns, copies: TableColumns) -> None:
    """Set the GPU of copies that record none: the only one with kernels on their stream.

    dispatches, copies : distinct configurations
    """
    gpus: dict[tuple[int, int], set[int]] = {}
    keys = (dispatches[name].tolist() for name in (PROCESS, "streamId", "deviceId"))
    for process, stream, gpu in zip(*keys, strict=True):
        if gpu >= 0:
            gpus.setdefault((process, stream), set()).add(gpu)
    device = copies["deviceId"]
    for row in np.flatnonzero(device < 0).tolist():
        key = int(copies[PROCESS][row]), int(copies["streamId"][row])
        if len(known := gpus.get(key, set())) == 1:
            (device[row],) = known


def event_rows(works: list[WorkColumns]) -> Int32:
    """The events of GPU work; removes them from the rows."""
    return np.concatenate([rows.pop(_EVENT) for rows, _ in works])
