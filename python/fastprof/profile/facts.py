"""What the JSON of every report says of its file: its name, GPUs, steps and coverage."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastprof.model.metadata import About
from fastprof.profile.coverage import Coverage

__all__ = ["facts_of", "gpu_names"]


def facts_of(name: str, about: About, devices: Iterable[int], coverage: Coverage) -> dict[str, Any]:
    """The values file, gpu, steps and coverage.

    gpu is the name of the GPU, or the names of several; coverage is the share of the GPU time by
    depth. Unknown values are None.
    """
    total = coverage.total
    return {
        "file": name,
        "gpu": gpu_names(about, devices) or None,
        "steps": {"count": len(about.steps)},
        "coverage": {
            depth: time / total if total else None for depth, time in coverage.known.items()
        },
    }


def gpu_names(about: About, devices: Iterable[int]) -> str:
    """The names of these GPUs, each once; "" if the file names none."""
    return ", ".join(dict.fromkeys(about.gpus[each] for each in devices if each in about.gpus))
