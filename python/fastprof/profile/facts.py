"""What the JSON of every report says of its file: its name, GPUs, steps and coverage."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fastprof.model.arrays import ByNumber, Int64, unique
from fastprof.model.columns import Column, RepeatedInts
from fastprof.model.devices import Device, resolve
from fastprof.model.metadata import About
from fastprof.profile.coverage import Coverage
from fastprof.profile.steps.kernel_steps import StepsOfKernels


def devices_of(about: About, device: Column) -> ByNumber[Device]:
    """The peaks and sizes of the GPUs with work, by number.

    device : the column `device`
    """
    resolved = cache(resolve)  # equal GPUs share one
    numbers = devices_used(device)
    places: dict[int, int] = {}
    distinct: list[Device] = []
    ids = np.empty(len(numbers), np.int32)
    for i, number in enumerate(numbers.tolist()):
        gpu = resolved(about.gpus.get(number), about.gpu_figures.get(number))
        ids[i] = places.setdefault(id(gpu), len(places))
        if len(places) > len(distinct):
            distinct.append(gpu)
    return ByNumber(numbers, ids, distinct)


def facts_of(
    name: str, about: About, device: Column, coverage: Coverage, steps: StepsOfKernels
) -> dict[str, Any]:
    """The values file, gpu, steps and coverage of a report.

    gpu is the name of the GPU, or the names of several; coverage is the share of the GPU time by
    depth. Unknown values are None.
    """
    total = coverage.total
    return {
        "file": name,
        "gpu": gpu_names(about, device) or None,
        "steps": _steps(steps),
        "coverage": {
            depth: time / total if total else None for depth, time in coverage.known.items()
        },
    }


def _steps(steps: StepsOfKernels) -> dict[str, Any]:
    """Source, number and lengths of the steps; `counted` are those that means include."""
    known = len(steps.length[steps.is_counted & (steps.length >= 0)]) > 0
    return {
        "source": steps.source,
        "description": steps.description,
        "unit": steps.unit,
        "left_out": steps.left_out,
        "incomplete": steps.incomplete,
        "lost_launches": 0 if steps.lost is None else int(steps.lost.sum()),
        "count": step_count(steps, counted=False),
        "counted": step_count(steps),
        "mean_ns": steps.mean if known else None,
        "median_ns": steps.median if known else None,
        "std_ns": steps.spread if known else None,
        "number": steps.number.tolist(),
        "length_ns": [number if number >= 0 else None for number in steps.length.tolist()],
        "notes": list(steps.notes),
    }


def step_count(steps: StepsOfKernels, counted: bool = True) -> int:
    """The number of steps; steps of one number in several processes are one.

    counted : only steps that means include
    """
    rows = steps.is_counted if counted else slice(None)
    return len(unique(steps.number[rows]))


def gpu_names(about: About, device: Column) -> str:
    """The names of the GPUs with work, each once; "" if the file names none."""
    named = sorted(about.gpus)
    is_used = np.isin(np.array(named, np.int64), _numbers(device)).tolist()
    used = (about.gpus[number] for number, has_work in zip(named, is_used, strict=True) if has_work)
    return ", ".join(dict.fromkeys(used))


def devices_used(device: Column) -> Int64:
    """The GPUs with work, ascending.

    device : the column `device`
    """
    numbers: Int64 = unique(np.asarray(_numbers(device))).astype(np.int64)
    return numbers[numbers >= 0]


def _numbers(device: Column) -> Any:
    """The distinct numbers of GPUs, or all."""
    return device.distinct if isinstance(device, RepeatedInts) else device.values
