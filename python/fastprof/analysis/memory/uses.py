"""The use of each memory over time, and why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastprof.analysis.memory.allocation_columns import CPU, GPU, events_of
from fastprof.analysis.memory.blocks import Use, blocks_of
from fastprof.errors import ReportError
from fastprof.profile.profile import Profile
from fastprof.profile.program import WITH_OPERATORS

_NO_EVENTS: Final = {
    "kineto": "no memory events: record with torch.profiler.profile(profile_memory=True)",
    "nsys": "no memory events: record with nsys profile --cuda-memory-usage=true",
    "nvprof": "NVProf records no allocations: record with nsys profile --cuda-memory-usage=true",
    "dict": "no memory events in dict lines: use the original trace",
}
_TENSORS: Final = " (cudaMalloc), or with torch.profiler and profile_memory=True (tensors)"


def why_none(profile: Profile) -> str:
    """Why a trace has no memory events, and how to record them."""
    text = _NO_EVENTS[profile.about.format]
    is_nvidia = profile.about.format in ("nsys", "nvprof")
    return text + _TENSORS * (is_nvidia and profile.contents.program.kind in WITH_OPERATORS)


def uses_of(profile: Profile, device: str | int | None = None) -> list[Use]:
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
