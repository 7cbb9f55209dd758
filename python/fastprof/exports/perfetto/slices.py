"""Slices: a packet at the start and one at the end of each event."""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np

from fastprof._core._packets import Fields, PacketWriter, lanes
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.exports.perfetto import packets as proto
from fastprof.exports.perfetto.packets import HEAD, Interned, Tracks
from fastprof.model.arrays import Int32, Int64

_TYPE_BEGIN: Final = proto.number(9, 1)
_TYPE_END: Final = proto.number(9, 2)
TRACK: Final = proto.tag(11)
FLOW: Final = proto.fixed64_tag(47)
FLOW_END: Final = proto.fixed64_tag(48)


@dataclass()
class TraceOutput:
    """Tracks, texts and packets of a Perfetto trace.

    origin : the earliest time of all events, ns
    """

    origin: int
    tracks: Tracks = field(default_factory=Tracks)
    texts: Interned = field(default_factory=Interned)
    writers: list[PacketWriter] = field(default_factory=list)


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
    found = []
    for (name, parent), uuid, n in zip(names, uuids, counts.tolist(), strict=True):
        if not uuid:
            uuid = tracks.add(name, parent)
        found.append(uuid)
        found += [tracks.add(f"{name} (overlap {i})", parent) for i in range(1, n)]
    first = np.zeros(len(counts), np.int32)
    np.cumsum(np.maximum(counts, 1)[:-1], out=first[1:])
    return take(np.array(found, np.int32), take(first, slices[2]) + lane)
