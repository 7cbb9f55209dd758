"""`summary`: time and work by any keys, also CPU time and memory beside the GPU time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis import keys
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.grouping import Grouping, group, numbers
from fastprof.analysis.host.events import CpuEvents, Measure, counted, cpu_events, joined_ids
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.notes import NO_GPU_WORK, missing
from fastprof.analysis.parts import parts_of
from fastprof.analysis.recorder import recorder_lines, unrecorded_step
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import Ideals, ideals_of
from fastprof.analysis.roofline.utilisation import (
    devices_with,
    flag_notes,
    peaks_lines,
    utilisation,
    utilisation_text,
)
from fastprof.analysis.selection import selected
from fastprof.analysis.steps.windows import StepMeans, step_means
from fastprof.analysis.summary.columns import CPU_MEASURES, MEASURES
from fastprof.analysis.summary.measures import (
    TimeInSteps,
    measures,
    ratio,
    shown,
    time_in_steps,
    totals,
)
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.devices import CLOCKS, Device
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.model.table_text import side_by_side
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names, step_count
from fastprof.profile.recording_hints import advice_on
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_UNKNOWN: Final = 0.1  # of the GPU time; with more, kernels stand for unknown operators


def summary(
    profile: ProfileData,
    by: str | Sequence[str] | None = None,
    where: Where | None = None,
    steps: str | None = None,
    cpu: bool = False,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """Time and work of kernels by any keys, the longest first. See docs/reports.md.

    Parameters
    ----------
    by : keys, see `fastprof.analysis.key_names`; by default dir and op (work if many
        operators are unknown), or without operators range and kind
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    cpu : add CPU time and memory; always for a trace without GPU work
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

    Raises
    ------
    ReportError
        A key, GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        `cpu` for a file that contains no ranges or has changed since it was read.
    """
    devices = devices_with(profile, gpu, peak, bandwidth)
    kernels = profile.find_steps(steps)
    cells = parts_of(profile)
    has_ranges_only = not len(profile) and any((profile.contents.ranges or {}).values())
    events = cpu_events(profile) if cpu or has_ranges_only else None
    names = (by,) if isinstance(by, str) else tuple(by or default_keys(cells, events))
    check_keys(names)
    cells = parts_of(profile, names, where)
    ideal = cells.with_ideals(lambda whole: ideals_of(whole, devices))
    in_steps = time_in_steps(cells, kernels)
    chosen = selected(cells, where)
    with SecondThread() as second:
        if events is not None:
            making = second.submit(cpu_table, cells, events, names, in_steps, ideal, where)
        else:
            making = second.submit(_grouped, cells, names, in_steps, ideal, chosen)
        noting = second.submit(missing, profile, ("op", "shapes", "cost"))
        lines, facts = ((), {}) if where else _overview(cells, kernels, in_steps, ideal, devices)
        table, footer = making.result(), noting.result()
    if not len(profile):
        note = advice_on(profile.about, profile.contents, "op") if events is None else NO_GPU_WORK
        return replace(table, notes=(note,))
    if "flag" in table:
        footer += flag_notes(table.columns)
    step = table.total.get("step_ns"), facts.get("step_busy_ns")
    rows = None if chosen is None else cells.flags(chosen)
    footer = (*cells.notes_on_parts(chosen), *notes_on_sums(profile, kernels, rows, step), *footer)
    if "ideal_ns" in table and table.total.get("ideal_ns") is not None:
        footer += (*peaks_lines(devices), CLOCKS)
    return replace(table, notes=footer, lead=lines, facts=facts)


def _overview(
    cells: ReportCells,
    steps: StepsOfKernels,
    in_steps: TimeInSteps,
    ideal: Ideals,
    devices: Mapping[int, Device],
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The lines above the table of all work."""
    if not len(cells):
        return (), {}
    parts = {name: _grouped(cells, (name,), in_steps, ideal, None, PART_COLUMNS) for name in PARTS}
    return overview(cells.profile, steps, parts, devices)


