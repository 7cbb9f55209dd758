"""Shapes and types in, cost out: what a call of an operator has to compute and to move.

Pure: no arrays, no torch, no GPU. One file a family of operators; importing it registers them.
"""

from fastprof.ops import (
    attention,
    collectives,
    convolution,
    fused,
    images,
    indexing,
    losses,
    matrix,
    movement,
    normalisation,
    optimizers,
    pointwise,
    random,
    recommendation,
    recurrent,
    reductions,
    triton,
)
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.kernels import KernelInfo, classify
from fastprof.ops.params import tensors_text
from fastprof.ops.registry import find, has_model, op, why_unknown, work
from fastprof.ops.tensor import elements, tensor_bytes, tensor_text

__all__ = [
    "CannotModel",
    "Cost",
    "KernelInfo",
    "Part",
    "Work",
    "add_known",
    "attention",
    "classify",
    "collectives",
    "convolution",
    "elements",
    "find",
    "fused",
    "has_model",
    "images",
    "indexing",
    "losses",
    "matrix",
    "movement",
    "normalisation",
    "op",
    "optimizers",
    "pointwise",
    "random",
    "recommendation",
    "recurrent",
    "reductions",
    "tensor_bytes",
    "tensor_text",
    "tensors_text",
    "triton",
    "why_unknown",
    "work",
]
