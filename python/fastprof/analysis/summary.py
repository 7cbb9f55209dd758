"""`summary`: time and work by any keys."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from fastprof._system.threads import SecondThread
from fastprof.analysis import keys
from fastprof.analysis.cpu import cpu_table
from fastprof.analysis.cpu_events import CpuEvents, cpu_events
from fastprof.analysis.grouping import group
from fastprof.analysis.ideal import Ideals, ideals_of
from fastprof.analysis.intervals import busy_by_device
from fastprof.analysis.key_names import check_keys, heading_of
from fastprof.analysis.measures import measures, shown, totals
from fastprof.analysis.missing import NO_GPU_WORK, missing
from fastprof.analysis.overview import PART_COLUMNS, PARTS, overview
from fastprof.analysis.peaks import devices_with, peaks_lines
from fastprof.analysis.selection import Where, selected
from fastprof.analysis.summary_columns import MEASURES
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.devices import CLOCKS, Device
from fastprof.model.table import Cells, Table
from fastprof.profile.advice import advice_on
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["summary"]


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
    by : keys, see `fastprof.analysis.key_names`; by default dir and op, or without operators range
        and kind
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
    rows = selected(profile, where)
    with SecondThread() as second:
        costs = second.submit(lambda: [profile.column(name) for name in _OF_COSTS])
        of_parts = {name: keys.key_of(profile, name) for name in PARTS} if rows is None else {}
        costs.result()
        events = cpu_events(profile) if cpu or _has_ranges_only(profile) else None
        names = (by,) if isinstance(by, str) else tuple(by or _default(profile, events))
        check_keys(names)
        found = profile.find_steps(steps)
        notes = second.submit(missing, profile, ("op", "shapes", "cost"))
        ideal = ideals_of(profile, devices)
        lead = second.submit(_overview, profile, of_parts, found, ideal, devices)
        if events is not None:
            table = cpu_table(profile, events, names, found, ideal, where)
        else:
            by_name = {name: of_parts.get(name) or keys.key_of(profile, name) for name in names}
            table = _grouped(profile, by_name, found, ideal, rows)
        if not len(profile):
            note = (
                advice_on(profile.about, profile.contents, "op") if events is None else NO_GPU_WORK
            )
            return replace(table, notes=(note,))
        lines, facts = lead.result()
        footer = notes.result()
    if "ideal_ns" in table and table.total.get("ideal_ns") is not None:
        footer += (*peaks_lines(devices), CLOCKS)
    return replace(table, notes=footer, lead=lines, facts=facts)


def _overview(
    profile: Profile,
    of_parts: dict[str, Values],
    steps: StepsOfKernels,
    ideal: Ideals,
    devices: Mapping[int, Device],
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The lines above the table of all work; none for a part of it."""
    if not of_parts or not len(profile):
        return (), {}
    parts = {
        name: _grouped(profile, {name: key}, steps, ideal, None, PART_COLUMNS)
        for name, key in of_parts.items()
    }
    return overview(profile, steps, parts, devices, busy_by_device(profile))


_OF_COSTS: Final = ("op", "flops", "bytes", "tc", "params")


def _has_ranges_only(profile: Profile) -> bool:
    return not len(profile) and any((profile.contents.ranges or {}).values())


def _default(profile: Profile, events: CpuEvents | None) -> tuple[str, ...]:
    """The keys that answer the first question with what the file records."""
    if events is not None and not len(profile):
        return ("dir", "op") if keys.key_of(events, "dir").ids.max(initial=-1) >= 0 else ("op",)
    if any(keys.key_of(profile, "op").values):
        return "dir", "op"
    return ("range", "kind") if keys.key_of(profile, "range").values else ("kind", "kernel")


def _grouped(
    profile: Profile,
    by: dict[str, Values],
    steps: StepsOfKernels,
    ideal: Ideals,
    rows: Bools | None = None,
    wanted: Collection[str] | None = None,
) -> Table:
    groups = group(list(by.values()), len(profile), rows)
    columns: dict[str, Cells] = {
        name: Values(key.ids[groups.first], key.values) for name, key in by.items()
    }
    of_groups = measures(profile, groups, steps, ideal, wanted)
    table = Table(
        {**columns, **of_groups},
        (*map(heading_of, by), *shown(MEASURES, of_groups)),
        total=totals(of_groups),
    )
    return table.sort("gpu_ns")
