"""Whether what calls are said to move can be true: bytes against the memory's bandwidth."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof.model.devices import resolve
from fastprof.model.metadata import About

__all__ = ["MOST", "bandwidths", "too_fast"]

# Of the memory's bandwidth. Caches give more than the memory does, so a call may be somewhat
# faster; measured, adds of what lies in the cache reach 1.04.
MOST = 1.5


def bandwidths(about: About, device: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Bytes a second of the memory of each device, NaN for not known. device : [n] numbers"""
    devices, place = np.unique(device, return_inverse=True)
    found = [
        resolve(about.gpus.get(number), about.gpu_figures.get(number)).bandwidth or np.nan
        for number in devices.tolist()
    ]
    return np.array(found, np.float64)[place]


def too_fast(
    bytes_: npt.NDArray[Any],
    duration: npt.NDArray[Any],
    group: npt.NDArray[Any],
    n_groups: int,
    bandwidth: npt.NDArray[Any],
) -> npt.NDArray[np.bool_]:
    """bool [kernels]: whether a kernel's call moves more than `MOST` times what the memory can.

    Parameters
    ----------
    bytes_ : [kernels] its share of the call's bytes, -1 for not known
    duration : ns [kernels], -1 for not known
    group : [kernels] the call instance, 0 .. n_groups - 1; -1 for a kernel of its own
    bandwidth : bytes a second [kernels] of the memory of its device, NaN for not known

    A call whose kernels took no time that the clock of the trace can tell has no rate.
    """
    known = bytes_ >= 0
    found: npt.NDArray[np.bool_] = known & ~np.isnan(bandwidth)
    if not found.any():
        return found
    alone = group < 0
    place = np.where(alone, n_groups, group).astype(np.intp)

    def of_call(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        sums = np.bincount(place, weights=values, minlength=n_groups + 1)
        totals: npt.NDArray[np.float64] = np.where(alone, values, sums[place])
        return totals

    moved = of_call(np.where(known, bytes_, 0.0))
    time = of_call(np.maximum(duration, 0) * 1e-9)
    found &= (time > 0) & (moved > MOST * bandwidth * time)
    return found
