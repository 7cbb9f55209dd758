"""Kernels fused by torch.compile."""

from fastprof.ops.triton import fused

__all__ = [
    "fused",
]
