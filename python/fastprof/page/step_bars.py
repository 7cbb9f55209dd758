"""The charts of the parts of each step: busy time by kind of work, idle time by cause."""

from __future__ import annotations

from itertools import islice
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.steps_windows import Lane, times_of
from fastprof.model.arrays import Int32, Int64
from fastprof.page.section import Chart

_MOST_LANES: Final = 8
_BUSY: Final = (
    ("compute_ns", "compute", "compute"),
    ("exposed_communication_ns", "exposed communication", "communication"),
    ("exposed_copy_ns", "exposed copies", "copy"),
)


def step_bars(facts: Facts) -> tuple[list[Chart], list[str]]:
    """A chart for each GPU, and what is missing."""
    order, bounds = facts.windows.in_lanes()
    n_lanes = len(facts.windows.lanes)
    rows = order[: bounds[min(n_lanes, _MOST_LANES)]]
    windows = facts.windows.take(rows)
    missing: list[str] = []
    rest = "before the first work"  # no gap: nothing precedes it
    times = times_of(windows)
    idle = times["idle_ns"]
    parts: list[tuple[str, str, str, Int64]] = [
        (title, "busy", color, times[name]) for name, title, color in _BUSY
    ]
    try:
        causes = facts.idle_by_window(rows)
    except CannotJudge as reason:
        rest = "idle, cause unknown"
        missing.append(f"causes of idle time unknown: {reason}")
        causes = np.zeros((len(idle), len(CAUSES)), np.int64)
    parts += [(name, "cause", name, causes[:, i]) for i, name in enumerate(CAUSES)]
    parts.append((rest, "cause", "other", idle - causes.sum(axis=1)))
    charts = []
    for lane, own in islice(windows.by_lane(), _MOST_LANES):
        known = own[windows.is_known[own]]
        some = [part for part in parts if part[3][known].any()]
        if some:
            charts.append(_chart(facts, lane, windows.step[known], known, some, n_lanes > 1))
        else:
            missing.append(
                f"no chart of GPU {lane.device}, process {lane.pid}: its steps take 0 ns"
            )
    if n_lanes > _MOST_LANES:
        missing.append(f"charts of {n_lanes - _MOST_LANES} more GPUs are omitted")
    return charts, missing


def _chart(
    facts: Facts,
    lane: Lane,
    step: Int32,
    rows: Int64,
    parts: list[tuple[str, str, str, Int64]],
    is_named: bool,
) -> Chart:
    """The chart of a GPU.

    step : int32 [rows], rows of the steps
    """
    number = facts.steps.number[step]
    unit = "each step" if facts.has_steps else f"the {facts.steps.unit}"
    where = f", GPU {lane.device}, process {lane.pid}" if is_named else ""
    return Chart(
        "bars",
        f"What the GPU does in {unit}{where}",
        {
            "unit": facts.steps.unit,
            "labels": number.tolist() if facts.has_steps else [""],
            "parts": [{"name": name, "color": [group, color]} for name, group, color, _ in parts],
        },
        {"values": np.concatenate([each[rows] for *_, each in parts]).astype(np.float64)},
        ("bars.css",),
    )
