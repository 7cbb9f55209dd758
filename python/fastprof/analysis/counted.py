"""What the sums of a table count: GPUs, steps, work outside of steps, and work that overlaps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._core import _cells
from fastprof._system.classes import NamedTuple
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group, numbers
from fastprof.analysis.keys import key_of
from fastprof.analysis.steps.windows import step_means
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_LEAST_OUTSIDE: Final = 0.01  # share of the GPU time outside of the counted steps
_LEAST_TWICE: Final = 0.001  # share of the GPU time that counts twice


class _GPUs(NamedTuple):
    """The GPUs: the devices of each process.

    Parameters
    ----------
    pid : int64 [gpus], the process, -1 if not recorded
    total : GPU time of all work, ns
    busy : the time in which a GPU works, on any stream: sum over the GPUs, ns
    """

    pid: Int64
    total: int
    busy: int


def _gpus(profile: ProfileData) -> _GPUs:
    pid = numbers(profile, "pid") if "pid" in profile.names else np.empty(0, np.int64)
    if (pid != pid[:1]).any():
        cells = cells_of(profile, ("process",))
        process = key_of(cells, "process")
    else:
        cells, only = cells_of(profile), pid[:1].tolist()
        process = Values(np.full(len(cells), len(only) - 1, np.int32), only)
    groups = group([process, key_of(cells, "device")], len(cells))
    of_gpu = [process.at(row) for row in groups.first.tolist()]
    known = np.array([-1 if each is None else int(each) for each in of_gpu], np.int64)
    time = np.ascontiguousarray(numbers(profile, "sil"), np.int64)
    total = int(np.maximum(time, 0).sum())
    if "start" not in profile.names:
        return _GPUs(known, total, total)
    start = np.ascontiguousarray(numbers(profile, "start"), np.int64)
    _, _, busy = _cells.busy(start, time, cells.of_kernel, groups.ids, groups.n)
    return _GPUs(known, total, int(busy.sum()))


def steps_times_gpus(profile: ProfileData, steps: StepsOfKernels) -> int:
    """How many counted steps with work there are, each times the GPUs of its process.

    0 if steps are unknown. A sum over kernels by this number is the mean per step and GPU.
    """
    means = step_means(profile, steps)
    return means.n_windows if means is not None and means.is_step else 0


def headed(headings: Iterable[Heading], profile: ProfileData) -> tuple[Heading, ...]:
    """Headings; that of the GPU time of several GPUs says that it is their sum."""
    n = len(kept(profile, _gpus).pid)
    return tuple(
        replace(heading, header=f"{n} GPUs") if heading.key == "gpu_ns" and n > 1 else heading
        for heading in headings
    )


def notes_on_sums(
    profile: ProfileData,
    steps: StepsOfKernels | None = None,
    rows: Bools | None = None,
    step: tuple[float | None, float | None] = (None, None),
) -> tuple[str, ...]:
    """What the sums of a table count: one line for several GPUs, work outside of steps, overlap.

    steps : of the times per step; None if the table has none
    rows : the kernels of the table, bool [kernels]; None for all
    step : the sum of the rows and the busy time per step and GPU, ns, if both are shown
    """
    if not len(profile):
        return ()
    notes, n = [], len(kept(profile, _gpus).pid)
    counted = None if steps is None or not steps_times_gpus(profile, steps) else steps
    if n > 1:
        what = "times" if counted is None else "step: mean per step and GPU; other times"
        notes.append(f"{what} of rows are sums over {n} GPUs")
    if counted is not None:
        notes += _outside(profile, counted, rows)
    return (*notes, *(_twice(profile, step) if rows is None else ()))


def _outside(profile: ProfileData, steps: StepsOfKernels, rows: Bools | None) -> list[str]:
    """How much GPU time the times per step do not count."""
    of_steps = _of_steps(profile, steps, rows)
    outside, not_counted = of_steps[0], of_steps[1:][~steps.is_counted].sum()
    if outside + not_counted <= _LEAST_OUTSIDE * of_steps.sum():
        return []
    parts = {"in other steps": not_counted, "in no step": outside}
    named = [where for where, ns in parts.items() if ns > 0] if steps.unit == "step" else []
    if len(named) > 1:
        named = [f"{quantity(round(ns), 'ns')} {where}" for where, ns in parts.items()]
    share = (outside + not_counted) / of_steps.sum()
    of = "counted steps" if steps.unit == "step" else f"the {steps.unit}"
    return [
        f"outside of {of}: {quantity(round(outside + not_counted), 'ns')} of GPU "
        f"time, {share:.0%}{': ' if named else ''}{', '.join(named)}"
    ]


def _of_steps(profile: ProfileData, steps: StepsOfKernels, rows: Bools | None) -> Floats64:
    """[1 + steps] The GPU time outside of all steps, and of the work of each."""
    if rows is None:
        return kept(profile, _of_all, steps)
    time = np.where(rows, np.maximum(numbers(profile, "sil"), 0), 0)
    return np.bincount(steps.of_kernel + 1, time, len(steps) + 1).astype(np.float64)


def _of_all(profile: ProfileData, steps: StepsOfKernels) -> Floats64:
    return _of_steps(profile, steps, np.ones(len(profile), bool))


def _twice(profile: ProfileData, step: tuple[float | None, float | None]) -> list[str]:
    """How much more the rows sum to than the GPU is busy."""
    gpus = kept(profile, _gpus)
    total, busy = gpus.total, gpus.busy
    if total - busy <= _LEAST_TWICE * total:
        return []
    what = "the GPU is busy" if len(gpus.pid) == 1 else "the GPUs are busy"
    of_step, busy_in_step = step
    if of_step is None or busy_in_step is None:
        both = f"the rows sum to {quantity(total, 'ns')}, {what} {quantity(busy, 'ns')}"
    elif of_step - busy_in_step > _LEAST_TWICE * of_step:
        both = (
            f"the rows sum to {quantity(round(of_step), 'ns')} per step, the GPU is busy "
            f"{quantity(round(busy_in_step), 'ns')}"
        )
    else:
        return []
    return [f"kernels overlap on streams: {both}"]