def default_keys(cells: ReportCells, events: CpuEvents | None = None) -> tuple[str, ...]:
    """The keys that answer the first question with what the file records."""
    if events is not None and not len(cells):
        return ("dir", "op") if keys.key_of(events, "dir").ids.max(initial=-1) >= 0 else ("op",)
    op = keys.key_of(cells, "op")
    if any(op.values):
        time = np.maximum(numbers(cells, "sil"), 0)
        return "dir", "op" if time[op.ids < 0].sum() <= _UNKNOWN * time.sum() else "work"
    return ("range", "kind") if keys.key_of(cells.profile, "range").values else ("kind", "kernel")


def _grouped(
    cells: ReportCells,
    by: Sequence[str],
    in_steps: TimeInSteps,
    ideal: Ideals,
    rows: Bools | None,
    wanted: Collection[str] | None = None,
) -> Table:
    of_cells = {name: keys.key_of(cells, name) for name in by}
    groups = group(list(of_cells.values()), len(cells), rows)
    columns: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values) for name, key in of_cells.items()
    }
    of_groups = measures(cells, groups, in_steps, ideal, wanted)
    table = Table(
        {**columns, **of_groups},
        headed((*map(heading_of, by), *shown(MEASURES, of_groups)), cells.profile),
        total=totals(of_groups),
    )
    return table.sort("gpu_ns")


PARTS: Final = ("phase", "kind")
PART_COLUMNS: Final = ("step_ns", "gpu_ns", "share", "step_share", "kernels")
_MOST: Final = 8  # rows of a part
_BETWEEN: Final = 4


