"""`steps`: the length of each step on each GPU, how the GPU spends it, and the outliers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import SecondThread
from fastprof.analysis.cells import cells_of
from fastprof.analysis.gpu_work import MOST_GPUS
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.host.compilations import why_compiled
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.idle.gaps import gaps_of_steps
from fastprof.analysis.keys import key_of
from fastprof.analysis.notes import NO_GPU_WORK, timeline_notes
from fastprof.analysis.recorder import recorder_lines
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.selection import selected
from fastprof.analysis.steps.columns import COLUMNS, CUT, LOST, NO_WORK, OUTLIER, SLOW, WARM_UP
from fastprof.analysis.steps.windows import (
    HOST_TIMES,
    OTHER_CLOCK,
    ProcessLane,
    Windows,
    gpu_counters,
    host_times,
    launched_work,
    times_of,
    windows_of,
)
from fastprof.analysis.summary.measures import shown
from fastprof.model.arrays import Bools, Int64, unique
from fastprof.model.columns import Ints, Values
from fastprof.model.numbers import quantity, scale_of
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.recording_hints import advice_on, recorder_of_calls
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
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

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
        kernels = profile.find_steps(steps)
        windows = windows_of(profile, kernels, rows)
        if not len(windows):
            return _table({}, (), (_why_empty(profile),), {})
        host = second.submit(host_times, profile, windows, kernels)
        columns: dict[str, ColumnData] = launched_work(profile, windows, kernels, devices)
        columns |= {name: Ints(array) for name, array in times_of(windows).items()}
        counters = gpu_counters(profile, windows)
        columns |= {name: Floats(array) for name, array in counters.items()}
        defects = timeline_notes(profile)
        columns |= {name: Ints(array) for name, array in host.result().items()}
    clocks = counters["sm_clock_hz"]
    return _of_windows(profile, kernels, windows, columns, clocks, defects)


def _why_empty(profile: ProfileData) -> str:
    if "start" not in profile.names:
        return "dict lines contain no times: run fastprof steps on the original trace"
    return advice_on(profile.about, profile.contents, "op") if not len(profile) else NO_GPU_WORK


def _of_windows(
    profile: ProfileData,
    steps: StepsOfKernels,
    windows: Windows,
    columns: dict[str, ColumnData],
    clocks: Floats64,
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
        "flag": text_column(_flags(steps, windows, outlier, slow)),
    }
    values = {name: column.values for name, column in columns.items() if isinstance(column, Ints)}
    of_gpus = lengths(windows, values)
    n_more = len(unique(windows.lane[windows.is_counted])) - len(of_gpus)
    outliers = outliers_of(profile, steps, windows, values, (outlier, slow), _MOST_OUTLIERS)
    gpus = gpu_names(profile.about, profile.column("device"))
    lead = (
        *filter(None, [", ".join(filter(None, [gpus, steps.description])), steps.left_out]),
        *part_lines(of_gpus, steps.word, n_more),
        *recorder_lines(profile, steps),
        *outlier_lines(outliers, int(outlier.sum()), windows, number, clocks),
        "",
    )
    facts: dict[str, Any] = {
        "lengths": of_gpus,
        "outliers": outlier_facts(outliers, windows, number),
    }
    facts |= {"more_gpus": {"gpus": n_more}} if n_more else {}
    own = _notes(profile, steps, windows, values)
    notes = (*steps.notes, *own, *why_compiled(profile), *defects)
    return _table(columns, lead, notes, facts)


def _flags(steps: StepsOfKernels, windows: Windows, outlier: Bools, slow: Bools) -> list[str]:
    excluded = ~windows.is_counted
    lost = np.zeros(len(windows), bool) if steps.lost is None else steps.lost[windows.step] > 0
    reasons = [outlier, slow, ~windows.is_known, lost, windows.is_cut & excluded, excluded]
    code = np.select(reasons, [1, 2, 3, 4, 5, 6], 0)
    names = ("", OUTLIER, SLOW, NO_WORK, LOST, CUT, WARM_UP)
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
        how = recorder_of_calls(profile.about)
        missing = f"no API calls in the file; record them with {how}"
        yield f"host times unknown: {profile.source.host_omitted or missing}"


def _table(
    columns: dict[str, ColumnData],
    lead: tuple[str, ...],
    notes: tuple[str, ...],
    facts: dict[str, Any],
) -> Table:
    none: ColumnData = Ints(np.empty(0, np.int64))
    result = {column.key: columns.get(column.key, none) for column in COLUMNS}
    several = {name for name in ("pid", "device") if len(set(result[name].array().tolist())) > 1}
    headings = [
        replace(
            column,
            in_text=column.in_text
            and (column.key not in ("pid", "device") or column.key in several),
        )
        for column in COLUMNS
    ]
    return Table(result, shown(headings, result, _NOT_ZERO), lead=lead, notes=notes, facts=facts)


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
    result = []
    every, bounds = windows.in_lanes(windows.is_counted)
    busy = np.bincount(windows.lane[every], columns["busy_ns"][every], len(windows.lanes))
    known = np.flatnonzero(np.diff(bounds))
    busiest = known[np.argsort(-busy[known], kind="stable")[:MOST_GPUS]]
    for number in np.sort(busiest).tolist():
        lane, rows = windows.lanes[number], every[bounds[number] : bounds[number + 1]]
        wall = windows.wall[rows]
        result.append(
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
    return result


def part_lines(mappings: Sequence[Mapping[str, Any]], unit: str, n_more: int) -> Iterator[str]:
    """A line per GPU.

    unit : what the lengths are of, see `StepsOfKernels.word`
    n_more : GPUs that are not in `found`
    """
    pids = {mapping["pid"] for mapping in mappings}
    for mapping in mappings[:_MOST_LANES]:
        name = f"process {mapping['pid']}, " if len(pids) > 1 else ""
        name = f"{name}GPU {mapping['device']}: " if len(mappings) > 1 else ""
        mean = mapping["mean_ns"]
        text = f"{name}{unit} {quantity(mean, 'ns')}"
        if mapping["steps"] > 1:
            spread = mapping["std_ns"] / scale_of("ns", mean).size
            text += (
                f" ± {float(f'{spread:.2g}'):g} (median {quantity(mapping['median_ns'], 'ns')}, "
                f"{quantity(mapping['min_ns'], 'ns')} to {quantity(mapping['max_ns'], 'ns')})"
            )
        parts = [
            f"{_NAMES[part]} {quantity(mapping[part], 'ns')}" for part in PARTS if mapping[part]
        ]
        share = mapping["busy_ns"] / mean if mean else 0.0
        yield f"{text}: {', '.join(parts)}; GPU busy {share:.1%}"
    if len(mappings) > _MOST_LANES:
        yield f"... {len(mappings) - _MOST_LANES + n_more} more GPUs"


def outlier_lines(
    outliers: Sequence[Outlier],
    n_outliers: int,
    windows: Windows,
    number: Int64,
    clocks: Floats64,
) -> Iterator[str]:
    """A line per outlier, or for the slow steps of a GPU.

    number, clocks : [rows] the number of the step, and the mean clock of its SMs in Hz
    """
    several = len(windows.lanes) > 1
    for outlier in outliers:
        lane = windows.lane[outlier.rows[0]]
        where = f" on GPU {windows.lanes.device[lane]}" if several else ""
        wall = quantity(float(windows.wall[outlier.rows].mean()), "ns")
        way = "over" if outlier.over_ns > 0 else "under"
        steps = f"outlier: step {number[outlier.rows[0]]}{where} takes"
        if len(outlier.rows) > 1:
            n = np.count_nonzero(windows.is_counted & (windows.lane == lane))
            steps = f"slow: {len(outlier.rows)} of {n} steps{where} take on average"
        yield (
            f"{steps} {wall}, "
            f"{quantity(abs(outlier.over_ns), 'ns')} {way} the mean of the others: "
            f"{'; '.join([*_differences(outlier), *_clock(outlier, clocks)])}"
        )
    shown = sum(len(outlier.rows) == 1 for outlier in outliers)
    if n_outliers > shown:
        yield f"... {n_outliers - shown} more outliers, see the column flag"


def _clock(outlier: Outlier, clocks: Floats64) -> Iterator[str]:
    """The clock of the SMs, if it differs from that of the other steps."""
    own, others = clocks[outlier.rows].mean(), clocks[outlier.normal].mean()
    if abs(own - others) >= OTHER_CLOCK * others:
        way = "below" if own < others else "above"
        yield (
            f"SM clock {quantity(own, 'hz')}, {abs(own / others - 1):.0%} {way} that of the others"
            + (": a limit of power or heat" if own < others and outlier.over_ns > 0 else "")
        )


def _differences(outlier: Outlier) -> Iterator[str]:
    causes = ", ".join(_large(outlier.causes, outlier.over_ns))
    parts = {_NAMES[name]: outlier.changes[name] for name in PARTS}
    yield ", ".join(
        f"{text} ({causes})" if text.startswith("idle") and causes else text
        for text in _large(parts, outlier.over_ns)
    )
    host = {_NAMES[name]: outlier.changes.get(name, 0.0) for name in HOST_TIMES}
    for title, times in (("host", host), ("GPU time", outlier.ops)):
        if text_column := list(_large(times, outlier.over_ns)):
            yield f"{title}: {', '.join(text_column)}"
    kernels = outlier.changes["kernels"]
    if abs(kernels) >= 1:
        yield f"kernels {kernels:+.0f}"


def _large(times: Mapping[str, float], over_ns: float) -> Iterator[str]:
    """The times that explain a part of a difference, the largest first."""
    for name in sorted(times, key=lambda time: -abs(times[time])):
        if times[name] and abs(times[name]) >= LARGE * abs(over_ns):
            yield f"{name} {_signed(times[name])}"


def _signed(time: float) -> str:
    return ("+" if time >= 0 else "-") + quantity(abs(time), "ns")


def outlier_facts(
    outliers: Sequence[Outlier], windows: Windows, number: Int64
) -> list[dict[str, Any]]:
    """The outliers for JSON; differences from the mean of the other steps."""
    return [
        {
            "step": int(number[outlier.rows[0]]) if len(outlier.rows) == 1 else None,
            "steps": number[outlier.rows].tolist(),
            "device": _known(int(windows.lanes.device[windows.lane[outlier.rows[0]]])),
            "over_ns": outlier.over_ns,
            "changes": outlier.changes,
            "ops": outlier.ops,
            "causes": outlier.causes,
        }
        for outlier in outliers
    ]


def _known(number: int) -> int | None:
    return number if number >= 0 else None


PARTS: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")

LEAST_STEPS: Final = 3  # steps
_SHARE: Final = 0.1  # of the median
_DEVIATIONS: Final = 5  # median absolute deviations
_MOST_SHARE: Final = 1 / 3  # of the steps; more are no exceptions
_MOST_OPS: Final = 3
LARGE: Final = 0.05  # parts of a difference below this share are not shown


class Outlier(NamedTuple):
    """Steps that differ, on one GPU: one outlier, or all slow steps.

    Parameters
    ----------
    rows, normal : int64, of the windows; its own, and those it is compared with
    over_ns : their mean wall less that of the other counted steps
    changes : the same for each of PARTS, which add up to `over_ns`, and for HOST_TIMES and kernels
        where they are known
    ops : GPU time of the operators (kernels without operators) that differ most, less its mean
    causes : the parts of the change of idle_ns, if that is large and launches are recorded
    """

    rows: Int64
    normal: Int64
    over_ns: float
    changes: dict[str, float]
    ops: dict[str, float]
    causes: dict[str, float]


def far_steps(wall: Int64, counted: Bools) -> tuple[Bools, Bools]:
    """Which steps of a GPU are outliers, and which are slow; see `steps_columns.DESCRIPTION`.

    wall : [rows] ns, -1 if unknown
    counted : [rows] the steps that give the median
    """
    known = wall[counted]
    none = np.zeros(len(wall), bool)
    if len(known) < LEAST_STEPS:
        return none, none
    median = np.median(known)
    off = np.abs(wall - median)
    is_far = off > max(_SHARE * median, _DEVIATIONS * np.median(np.abs(known - median)))
    is_far &= counted
    if is_far.sum() <= _MOST_SHARE * len(known):
        return is_far, none
    return none, is_far & (wall > median)


def outliers_of(
    profile: ProfileData,
    steps: StepsOfKernels,
    windows: Windows,
    columns: Mapping[str, Int64],
    far: tuple[Bools, Bools],
    most: int,
) -> list[Outlier]:
    """The outliers that differ most from the mean of the other counted steps, and the slow steps.

    Parameters
    ----------
    columns : PARTS, HOST_TIMES and kernels, int64 [rows]; -1 if unknown
    far : bool [rows] each, see `far_steps`
    most : how many
    """
    results = sorted(
        _differences_of_outlier(windows, far, most), key=lambda difference: -abs(difference.over_ns)
    )[:most]
    return [_explained(profile, steps, windows, columns, difference) for difference in results]


class _Difference(NamedTuple):
    """Steps that differ, and the normal ones of their lane: rows of the windows."""

    over_ns: float
    rows: Int64
    normal: Int64


def _differences_of_outlier(
    windows: Windows, far: tuple[Bools, Bools], most: int
) -> Iterator[_Difference]:
    """The largest differences of each lane."""
    outlier, slow = far
    every, bounds = windows.in_lanes()
    for lane in unique(windows.lane[outlier | slow]).tolist():
        rows = every[bounds[lane] : bounds[lane + 1]]
        normal = rows[windows.is_counted[rows] & ~outlier[rows] & ~slow[rows]]
        groups = [rows[slow[rows]]] if slow[rows].any() else rows[outlier[rows]][:, np.newaxis]
        if not len(normal) or not len(groups):
            continue
        over = np.array([windows.wall[group].mean() for group in groups])
        over -= windows.wall[normal].mean()
        for place in np.argsort(-np.abs(over), kind="stable")[:most].tolist():
            yield _Difference(float(over[place]), groups[place], normal)


def _explained(
    profile: ProfileData,
    steps: StepsOfKernels,
    windows: Windows,
    columns: Mapping[str, Int64],
    difference: _Difference,
) -> Outlier:
    """Which parts, operators and causes make the difference."""
    over, rows, normal = difference
    changes = _changes(columns, rows, normal)
    lane = windows.lanes[int(windows.lane[rows[0]])]
    causes: dict[str, float] = {}
    has_causes = len(profile.api) > 0 and lane.selected is lane.work
    if has_causes and abs(changes["idle_ns"]) >= LARGE * abs(over):
        inside = gaps_of_steps(profile, steps)
        causes = _idle_changes(inside.by_window(rows), inside.by_window(normal))
    ops = _op_changes(profile, windows, lane, rows, normal)
    return Outlier(rows, normal, over, changes, ops, causes)


def _changes(columns: Mapping[str, Int64], rows: Int64, normal: Int64) -> dict[str, float]:
    names = (*PARTS, *HOST_TIMES, "kernels")
    return {
        name: float(columns[name][rows].mean() - columns[name][normal].mean())
        for name in names
        if (columns[name][rows] >= 0).all()
    }


def _idle_changes(own: Int64, others: Int64) -> dict[str, float]:
    """By cause, the idle time less the mean of the other steps, the largest first."""
    over = own.mean(axis=0) - others.mean(axis=0)
    changes = dict(zip(CAUSES, over.tolist(), strict=True))
    names = sorted(changes, key=lambda name: -abs(changes[name]))
    return {name: changes[name] for name in names if changes[name]}


def _op_changes(
    profile: ProfileData, windows: Windows, lane: ProcessLane, rows: Int64, normal: Int64
) -> dict[str, float]:
    """The largest differences of the GPU time of operators, by name; by the start of kernels."""
    names, work = _names(profile), lane.selected
    ids = take(names.ids, work.rows)
    number = np.repeat(windows.lane[rows[:1]], len(work))
    row = windows.row_of(number, work.start)

    def mean(wanted: Int64) -> Floats64:
        inside = np.zeros(len(windows), bool)
        inside[wanted] = True
        kernels = take(inside, row, False).view(np.uint8)
        sums = sum_where(ids, work.end - work.start, kernels, len(names.values))
        return sums.astype(np.float64) / len(wanted)

    over = mean(rows) - mean(normal)
    largest = np.argsort(-np.abs(over), kind="stable")[:_MOST_OPS].tolist()
    return {names.values[each]: float(over[each]) for each in largest if over[each]}


def _names(profile: ProfileData) -> Values:
    """[kernels] Direction and operator; the kernel's name in files without operators."""
    cells = cells_of(profile)
    op, direction = key_of(cells, "op"), key_of(cells, "dir")
    if not op.values:
        return key_of(profile, "kernel")
    pairs = group([op, direction], len(cells))
    names = []
    for row in pairs.first.tolist():
        name, way = op.at(row), direction.at(row)
        names.append("work without operator" if name is None else f"{name} {way or ''}".rstrip())
    return Values(cells.grouped(pairs).ids, names)
