"""Fourier transforms."""

from fastprof.ops.fourier import transforms

__all__ = [
    "transforms",
]