def overview(
    profile: ProfileData,
    steps: StepsOfKernels,
    parts: dict[str, Table],
    devices: Mapping[int, Device],
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Lines of text, and the values in them for JSON.

    parts : the tables by the keys of PARTS, with PART_COLUMNS
    devices : the GPUs by number
    """
    lines, facts = headline(profile, steps, devices)
    is_known = parts[PARTS[0]].total.get("step_ns") is not None
    time, share = ("step_ns", "step_share") if is_known else ("gpu_ns", "share")
    columns = {"phase": [time, share, "kernels"], "kind": [time, share]}
    blocks = [_lines(parts[name].select([name, *columns[name]])) for name in PARTS]
    return (*lines, "", *side_by_side(blocks, _BETWEEN), ""), facts


def headline(
    profile: ProfileData,
    steps: StepsOfKernels,
    devices: Mapping[int, Device],
) -> tuple[list[str], dict[str, Any]]:
    """GPUs, steps, busy and idle time, MFU: lines of text, and the values in them for JSON."""
    gpus = gpu_names(profile.about, profile.column("device")) or "GPU not named in the file"
    means = step_means(profile, steps)
    is_named = has_steps(steps) and steps.description not in steps.left_out
    lines = [f"{gpus}, {steps.description}" if is_named else gpus]
    if steps.left_out:
        lines.append(steps.left_out)
    if means is not None:
        lines += [means.text(), *steps.notes, means.basis(), *recorder_lines(profile, steps)]
    of_steps = utilisation(profile, steps, devices)
    if of_steps is not None:
        lines.append(utilisation_text(of_steps))
    return lines, {**_facts(profile, steps, means), "utilisation": of_steps}


def _facts(profile: ProfileData, steps: StepsOfKernels, means: StepMeans | None) -> dict[str, Any]:
    """The capture and the mean step for JSON, ns; None where unknown."""
    capture = step_means(profile, profile.find_steps("none"))
    unrecorded = unrecorded_step(profile, steps)
    step = means if means is not None and means.is_step else None
    return {
        "gpus": 0 if capture is None else capture.n_gpus,
        "span_ns": None if capture is None else capture.wall,
        "busy_ns": None if capture is None else capture.busy,
        "step_ns": None if step is None else step.wall,
        "step_unrecorded_ns": None if unrecorded is None else unrecorded.median_ns,
        "step_median_ns": None if step is None else step.median,
        "step_busy_ns": None if step is None else step.busy,
        "step_idle_ns": None if step is None else step.idle,
        "step_kernels": None if step is None else step.kernels,
    }


def has_steps(steps: StepsOfKernels) -> bool:
    """Whether the capture has steps."""
    return steps.unit == "step" and step_count(steps) > 0


def _lines(table: Table) -> list[str]:
    if table.n_rows <= 1:
        return []
    return Table(table.columns, table.headings).text(_MOST).splitlines()


_NONE: Final = np.iinfo(np.int64).min


def cpu_table(
    cells: ReportCells,
    events: CpuEvents,
    names: Sequence[str],
    in_steps: TimeInSteps,
    ideal: Ideals,
    where: Where | None = None,
) -> Table:
    """CPU measures by any keys, and GPU measures if the trace has GPU work.

    Kernels and CPU events with equal keys are one row. GPU measures are those of `summary`.
    """
    both = [_joined(keys.key_of(cells, name), keys.key_of(events, name)) for name in names]
    n = len(cells)
    groups = group(both, n + len(events), _rows(cells, events, where))
    columns: dict[str, ColumnData] = {
        name: Values(key.ids[groups.first], key.values)
        for name, key in zip(names, both, strict=True)
    }
    of_cpu = _measures(events, Grouping(groups.ids[n:], groups.n), nested="op" in names)
    total = _totals(of_cpu)
    if n:
        of_cpu["cpu_calls"] = of_cpu.pop("calls")
        total["cpu_calls"] = total.pop("calls")
        of_gpu = measures(cells, Grouping(groups.ids[:n], groups.n), in_steps, ideal)
        columns |= {name: of_cpu[name] for name in of_cpu} | of_gpu
        total |= totals(of_gpu)
    else:
        columns |= of_cpu
    headings = headed(
        (*map(heading_of, names), *shown((*CPU_MEASURES, *MEASURES), columns)), cells.profile
    )
    table = Table(columns, headings, total=total).sort("cpu_self_ns")
    return table.sort("gpu_ns") if n else table


def _joined(left: Values, right: Values) -> Values:
    """The rows of one key after those of another; equal values have one id."""
    return Values(joined_ids(left, right), [*left.values, *right.values]).mapped(
        lambda value: value
    )


def _rows(cells: ReportCells, events: CpuEvents, where: Where | None) -> Bools | None:
    of_cells, of_events = selected(cells, where), selected(events, where)
    if of_cells is None or of_events is None:
        return None
    return np.concatenate([of_cells, of_events])


def _measures(events: CpuEvents, groups: Grouping, nested: bool) -> dict[str, ColumnData]:
    """The CPU measures of each group; for `nested` see `cpu_events.counted`."""
    included = counted(events, groups, nested)

    def sums(values: Int64) -> Int64:
        return np.asarray(groups.stats(values, _NONE).sum)

    def total(measure: Measure) -> Int64:
        return sums(np.where(included, measure.total, 0))

    own = sums(events.time.own)
    columns: dict[str, ColumnData] = {
        "calls": Ints(groups.counts),
        "cpu_self_ns": Ints(own, _NONE),
        "cpu_share": Floats(ratio(own, np.full(groups.n, own.sum()))),
        "cpu_ns": Ints(total(events.time), _NONE),
        "cpu_mean_ns": Floats(ratio(total(events.time), sums(included.astype(np.int64)))),
    }
    for place, measure in events.memory.items():
        columns[f"{place}_memory"] = Ints(total(measure), _NONE)
        columns[f"{place}_self_memory"] = Ints(sums(measure.own), _NONE)
    return columns


def _totals(columns: dict[str, ColumnData]) -> dict[str, Any]:
    """Sums of the measures that exclude events inside."""
    return {
        name: int(np.asarray(column.array()).sum())
        for name, column in columns.items()
        if name == "calls" or "_self_" in name
    }
