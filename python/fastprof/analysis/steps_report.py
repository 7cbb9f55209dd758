"""`steps`: the length of each step on each GPU, and how the GPU spends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis.measures import shown
from fastprof.analysis.missing import NO_GPU_WORK
from fastprof.analysis.peaks import devices_with
from fastprof.analysis.recorder import recorder_lines
from fastprof.analysis.selection import selected
from fastprof.analysis.steps_columns import COLUMNS, CUT, NO_WORK, OUTLIER, SLOW, WARM_UP
from fastprof.analysis.steps_outliers import LEAST_STEPS, far_steps, outliers_of
from fastprof.analysis.steps_overview import lengths, outlier_facts, outlier_lines, part_lines
from fastprof.analysis.steps_sums import host_times, launched_work
from fastprof.analysis.steps_windows import Windows, times_of, windows_of
from fastprof.analysis.timeline_notes import timeline_notes
from fastprof.model.arrays import Bools
from fastprof.model.columns import Ints
from fastprof.model.table import Cells, Table, texts
from fastprof.profile.advice import advice_on
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile
from fastprof.profile.reports import Where
from fastprof.profile.steps.of_kernels import StepsOfKernels
from fastprof.profile.without_host import why_omitted

_MOST_OUTLIERS: Final = 5
_NOT_ZERO: Final = (
    "communication_ns", "exposed_communication_ns", "hidden_communication_ns", "copy_ns",
    "exposed_copy_ns", "data_loading_ns", "alloc_ns", "sync_ns",
)  # fmt: skip


def steps(
    profile: Profile,
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
        columns: dict[str, Cells] = launched_work(profile, windows, found, devices)
        columns |= {name: Ints(each) for name, each in times_of(windows).items()}
        defects = timeline_notes(profile)
        columns |= {name: Ints(each) for name, each in host.result().items()}
    return _of_windows(profile, found, windows, columns, defects)


def _why_empty(profile: Profile) -> str:
    if "start" not in profile.names:
        return "dict lines contain no times: run fastprof steps on the original trace"
    return advice_on(profile.about, profile.contents, "op") if not len(profile) else NO_GPU_WORK


def _of_windows(
    profile: Profile,
    steps: StepsOfKernels,
    windows: Windows,
    columns: dict[str, Cells],
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
    n_more = len(np.unique(windows.lane[windows.is_counted])) - len(of_gpus)
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
    profile: Profile,
    steps: StepsOfKernels,
    windows: Windows,
    values: Mapping[str, np.ndarray],
) -> Iterator[str]:
    outside = int(np.count_nonzero(steps.of_kernel < 0))
    if outside:
        yield f"outside of all steps: {outside} kernels and copies, busy time where they run"
    if len(np.unique(windows.lanes.device)) < len(windows.lanes):
        yield "processes use the same GPU numbers: each row has the work of its own process only"
    if (values["sync_ns"] < 0).all():
        missing = "no API calls in the file; record them with nsys profile -t cuda"
        yield f"host times unknown: {why_omitted(profile) or missing}"


def _table(
    columns: dict[str, Cells],
    lead: tuple[str, ...],
    notes: tuple[str, ...],
    facts: dict[str, Any],
) -> Table:
    none: Cells = Ints(np.empty(0, np.int64))
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
