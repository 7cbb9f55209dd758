"""Snapshot: the state and history of torch's CUDA allocator, as a reader returns it."""

from __future__ import annotations

from typing import Any

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values


@dataclass(frozen=True, eq=False)
class SnapshotSegments:
    """Memory that the allocator holds; [segments], sizes in bytes, -1 if not recorded."""

    device: Int32
    address: Int64
    size: Int64
    stream: Int64

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class SnapshotBlocks:
    """The parts of segments; [blocks], in order of segments.

    Parameters
    ----------
    segment : row of the segment
    address, size : of the block
    requested : bytes that the program requested, the size if not recorded
    state : active_allocated, active_pending_free, active_awaiting_free or inactive
    stack : index into `Snapshot.stacks`
    category : the block's category if recorded
    """

    segment: Int32
    address: Int64
    size: Int64
    requested: Int64
    state: Values
    stack: Int32
    category: Values

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class SnapshotEvents:
    """The history, oldest first in each device; [events], -1 if not recorded.

    Parameters
    ----------
    action : alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map,
        segment_unmap, oom or snapshot
    address : of the block or segment
    size : bytes
    free : bytes that CUDA has left, of `oom`
    time : ns
    stack : index into `Snapshot.stacks`
    category : the block's category if recorded
    """

    device: Int32
    action: Values
    address: Int64
    size: Int64
    free: Int64
    time: Int64
    stream: Int64
    stack: Int32
    category: Values

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A memory snapshot.

    Parameters
    ----------
    name : the file
    stacks : the distinct stacks, `FILE:LINE FUNCTION` of each frame, outermost first; frames of
        C++ have no line
    settings : the allocator's settings by name
    """

    name: str
    segments: SnapshotSegments
    blocks: SnapshotBlocks
    events: SnapshotEvents
    stacks: list[tuple[str, ...]]
    settings: dict[str, Any]
