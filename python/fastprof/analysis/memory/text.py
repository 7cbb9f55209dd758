"""The lines above the table of `memory`, and their values for JSON."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.memory.blocks import Blocks, Use
from fastprof.model.arrays import Int64
from fastprof.model.quantity import quantity
from fastprof.profile.steps.kernel_steps import StepsOfKernels

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


def _of_steps(found: PerStep) -> str:
    line = f"a step: {found.allocations.mean():.0f} allocations, {_bytes(found.allocated.mean())}"
    if found.growth is None:
        return line
    change = np.diff(found.at_end)
    if not change.any():
        return f"{line}; live bytes at the end of steps are equal"
    if (change > 0).all():
        return f"{line}; live bytes grow by {_bytes(found.growth)} per step, in every step"
    spread = int(found.at_end.max() - found.at_end.min())
    return f"{line}; live bytes at the end of steps vary by {_bytes(spread)}"


def drawn(use: Use) -> str:
    """The live bytes over time as one line of bars."""
    _, live = use.line(_WIDTH)
    least, most = int(min(live.min(), 0)), int(live.max())
    level = (live - least) * (len(_BARS) - 1) // max(most - least, 1)
    bars = "".join(_BARS[each] for each in level.tolist())
    low, high = _bytes(use.base + least), _bytes(use.base + most)
    if low == high and most > least:
        return f"{bars} {low}, and up to {_bytes(most - least)} more"
    return f"{bars} {low} to {high}"


def values_of(use: Use, found: PerStep | None, peak_step: int | None) -> dict[str, Any]:
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
        "steps": None if found is None else _values_of_steps(found, use.base),
        "timeline": timeline_of(use),
    }


def timeline_of(use: Use) -> dict[str, list[int]]:
    """The most live bytes in equal intervals, for JSON; `ns` is the start of each."""
    starts, live = use.line(_POINTS)
    return {"ns": starts.tolist(), "live_bytes": (live + use.base).tolist()}


def _values_of_steps(found: PerStep, base: int) -> dict[str, Any]:
    return {
        "number": found.number.tolist(),
        "allocations": found.allocations.tolist(),
        "allocated_bytes": found.allocated.tolist(),
        "peak_bytes": (found.peak + base).tolist(),
        "end_bytes": (found.at_end + base).tolist(),
        "growth_bytes": found.growth,
    }


def _bytes(size: float) -> str:
    return quantity(size, "bytes")


def _time(use: Use) -> str:
    return quantity(int(use.time[use.peak]) - int(use.time[0]), "ns")
