"""Optimizers and foreach operators."""

from fastprof.ops.optimizers import apex, foreach, fused

__all__ = [
    "apex",
    "foreach",
    "fused",
]
