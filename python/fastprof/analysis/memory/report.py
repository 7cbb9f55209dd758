"""`memory`: peak memory, the blocks live at the peak, and the code that allocates them.

Categories of blocks: parameters, gradients, activations, ..., from the phases of a trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from fastprof.analysis import keys
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.host.cpu_events import CpuEvents, cpu_events
from fastprof.analysis.memory.allocation_columns import GPU, AllocationColumns, events_of
from fastprof.analysis.memory.blocks import Blocks, blocks_of
from fastprof.analysis.memory.columns import memory_keys
from fastprof.analysis.memory.rows import Net, empty_table, rows_of
from fastprof.analysis.memory.text import lines_of, per_step, values_of
from fastprof.analysis.memory.uses import wanted, why_none
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.model.metadata import About
from fastprof.model.table import Table
from fastprof.profile import phases
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels


def memory(
    profile: ProfileData,
    by: str | Sequence[str] | None = None,
    device: str | int | None = None,
    where: Where | None = None,
    steps: str | None = None,
) -> Table:
    """Allocations by any keys: live at the peak, allocated, live at the end. See docs/reports.md.

    Sizes are in bytes. Without memory events, the table is empty and a note names the option that
    records them.

    Parameters
    ----------
    by : keys, see docs/reports.md; by default `op`, or without operators `range` or `device`
    device : `gpu`, `cpu`, `pinned`, `managed` or the number of a GPU; by default all GPUs, or
        without events of GPUs the CPU
    where : only these allocations, see `fastprof.analysis.selection`; the lines above the table
        describe all
    steps : what a step is, see `Profile.find_steps`

    Raises
    ------
    ReportError
        A key or memory is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    names = (by,) if isinstance(by, str) else tuple(by or ())
    if names:
        memory_keys(",".join(names))
    recorded = profile.memory_events
    memories = events_of(recorded, lambda name: True).names
    if not memories:
        return empty_table(why_none(profile), {})
    chosen = str(device).lower() if device is not None else None
    events = events_of(recorded, wanted(memories, chosen).__contains__)
    found = profile.find_steps(steps)
    columns = AllocationColumns(profile, recorded, events, found)
    newest_first = bool(np.any(keys.key_of(columns, "dir").array() == "bprop"))
    blocks = blocks_of(events, newest_first)
    names = names or _default(columns)
    of_blocks = [_key(columns, blocks, found, name) for name in names]
    events_selected = selected(columns, where)
    rows = None if events_selected is None else events_selected[blocks.begin[blocks.is_recorded]]
    net = _net(profile, names, chosen) if rows is None and steps is None else None
    table = rows_of(blocks, dict(zip(names, of_blocks, strict=True)), rows, net)
    lead, facts = _overview(profile.about, blocks, columns, found)
    return Table(
        table.columns,
        table.headings,
        lead=(*lead, ""),
        notes=(*_notes(profile.about, blocks), *table.notes),
        total=table.total,
        facts={"memories": facts},
    )


def _default(columns: AllocationColumns) -> tuple[str, ...]:
    for name in ("op", "range"):
        if keys.key_of(columns, name).ids.max(initial=-1) >= 0:
            return (name,)
    return ("device",)


def _key(columns: AllocationColumns, blocks: Blocks, steps: StepsOfKernels, name: str) -> Values:
    """A key of the recorded blocks: of the events that allocate them."""
    if name == "category":
        return categories(blocks, columns, steps.source != "none")
    begin = blocks.begin[blocks.is_recorded]
    if name == "size":
        distinct, ids = np.unique(blocks.size[blocks.is_recorded], return_inverse=True)
        return Values(ids.astype(np.int32), distinct.tolist())
    found = keys.key_of(columns, name)
    return Values(found.ids[begin], found.values)


def _net(profile: ProfileData, names: Sequence[str], device: str | None) -> Net | None:
    """The memory of operators as torch.profiler counts it; None if it has no such keys."""
    if profile.about.format != "kineto" or set(names) & _WITHOUT_EVENTS or (device or "").isdigit():
        return None
    events: CpuEvents = cpu_events(profile)
    place = device or ("gpu" if "gpu" in events.memory else "cpu")
    if place not in events.memory:
        return None
    return Net(events, events.memory[place], {name: keys.key_of(events, name) for name in names})


_WITHOUT_EVENTS: Final = frozenset({"category", "device", "size", "stream"})


def _overview(
    about: About, blocks: Blocks, columns: AllocationColumns, steps: StepsOfKernels
) -> tuple[list[str], list[dict[str, Any]]]:
    """The lines above the table, and their values."""
    lines: list[str] = []
    values: list[dict[str, Any]] = []
    pid, step = numbers(columns, "pid"), numbers(columns, "step")
    for use in blocks.uses:
        found = per_step(blocks, use, steps, pid[use.rows])
        at_peak = int(step[use.peak_event]) if use.peak >= 0 and found is not None else -1
        number = use.name.removeprefix(f"{GPU} ")
        gpu = about.gpus.get(int(number)) if number.isdigit() else None
        peak_step = at_peak if at_peak >= 0 else None
        lines += lines_of(use, found, gpu, peak_step)
        values.append(values_of(use, found, peak_step))
    return lines, values


