"""`memory`: peak memory, the blocks live at the peak by category, and the code behind them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis import keys
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.host.events import CpuEvents, cpu_events
from fastprof.analysis.memory.blocks import Blocks, Use, blocks_of
from fastprof.analysis.memory.columns import memory_keys
from fastprof.analysis.memory.rows import (
    GPU,
    AllocationColumns,
    Net,
    empty_table,
    events_of,
    rows_of,
    wanted,
    why_none,
)
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import selected
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.model.metadata import About
from fastprof.model.numbers import quantity
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
    kernels = profile.find_steps(steps)
    columns = AllocationColumns(profile, recorded, events, kernels)
    newest_first = bool(np.any(keys.key_of(columns, "dir").array() == "bprop"))
    blocks = blocks_of(events, newest_first)
    names = names or _default(columns)
    of_blocks = [_key(columns, blocks, kernels, name) for name in names]
    events_selected = selected(columns, where)
    rows = None if events_selected is None else events_selected[blocks.begin[blocks.is_recorded]]
    net = _net(profile, names, chosen) if rows is None and steps is None else None
    table = rows_of(blocks, dict(zip(names, of_blocks, strict=True)), rows, net)
    lead, facts = _overview(profile.about, blocks, columns, kernels)
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
    values = keys.key_of(columns, name)
    return Values(values.ids[begin], values.values)


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
        result = per_step(blocks, use, steps, pid[use.rows])
        at_peak = int(step[use.peak_event]) if use.peak >= 0 and result is not None else -1
        number = use.name.removeprefix(f"{GPU} ")
        gpu = about.gpus.get(int(number)) if number.isdigit() else None
        peak_step = at_peak if at_peak >= 0 else None
        lines += lines_of(use, result, gpu, peak_step)
        values.append(values_of(use, result, peak_step))
    return lines, values


def _notes(about: About, blocks: Blocks) -> tuple[str, ...]:
    notes = []
    if about.format in _SEGMENTS:
        notes.append(_SEGMENTS[about.format])
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


_OF_TENSORS: Final = (
    ": segments of PyTorch's allocator, not tensors; for tensors, record with torch.profiler and "
    "profile_memory=True"
)
_OF_AMD: Final = "rocprofv3 records allocations of the driver, those of hipMalloc and its own"
_SEGMENTS: Final = {
    "nsys": f"nsys records cudaMalloc and cudaFree{_OF_TENSORS}",
    **dict.fromkeys(("rocprof", "rocpd"), f"{_OF_AMD}{_OF_TENSORS}"),
}
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
    result = np.full(len(begin), _UNKNOWN, np.int32)

    def assign(where: Bools, category: int) -> None:
        result[where & (result == _UNKNOWN)] = category

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
    return Values(result, _NAMES)


def _in(phase: Values, names: Collection[str]) -> Bools:
    return phase.fits(lambda name: name in names)


def _between(begin: Int64, end: Int64, wanted: Bools) -> Bools:
    """Whether a wanted event lies between the allocation and the free of each block."""
    places = np.append(np.flatnonzero(wanted), len(wanted) + 1)
    return np.asarray(places[np.searchsorted(places, begin, "right")] < end)


def _are_inputs(columns: AllocationColumns) -> Bools:
    inside = texts(columns, "layer").fits(bool)
    return np.asarray(_in(texts(columns, "op"), _MOVES) & ~inside)


_POINTS: Final = 500  # of a time line in JSON
_WIDTH: Final = 56  # characters of a time line in text
_BARS: Final = "▁▂▃▄▅▆▇█"


class PerStep(NamedTuple):
    """The use of one memory in each counted step; int64 [steps].

    Parameters
    ----------
    number : the step
    allocations, allocated : number and bytes
    peak, at_end : live bytes above the start, the most in the step and at its end
    """

    number: Int64
    allocations: Int64
    allocated: Int64
    peak: Int64
    at_end: Int64

    @property
    def growth(self) -> float | None:
        """Mean growth of the live bytes from step to step; None for less than two steps."""
        n = len(self.number)
        return float(self.at_end[-1] - self.at_end[0]) / (n - 1) if n > 1 else None


def per_step(blocks: Blocks, use: Use, steps: StepsOfKernels, pids: Int64) -> PerStep | None:
    """The steps of the processes that use the memory; None without known steps.

    pids : process of each event of `use`
    """
    rows = np.flatnonzero(
        steps.is_counted & (steps.end > steps.start) & np.isin(steps.pid, [-1, *np.unique(pids)])
    )
    if steps.source == "none" or not len(rows):
        return None
    size = np.where(blocks.events.is_allocation, blocks.events.size, 0)[use.rows]
    first = np.searchsorted(use.time, steps.start[rows], "left")
    last = np.searchsorted(use.time, steps.end[rows], "left")
    count = np.append(0, np.cumsum(size > 0))
    total = np.append(np.int64(0), np.cumsum(size))
    return PerStep(
        number=steps.number[rows],
        allocations=count[last] - count[first],
        allocated=total[last] - total[first],
        peak=use.most(first, last),
        at_end=use.after(steps.end[rows]),
    )


def lines_of(use: Use, found: PerStep | None, gpu: str | None, peak_step: int | None) -> list[str]:
    """The lines of one memory: peak, reserved memory, steps, time line.

    gpu : name of the GPU, None if unknown
    peak_step : number of the step of the peak, None if unknown
    """
    name = f"{use.name} ({gpu})" if gpu else use.name
    height = _bytes(use.base + use.peak_above)
    above = "" if use.start is not None else " above the start of the capture"
    place = "at the start" if use.peak < 0 else f"{_time(use)} after the first event"
    step = "" if peak_step is None else f", in step {peak_step}"
    lines = [f"{name}: peak {height}{above}, {place}{step}"]
    if use.start is not None:
        end = use.start + int(use.above[-1])
        lines.append(f"live at the start {_bytes(use.start)}, at the end {_bytes(end)}")
    if use.reserved is not None and use.peak >= 0:
        reserved = int(use.reserved[use.peak])
        free = reserved - use.base - use.peak_above
        if reserved > 0 and free >= 0:
            lines.append(
                f"reserved at the peak {_bytes(reserved)}: {_bytes(free)} ({free / reserved:.1%}) "
                "of it not allocated"
            )
    if found is not None:
        lines.append(_of_steps(found))
    return [*lines, drawn(use)]


def _of_steps(step: PerStep) -> str:
    line = f"a step: {step.allocations.mean():.0f} allocations, {_bytes(step.allocated.mean())}"
    if step.growth is None:
        return line
    change = np.diff(step.at_end)
    if not change.any():
        return f"{line}; live bytes at the end of steps are equal"
    if (change > 0).all():
        return f"{line}; live bytes grow by {_bytes(step.growth)} per step, in every step"
    spread = int(step.at_end.max() - step.at_end.min())
    return f"{line}; live bytes at the end of steps vary by {_bytes(spread)}"


def drawn(use: Use) -> str:
    """The live bytes over time as one line of bars."""
    _, live = use.line(_WIDTH)
    least, most = int(min(live.min(), 0)), int(live.max())
    level = (live - least) * (len(_BARS) - 1) // max(most - least, 1)
    bars = "".join(_BARS[number] for number in level.tolist())
    low, high = _bytes(use.base + least), _bytes(use.base + most)
    if low == high and most > least:
        return f"{bars} {low}, and up to {_bytes(most - least)} more"
    return f"{bars} {low} to {high}"


def values_of(use: Use, step: PerStep | None, peak_step: int | None) -> dict[str, Any]:
    """The values of one memory for JSON; unknown ones are None. Times are ns, sizes bytes.

    Live bytes are absolute if `start_bytes` is known, else above the start.
    """
    return {
        "memory": use.name,
        "events": len(use.rows),
        "start_bytes": use.start,
        "peak_bytes": use.base + use.peak_above,
        "peak_above_start_bytes": use.peak_above,
        "peak_ns": None if use.peak < 0 else int(use.time[use.peak]),
        "peak_step": peak_step,
        "reserved_at_peak_bytes": None
        if use.reserved is None or use.peak < 0
        else int(use.reserved[use.peak]),
        "end_bytes": use.base + int(use.above[-1]),
        "steps": None if step is None else _values_of_steps(step, use.base),
        "timeline": timeline_of(use),
    }


def timeline_of(use: Use) -> dict[str, list[int]]:
    """The most live bytes in equal intervals, for JSON; `ns` is the start of each."""
    starts, live = use.line(_POINTS)
    return {"ns": starts.tolist(), "live_bytes": (live + use.base).tolist()}


def _values_of_steps(step: PerStep, base: int) -> dict[str, Any]:
    return {
        "number": step.number.tolist(),
        "allocations": step.allocations.tolist(),
        "allocated_bytes": step.allocated.tolist(),
        "peak_bytes": (step.peak + base).tolist(),
        "end_bytes": (step.at_end + base).tolist(),
        "growth_bytes": step.growth,
    }


def _bytes(size: float) -> str:
    return quantity(size, "bytes")


def _time(use: Use) -> str:
    return quantity(int(use.time[use.peak]) - int(use.time[0]), "ns")
