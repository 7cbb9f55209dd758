"""GPU work: a track for each process, GPU and stream."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from fastprof._core._packets import Fields
from fastprof.exports.events import SelectedWork
from fastprof.exports.names import LOOKS, shown
from fastprof.exports.perfetto import packets as proto
from fastprof.exports.perfetto.packets import Interned, Tracks
from fastprof.exports.perfetto.slices import FLOW_END, Slices, TraceOutput, tracks_of_lanes
from fastprof.model.arrays import Int64
from fastprof.model.trace import NO_TIME

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
    fields.add_fixed(FLOW_END, np.where(work.api >= 0, flow_ids(work), -1))
    Slices(work.start, work.end, track, fields).write_to(output)


def flow_ids(work: SelectedWork) -> Int64:
    """int64 [n], the id of the flow from the launching call to each kernel."""
    return np.arange(1, len(work) + 1, dtype=np.int64)


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
    contexts = Counter(each[:2] for each in {tuple(each[:3]) for each in work.places.tolist()})
    several = {pair for pair, n in contexts.items() if n > 1}
    for pid, device, context, stream in work.places.tolist():
        name = f"stream {stream}" if stream >= 0 else "stream unknown"
        if (pid, device) in several:
            name += f", context {context}"
        yield name, gpus[pid, device]


def _texts_of_looks(work: SelectedWork, texts: Interned) -> list[bytes]:
    """The encoded name, category and arguments of each look."""
    short = work.of_looks("kernel")
    kinds = work.of_looks("kind")
    columns = {shown_as: work.of_looks(name) for name, shown_as in LOOKS.items()}
    found = []
    for i, (name, kind) in enumerate(zip(short, kinds, strict=True)):
        parts = [
            proto.number(10, texts.event(name or "unknown")),
            proto.number(3, texts.category(kind or "kernel")),
        ]
        for shown_as, values in columns.items():
            value = shown(values[i])
            if value is not None and not (shown_as == "kernel" and value == name):
                parts.append(texts.annotation(shown_as, value))
        found.append(b"".join(parts))
    return found
