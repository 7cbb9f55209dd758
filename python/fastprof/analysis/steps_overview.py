"""The lines above the table of `steps`: lengths, what a step consists of, and outliers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof.analysis.gpu_work import MOST_GPUS
from fastprof.analysis.steps_outliers import LARGE, PARTS, Outlier
from fastprof.analysis.steps_sums import HOST_TIMES
from fastprof.analysis.steps_windows import Windows
from fastprof.model.arrays import Int64
from fastprof.model.quantity import quantity, scale_of

_MOST_LANES: Final = 8
_NAMES: Final = {
    "compute_ns": "compute",
    "exposed_communication_ns": "exposed communication",
    "exposed_copy_ns": "exposed copies",
    "idle_ns": "idle",
    "sync_ns": "sync",
    "data_loading_ns": "data loading",
    "alloc_ns": "allocation",
}


def lengths(windows: Windows, columns: Mapping[str, Int64]) -> list[dict[str, Any]]:
    """Per GPU: mean, spread, median, least and greatest wall, and the mean of each part.

    Of the counted steps, of at most `MOST_GPUS`, the busiest.
    """
    found = []
    every, bounds = windows.in_lanes(windows.is_counted)
    busy = np.bincount(windows.lane[every], columns["busy_ns"][every], len(windows.lanes))
    known = np.flatnonzero(np.diff(bounds))
    busiest = known[np.argsort(-busy[known], kind="stable")[:MOST_GPUS]]
    for number in np.sort(busiest).tolist():
        lane, rows = windows.lanes[number], every[bounds[number] : bounds[number + 1]]
        wall = windows.wall[rows]
        found.append(
            {
                "pid": _known(lane.pid),
                "device": _known(lane.device),
                "steps": len(rows),
                "mean_ns": float(wall.mean()),
                "std_ns": float(wall.std(ddof=1)) if len(rows) > 1 else 0.0,
                "median_ns": float(np.median(wall)),
                "min_ns": int(wall.min()),
                "max_ns": int(wall.max()),
                **{name: float(columns[name][rows].mean()) for name in ("busy_ns", *PARTS)},
            }
        )
    return found


def part_lines(found: Sequence[Mapping[str, Any]], unit: str, n_more: int) -> Iterator[str]:
    """A line per GPU.

    unit : what the lengths are of, see `StepsOfKernels.unit`
    n_more : GPUs that are not in `found`
    """
    pids = {each["pid"] for each in found}
    for each in found[:_MOST_LANES]:
        name = f"process {each['pid']}, " if len(pids) > 1 else ""
        name = f"{name}GPU {each['device']}: " if len(found) > 1 else ""
        mean = each["mean_ns"]
        text = f"{name}{unit} {quantity(mean, 'ns')}"
        if each["steps"] > 1:
            spread = each["std_ns"] / scale_of("ns", mean).size
            text += (
                f" ± {float(f'{spread:.2g}'):g} (median {quantity(each['median_ns'], 'ns')}, "
                f"{quantity(each['min_ns'], 'ns')} to {quantity(each['max_ns'], 'ns')})"
            )
        parts = [f"{_NAMES[part]} {quantity(each[part], 'ns')}" for part in PARTS if each[part]]
        share = each["busy_ns"] / mean if mean else 0.0
        yield f"{text}: {', '.join(parts)}; GPU busy {share:.1%}"
    if len(found) > _MOST_LANES:
        yield f"... {len(found) - _MOST_LANES + n_more} more GPUs"


def outlier_lines(
    found: Sequence[Outlier], n_outliers: int, windows: Windows, number: Int64
) -> Iterator[str]:
    """A line per outlier, or for the slow steps of a GPU.

    number : [rows] the number of the step
    """
    several = len(windows.lanes) > 1
    for each in found:
        lane = windows.lane[each.rows[0]]
        where = f" on GPU {windows.lanes.device[lane]}" if several else ""
        wall = quantity(float(windows.wall[each.rows].mean()), "ns")
        way = "over" if each.over_ns > 0 else "under"
        steps = f"outlier: step {number[each.rows[0]]}{where} takes"
        if len(each.rows) > 1:
            n = np.count_nonzero(windows.is_counted & (windows.lane == lane))
            steps = f"slow: {len(each.rows)} of {n} steps{where} take on average"
        yield (
            f"{steps} {wall}, "
            f"{quantity(abs(each.over_ns), 'ns')} {way} the mean of the others: "
            f"{'; '.join(_differences(each))}"
        )
    shown = sum(len(each.rows) == 1 for each in found)
    if n_outliers > shown:
        yield f"... {n_outliers - shown} more outliers, see the column flag"


def _differences(outlier: Outlier) -> Iterator[str]:
    causes = ", ".join(_large(outlier.causes, outlier.over_ns))
    parts = {_NAMES[name]: outlier.changes[name] for name in PARTS}
    yield ", ".join(
        f"{text} ({causes})" if text.startswith("idle") and causes else text
        for text in _large(parts, outlier.over_ns)
    )
    host = {_NAMES[name]: outlier.changes.get(name, 0.0) for name in HOST_TIMES}
    for title, times in (("host", host), ("GPU time", outlier.ops)):
        if texts := list(_large(times, outlier.over_ns)):
            yield f"{title}: {', '.join(texts)}"
    kernels = outlier.changes["kernels"]
    if abs(kernels) >= 1:
        yield f"kernels {kernels:+.0f}"


def _large(times: Mapping[str, float], over_ns: float) -> Iterator[str]:
    """The times that explain a part of a difference, the largest first."""
    for name in sorted(times, key=lambda each: -abs(times[each])):
        if times[name] and abs(times[name]) >= LARGE * abs(over_ns):
            yield f"{name} {_signed(times[name])}"


def _signed(time: float) -> str:
    return ("+" if time >= 0 else "-") + quantity(abs(time), "ns")


def outlier_facts(
    found: Sequence[Outlier], windows: Windows, number: Int64
) -> list[dict[str, Any]]:
    """The outliers for JSON; differences from the mean of the other steps."""
    return [
        {
            "step": int(number[each.rows[0]]) if len(each.rows) == 1 else None,
            "steps": number[each.rows].tolist(),
            "device": _known(int(windows.lanes.device[windows.lane[each.rows[0]]])),
            "over_ns": each.over_ns,
            "changes": each.changes,
            "ops": each.ops,
            "causes": each.causes,
        }
        for each in found
    ]


def _known(number: int) -> int | None:
    return number if number >= 0 else None
