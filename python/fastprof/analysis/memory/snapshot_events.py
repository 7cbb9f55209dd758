"""Allocations and frees of a snapshot's history, with the live blocks that are older."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.analysis.memory.allocation_columns import GPU
from fastprof.analysis.memory.blocks import MemoryEvents
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Values
from fastprof.model.snapshot import Snapshot

LIVE: Final = "active_allocated"
# By how an action changes the reserved bytes.
_RESERVES: Final = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}


@dataclass(frozen=True, eq=False)
class LiveEvents:
    """The events, first those of blocks older than the history.

    Parameters
    ----------
    events : in the order of the file; `row` is the row in `Snapshot.events`, or of an older block,
        `-1 - row` of `Snapshot.blocks`
    is_timed : whether the history records times; otherwise `events.time` numbers the events
    n_older : number of live blocks that the history does not allocate
    n_astray : number of blocks that are live in the history and not in the segments
    """

    events: MemoryEvents
    is_timed: bool
    n_older: int
    n_astray: int


def live_events(snapshot: Snapshot, devices: set[int]) -> LiveEvents:
    """The allocations and frees of some devices."""
    history, blocks = snapshot.events, snapshot.blocks
    own = np.isin(history.device, list(devices))
    allocates, frees = are(history.action, "alloc"), _frees(snapshot)
    rows = np.flatnonzero(own & (allocates | frees) & (history.size > 0))
    device_of_block = np.append(snapshot.segments.device, np.int32(-1))[blocks.segment]
    live = are(blocks.state, LIVE) & np.isin(device_of_block, list(devices)) & (blocks.size > 0)
    older, n_astray = _older(snapshot, rows, allocates, np.flatnonzero(live), device_of_block)
    is_timed = bool(len(rows)) and bool((history.time[rows] >= 0).all())
    n = len(older)
    time = history.time[rows] if is_timed else np.arange(n, n + len(rows))
    first = int(time.min(initial=np.iinfo(np.int64).max)) if len(rows) else 0
    size = np.where(allocates[rows], history.size[rows], -history.size[rows])
    device = np.concatenate([device_of_block[older], history.device[rows]])
    numbers = np.unique(device)
    unknown = np.full(n + len(rows), -1, np.int64)
    events = MemoryEvents(
        names=[f"{GPU} {number}" for number in numbers.tolist()],
        memory=np.searchsorted(numbers, device).astype(np.int32),
        time=np.concatenate([np.full(n, first if is_timed else 0), time]),
        size=np.concatenate([np.maximum(blocks.requested[older], 1), size]),
        address=np.concatenate([blocks.address[older], history.address[rows]]),
        allocated=unknown,
        reserved=np.concatenate([np.full(n, -1), _reserved(snapshot)[rows]]),
        row=np.concatenate([-1 - older, rows]),
        is_complete=True,
    )
    return LiveEvents(events, is_timed, n, n_astray)


def are(texts: Values, *wanted: str) -> Bools:
    """Whether each text is one of these."""
    return texts.fits(lambda text: text in wanted)


def _frees(snapshot: Snapshot) -> Bools:
    """The events that free a block: requests, or completions where requests are not recorded."""
    requested = are(snapshot.events.action, "free_requested", "free")
    if requested.any():
        return requested
    return are(snapshot.events.action, "free_completed")


def _older(
    snapshot: Snapshot, rows: Int64, allocates: Bools, live: Int64, device_of_block: Int32
) -> tuple[Int64, int]:
    """The live blocks that the history does not allocate, and how many are live only there.

    rows : allocations and frees in the history
    live : live blocks of the segments
    """
    history = snapshot.events
    last: dict[tuple[int, int], bool] = {}
    keys = zip(history.device[rows].tolist(), history.address[rows].tolist(), strict=True)
    for key, is_live in zip(keys, allocates[rows].tolist(), strict=True):
        last[key] = is_live
    of_blocks = list(
        zip(device_of_block[live].tolist(), snapshot.blocks.address[live].tolist(), strict=True)
    )
    older = np.array([not last.get(key, False) for key in of_blocks], bool)
    in_history = {key for key, is_live in last.items() if is_live}
    return live[older], len(in_history - set(of_blocks))


def _reserved(snapshot: Snapshot) -> Int64:
    """[events] The bytes in segments after each event, from those at the end backwards."""
    history, segments = snapshot.events, snapshot.segments
    change = np.zeros(len(history), np.int64)
    for action, sign in _RESERVES.items():
        change += sign * np.where(are(history.action, action), history.size, 0)
    found = np.empty(len(history), np.int64)
    for device in np.unique(history.device):
        rows = np.flatnonzero(history.device == device)
        end = segments.size[segments.device == device].sum()
        total = np.cumsum(change[rows])
        found[rows] = end - total[-1] + total
    return found
