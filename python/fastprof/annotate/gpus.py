"""What the program does with GPUs, found out without a call that initialises CUDA.

`torch.cuda.is_available` and `device_count` initialise CUDA's driver; processes that the program
forks later cannot use it. Other functions create a context, which takes hundreds of MB on the GPU.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Final

import torch

from fastprof._system.nvidia import has_gpu

_DRIVER: Final = "libcuda.so.1"


def may_be_used() -> bool:
    """Whether this machine may have a GPU that this torch can use."""
    return torch.version.hip is not None or (torch.version.cuda is not None and has_gpu())


def are_used() -> bool:
    """Whether this process computes on GPUs, by torch or by another library."""
    return torch.cuda.is_initialized() or has_context(_loaded_driver())


def has_context(driver: Any) -> bool:
    """Whether a GPU has a primary context of this process.

    driver : CUDA's driver library; None if it is not loaded. It answers with an error, which is no
        context, until someone initialises it, and in forks.
    """
    if driver is None:
        return False
    number, device, flags, is_active = (
        ctypes.c_int(),
        ctypes.c_int(),
        ctypes.c_uint(),
        ctypes.c_int(),
    )
    if driver.cuDeviceGetCount(ctypes.byref(number)):
        return False
    for place in range(number.value):
        if driver.cuDeviceGet(ctypes.byref(device), place):
            continue
        error = driver.cuDevicePrimaryCtxGetState(
            device, ctypes.byref(flags), ctypes.byref(is_active)
        )
        if not error and is_active.value:
            return True
    return False


def _loaded_driver() -> Any:
    """CUDA's driver library if this process has loaded it, else None."""
    try:
        return ctypes.CDLL(_DRIVER, mode=os.RTLD_NOLOAD)
    except (OSError, AttributeError):  # not loaded; a system that cannot tell
        return None
