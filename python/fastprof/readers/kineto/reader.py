"""Traces of torch.profiler to a Recording."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _join, _nest
from fastprof._core._kineto import NONE
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.errors import BadInputError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import (
    COPY_KINDS,
    MEMORY_KINDS,
    NEVER,
    Activity,
    Captured,
    Configs,
    Kernels,
    Launches,
    Ranges,
    Recording,
)
from fastprof.readers import trace_columns
from fastprof.readers.kineto import event_columns, links, metadata
from fastprof.readers.kineto.event_columns import KinetoFile
from fastprof.readers.kineto.graph_captures import captured_calls
from fastprof.readers.kineto.labels import labels_of
from fastprof.readers.kineto.threads import Threads
from fastprof.readers.kineto.timeline import api_calls, recorded
from fastprof.readers.sqlite.database import Progress

# By `kind` in the scanner's columns.
_ACTIVITIES = np.array([Activity.KERNEL, Activity.MEMCPY, Activity.MEMSET], np.int32)

# The scanner's columns of a launch configuration.
_CONFIG = (
    "kind", "name", "device", "context", "stream", "grid", "block", "registers", "shared_memory",
    "graph_id", "graph_node",
)  # fmt: skip

# Work of one stream runs sequentially. Overlaps of tens of microseconds are real (programmatic
# dependent launches, clocks with microsecond resolution). Longer overlaps mean a damaged duration.
_MAX_OVERLAP = 1_000_000  # ns


def read(
    path: str | os.PathLike[str],
    copies: bool = False,
    progress: Progress | None = None,
    captures: bool = False,
) -> Recording:
    """Read a trace; `host` is kept.

    copies : also read memory copies and memsets
    captures : the user gave the trace as a capture of graphs
    progress : called repeatedly with the bytes read so far

    Raises
    ------
    BadInputError
        It is not a trace, or damaged before its first event.
    """
    file = event_columns.read(path, os.fsdecode(path), progress)
    if not file.counts and (file.lost_events or file.unread_bytes):
        raise BadInputError(
            f"{file.name}: expected a trace of torch.profiler, found JSON without events; "
            "record one with torch.profiler.profile and export_chrome_trace"
        )
    threads = Threads(file.tables)
    labels, label = labels_of(file)
    ranges, row_of_event = _read_ranges(file, threads, label)
    kernels = _read_kernels(file, copies)
    damaged = _damaged(kernels)
    kernels.duration[damaged] = -1
    kernels.damaged = damaged
    launches, captured = _read_launches(file, threads, kernels, captures)
    kernels.recorded_range = links.ranges_of_kernels(file, kernels, row_of_event)
    _process_of_range(kernels, ranges, threads)
    trace_columns.complete_processes(kernels, len(threads.process_numbers))
    return Recording(
        name=file.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=Ranges(*(np.empty(0, column.dtype) for column in vars(ranges).values())),
        labels=labels,
        strings=list(file.names),
        threads=threads.numbers,
        process_of_thread=threads.process,
        processes=threads.process_numbers.astype(np.int32),
        warnings=[*file.warnings(), *_warnings(file, damaged)],
        recorded_forward=links.forward_ranges(file, threads, ranges),
        about=metadata.read(file, threads.places()),
        captured=captured,
        host=recorded(file, threads, ranges),
    )


def _read_ranges(file: KinetoFile, threads: Threads, label: Int32) -> tuple[Ranges, Int32]:
    """Sorted ranges, and the row of each event, -1 for events without time or thread."""
    events = file.tables["ranges"]
    thread = threads.find(events["pid"], events["tid"])
    rows = np.flatnonzero((events["start"] != NONE) & (thread >= 0))
    start, duration = events["start"][rows], events["duration"][rows]
    end = np.where(duration == NONE, NEVER, start + np.maximum(duration, 0))
    order = _nest.order(start, end)
    if order is not None:
        rows, start, end = rows[order], start[order], end[order]
    row_of_event = np.full(len(label), -1, np.int32)
    row_of_event[rows] = np.arange(len(rows), dtype=np.int32)
    ranges = Ranges(
        start=start,
        end=end,
        thread=thread[rows],
        label=label[rows],
        seq=events["seq"][rows],
        op_id=np.full(len(rows), -1, np.int64),
    )
    return ranges, row_of_event


def _read_kernels(file: KinetoFile, copies: bool) -> Kernels:
    """GPU work in order of start; launch and process are -1."""
    events = file.tables["gpu"]
    rows = np.arange(len(events["kind"])) if copies else np.flatnonzero(events["kind"] == 0)
    start = events["start"][rows]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        rows, start = rows[order], start[order]
    n = len(rows)
    duration = events["duration"][rows]
    config, first = alike([events[key] for key in _CONFIG])
    return Kernels(
        start=start,
        duration=np.where(duration == NONE, -1, duration),
        process=np.full(n, -1, np.int32),
        correlation=events["correlation"][rows],
        config=config[rows],
        configs=_configs_of(file, {key: events[key][first] for key in _CONFIG}, copies),
        launch=np.full(n, -1, np.int32),
        origin=None,
        copied=events["bytes"][rows] if copies else None,
        external_id=events["external_id"][rows],
    )


def _configs_of(file: KinetoFile, columns: dict[str, npt.NDArray[Any]], copies: bool) -> Configs:
    return Configs(
        device=columns["device"],
        context=_narrow(columns["context"]),
        stream=_narrow(columns["stream"]),
        name=columns["name"],
        grid=columns["grid"],
        block=columns["block"],
        registers=columns["registers"],
        shared_memory=columns["shared_memory"],
        graph_id=_narrow(columns["graph_id"]),
        graph_node=columns["graph_node"],
        kind=_ACTIVITIES[columns["kind"]],
        copy_kind=_copy_kinds(file.names)[columns["name"]] if copies else None,
        source=_memory_kinds(file.names, "source")[columns["name"]] if copies else None,
        target=_memory_kinds(file.names, "target")[columns["name"]] if copies else None,
    )


def _narrow(column: Int64) -> Int32:
    """int64 to int32; values out of range are -1."""
    limit = np.iinfo(np.int32).max
    return np.where((column < 0) | (column > limit), -1, column).astype(np.int32)


def _copy_kinds(names: list[str]) -> Int32:
    """The kind of copy by name, `Memcpy HtoD (Pageable -> Device)`; -1 at the end."""
    number = {kind: i for i, kind in enumerate(COPY_KINDS) if kind}
    words = [name.split()[1:2] if name.lower().startswith("memcpy") else [] for name in names]
    return np.array([*(number.get(word[0], -1) if word else -1 for word in words), -1], np.int32)


# The kinds of memory in a name: `Memcpy HtoD (Pageable -> Device)`, `Memset (Device)`.
_MEMORY = re.compile(r"Mem(?:cpy|set)\b[^(]*\((?:(?P<source>[^()]*) -> )?(?P<target>[^()]*)\)\Z")


def _memory_kinds(names: list[str], end: str) -> Int32:
    """The kind of memory by name of a copy or memset; -1 at the end.

    end : source or target
    """
    number = {kind: i for i, kind in enumerate(MEMORY_KINDS) if kind}
    found = [_MEMORY.match(name) for name in names]
    kinds = [-1 if each is None else number.get(str(each[end]).lower(), -1) for each in found]
    return np.array([*kinds, -1], np.int32)


def _damaged(kernels: Kernels) -> npt.NDArray[np.bool_]:
    """Rows with impossible durations: negative, or overlapping the next work of the stream."""
    configs = kernels.configs
    place = configs.device.astype(np.int64) << 32 | configs.stream.astype(np.int64)
    place_of = take(np.where(configs.stream >= 0, place, -1), kernels.config)
    order = np.lexsort((kernels.start, place_of))
    start, duration, place_of = kernels.start[order], kernels.duration[order], place_of[order]
    next_start = np.append(start[1:], NEVER)
    alone = np.append(place_of[1:] != place_of[:-1], True) | (place_of == -1)
    overlap = np.where(alone, 0, np.minimum(duration, NEVER // 4) - (next_start - start))
    damaged = np.zeros(len(order), bool)
    damaged[order] = (duration < -1) | (overlap > _MAX_OVERLAP)
    return damaged


def _read_launches(
    file: KinetoFile, threads: Threads, kernels: Kernels, captures: bool
) -> tuple[Launches, Captured | None]:
    """API calls that launched GPU work or added it to a graph. Sets launch and process of kernels.

    Runtime calls are preferred to driver calls.
    """
    events = file.tables["launches"]
    rows = api_calls(file)
    nowhere = np.zeros(len(kernels), np.int32)
    join = _join.Join(nowhere, kernels.correlation)
    join.offer(np.zeros(len(rows), np.int32), events["correlation"][rows])
    place = join.rows(nowhere, kernels.correlation)
    used, launch = np.unique(place, return_inverse=True)
    kernels.launch = launch.astype(np.int32)
    if len(used) and used[0] < 0:
        used, kernels.launch = used[1:], kernels.launch - 1
    rows = rows[used]
    put = captured_calls(file, threads, captures)
    put_rows, captured = put or (np.empty(0, np.intp), None)
    rows = np.concatenate([rows, put_rows])
    columns = {
        "start": events["start"][rows],
        "captured": np.arange(len(rows)) - len(used),
        "thread": threads.find(events["pid"][rows], events["tid"][rows]),
        "name": events["name"][rows],
    }
    columns = trace_columns.launches_in_order(columns, kernels)
    at = columns.pop("captured")
    if captured is not None:
        captured.launch[at[at >= 0]] = np.flatnonzero(at >= 0)
    process = np.append(threads.process, np.int32(-1))[np.append(columns["thread"], -1)]
    kernels.process[:] = process[kernels.launch]
    return Launches(**columns), captured


def _process_of_range(kernels: Kernels, ranges: Ranges, threads: Threads) -> None:
    """Kernels without a launch get the process of their recorded range."""
    if kernels.recorded_range is None:
        return
    rows = np.flatnonzero((kernels.process < 0) & (kernels.recorded_range >= 0))
    kernels.process[rows] = threads.process[ranges.thread[kernels.recorded_range[rows]]]


def _warnings(file: KinetoFile, damaged: npt.NDArray[np.bool_]) -> list[str]:
    n = int(damaged.sum())
    if not n:
        return []
    return [
        f"{file.name}: {n} kernels have impossible durations (negative, or overlapping the next "
        "work of their stream); their time is na and not part of totals"
    ]
