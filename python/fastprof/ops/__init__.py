"""Shapes and types in, cost out: what a call of an operator has to compute and to move.

Pure: no arrays, no torch, no GPU. One file a family of operators; importing it registers them.
"""

from fastprof.ops import embedding, matmul, pointwise
from fastprof.ops.cost import Cost, Part, Work
from fastprof.ops.kernels import KernelInfo, classify
from fastprof.ops.params import tensors_text
from fastprof.ops.registry import find, has_model, work

__all__ = [
    "Cost",
    "KernelInfo",
    "Part",
    "Work",
    "classify",
    "embedding",
    "find",
    "has_model",
    "matmul",
    "pointwise",
    "tensors_text",
    "work",
]
