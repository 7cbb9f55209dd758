"""FLOPs of quantisation to float8, float4 or int8, alone and in fused kernels."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.tensor import canonical_type, elements

SCALE: Final = 3  # times the scale, clamped between two limits
SEARCH: Final = 2  # magnitude, comparison: the search for a scale


def packed_float4(tensor: Tensor) -> Tensor:
    """The tensor as float4, two numbers in a byte, which many kernels call uint8."""
    if canonical_type(tensor.dtype) not in ("uint8", "int8", None):
        return tensor
    return Tensor(tensor.shape, "float4_e2m1fn_x2", tensor.strides)


def scaled_up(x: Tensor, *, searched: bool) -> int:
    """FLOPs of quantising x, with or without the search for its scale."""
    return elements(x.shape) * (SCALE + (SEARCH if searched else 0))
