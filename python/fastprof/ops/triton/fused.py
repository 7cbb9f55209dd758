"""Kernels that torch.compile has fused, to bytes."""

from __future__ import annotations

from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import op
from fastprof.ops.traffic import moved, texts

__all__ = ["fused_kernel"]

_NUMBERS = ", ".join("_" * 16)  # sizes and other numbers follow the tensors


# "triton" stands for every triton_poi_*, triton_red_*, triton_per_*, triton_tem_* (registry).
@op(None, aten=(f"triton(tensors*, {_NUMBERS})",))
def fused_kernel(tensors: Tensors) -> tuple[Cost, str]:
    """A kernel that torch.compile has generated, called with tensors and then numbers.

    FLOPs: unknown; what the kernel computes is in its source, not in its call.
    Bytes: each tensor once, whether it is read or written.

    An estimate, and it says so. It is too low by what is read and written in place, and where a
    kernel reads a tensor that is expanded or in several passes; too high where it touches only a
    part of one (a slice, an embedding table).
    """
    if not tensors:
        raise CannotModel("no tensor among the arguments")
    return Cost(None, moved(*tensors), exact=False), texts(*tensors)
