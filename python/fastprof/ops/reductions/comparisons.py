"""FLOPs and bytes of equal, allclose and is_nonzero."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import Cost, add_known
from fastprof.ops.registry import operators
from fastprof.ops.tensor import broadcast, byte_count, elements, tensor_bytes, tensor_text

_CLOSE = 7  # |x - other| <= absolute + relative * |other|, or x = other


@operators("equal")
def equal(x: Tensor, other: Tensor) -> tuple[Cost, str]:
    """Whether x and other have one shape and equal elements -> [].

    FLOPs: a comparison and a logical and for each element, none if the shapes differ.
    Bytes: both read, one bool written.
    """
    params = f"{tensor_text(x)};{tensor_text(other)}"
    if x.shape != other.shape:
        return Cost(0, 0), params
    return Cost(2 * elements(x.shape), add_known(tensor_bytes(x), tensor_bytes(other), 1)), params


@operators("(x, other, ...): allclose")
def allclose(x: Tensor, other: Tensor) -> tuple[Cost, str]:
    """Whether all elements of x and other, broadcast, are close -> [].

    FLOPs: the 7 of isclose and a logical and for each element; no backward pass.
    Bytes: both read, one bool written.
    """
    count = elements(broadcast(x.shape, other.shape))
    moved = add_known(tensor_bytes(x), tensor_bytes(other), 1)
    return Cost((_CLOSE + 1) * count, moved), f"{tensor_text(x)};{tensor_text(other)}"


@operators("""
    is_nonzero torch.__bool__
    (x, ...): _assert_async aten::_functional_assert_async
""")
def is_nonzero(x: Tensor) -> tuple[Cost, str]:
    """Whether the single element of x is not zero.

    FLOPs: one comparison.
    Bytes: the element read.
    """
    return Cost(1, byte_count(1, x.dtype)), tensor_text(x)
