"""FLOPs and bytes of extremes along a dimension, and comparisons of all elements."""

from __future__ import annotations

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import Dims, left
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import (
    broadcast,
    byte_count,
    elements,
    result_type,
    tensor_bytes,
    tensor_text,
)


def selected(x: Tensor, flops: int, outputs: int | None, exact: bool = True) -> Cost:
    """Cost of selecting values along a dimension with their int64 indices: x read, both written."""
    values = None if outputs is None else byte_count(outputs, x.dtype)
    indices = None if outputs is None else byte_count(outputs, "int64")
    return Cost(flops, add_known(tensor_bytes(x), values, indices), exact)


def selected_gradient(x: Tensor, outputs: int | None) -> Cost:
    """Gradient of selected values: scattered to their indices in zeros of the shape of x."""
    values = None if outputs is None else byte_count(outputs, x.dtype)
    indices = None if outputs is None else byte_count(outputs, "int64")
    return Cost(0, add_known(values, indices, byte_count(elements(x.shape), x.dtype)))


@operators("""
    (x, second, keepdim, dim=dim, other=other, axis=axis): torch.max torch.min
    (x, second, keepdim, ...): aten::max aten::min
    (x, other, ...): aten::max aten::min
""")
def torch_max(
    x: Tensor,
    second: Tensor | int | Unknown | None = None,
    keepdim: bool | Unknown | None = None,
    dim: Dims = None,
    other: Tensor | None = None,
    axis: Dims = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Maximum or minimum: of all of x, along dim (with indices), or of x and other, broadcast.

    FLOPs: a comparison for each element of x (of the output for two tensors). Backward: of all of
    x, a comparison, an addition and a product for each element; along a dimension none; of two
    tensors, a comparison and two products for each element of the output.
    Bytes: x (and other) read, values and int64 indices written; backward the gradient (and values
    or indices) read, those of the operands written.

    In a range without values, the number of arguments determines the case.
    """
    if isinstance(second, Tensor) and keepdim is not None:
        second = UNKNOWN  # a number, recorded as a tensor without dimensions
    elif isinstance(second, Tensor):
        other, second = second, None
    if other is not None:
        return _of_two(x, other, direction)
    if second is None and isinstance(keepdim, Unknown):
        second = keepdim
    for each in (second, axis):
        dim = each if dim is None else dim
    params = tensor_text(x)
    count = elements(x.shape)
    if dim is None:
        value = byte_count(1, x.dtype)
        if direction == "fprop":
            return Cost(count, add_known(tensor_bytes(x), value)), params
        return Cost(3 * count, _masked(x, value)), params
    if direction == "fprop":
        return selected(x, count, left(x.shape, dim)), params
    return selected_gradient(x, left(x.shape, dim)), params


def _masked(x: Tensor, outputs: int | None) -> int | None:
    # x, the outputs and their gradients read, the gradient of x written.
    return add_known(tensor_bytes(x), byte_count(elements(x.shape), x.dtype), outputs, outputs)


def _of_two(x: Tensor, other: Tensor, direction: str) -> tuple[Cost, str]:
    count = elements(broadcast(x.shape, other.shape))
    operands = add_known(tensor_bytes(x), tensor_bytes(other))
    written = byte_count(count, result_type((x, other)))
    params = f"{tensor_text(x)};{tensor_text(other)}"
    if direction == "fprop":
        return Cost(count, add_known(operands, written)), params
    return Cost(3 * count, add_known(operands, operands, written)), params


@operators("""
    (x, dim): torch.aminmax torch._aminmax
    (x, dim, ...): aten::aminmax aten::_aminmax
""")
def aminmax(x: Tensor, dim: int | Unknown | None = None, *, direction: str) -> tuple[Cost, str]:
    """Smallest and largest of x [..], of all or along dim -> two of [..].

    FLOPs: two comparisons for each element; backward twice a comparison, an addition, a product.
    Bytes: x read, both results written; backward x, both and their gradients read, the gradient of
    x written.
    """
    outputs, count = left(x.shape, dim), elements(x.shape)
    written = None if outputs is None else byte_count(2 * outputs, x.dtype)
    if direction == "fprop":
        return Cost(2 * count, add_known(tensor_bytes(x), written)), tensor_text(x)
    return Cost(6 * count, _masked(x, written)), tensor_text(x)


@operators("aten::value_selecting_reduction_backward")
def value_selecting_reduction_backward(
    gradient: Tensor,
    dim: int | Unknown,
    indices: Tensor,
    sizes: Ints | Unknown,
    keepdim: bool | Unknown = False,
) -> tuple[Cost, str]:
    """Gradient of values picked along a dimension (max, sort, topk, median, mode, kthvalue).

    FLOPs: none, the gradient is scattered into zeros.
    Bytes: gradient and indices read, a tensor of the input's sizes written.
    """
    params = f"{tensor_text(gradient)};{tensor_text(indices)}"
    if isinstance(sizes, Unknown):
        return Cost(0, None), params
    shape = (sizes,) if isinstance(sizes, int) else sizes
    if any(size < 0 for size in shape):
        raise CannotModel(f"invalid shape {shape}")
    written = byte_count(elements(shape), gradient.dtype)
    return Cost(0, add_known(tensor_bytes(gradient), tensor_bytes(indices), written)), params


# FLOPs and bytes of equal, allclose and is_nonzero.

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


table_row("""
    Whether the single element of x is not zero.
    FLOPs: one comparison.
    Bytes: the element read.
    (x): is_nonzero torch.__bool__
    (x, ...): _assert_async aten::_functional_assert_async
""")("x", lambda x: (Cost(1, byte_count(1, x.dtype)), tensor_text(x)))
