"""Optimizers and foreach operators."""

from fastprof.ops.optimizers import apex, apex_steps, foreach, fused

__all__ = [
    "apex",
    "apex_steps",
    "foreach",
    "fused",
]
