"""Host threads: ranges and API calls, with flows to GPU work and to backward ranges.

GPU work: a track for each process, GPU and stream.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from fastprof._core import _nest
from fastprof._core._packets import Fields
from fastprof._core._take import take
from fastprof.exports.events import (
    LOOKS,
    HostRows,
    SelectedWork,
    category_of,
    details_of,
    shown,
    title_of,
)
from fastprof.exports.perfetto import packets as proto
from fastprof.exports.perfetto.packets import Interned, Tracks
from fastprof.exports.perfetto.tracks import FLOW, FLOW_END, Slices, TraceOutput, tracks_of_lanes
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NO_TIME
from fastprof.profile.api_classes import class_of
from fastprof.profile.data import ProfileData


def write_host(
    work: SelectedWork, rows: HostRows, output: TraceOutput, processes: dict[int, int]
) -> None:
    """Add the tracks and slices of threads.

    processes : uuid of the track of each process; 0 for an unknown process
    """
    ranges, api, texts = work.profile.ranges, work.profile.api, output.texts
    n_ranges, n = len(rows.ranges), len(rows.ranges) + len(rows.api)
    start = np.concatenate([ranges.start[rows.ranges], api.start[rows.api]])
    end = np.concatenate([ranges.end[rows.ranges], api.end[rows.api]])
    order = _nest.order(start, end)
    if order is None:
        order = np.arange(n, dtype=np.int32)
    place = np.empty(n, np.int32)
    place[order] = np.arange(n, dtype=np.int32)
    thread = take(np.concatenate([ranges.thread[rows.ranges], api.thread[rows.api]]), order)
    names = [*_range_texts(work.profile, texts), *_api_texts(work.profile, texts)]
    name = np.concatenate([ranges.label[rows.ranges], api.name.ids[rows.api]]).astype(np.int32)
    name[n_ranges:] += len(ranges.meanings)
    fields = Fields(n)
    fields.add_texts(take(name, order), names)
    for shown_as, of_range, of_api in (
        ("sequence number", ranges.seq, None),
        ("correlation", None, api.correlation),
    ):
        values = np.full(n, -1, np.int64)
        if of_range is not None:
            values[:n_ranges] = of_range[rows.ranges]
        if of_api is not None:
            values[n_ranges:] = of_api[rows.api]
        outer, inner = texts.annotation_tags(shown_as)
        fields.add_numbers(inner, take(values, order), none=-1, outer=outer)
    _add_flows(fields, work, rows, place, output)
    start, end = take(start, order), take(end, order)
    track = _tracks(work.profile, output, processes, (start, end, thread))
    Slices(start, end, track, fields).write_to(output)


def _tracks(
    profile: ProfileData,
    output: TraceOutput,
    processes: dict[int, int],
    slices: tuple[Int64, Int64, Int32],
) -> Int32:
    """The track of each slice; the last one is that of an unknown thread."""
    start, end, thread = slices
    threads = profile.ranges.threads
    used = np.unique(thread)
    names, uuids = [], []
    for index in used.tolist():
        tid, pid = (int(threads.tid[index]), int(threads.pid[index])) if index >= 0 else (-1, -1)
        name = profile.about.threads.get((pid, tid)) or ("thread" if tid >= 0 else "thread unknown")
        name = f"{name} {tid}" if tid >= 0 else name
        parent = processes.get(pid, output.root)
        ids = _thread_field(pid, tid, name) if output.has_ids else []
        uuids.append(output.tracks.add(name, parent, *ids))
        names.append((name, parent))
    which = np.searchsorted(used, thread).astype(np.int32)
    return tracks_of_lanes(output.tracks, names, uuids, (start, end, which), may_nest=True)


def _thread_field(pid: int, tid: int, name: str) -> list[bytes]:
    """ThreadDescriptor, for ids that its fields can hold."""
    if not (0 < pid < 1 << 31 and tid > 0):
        return []
    return [proto.message(4, proto.number(1, pid), proto.number(2, tid), proto.text(5, name))]


def _range_texts(profile: ProfileData, texts: Interned) -> list[bytes]:
    result = []
    for meaning in profile.ranges.meanings:
        parts = [
            proto.number(10, texts.event(title_of(meaning))),
            proto.number(3, texts.category(category_of(meaning))),
        ]
        parts += [texts.annotation(name, value) for name, value in details_of(meaning)]
        result.append(b"".join(parts))
    return result


def _api_texts(profile: ProfileData, texts: Interned) -> list[bytes]:
    return [
        proto.number(10, texts.event(name))
        + proto.number(3, texts.category("api"))
        + texts.annotation("class", class_of(name))
        for name in map(str, profile.api.name.values)
    ]


def _add_flows(
    fields: Fields, work: SelectedWork, rows: HostRows, place: Int32, output: TraceOutput
) -> None:
    """Flows from API calls to kernels, and from forward to backward ranges."""
    profile = work.profile
    n_ranges = len(rows.ranges)
    call = _places(rows.api, len(profile.api), place[n_ranges:])[work.api]
    of_range = _places(rows.ranges, len(profile.ranges), place[:n_ranges])
    links = np.flatnonzero(profile.ranges.forward >= 0)
    forward = of_range[profile.ranges.forward[links]]
    backward = of_range[links]
    linked = np.flatnonzero((forward >= 0) & (backward >= 0))
    of_work = flow_ids(work, output)
    numbers = output.n_flows + len(work) + 1 + np.arange(len(linked), dtype=np.int64)
    output.n_flows += len(work) + len(linked)
    launched = np.flatnonzero(call >= 0)
    source = np.concatenate([call[launched], forward[linked]])
    ids = np.concatenate([of_work[launched], numbers])
    in_order = np.argsort(source, kind="stable")
    offsets = np.zeros(len(place) + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=len(place)), out=offsets[1:])
    fields.add_fixed(FLOW, ids[in_order], offsets=offsets)
    ends = np.full(len(place), -1, np.int64)
    ends[backward[linked]] = numbers
    fields.add_fixed(FLOW_END, ends)


def _places(rows: Int64, n: int, place: Int32) -> Int32:
    """int32 [n + 1]: the place of each row, -1 for rows that are not exported and at the end."""
    places = np.full(n + 1, -1, np.int32)
    places[rows] = place
    return places


# Columns of numbers that differ between kernels of one look, and the names of their arguments.
_NUMBERS = {"flops": "FLOPs", "bytes": "bytes", "correlation": "correlation", "step": "step"}


def write_gpu(work: SelectedWork, output: TraceOutput, processes: dict[int, int]) -> None:
    """Add the tracks and slices of GPU work.

    processes : uuid of the track of each process; 0 for an unknown process
    """
    names = [*_streams(work, output.tracks, processes)]
    slices = work.start, work.end, work.place
    track = tracks_of_lanes(output.tracks, names, [0] * len(names), slices, may_nest=False)
    fields = Fields(len(work))
    look, _ = work.looks
    fields.add_texts(look, _texts_of_looks(work, output.texts))
    for name, shown_as in _NUMBERS.items():
        values = np.ascontiguousarray(work.numbers(name))
        _add_argument(fields, output.texts, shown_as, values, none=-1)
    _add_argument(fields, output.texts, "launch latency (ns)", work.latency, none=NO_TIME)
    fields.add_fixed(FLOW_END, np.where(work.api >= 0, flow_ids(work, output), -1))
    Slices(work.start, work.end, track, fields).write_to(output)


def flow_ids(work: SelectedWork, output: TraceOutput) -> Int64:
    """int64 [n], the id of the flow from the launching call to each kernel."""
    return output.n_flows + np.arange(1, len(work) + 1, dtype=np.int64)


def _add_argument(fields: Fields, texts: Interned, name: str, values: Any, none: int) -> None:
    outer, inner = texts.annotation_tags(name)
    fields.add_numbers(inner, values, none=none, outer=outer)


def _streams(work: SelectedWork, tracks: Tracks, processes: dict[int, int]) -> Any:
    """Name and parent of the track of each place; adds the tracks of GPUs."""
    about, gpus = work.profile.about, {}
    pairs = {(pid, device) for pid, device, *_ in work.places.tolist()}
    for pid, device in sorted(pairs):
        name = f"GPU {device}" if device >= 0 else "GPU"
        model = about.gpus.get(device)
        gpus[pid, device] = tracks.add(f"{name} ({model})" if model else name, processes[pid])
    contexts = Counter(
        number[:2] for number in {tuple(place[:3]) for place in work.places.tolist()}
    )
    several = {pair for pair, n in contexts.items() if n > 1}
    for pid, device, context, stream in work.places.tolist():
        name = f"stream {stream}" if stream >= 0 else "stream unknown"
        if (pid, device) in several:
            name += f", context {context}"
        yield name, gpus[pid, device]


def _texts_of_looks(work: SelectedWork, texts: Interned) -> list[bytes]:
    """The encoded name, category and arguments of each look."""
    short = work.by_kernel("kernel")
    kinds = work.by_kernel("kind")
    columns = {shown_as: work.by_kernel(name) for name, shown_as in LOOKS.items()}
    result = []
    for i, (name, kind) in enumerate(zip(short, kinds, strict=True)):
        parts = [
            proto.number(10, texts.event(name or "unknown")),
            proto.number(3, texts.category(kind or "kernel")),
        ]
        for shown_as, values in columns.items():
            value = shown(values[i])
            if value is not None and not (shown_as == "kernel" and value == name):
                parts.append(texts.annotation(shown_as, value))
        result.append(b"".join(parts))
    return result
