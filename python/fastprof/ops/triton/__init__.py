"""Kernels that torch.compile fused."""

from fastprof.ops.triton import fused

__all__ = [
    "fused",
]
