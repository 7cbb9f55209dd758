"""What the JSON of every report says of its file: its name, GPUs, steps and coverage."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastprof.model.columns import Column, RepeatedInts
from fastprof.model.metadata import About
from fastprof.profile.coverage import Coverage

__all__ = ["devices_used", "facts_of", "gpu_names"]


def facts_of(name: str, about: About, device: Column, coverage: Coverage) -> dict[str, Any]:
    """The values file, gpu, steps and coverage.

    gpu is the name of the GPU, or the names of several; coverage is the share of the GPU time by
    depth. Unknown values are None.
    """
    total = coverage.total
    return {
        "file": name,
        "gpu": gpu_names(about, device) or None,
        "steps": {"count": len(about.steps)},
        "coverage": {
            depth: time / total if total else None for depth, time in coverage.known.items()
        },
    }


def gpu_names(about: About, device: Column) -> str:
    """The names of the GPUs with work, each once; "" if the file names none."""
    used = devices_used(device)
    return ", ".join(dict.fromkeys(about.gpus[each] for each in used if each in about.gpus))


def devices_used(device: Column) -> list[int]:
    """The GPUs with work, ascending.

    device : the column `device`
    """
    numbers = device.distinct if isinstance(device, RepeatedInts) else device.values
    return sorted({int(each) for each in np.unique(numbers) if each >= 0})
