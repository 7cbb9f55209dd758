"""Compare the bytes of calls with the bandwidth of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof.model.devices import resolve
from fastprof.model.metadata import About

__all__ = ["MOST", "bandwidths", "too_fast"]

# Limit, as a multiple of the memory's bandwidth. Caches are faster than the memory: measured,
# adds of cached tensors reach 1.04.
MOST = 1.5


def bandwidths(about: About, device: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Memory bandwidth of each device, bytes per second; NaN: unknown. device : [n] numbers"""
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
    """bool [kernels]: whether a kernel's call exceeds `MOST` times the memory's bandwidth.

    Calls whose kernels took no measurable time have no rate.

    Parameters
    ----------
    bytes_ : [kernels] its share of the call's bytes; -1: unknown
    duration : ns [kernels]; -1: unknown
    group : [kernels] the call instance, 0 .. n_groups - 1; -1: a call of one kernel
    bandwidth : bytes per second [kernels], of its device's memory; NaN: unknown
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
