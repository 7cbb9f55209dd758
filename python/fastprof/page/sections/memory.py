"""Section: allocated and reserved memory over time, and what is in memory at the peak."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from fastprof.analysis.memory.blocks import Use
from fastprof.analysis.memory.rows import envelope, uses_of, why_none
from fastprof.model.numbers import quantity
from fastprof.page.section import UPLOT, Chart, Fact, PageSource, Section
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_TITLE: Final = "Memory over time"
_POINTS: Final = 4000  # of a curve
_MOST: Final = 8  # memories


def section(source: PageSource) -> Section:
    """A curve per memory, with its peak and the steps."""
    profile = source.profile
    uses = uses_of(profile)
    if not uses:
        return Section("memory", _TITLE, missing=[why_none(profile)])
    table = source.table("memory")
    steps = profile.find_steps()
    shown = uses[:_MOST]
    missing = [
        f"{use.name}: live bytes at the start are not recorded; the curve is above the start"
        for use in shown
        if use.start is None
    ]
    rest = [use.name for use in uses[_MOST:]]
    return Section(
        "memory",
        _TITLE,
        facts=[_peak(use) for use in shown],
        charts=[_chart(use, steps) for use in shown],
        tables=[("What is in memory at the peak", table)],
        missing=[*missing, *([f"not drawn: {', '.join(rest)}"] if rest else [])],
    )


def _peak(use: Use) -> Fact:
    value = quantity(use.base + use.peak_above, "bytes")
    if use.peak < 0:
        return Fact(f"peak of {use.name}", value, "at the start")
    about = f"{quantity(int(use.time[use.peak] - use.time[0]), 'ns')} after the first event"
    if use.reserved is not None:
        about += f"; {quantity(int(use.reserved[use.peak]), 'bytes')} reserved"
    return Fact(f"peak of {use.name}", value, about)


def _chart(use: Use, steps: StepsOfKernels) -> Chart:
    first, live = int(use.time[0]), use.above + use.base
    rows = envelope(live, _POINTS)
    marked = steps.source != "none"
    starts = steps.start - first
    inside = np.flatnonzero((starts >= 0) & (starts <= int(use.time[-1]) - first) & marked)
    arrays: dict[str, Any] = {
        "ns": (use.time[rows] - first).astype(np.float64),
        "allocated": live[rows].astype(np.float64),
        "step_ns": starts[inside].astype(np.float64),
        "step": steps.number[inside].astype(np.int32),
    }
    if use.reserved is not None:
        reserved = use.reserved[rows].astype(np.float64)
        arrays["reserved"] = np.where(reserved > 0, reserved, np.nan)
    peak = int(use.time[use.peak]) - first if use.peak >= 0 else None
    return Chart(
        "memory",
        f"Bytes of {use.name} over time",
        {"peak_ns": peak, "peak_bytes": use.base + use.peak_above},
        arrays,
        UPLOT,
    )
