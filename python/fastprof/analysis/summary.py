"""`summary`: time and work by any keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis import keys
from fastprof.analysis.cells import Cells as KernelCells
from fastprof.analysis.cells import cells_of, computing_costs
from fastprof.analysis.columns import numbers
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.cpu import cpu_table
from fastprof.analysis.cpu_events import CpuEvents, cpu_events
from fastprof.analysis.grouping import group
from fastprof.analysis.ideal import Ideals, ideals_of
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.measures import TimeInSteps, measures, shown, time_in_steps, totals
from fastprof.analysis.missing import NO_GPU_WORK, missing
from fastprof.analysis.overview import PART_COLUMNS, PARTS, overview
from fastprof.analysis.peaks import devices_with, flag_notes, peaks_lines
from fastprof.analysis.selection import selected
from fastprof.analysis.summary_columns import MEASURES
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.devices import CLOCKS, Device
from fastprof.model.table import Cells, Table
from fastprof.profile.advice import advice_on
from fastprof.profile.profile import Profile
from fastprof.profile.reports import Where
from fastprof.profile.steps.of_kernels import StepsOfKernels

_UNKNOWN: Final = 0.1  # of the GPU time; with more, kernels stand for unknown operators


def summary(
    profile: Profile,
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
    gpu, peak, bandwidth : see `fastprof.model.device_options.with_figures`

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
    with computing_costs(profile):
        found = profile.find_steps(steps)
        cells = cells_of(profile)
    events = cpu_events(profile) if cpu or _has_ranges_only(profile) else None
    names = (by,) if isinstance(by, str) else tuple(by or default_keys(cells, events))
    check_keys(names)
    cells = cells_of(profile, names, where)
    ideal, in_steps = ideals_of(cells, devices), time_in_steps(cells, found)
    chosen = selected(cells, where)
    with SecondThread() as second:
        if events is not None:
            making = second.submit(cpu_table, cells, events, names, in_steps, ideal, where)
        else:
            making = second.submit(_grouped, cells, names, in_steps, ideal, chosen)
        noting = second.submit(missing, profile, ("op", "shapes", "cost"))
        lines, facts = ((), {}) if where else _overview(cells, found, in_steps, ideal, devices)
        table, footer = making.result(), noting.result()
    if not len(profile):
        note = advice_on(profile.about, profile.contents, "op") if events is None else NO_GPU_WORK
        return replace(table, notes=(note,))
    if "flag" in table:
        footer += flag_notes(table.columns)
    step = table.total.get("step_ns"), facts.get("step_busy_ns")
    rows = None if chosen is None else cells.flags(chosen)
    footer = (*notes_on_sums(profile, found, rows, step), *footer)
    if "ideal_ns" in table and table.total.get("ideal_ns") is not None:
        footer += (*peaks_lines(devices), CLOCKS)
    return replace(table, notes=footer, lead=lines, facts=facts)


def _overview(
    cells: KernelCells,
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


def _has_ranges_only(profile: Profile) -> bool:
    return not len(profile) and any((profile.contents.ranges or {}).values())


def default_keys(cells: KernelCells, events: CpuEvents | None = None) -> tuple[str, ...]:
    """The keys that answer the first question with what the file records."""
    if events is not None and not len(cells):
        return ("dir", "op") if keys.key_of(events, "dir").ids.max(initial=-1) >= 0 else ("op",)
    op = keys.key_of(cells, "op")
    if any(op.values):
        time = np.maximum(numbers(cells, "sil"), 0)
        return "dir", "op" if time[op.ids < 0].sum() <= _UNKNOWN * time.sum() else "work"
    return ("range", "kind") if keys.key_of(cells.profile, "range").values else ("kind", "kernel")


def _grouped(
    cells: KernelCells,
    by: Sequence[str],
    in_steps: TimeInSteps,
    ideal: Ideals,
    rows: Bools | None,
    wanted: Collection[str] | None = None,
) -> Table:
    of_cells = {name: keys.key_of(cells, name) for name in by}
    groups = group(list(of_cells.values()), len(cells), rows)
    columns: dict[str, Cells] = {
        name: Values(key.ids[groups.first], key.values) for name, key in of_cells.items()
    }
    of_groups = measures(cells, groups, in_steps, ideal, wanted)
    table = Table(
        {**columns, **of_groups},
        headed((*map(heading_of, by), *shown(MEASURES, of_groups)), cells.profile),
        total=totals(of_groups),
    )
    return table.sort("gpu_ns")
