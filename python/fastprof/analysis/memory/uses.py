"""The use of each memory over time, and why there is none.

A curve with fewer points and the same extremes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from fastprof.analysis.memory.allocation_columns import CPU, GPU, events_of
from fastprof.analysis.memory.blocks import Use, blocks_of
from fastprof.errors import ReportError
from fastprof.model.arrays import Int64
from fastprof.profile.data import ProfileData
from fastprof.profile.program import WITH_OPERATORS

_NO_EVENTS: Final = {
    "kineto": "no memory events: record with torch.profiler.profile(profile_memory=True)",
    "nsys": "no memory events: record with nsys profile --cuda-memory-usage=true",
    "nvprof": "NVProf records no allocations: record with nsys profile --cuda-memory-usage=true",
    "dict": "no memory events in dict lines: use the original trace",
}
_TENSORS: Final = " (cudaMalloc), or with torch.profiler and profile_memory=True (tensors)"


def why_none(profile: ProfileData) -> str:
    """Why a trace has no memory events, and how to record them."""
    text = _NO_EVENTS[profile.about.format]
    is_nvidia = profile.about.format in ("nsys", "nvprof")
    return text + _TENSORS * (is_nvidia and profile.contents.program.kind in WITH_OPERATORS)


def uses_of(profile: ProfileData, device: str | int | None = None) -> list[Use]:
    """The use of the selected memories; none without memory events.

    device : see `fastprof.analysis.memory.report.memory`

    Raises
    ------
    ReportError
        There are events, but none of this memory.
    """
    recorded = profile.memory_events
    memories = events_of(recorded, lambda name: True).names
    if not memories:
        return []
    chosen = wanted(memories, None if device is None else str(device).lower())
    return blocks_of(events_of(recorded, chosen.__contains__), False).uses


def wanted(memories: Sequence[str], device: str | None) -> set[str]:
    """The selected memories; by default GPUs, else the CPU, else the first."""
    if device is None:
        of_gpus = {each for each in memories if each.startswith(GPU)}
        return of_gpus or {CPU if CPU in memories else memories[0]}
    name = f"{GPU} {device}".lower() if device.isdigit() else device
    found = {each for each in memories if name in (each.lower(), each.split()[0].lower())}
    if not found:
        raise ReportError(
            f"expected a memory with events (a number for a GPU), found {device!r}; the file "
            f"records {', '.join(sorted(memories))}"
        )
    return found


def envelope(values: Int64, most: int) -> Int64:
    """int64 [points] Rows that keep the extremes of a curve; about `most`, at least 4, ascending.

    Of equal parts of the curve, the first and last row, and a row of the minimum and of the
    maximum. Short curves keep all rows.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, max(most // 4, 1) + 1).astype(np.int64)
    extremes = [
        begin + int(place(values[begin:end]))
        for begin, end in pairwise(edges.tolist())
        for place in (np.argmin, np.argmax)
    ]
    rows: Int64 = np.concatenate([edges[:-1], edges[1:] - 1, np.array(extremes, np.int64)])
    return np.unique(rows)
