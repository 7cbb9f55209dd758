"""Cost models: FLOPs and bytes of an operator's call from the shapes and types of its arguments.

Pure Python, without numpy, torch or a GPU. Each subpackage is a family of operators; importing it
registers its formulas.
"""

from fastprof.ops import (
    attention,
    collectives,
    compute_types,
    convolution,
    decompositions,
    detection,
    fourier,
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
    serving,
    tensor_cores,
    triton,
)
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.kernels import KernelInfo, classify
from fastprof.ops.params import tensors_of, tensors_text
from fastprof.ops.registry import find, has_model, op, why_unknown, work
from fastprof.ops.tensor import elements, tensor_bytes, tensor_text
from fastprof.ops.tensor_cores import reason_of_name, reason_of_types

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
    "compute_types",
    "convolution",
    "decompositions",
    "detection",
    "elements",
    "find",
    "fourier",
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
    "reason_of_name",
    "reason_of_types",
    "recommendation",
    "recurrent",
    "reductions",
    "serving",
    "tensor_bytes",
    "tensor_cores",
    "tensor_text",
    "tensors_of",
    "tensors_text",
    "triton",
    "why_unknown",
    "work",
]
