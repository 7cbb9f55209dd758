"""Compare the bytes of calls with the bandwidth of the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastprof._core import _share
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.devices import resolve
from fastprof.model.metadata import About

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
    bytes_: Int64,
    duration: Int64,
    group: Int32,
    n_groups: int,
    memory: Int32,
    bandwidth: npt.NDArray[np.float64],
) -> Bools:
    """bool [kernels]: whether a kernel's call exceeds `MOST` times the memory's bandwidth.

    Calls whose kernels took no measurable time have no rate.

    Parameters
    ----------
    bytes_ : [kernels] its share of the call's bytes; -1: unknown
    duration : ns [kernels]; -1: unknown
    group : [kernels] the call instance, 0 .. n_groups - 1; -1: a call of one kernel
    memory : [kernels] index into `bandwidth`
    bandwidth : bytes per second [memories]; NaN: unknown
    """
    if np.isnan(bandwidth).all():
        return np.zeros(len(bytes_), bool)
    return _share.too_fast(bytes_, duration, group, n_groups, memory, bandwidth, MOST)