def _notes(about: About, blocks: Blocks) -> tuple[str, ...]:
    notes = []
    if about.format == "nsys":
        notes.append(_SEGMENTS)
    if blocks.is_by_size:
        notes.append(_BY_SIZE)
    if any(use.start is None for use in blocks.uses):
        notes.append(_NO_START)
    if blocks.lost_frees:
        notes.append(
            f"{blocks.lost_frees} blocks without a recorded free end with the next allocation at "
            "their address"
        )
    misfits = sum(use.misfits for use in blocks.uses)
    if misfits:
        notes.append(
            f"after {misfits} events, the recorded total differs from the sum of the recorded "
            "allocations and frees: some were not recorded"
        )
    return tuple(notes)


_SEGMENTS: Final = (
    "nsys records cudaMalloc and cudaFree: segments of PyTorch's allocator, not tensors; for "
    "tensors, record with torch.profiler and profile_memory=True"
)
_BY_SIZE: Final = (
    "no addresses recorded: a free counts for an allocation of its size, so rows are estimates; "
    "totals are exact"
)
_NO_START: Final = (
    "live bytes at the start are not recorded: the peak is above the start, and blocks from before "
    "the capture count only if it frees them"
)


_NAMES: Final = [
    *("parameters", "inputs", "activations", "gradients", "optimizer state", "kept", "temporary"),
    "unknown",
]
_PARAMETERS, _INPUTS, _ACTIVATIONS, _GRADIENTS, _STATE, _KEPT, _TEMPORARY, _UNKNOWN = range(8)
# Operators that copy data to a device.
_MOVES: Final = frozenset({"to", "_to_copy", "copy_", "cuda", "pin_memory"})


def categories(blocks: Blocks, columns: AllocationColumns, has_steps: bool) -> Values:
    """[recorded blocks] The category, by the phases of allocation and free.

    - optimizer state: allocated by the optimizer, live in a later forward or backward pass
    - gradients: allocated in a backward pass, live in a later forward pass or optimizer step
    - inputs: allocated in a forward pass by an operator that copies, outside of layers
    - activations: allocated in a forward pass, live in a later backward pass of the step
    - kept: the same, live at the end of the capture or two steps later
    - parameters: allocated before the first step and never freed
    - temporary: freed in the same pass
    - unknown: allocated outside of operators, or not freed and none of the above

    has_steps : whether the steps of the trace are known
    """
    own = blocks.is_recorded
    begin, end = blocks.begin[own], blocks.end[own]
    is_live = blocks.is_live_at_end[own]
    phase = texts(columns, "phase")
    forward, backward = _in(phase, (phases.FORWARD,)), _in(phase, (phases.BACKWARD,))
    recompute = _in(phase, (phases.RECOMPUTE,))
    optimizer = _in(phase, (phases.OPTIMIZER, phases.ZERO_GRAD))
    step = numbers(columns, "step")
    last = int(step.max(initial=-1))
    freed = np.append(step, last)[end]  # live blocks: the last step
    later = (step[begin] >= 0) & (freed >= step[begin] + np.where(is_live, 1, 2)) & has_steps
    first = np.flatnonzero(step >= 0)[:1]
    is_early = (step[begin] < 0) & (begin < first.max(initial=0)) & has_steps
    in_backward = _between(begin, end, backward)
    outlives_backward = _between(begin, end, forward | optimizer)
    outlives_optimizer = _between(begin, end, forward | backward)
    found = np.full(len(begin), _UNKNOWN, np.int32)

    def assign(where: Bools, category: int) -> None:
        found[where & (found == _UNKNOWN)] = category

    assign(optimizer[begin] & (outlives_optimizer | is_live), _STATE)
    assign(optimizer[begin], _TEMPORARY)
    assign(backward[begin] & (outlives_backward | is_live), _GRADIENTS)
    assign(backward[begin], _TEMPORARY)
    assign(recompute[begin] & in_backward, _ACTIVATIONS)
    assign(recompute[begin] & ~is_live, _TEMPORARY)
    assign(forward[begin] & is_early & is_live, _PARAMETERS)
    assign(forward[begin] & later, _KEPT)
    assign(forward[begin] & _are_inputs(columns)[begin], _INPUTS)
    assign(forward[begin] & in_backward, _ACTIVATIONS)
    assign(forward[begin] & ~is_live, _TEMPORARY)
    return Values(found, _NAMES)


def _in(phase: Values, names: Collection[str]) -> Bools:
    return phase.fits(lambda name: name in names)


def _between(begin: Int64, end: Int64, wanted: Bools) -> Bools:
    """Whether a wanted event lies between the allocation and the free of each block."""
    places = np.append(np.flatnonzero(wanted), len(wanted) + 1)
    return np.asarray(places[np.searchsorted(places, begin, "right")] < end)


def _are_inputs(columns: AllocationColumns) -> Bools:
    inside = texts(columns, "layer").fits(bool)
    return np.asarray(_in(texts(columns, "op"), _MOVES) & ~inside)
