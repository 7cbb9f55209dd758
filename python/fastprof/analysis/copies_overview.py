"""The answer first: the lines above the table of `copies`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import eq
from typing import Any, Final

import numpy as np

from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.step_means import step_means
from fastprof.model.arrays import Int64
from fastprof.model.quantity import quantity
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile
from fastprof.profile.program import OTHER, TORCH
from fastprof.profile.steps.of_kernels import StepsOfKernels


def overview(
    profile: Profile, steps: StepsOfKernels, rows: Int64, total: Mapping[str, Any]
) -> list[str]:
    """Lines of text.

    rows : the copies and memsets, kernel rows
    total : their measures together
    """
    gpus = gpu_names(profile.about, profile.column("device")) or "GPU not named in the file"
    lines = [gpus]
    work = (
        f"{total['copies']} copies and memsets of {quantity(total['bytes'] or 0, 'bytes')} take "
        f"{quantity(total['time_ns'], 'ns')}"
    )
    means = step_means(profile, steps)
    if total["step_ns"] is not None and means is not None:
        lines = [f"{gpus}, {steps.description}", *steps.notes]
        share = f"{total['step_ns'] / means.wall:.1%} of the step"
        work += f", {quantity(total['step_ns'], 'ns')} per step ({share})"
    exposed = f"exposed {quantity(total['exposed_ns'], 'ns')}, during which the GPU only copies"
    if total["blocked_ns"] is not None:
        waits = quantity(total["blocked_ns"], "ns")
        exposed += f"; the host waits {waits} in {total['blocking']} of them"
    lines += [work, exposed]
    return [*lines, *_pageable(profile, rows)]


def _pageable(profile: Profile, rows: Int64) -> list[str]:
    """The copies from and to pageable memory, and what to do."""
    direction, memory = texts(profile, "copy_direction"), texts(profile, "copy_memory")
    size = np.maximum(numbers(profile, "copied")[rows], 0)
    lines = []
    pageable = memory.fits(lambda text: "pageable" in text)[rows]
    for name, word in _WORDS:
        how = profile.contents.program.choose(_ADVICE[name])
        own = direction.fits(partial(eq, name))[rows]
        found = own & pageable
        if found.any():
            share = size[found].sum() / max(size[own].sum(), 1)
            lines.append(
                f"{name}: {np.count_nonzero(found)} of {np.count_nonzero(own)} copies {word} "
                f"pageable memory, {share:.1%} of the bytes; {how}"
            )
    return lines


_WORDS: Final = (("HtoD", "from"), ("DtoH", "to"))
_ADVICE: Final = {
    "HtoD": {
        TORCH: "pinned memory and non_blocking=True let them overlap with kernels",
        OTHER: "asynchronous copies from pinned memory overlap with kernels",
    },
    "DtoH": {
        TORCH: "each waits for the work before it, as .item() and .cpu() do",
        OTHER: "each waits for the work before it",
    },
}
