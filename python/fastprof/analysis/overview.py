"""The answer first: the lines above the table of `summary`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastprof.analysis.recorder import recorder_lines, unrecorded_step
from fastprof.analysis.step_means import StepMeans, step_means
from fastprof.analysis.utilisation import utilisation, utilisation_text
from fastprof.model.devices import Device
from fastprof.model.table import Table
from fastprof.model.table_text import side_by_side
from fastprof.profile.facts import gpu_names, step_count
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

PARTS: Final = ("phase", "kind")
PART_COLUMNS: Final = ("step_ns", "gpu_ns", "share", "step_share", "kernels")
_MOST: Final = 8  # rows of a part
_BETWEEN: Final = 4


def overview(
    profile: Profile,
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
    profile: Profile,
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


def _facts(profile: Profile, steps: StepsOfKernels, means: StepMeans | None) -> dict[str, Any]:
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
