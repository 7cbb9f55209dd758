"""How much of the GPU time of a capture is known, and to which depth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastprof.calls import Bools, CallsOfKernels
from fastprof.columns import Ints
from fastprof.trace import Int64


@dataclass(frozen=True)
class Coverage:
    """How much of the GPU time is known to which depth.

    Parameters
    ----------
    total : ns of all kernels
    known : ns of the kernels that have a launch, a range, an op, shapes, a known cost
    """

    total: int
    known: dict[str, int]

    def __str__(self) -> str:
        parts = (
            f"{name} {100 * time / self.total if self.total else 0:.1f} %"
            for name, time in self.known.items()
        )
        return f"GPU time {self.total / 1e6:.3f} ms, known of it: {', '.join(parts)}"


def cover(
    duration: Int64, launched: Bools, inside: Bools, calls: CallsOfKernels, flops: Ints
) -> Coverage:
    """Add up the time that is known to each depth.

    Parameters
    ----------
    duration : ns [kernels]; one that is not known counts as none
    launched, inside : [kernels] whether a launch, a range is known
    """
    time = np.maximum(duration, 0)
    has_arguments = np.array([name.call is not None for name in calls.named] + [False])
    depths = {
        "launch": launched,
        "range": inside,
        "op": calls.call >= 0,
        "shapes": has_arguments[calls.call],
        "cost": flops.values >= 0,
    }
    return Coverage(int(time.sum()), {name: int(time[rows].sum()) for name, rows in depths.items()})
