"""The answer first: the lines above the table of `summary`."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any, Final

import numpy as np

from fastprof.analysis.intervals import Busy, busy_by_device
from fastprof.analysis.measures import in_counted_steps
from fastprof.analysis.utilisation import utilisation, utilisation_text
from fastprof.model.devices import Device
from fastprof.model.quantity import quantity, scale_of
from fastprof.model.table import Table
from fastprof.model.table_text import side_by_side
from fastprof.profile.facts import gpu_names, step_count
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["PARTS", "PART_COLUMNS", "BusyTimes", "headline", "overview"]

PARTS: Final = ("phase", "kind")
PART_COLUMNS: Final = ("step_ns", "gpu_ns", "share", "step_share", "kernels")
_MOST: Final = 8  # rows of a part
_BETWEEN: Final = 4


class BusyTimes:
    """The time lines of the GPUs. Needs no costs.

    Attributes
    ----------
    all, in_steps : dict of int to Busy
        Of all work, and of that in counted steps.
    kernels_in_steps : int
        The number of kernels in counted steps.
    """

    def __init__(self, profile: Profile, steps: StepsOfKernels) -> None:
        """Add up the times of the kernels."""
        counted = in_counted_steps(steps)
        self.all: dict[int, Busy] = busy_by_device(profile)
        self.in_steps: dict[int, Busy] = busy_by_device(profile, counted)
        self.kernels_in_steps = int(np.count_nonzero(counted))


def overview(
    profile: Profile,
    steps: StepsOfKernels,
    parts: dict[str, Table],
    devices: Mapping[int, Device],
    busy: BusyTimes,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Lines of text, and the values in them for JSON.

    parts : the tables by the keys of PARTS, with PART_COLUMNS
    devices : the GPUs by number
    """
    lines, facts = headline(profile, steps, devices, busy)
    is_known = parts[PARTS[0]].total.get("step_ns") is not None
    time, share = ("step_ns", "step_share") if is_known else ("gpu_ns", "share")
    columns = {"phase": [time, share, "kernels"], "kind": [time, share]}
    blocks = [_lines(parts[name].select([name, *columns[name]])) for name in PARTS]
    return (*lines, "", *side_by_side(blocks, _BETWEEN), ""), facts


def headline(
    profile: Profile,
    steps: StepsOfKernels,
    devices: Mapping[int, Device],
    busy: BusyTimes,
) -> tuple[list[str], dict[str, Any]]:
    """GPUs, steps, busy and idle time, MFU: lines of text, and the values in them for JSON."""
    gpus = gpu_names(profile.about, profile.column("device")) or "GPU not named in the file"
    span, work = (
        sum(getattr(each, name) for each in busy.all.values()) for name in ("span", "busy")
    )
    facts: dict[str, Any] = {"span_ns": span or None, "busy_ns": work if span else None}
    n = step_count(steps) if has_steps(steps) else 0
    lines = [f"{gpus}, {len(profile)} kernels, copies and memsets"]
    if n and not isnan(steps.mean):
        found, more = _of_steps(steps, busy, n)
        lines = [f"{gpus}, {steps.description}", *found]
        facts |= more
    elif span:
        on = f" on {len(busy.all)} GPUs" if len(busy.all) > 1 else ""
        lines.append(f"{quantity(span, 'ns')}{on}: {_busy(work, span)}")
    of_steps = utilisation(profile, steps, devices)
    facts["utilisation"] = of_steps
    if of_steps is not None:
        lines.append(utilisation_text(of_steps))
    return lines, facts


def has_steps(steps: StepsOfKernels) -> bool:
    """Whether times per step are known."""
    return steps.source != "none" and step_count(steps) > 0


def _of_steps(steps: StepsOfKernels, busy: BusyTimes, n: int) -> tuple[list[str], dict[str, Any]]:
    """Length of the steps, and how much of it the GPU works: means over the counted steps."""
    # Steps of several processes run at the same time, each on its own GPUs.
    work = sum(each.busy for each in busy.in_steps.values()) / max(len(busy.in_steps), 1) / n
    kernels = busy.kernels_in_steps / n
    scale = scale_of("ns", steps.mean)
    line = (
        f"step {quantity(steps.mean, 'ns')} ± {steps.spread / scale.size:.2g} "
        f"(median {quantity(steps.median, 'ns')}), {kernels:.0f} kernels; "
        f"{_busy(work, max(steps.mean, work))}"
    )
    return [line, *steps.notes], {"step_busy_ns": work, "step_kernels": kernels}


def _busy(work: float, span: float) -> str:
    return f"GPU busy {quantity(work, 'ns')}, {work / span:.1%}, idle {quantity(span - work, 'ns')}"


def _lines(table: Table) -> list[str]:
    if table.n_rows <= 1:
        return []
    return Table(table.columns, table.headings).text(_MOST).splitlines()
