"""Cost models: FLOPs and bytes of an operator's call from the shapes and types of its arguments.

Pure Python, without numpy, torch or a GPU. Each subpackage is a family of operators; importing a
module registers its formulas, and `index` says which module a call needs.
"""

from fastprof.ops import tensor_cores
from fastprof.ops import tensor_cores as compute_types
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.kernels import KernelInfo, classify
from fastprof.ops.parameters import tensors_of, tensors_text
from fastprof.ops.registry import find, has_model, home_of, op, why_unknown, work
from fastprof.ops.tensor import elements, tensor_bytes, tensor_text
from fastprof.ops.tensor_cores import reason_of_name, reason_of_types

__all__ = [
    "CannotModel",
    "Cost",
    "KernelInfo",
    "Part",
    "Work",
    "add_known",
    "classify",
    "compute_types",
    "elements",
    "find",
    "has_model",
    "home_of",
    "op",
    "reason_of_name",
    "reason_of_types",
    "tensor_bytes",
    "tensor_cores",
    "tensor_text",
    "tensors_of",
    "tensors_text",
    "why_unknown",
    "work",
]
