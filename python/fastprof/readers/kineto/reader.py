"""Traces of torch.profiler to a Recording, with the labels and links of their ranges."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _join, _nest
from fastprof._core._kineto import NONE
from fastprof._core._pools import alike
from fastprof._core._take import distinct, take
from fastprof.errors import BadInputError
from fastprof.model.arrays import Int32, Int64
from fastprof.model.markers.kineto import FIELD, NUMBERED
from fastprof.model.metadata import GRAPH_ANNOTATIONS
from fastprof.model.trace import (
    COPY_KINDS,
    MEMORY_KINDS,
    NEVER,
    OF_EVENT,
    Activity,
    Captured,
    Configs,
    Kernels,
    Launches,
    LostLaunches,
    MessageNumbers,
    Ranges,
    Recording,
)
from fastprof.readers import trace_columns
from fastprof.readers.graph_annotations import annotate, pairs_of_nodes
from fastprof.readers.graph_captures import capture_names
from fastprof.readers.kineto import event_columns, metadata
from fastprof.readers.kineto.event_columns import KinetoFile
from fastprof.readers.kineto.generate import add_iterations
from fastprof.readers.kineto.graph_captures import captured_calls
from fastprof.readers.kineto.timeline import KinetoThreads, api_calls, recorded
from fastprof.readers.lost_launches import lost_launches, within_of_threads
from fastprof.readers.sqlite.database import Progress

# By `kind` in the scanner's columns.
_ACTIVITIES = np.array([Activity.KERNEL, Activity.MEMCPY, Activity.MEMSET], np.int32)

# The scanner's columns of a launch configuration.
_CONFIG = (
    "kind", "name", "device", "context", "stream", "grid", "block", "registers", "shared_memory",
    "graph_id", "graph_node", "annotation",
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
    add_iterations(file)
    threads = KinetoThreads(file.tables)
    labels, label = labels_of(file)
    ranges, row_of_event = _read_ranges(file, threads, label)
    kernels = _read_kernels(file, copies)
    damaged = _damaged(kernels)
    kernels.duration[damaged] = -1
    kernels.damaged = damaged
    launches, captured, lost = _read_launches(file, threads, kernels, captures)
    kernels.recorded_range = ranges_of_kernels(file, kernels, row_of_event)
    _process_of_range(kernels, ranges, threads)
    trace_columns.complete_processes(kernels, len(threads.process_numbers))
    recording = Recording(
        name=file.name,
        kernels=kernels,
        launches=launches,
        ranges=ranges,
        phases=Ranges(*(np.empty(0, column.dtype) for column in vars(ranges).values())),
        labels=labels,
        strings=[*file.names, *file.notes],
        threads=threads.numbers,
        process_of_thread=threads.process,
        processes=threads.process_numbers.astype(np.int32),
        warnings=[*file.warnings(), *_warnings(file, damaged)],
        message_numbers=_message_numbers(file, row_of_event),
        recorded_forward=forward_ranges(file, threads, ranges),
        about=metadata.read(file, threads.places()),
        captured=captured,
        lost=lost,
        truncated=truncated_launches(file, threads, launches),
        host=recorded(file, threads, ranges),
    )
    if GRAPH_ANNOTATIONS in file.root:
        annotate(recording, pairs_of_nodes(file.root[GRAPH_ANNOTATIONS]))
    return recording


def _read_ranges(file: KinetoFile, threads: KinetoThreads, label: Int32) -> tuple[Ranges, Int32]:
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


def _message_numbers(file: KinetoFile, row_of_event: Int32) -> MessageNumbers:
    """The numbers of collectives, by row of the ranges."""
    number = file.tables["ranges"]["message"]
    events = np.flatnonzero((number >= 0) & (row_of_event >= 0))
    order = events[np.argsort(row_of_event[events], kind="stable")]
    return MessageNumbers(row_of_event[order], number[order].astype(np.int32))


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
        annotation=_annotations(file, columns["annotation"]),
        copy_kind=_copy_kinds(file.names)[columns["name"]] if copies else None,
        source=_memory_kinds(file.names, "source")[columns["name"]] if copies else None,
        target=_memory_kinds(file.names, "target")[columns["name"]] if copies else None,
    )


def _annotations(file: KinetoFile, note: Int32) -> Int32 | None:
    """Indices into the strings of the recording, where notes follow names; None without any."""
    if not len(file.notes):
        return None
    return np.where(note >= 0, note + np.int32(len(file.names)), note).astype(np.int32)


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
    results = [_MEMORY.match(name) for name in names]
    kinds = [-1 if match is None else number.get(str(match[end]).lower(), -1) for match in results]
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
    file: KinetoFile, threads: KinetoThreads, kernels: Kernels, captures: bool
) -> tuple[Launches, Captured | None, LostLaunches]:
    """API calls that launched GPU work or added it to a graph, and those whose work is not there.

    Sets launch and process of kernels. Runtime calls are preferred to driver calls.
    """
    events = file.tables["launches"]
    rows = api_calls(file)
    nowhere = np.zeros(len(kernels), np.int32)
    join = _join.Join(nowhere, kernels.correlation)
    join.offer(np.zeros(len(rows), np.int32), events["correlation"][rows])
    lost = _lost(file, threads, rows, join)
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
    return Launches(**columns), captured, lost


def _lost(
    file: KinetoFile, threads: KinetoThreads, rows: npt.NDArray[np.intp], join: _join.Join
) -> LostLaunches:
    """The calls among these rows of the launch table that launch kernels which the file lacks.

    join : has the correlation ids of all kernels
    """
    events = file.tables["launches"]
    used, place = distinct(events["name"][rows], len(file.names))
    of_name = capture_names([file.names[name] if name >= 0 else None for name in used])
    meaning = of_name[place]
    rows, meaning = rows[meaning != -1], meaning[meaning != -1]
    correlation = events["correlation"][rows]
    worked = np.zeros(len(rows), bool)
    worked[join.matching(np.zeros(len(rows), np.int32), correlation)] = True
    if worked[meaning == Activity.KERNEL].all():
        return LostLaunches()
    # A call of the runtime may be recorded again as one of the driver.
    first = np.zeros(len(rows), bool)
    first[np.unique(correlation, return_index=True)[1]] = True
    thread = threads.find(events["pid"][rows], events["tid"][rows])
    worked |= ~first & (correlation >= 0)
    worked |= (events["start"][rows] == NONE) | (thread < 0)
    return lost_launches(meaning, events["start"][rows], thread, worked, threads.process)


def truncated_launches(file: KinetoFile, threads: KinetoThreads, launches: Launches) -> Int64:
    """The launches inside of Python functions of which the file lacks the caller, ascending.

    A function has the id of its caller, which kineto leaves out if it lies outside of the part of
    the trace that was kept.
    """
    events = file.tables["ranges"]
    parent, own = events["python_parent"], events["python_id"]
    rows = np.flatnonzero(parent >= 0)
    rows = rows[~np.isin(parent[rows], own[own >= 0])] if len(rows) else rows
    thread = threads.find(events["pid"][rows], events["tid"][rows])
    known = (events["start"][rows] != NONE) & (thread >= 0)
    start, duration = events["start"][rows][known], events["duration"][rows][known]
    frames = thread[known], start, start + np.maximum(duration, 0)
    return within_of_threads(launches.thread, launches.start, *frames)


def _process_of_range(kernels: Kernels, ranges: Ranges, threads: KinetoThreads) -> None:
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


# Old traces capitalise categories and use other names.
_CATEGORIES = {"operator": "cpu_op"}


def labels_of(file: KinetoFile) -> tuple[list[str], Int32]:
    """The distinct labels in the form that `markers.kineto` parses, and that of each range."""
    events = file.tables["ranges"]
    category = np.maximum(events["category"], 0) * np.int32(2) + (events["seq"] >= 0)
    columns = [category, *(events[key] for key in ("stack", "hierarchy", "label"))]
    used = [np.zeros(1, np.int32)]
    place = np.zeros(len(events["label"]), np.int32)
    for column in columns:
        place, tails = _combined(place, column)
        used = [table[tails[0]] for table in used] + [tails[1]]
    categories = []
    for name in file.categories:
        plain = _CATEGORIES.get(name.lower(), name.lower())
        categories += [plain, NUMBERED if plain == "cpu_op" else plain]
    texts = [categories, file.stacks, file.stacks, file.labels]
    labels = [
        OF_EVENT + FIELD.join(text[i] if i >= 0 else "" for text, i in zip(texts, ids, strict=True))
        for ids in zip(*(table.tolist() for table in used[1:]), strict=True)
    ]
    return labels, place


def _combined(first: Int32, second: Int32) -> tuple[Int32, tuple[Int32, Int32]]:
    """The index of each row's pair among the distinct pairs of two columns (values >= -1), and the
    columns of the distinct pairs."""
    if not len(first):
        empty = np.empty(0, np.int32)
        return empty, (empty, empty)
    width = int(second.max()) + 2
    key = first.astype(np.int64) * width + second + 1
    most = int(key.max()) + 1
    if most <= max(4 * len(key), 1 << 16):
        results, place = distinct(key.astype(np.int32), most)
        pairs = np.array(results, np.int64)
    else:
        pairs, place = np.unique(key, return_inverse=True)
    return place.astype(np.int32), (
        (pairs // width).astype(np.int32),
        (pairs % width - 1).astype(np.int32),
    )


_MAX_STEPS = 64  # ranges of other threads that may start in the same nanosecond


def ranges_of_kernels(file: KinetoFile, kernels: Kernels, row_of_event: Int32) -> Int32 | None:
    """The range with each kernel's `External id`, -1 for none; None if the file has no such ids.

    Traces of 2022 repeat the correlation id there, which identifies no range.
    """
    own = kernels.external_id
    if own is None or np.array_equal(own, kernels.correlation):
        return None
    of_event = file.tables["ranges"]["external_id"]
    rows = np.flatnonzero((of_event >= 0) & (row_of_event >= 0))
    nowhere = np.zeros(len(own), np.int32)
    join = _join.Join(nowhere, own)
    join.offer(np.zeros(len(rows), np.int32), of_event[rows])
    result = join.rows(nowhere, own)
    return np.append(row_of_event[rows], np.int32(-1))[result]


def forward_ranges(file: KinetoFile, threads: KinetoThreads, ranges: Ranges) -> Int32 | None:
    """The forward range of each backward range, from flow events of category fwdbwd.

    A flow starts with a forward range that has a sequence number and ends with a backward range; of
    several ranges that start at that time, the innermost. None if there are no flows.
    """
    flows = file.tables["flows"]
    if not len(flows["id"]):
        return None
    thread = threads.find(flows["pid"], flows["tid"])
    rows = _starting(ranges, thread, flows["time"])
    leaves, ends = (np.flatnonzero((flows["phase"] == ord(p)) & (rows >= 0)) for p in "sf")
    leaves = leaves[np.argsort(flows["id"][leaves], kind="stable")]
    ids = flows["id"][leaves]
    at = np.searchsorted(ids, flows["id"][ends])
    paired = at < len(ids)
    paired[paired] = ids[at[paired]] == flows["id"][ends[paired]]
    forward = np.full(len(ranges), -1, np.int32)
    forward[rows[ends[paired]]] = rows[leaves[at[paired]]]
    return forward


def _starting(ranges: Ranges, thread: Int32, time: Int64) -> Int32:
    """The innermost range with a sequence number that starts at a thread and time, -1 for none."""
    numbered = np.flatnonzero(ranges.seq >= 0).astype(np.int32)
    start, of_thread = ranges.start[numbered], ranges.thread[numbered]
    at = np.searchsorted(start, time, side="right") - 1
    result = np.full(len(time), -1, np.int32)
    for _ in range(_MAX_STEPS):
        open_ = np.flatnonzero((at >= 0) & (result < 0))
        open_ = open_[start[at[open_]] == time[open_]]
        if not len(open_):
            break
        fits = of_thread[at[open_]] == thread[open_]
        result[open_[fits]] = numbered[at[open_[fits]]]
        at[open_[~fits]] -= 1
        at[open_[fits]] = -1
    return result
