"""The lines above the table of a snapshot, and their values for JSON."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.memory.allocation_columns import GPU
from fastprof.analysis.memory.blocks import Use
from fastprof.analysis.memory.snapshot_events import LIVE, LiveEvents, are
from fastprof.analysis.memory.text import drawn, timeline_of
from fastprof.model.quantity import quantity
from fastprof.model.snapshot import Snapshot

_MOST: Final = 3  # out-of-memory events in text


class _State(NamedTuple):
    """The segments of a GPU at the snapshot; bytes.

    Parameters
    ----------
    segments : number
    reserved : size of the segments
    allocated : of live blocks
    rounding : part of `allocated` that was not requested
    pending : of freed blocks that a stream still uses
    inactive : the rest
    releasable : of segments without other blocks, which empty_cache returns to CUDA
    largest_free : the largest inactive block
    """

    segments: int
    reserved: int
    allocated: int
    rounding: int
    pending: int
    inactive: int
    releasable: int
    largest_free: int


def _state(snapshot: Snapshot, number: int) -> _State:
    segments, blocks = snapshot.segments, snapshot.blocks
    own = segments.device == number
    of_gpu = np.append(own, False)[blocks.segment]
    live = of_gpu & are(blocks.state, LIVE)
    inactive = of_gpu & are(blocks.state, "inactive")
    used = np.bincount(blocks.segment[of_gpu & ~inactive], minlength=len(segments)) > 0
    allocated, free = blocks.size[live], blocks.size[inactive]
    return _State(
        segments=int(own.sum()),
        reserved=int(segments.size[own].sum()),
        allocated=int(allocated.sum()),
        rounding=int((allocated - blocks.requested[live]).sum()),
        pending=int(blocks.size[of_gpu & ~live & ~inactive].sum()),
        inactive=int(free.sum()),
        releasable=int(segments.size[own & ~used].sum()),
        largest_free=int(free.max(initial=0)),
    )


def _out_of_memory(snapshot: Snapshot, number: int) -> list[dict[str, int | None]]:
    """The out-of-memory events of a GPU: requested bytes, bytes free in CUDA, time in ns."""
    history = snapshot.events
    rows = np.flatnonzero((history.device == number) & are(history.action, "oom"))
    columns = (history.size, history.free, history.time)
    return [
        dict(zip(("requested_bytes", "free_bytes", "ns"), map(_known, each), strict=True))
        for each in zip(*(column[rows].tolist() for column in columns), strict=True)
    ]


def _known(value: int) -> int | None:
    return value if value >= 0 else None


def _number(use: Use) -> int:
    return int(use.name.removeprefix(f"{GPU} "))


def lines_of(snapshot: Snapshot, use: Use, live: LiveEvents) -> list[str]:
    """The lines of one GPU: peak, segments, out-of-memory events, time line."""
    state = _state(snapshot, _number(use))
    height, now = use.base + use.peak_above, use.base + int(use.above[-1])
    place = _place(use, live)
    lines = [f"{use.name}: peak {_bytes(height)} requested{place}; at the snapshot {_bytes(now)}"]
    if state.reserved:
        share = state.inactive / state.reserved
        pending = f"{_bytes(state.pending)} waits for a stream, " if state.pending else ""
        lines += [
            f"reserved {_bytes(state.reserved)} in {state.segments} segments: "
            f"{_bytes(state.allocated)} allocated, {pending}{_bytes(state.inactive)} ({share:.1%}) "
            "free",
            f"free {_bytes(state.releasable)} in empty segments, "
            f"{_bytes(state.inactive - state.releasable)} between blocks; largest free block "
            f"{_bytes(state.largest_free)}",
        ]
    failures = _out_of_memory(snapshot, _number(use))
    for each in failures[:_MOST]:
        free = each["free_bytes"]
        left = "" if free is None else f"; CUDA had {_bytes(free)} free"
        lines.append(f"out of memory: {_bytes(each['requested_bytes'] or 0)} requested{left}")
    if len(failures) > _MOST:
        lines.append(f"{len(failures) - _MOST} more out-of-memory events")
    if len(snapshot.events):
        lines.append(drawn(use))
    return lines


def _place(use: Use, live: LiveEvents) -> str:
    if live.is_timed and use.peak >= 0:
        after = quantity(int(use.time[use.peak]) - int(use.time[0]), "ns")
        return f", {after} after the start of the history"
    return ""


def values_of(snapshot: Snapshot, use: Use, live: LiveEvents) -> dict[str, Any]:
    """The values of one GPU for JSON; unknown ones are None. Times are ns, sizes bytes."""
    state = _state(snapshot, _number(use))
    is_timed = live.is_timed and use.peak >= 0
    return {
        "memory": use.name,
        "events": len(use.rows),
        "peak_bytes": use.base + use.peak_above,
        "peak_ns": int(use.time[use.peak]) if is_timed else None,
        "reserved_at_peak_bytes": _known(int(use.reserved[use.peak]))
        if use.reserved is not None and use.peak >= 0
        else None,
        "end_bytes": use.base + int(use.above[-1]),
        "state": {
            f"{name}_bytes" if name != "segments" else name: value
            for name, value in state._asdict().items()
        },
        "out_of_memory": _out_of_memory(snapshot, _number(use)),
        "timeline": timeline_of(use) if live.is_timed else None,
    }


def _bytes(size: float) -> str:
    return quantity(size, "bytes")
