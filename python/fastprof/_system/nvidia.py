"""NVIDIA GPUs of this machine, as the system shows them; nothing initialises CUDA."""

from __future__ import annotations

import os

_DEVICES = ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl-gpu")  # also WSL and Jetson


def has_gpu() -> bool:
    """Whether there is an NVIDIA GPU."""
    return any(map(os.path.exists, _DEVICES))
