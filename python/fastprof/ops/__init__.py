"""Shapes and types in, cost out: what a call of an operator has to compute and to move.

Pure: no arrays, no torch, no GPU. One file a family of operators; importing it registers them.
"""

from fastprof.ops import (
    attention,
    collectives,
    convolution,
    einsum,
    embedding,
    indexing,
    matmul,
    movement,
    normalisation,
    optimizers,
    pointwise,
    pooling,
    random,
    recurrent,
    reductions,
    softmax,
    sorting,
    triton,
)
from fastprof.ops.cost import CannotModel, Cost, Part, Work
from fastprof.ops.kernels import KernelInfo, classify
from fastprof.ops.params import tensors_text
from fastprof.ops.registry import find, has_model, op, why_unknown, work

__all__ = [
    "CannotModel",
    "Cost",
    "KernelInfo",
    "Part",
    "Work",
    "attention",
    "classify",
    "collectives",
    "convolution",
    "einsum",
    "embedding",
    "find",
    "has_model",
    "indexing",
    "matmul",
    "movement",
    "normalisation",
    "op",
    "optimizers",
    "pointwise",
    "pooling",
    "random",
    "recurrent",
    "reductions",
    "softmax",
    "sorting",
    "tensors_text",
    "triton",
    "why_unknown",
    "work",
]
