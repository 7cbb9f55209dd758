"""Tracks of steps, and of ranges that end on another thread than they started on.

Counters: allocated and reserved memory.

Slices: a packet at the start and one at the end of each event.
"""

from __future__ import annotations

from dataclasses import field
from typing import BinaryIO, Final

import numpy as np

from fastprof._core import _nest
from fastprof._core._packets import Fields, PacketWriter, lanes
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.exports.events import SelectedWork
from fastprof.exports.perfetto import packets as proto
from fastprof.exports.perfetto.packets import HEAD, Interned, Tracks
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.metadata import MANAGED, PINNED, Memory
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.writers.write_threads import write_on_threads


def write_steps(
    steps: StepsOfKernels, work: SelectedWork, output: TraceOutput, processes: dict[int, int]
) -> None:
    """Add a track of steps to each process; none if the capture is one step."""
    if steps.source == "none":
        return
    rows = np.flatnonzero(steps.start != NO_TIME)
    if work.rows is not None:
        rows = np.intersect1d(rows, work.of(steps.of_kernel))
    pids, which = np.unique(steps.pid[rows], return_inverse=True)
    names = [("steps", processes.get(pid, 0)) for pid in pids.tolist()]
    texts = [f"step {number}" for number in steps.number[rows].tolist()]
    slices = steps.start[rows], steps.end[rows], which.astype(np.int32)
    _write(output, names, slices, Values(np.arange(len(rows), dtype=np.int32), texts), "step")


def write_ended_elsewhere(profile: ProfileData, work: SelectedWork, output: TraceOutput) -> None:
    """Add a track of the ranges that end on another thread; none if only some work is selected."""
    ranges = profile.ranges.ended_elsewhere
    if not len(ranges.start) or work.rows is not None:
        return
    which = np.zeros(len(ranges.start), np.int32)
    names = [("ranges across threads", output.root)]
    _write(output, names, (ranges.start, ranges.end, which), ranges.text, "range")


def _write(
    output: TraceOutput,
    names: list[tuple[str, int]],
    slices: tuple[Int64, Int64, Int32],
    texts: Values,
    category: str,
) -> None:
    """Add tracks of slices that do not nest.

    names : name and parent of each track
    slices : start, end, and index into `names`
    texts : [slices]
    """
    start, end, which = slices
    ids, order = texts.ids, _nest.order(start, end)
    if order is not None:
        start, end = take(start, order), take(end, order)
        which, ids = take(which, order), take(ids, order)
    of_category = proto.number(3, output.texts.category(category))
    fields = Fields(len(start))
    fields.add_texts(
        ids,
        [proto.number(10, output.texts.event(str(value))) + of_category for value in texts.values],
    )
    track = tracks_of_lanes(
        output.tracks, names, [0] * len(names), (start, end, which), may_nest=False
    )
    Slices(start, end, track, fields).write_to(output)


_COUNTER: Final = proto.message(8, proto.number(3, 3))  # UNIT_SIZE_BYTES
_TYPE_COUNTER: Final = proto.number(9, 4)
_VALUE: Final = proto.tag(30)
_KINDS: Final = {0: "CPU memory", MANAGED: "managed memory", PINNED: "pinned memory"}


def write_memory(profile: ProfileData, output: TraceOutput, processes: dict[int, int]) -> None:
    """Add counters of the memory of each process and device."""
    memory = profile.memory_events
    if not len(memory):
        return
    of, first = alike([memory.pid, memory.device_type, memory.device])
    for i, row in enumerate(first.tolist()):
        rows = np.flatnonzero((of == i) & (memory.time != NO_TIME))
        rows = rows[np.argsort(memory.time[rows], kind="stable")]
        device, kind = int(memory.device[row]), int(memory.device_type[row])
        name = _KINDS.get(kind, f"GPU {device} memory")
        parent = processes.get(int(memory.pid[row]), 0)
        for part, values in _series(memory, rows):
            _write_counter(output, f"{name} {part}", parent, memory.time[rows], values)


