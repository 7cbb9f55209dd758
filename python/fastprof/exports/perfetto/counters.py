"""Counters: allocated and reserved memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._packets import Fields, PacketWriter
from fastprof._core._pools import alike
from fastprof.exports.perfetto import proto
from fastprof.exports.perfetto.packets import HEAD
from fastprof.exports.perfetto.slices import TRACK, Output
from fastprof.model.arrays import Int64
from fastprof.model.metadata import MANAGED, PINNED, Memory
from fastprof.model.trace import NO_TIME
from fastprof.profile.profile import Profile

_COUNTER: Final = proto.message(8, proto.number(3, 3))  # UNIT_SIZE_BYTES
_TYPE_COUNTER: Final = proto.number(9, 4)
_VALUE: Final = proto.tag(30)
_KINDS: Final = {0: "CPU memory", MANAGED: "managed memory", PINNED: "pinned memory"}


def write_memory(profile: Profile, output: Output, processes: dict[int, int]) -> None:
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
            _write(output, f"{name} {part}", parent, memory.time[rows], values)


def _series(memory: Memory, rows: Int64) -> list[tuple[str, Int64]]:
    """The counters of a device: as recorded, or else the sum of allocations and frees."""
    found = [
        (part, values)
        for part, values in (
            ("allocated", memory.total_allocated[rows]),
            ("reserved", memory.total_reserved[rows]),
        )
        if (values >= 0).any()
    ]
    if found:
        return found
    change = memory.bytes[rows]
    return [("allocated", np.cumsum(np.where(change == NO_TIME, 0, change)))]


def _write(output: Output, name: str, parent: int, time: Int64, values: Int64) -> None:
    fields = Fields(len(time))
    uuid = output.tracks.add(name, parent, _COUNTER)
    fields.add_numbers(TRACK, np.full(len(time), uuid, np.int32), none=0)
    fields.add_numbers(_VALUE, values, none=NO_TIME)
    output.writers.append(PacketWriter(HEAD, output.origin, [(time, _TYPE_COUNTER, fields)]))
