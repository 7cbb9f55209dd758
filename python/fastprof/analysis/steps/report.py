"""`steps`: the length of each step on each GPU, and how the GPU spends it.

The lines above the table of `steps`: lengths, what a step consists of, and outliers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis.gpu_work import MOST_GPUS
from fastprof.analysis.notes import NO_GPU_WORK, timeline_notes
from fastprof.analysis.recorder import recorder_lines
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.peaks import devices_with
from fastprof.analysis.selection import selected
from fastprof.analysis.steps.columns import COLUMNS, CUT, NO_WORK, OUTLIER, SLOW, WARM_UP
from fastprof.analysis.steps.outliers import (
    LARGE,
    LEAST_STEPS,
    PARTS,
    Outlier,
    far_steps,
    outliers_of,
)
from fastprof.analysis.steps.windows import (
    HOST_TIMES,
    Windows,
    host_times,
    launched_work,
    times_of,
    windows_of,
)
from fastprof.analysis.summary.measures import shown
from fastprof.model.arrays import Bools, Int64, unique
from fastprof.model.columns import Ints
from fastprof.model.quantity import quantity, scale_of
from fastprof.model.table import ColumnData, Table, texts
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.recording_hints import advice_on
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_MOST_OUTLIERS: Final = 5
_NOT_ZERO: Final = (
    "communication_ns", "exposed_communication_ns", "hidden_communication_ns", "copy_ns",
    "exposed_copy_ns", "data_loading_ns", "alloc_ns", "sync_ns",
)  # fmt: skip


def steps(
    profile: ProfileData,
    steps: str | None = None,
    where: Where | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """A row per step and GPU, in order of step.

    Parameters
    ----------
    steps : what a step is, see `Profile.find_steps`
    where : only this work counts as busy, and only steps with such work are rows; see
        `fastprof.analysis.selection`
    gpu, peak, bandwidth : see `fastprof.model.device_options.with_figures`

    Raises
    ------
    ReportError
        A key, GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    devices, rows = devices_with(profile, gpu, peak, bandwidth), selected(profile, where)
    with SecondThread() as second:
        if "start" in profile.names:
            second.submit(lambda: profile.api)  # reads the file again
        found = profile.find_steps(steps)
        windows = windows_of(profile, found, rows)
        if not len(windows):
            return _table({}, (), (_why_empty(profile),), {})
        host = second.submit(host_times, profile, windows, found)
        columns: dict[str, ColumnData] = launched_work(profile, windows, found, devices)
        columns |= {name: Ints(each) for name, each in times_of(windows).items()}
        defects = timeline_notes(profile)
        columns |= {name: Ints(each) for name, each in host.result().items()}
    return _of_windows(profile, found, windows, columns, defects)


def _why_empty(profile: ProfileData) -> str:
    if "start" not in profile.names:
        return "dict lines contain no times: run fastprof steps on the original trace"
    return advice_on(profile.about, profile.contents, "op") if not len(profile) else NO_GPU_WORK


def _of_windows(
    profile: ProfileData,
    steps: StepsOfKernels,
    windows: Windows,
    columns: dict[str, ColumnData],
    defects: tuple[str, ...],
) -> Table:
    wall, number = windows.wall, steps.number[windows.step]
    outlier, slow = np.zeros(len(windows), bool), np.zeros(len(windows), bool)
    every, bounds = windows.in_lanes()
    for lane in np.flatnonzero(np.diff(bounds) >= LEAST_STEPS).tolist():
        rows = every[bounds[lane] : bounds[lane + 1]]
        outlier[rows], slow[rows] = far_steps(wall[rows], windows.is_counted[rows])
    host = steps.end - steps.start
    columns |= {
        "step": Ints(number),
        "pid": Ints(windows.lanes.pid[windows.lane]),
        "device": Ints(windows.lanes.device[windows.lane]),
        "wall_ns": Ints(wall),
        "host_ns": Ints(np.where(steps.source == "none", -1, host)[windows.step]),
        "is_counted": Ints(windows.is_counted.astype(np.int64)),
        "flag": texts(_flags(windows, outlier, slow)),
    }
    values = {name: each.values for name, each in columns.items() if isinstance(each, Ints)}
    of_gpus = lengths(windows, values)
    n_more = len(unique(windows.lane[windows.is_counted])) - len(of_gpus)
    found = outliers_of(profile, steps, windows, values, (outlier, slow), _MOST_OUTLIERS)
    gpus = gpu_names(profile.about, profile.column("device"))
    lead = (
        *filter(None, [", ".join(filter(None, [gpus, steps.description])), steps.left_out]),
        *part_lines(of_gpus, steps.unit, n_more),
        *recorder_lines(profile, steps),
        *outlier_lines(found, int(outlier.sum()), windows, number),
        "",
    )
    facts: dict[str, Any] = {"lengths": of_gpus, "outliers": outlier_facts(found, windows, number)}
    facts |= {"more_gpus": {"gpus": n_more}} if n_more else {}
    notes = (*steps.notes, *_notes(profile, steps, windows, values), *defects)
    return _table(columns, lead, notes, facts)


def _flags(windows: Windows, outlier: Bools, slow: Bools) -> list[str]:
    excluded = ~windows.is_counted
    code = np.select(
        [outlier, slow, ~windows.is_known, windows.is_cut & excluded, excluded], [1, 2, 3, 4, 5], 0
    )
    names = ("", OUTLIER, SLOW, NO_WORK, CUT, WARM_UP)
    return [names[flag] for flag in code.tolist()]


def _notes(
    profile: ProfileData,
    steps: StepsOfKernels,
    windows: Windows,
    values: Mapping[str, np.ndarray],
) -> Iterator[str]:
    outside = int(np.count_nonzero(steps.of_kernel < 0))
    if outside:
        yield f"outside of all steps: {outside} kernels and copies, busy time where they run"
    if len(unique(windows.lanes.device)) < len(windows.lanes):
        yield "processes use the same GPU numbers: each row has the work of its own process only"
    if (values["sync_ns"] < 0).all():
        missing = "no API calls in the file; record them with nsys profile -t cuda"
        yield f"host times unknown: {profile.source.host_omitted or missing}"


def _table(
    columns: dict[str, ColumnData],
    lead: tuple[str, ...],
    notes: tuple[str, ...],
    facts: dict[str, Any],
) -> Table:
    none: ColumnData = Ints(np.empty(0, np.int64))
    found = {each.key: columns.get(each.key, none) for each in COLUMNS}
    several = {name for name in ("pid", "device") if len(set(found[name].array().tolist())) > 1}
    headings = [
        replace(
            each,
            in_text=each.in_text and (each.key not in ("pid", "device") or each.key in several),
        )
        for each in COLUMNS
    ]
    return Table(found, shown(headings, found, _NOT_ZERO), lead=lead, notes=notes, facts=facts)


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