def _series(memory: Memory, rows: Int64) -> list[tuple[str, Int64]]:
    """The counters of a device: as recorded, or else the sum of allocations and frees."""
    series = [
        (part, values)
        for part, values in (
            ("allocated", memory.total_allocated[rows]),
            ("reserved", memory.total_reserved[rows]),
        )
        if (values >= 0).any()
    ]
    if series:
        return series
    change = memory.bytes[rows]
    return [("allocated", np.cumsum(np.where(change == NO_TIME, 0, change)))]


def _write_counter(output: TraceOutput, name: str, parent: int, time: Int64, values: Int64) -> None:
    fields = Fields(len(time))
    uuid = output.tracks.add(name, parent, _COUNTER)
    fields.add_numbers(TRACK, np.full(len(time), uuid, np.int32), none=0)
    fields.add_numbers(_VALUE, values, none=NO_TIME)
    output.writers.append(PacketWriter(HEAD, output.origin, [(time, _TYPE_COUNTER, fields)]))


_TYPE_BEGIN: Final = proto.number(9, 1)
_TYPE_END: Final = proto.number(9, 2)
TRACK: Final = proto.tag(11)
FLOW: Final = proto.fixed64_tag(47)
FLOW_END: Final = proto.fixed64_tag(48)


@dataclass()
class TraceOutput:
    """Tracks, texts and packets of a Perfetto trace.

    origin : subtracted from all times, ns; no later than the earliest event
    root : the parent of tracks that are of no known process; 0 for none
    has_ids : whether tracks have the ids of processes and threads, which hosts share
    n_flows : flows so far; their ids count from 1
    """

    origin: int
    root: int = 0
    has_ids: bool = True
    n_flows: int = 0
    tracks: Tracks = field(default_factory=Tracks)
    texts: Interned = field(default_factory=Interned)
    writers: list[PacketWriter] = field(default_factory=list)

    def flush(self, file: BinaryIO) -> None:
        """Write what was added since the last call."""
        file.write(self.tracks.packets())
        for packet in self.texts.packets():
            file.write(packet)
        for writer in self.writers:
            write_on_threads(writer, file)
        self.writers.clear()


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices of tracks; `fields` are those of the packets at their starts.

    start, end : int64 [n], ns; NEVER as end if the slice is still open
    track : int32 [n], uuid
    """

    start: Int64
    end: Int64
    track: Int32
    fields: Fields

    def write_to(self, output: TraceOutput) -> None:
        """Append the writer of the packets."""
        at_end = Fields(len(self.start))
        for fields in (self.fields, at_end):
            fields.add_numbers(TRACK, self.track, none=0)
        end = np.maximum(self.end, self.start)
        output.writers.append(
            PacketWriter(
                HEAD,
                output.origin,
                [(self.start, _TYPE_BEGIN, self.fields), (end, _TYPE_END, at_end)],
            )
        )


def tracks_of_lanes(
    tracks: Tracks,
    names: list[tuple[str, int]],
    uuids: list[int],
    slices: tuple[Int64, Int64, Int32],
    may_nest: bool,
) -> Int32:
    """int32 [n]: the uuid of the track of each slice; slices of a track nest.

    Slices that cross others get further tracks beside their own.

    Parameters
    ----------
    names : name and parent of each track
    uuids : uuid of each track, 0 to add it
    slices : start, end, and index into `names`, in order of (start, -end)
    may_nest : whether a slice may lie within another on the same track
    """
    lane, counts = lanes(*slices, len(names), may_nest)
    results = []
    for (name, parent), uuid, n in zip(names, uuids, counts.tolist(), strict=True):
        if not uuid:
            uuid = tracks.add(name, parent)
        results.append(uuid)
        results += [tracks.add(f"{name} (overlap {i})", parent) for i in range(1, n)]
    first = np.zeros(len(counts), np.int32)
    np.cumsum(np.maximum(counts, 1)[:-1], out=first[1:])
    return take(np.array(results, np.int32), take(first, slices[2]) + lane)
