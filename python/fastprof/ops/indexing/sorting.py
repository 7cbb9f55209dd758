"""FLOPs and bytes of sorting and selecting by order.

The number of comparisons depends on the algorithm and the data, so all costs here are estimates
(`exact` is False): n log2 n for sorting rows of n, n for selecting one or k of them (linear
selection; torch's radix select makes several passes over the bits).
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import left, replaced, row_length
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.reductions.extremes import selected, selected_gradient
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements, tensor_bytes, tensor_text

Dim = int | Unknown


def comparisons(count: int, length: int) -> int:
    """Comparisons to sort `count` elements in rows of `length`: log2(length) each, rounded up."""
    return count * max(length - 1, 0).bit_length()


_LAST: Final = -1


@operators("""
    (x, dim, descending, stable): torch.sort
    (x, dim, descending, ...): aten::sort
    (x, stable, dim, descending, ...): aten::sort
""")
def sort(
    x: Tensor,
    dim: Dim = _LAST,
    descending: bool | Unknown = False,
    stable: bool | Unknown | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Rows of x along dim in order, with their indices -> two of x's shape.

    FLOPs: log2(row length), rounded up, comparisons for each element; backward none.
    Bytes: x read, values and int64 indices written; backward gradient and indices read, the
    gradient of x written.

    An estimate. If dim is not recorded, it is assumed to be the last, torch's default.
    """
    count = elements(x.shape)
    if direction == "bprop":
        return selected_gradient(x, count), tensor_text(x)
    return selected(x, comparisons(count, row_length(x.shape, dim)), count, False), tensor_text(x)


@operators("""
    torch.msort
    (x, ...): aten::msort
""")
def msort(x: Tensor, *, direction: str) -> tuple[Cost, str]:
    """Columns of x along its first dimension in order -> x's shape.

    FLOPs: log2(column length), rounded up, comparisons for each element; backward none.
    Bytes: x read, the values written; backward gradient and int64 indices read, the gradient of x
    written.
    """
    count = elements(x.shape)
    if direction == "bprop":
        return selected_gradient(x, count), tensor_text(x)
    moved = add_known(tensor_bytes(x), byte_count(count, x.dtype))
    return Cost(comparisons(count, row_length(x.shape, 0)), moved, False), tensor_text(x)


@operators("""
    (x, dim, descending, stable): torch.argsort
    (x, dim, descending): aten::argsort
    (x, stable, dim, descending, ...): aten::argsort
""")
def argsort(
    x: Tensor,
    dim: Dim = _LAST,
    descending: bool | Unknown = False,
    stable: bool | Unknown | None = None,
) -> tuple[Cost, str]:
    """Indices that put the rows of x along dim in order -> int64 of x's shape.

    FLOPs: log2(row length), rounded up, comparisons for each element; no backward pass.
    Bytes: x read, int64 indices written (torch also writes the sorted values; they are not
    counted).
    """
    count = elements(x.shape)
    moved = add_known(tensor_bytes(x), byte_count(count, "int64"))
    return Cost(comparisons(count, row_length(x.shape, dim)), moved, False), tensor_text(x)


@operators("(x, k, dim, ...): topk")
def topk(x: Tensor, k: int | Unknown, dim: Dim = _LAST, *, direction: str) -> tuple[Cost, str]:
    """The k largest or smallest of each row of x along dim, with their indices.

    FLOPs: a comparison for each element of x (a selection; sorting the k is not counted); backward
    none.
    Bytes: x read, k values and int64 indices a row written; backward gradients and indices read,
    the gradient of x written.
    """
    if not isinstance(k, Unknown) and not 0 <= k <= row_length(x.shape, dim):
        raise CannotModel(f"cannot select {k} from a row of {x.shape}")
    outputs = None if isinstance(k, Unknown) else replaced(x.shape, dim, k)
    if direction == "bprop":
        return selected_gradient(x, outputs), tensor_text(x)
    return selected(x, elements(x.shape), outputs, False), tensor_text(x)


@operators("(x, _, dim, ...): kthvalue")
def kthvalue(x: Tensor, dim: Dim = _LAST, *, direction: str) -> tuple[Cost, str]:
    """The k-th smallest of each row of x along dim, with its index.

    FLOPs: a comparison for each element (a selection); backward none.
    Bytes: x read, a value and an int64 index per row written; backward they are read, the gradient
    of x written.
    """
    outputs = left(x.shape, dim)
    if direction == "bprop":
        return selected_gradient(x, outputs), tensor_text(x)
    return selected(x, elements(x.shape), outputs, False), tensor_text(x)


@operators("""
    (x, dim, keepdim): torch.median torch.nanmedian
    (x, dim, keepdim, ...): aten::median aten::nanmedian
""")
def median(
    x: Tensor,
    dim: int | Unknown | None = None,
    keepdim: bool | Unknown = False,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """The median of all of x, or of each row along dim with its index.

    FLOPs: a comparison for each element (a selection); backward none along dim; for all of x 3 per
    element (a mask, its sum, a product).
    Bytes: x read, the values and along dim int64 indices written; backward they (for all of x: x,
    value and its gradient) are read, the gradient of x written.
    """
    outputs, count = left(x.shape, dim), elements(x.shape)
    if dim is not None:
        if direction == "bprop":
            return selected_gradient(x, outputs), tensor_text(x)
        return selected(x, count, outputs, False), tensor_text(x)
    value, read = byte_count(1, x.dtype), tensor_bytes(x)
    if direction == "bprop":
        written = byte_count(count, x.dtype)
        return Cost(3 * count, add_known(read, value, value, written)), tensor_text(x)
    return Cost(count, add_known(read, value), False), tensor_text(x)


@operators("(x, dim, ...): mode")
def mode(x: Tensor, dim: Dim = _LAST, *, direction: str) -> tuple[Cost, str]:
    """The most frequent value of each row of x along dim, with an index of it.

    FLOPs: log2(row length), rounded up, comparisons for each element to sort it and 1 to count;
    backward none.
    Bytes: x read, a value and an int64 index per row written; backward they are read, the gradient
    of x written.
    """
    outputs, count = left(x.shape, dim), elements(x.shape)
    if direction == "bprop":
        return selected_gradient(x, outputs), tensor_text(x)
    flops = comparisons(count, row_length(x.shape, dim)) + count
    return selected(x, flops, outputs, False), tensor_text(x)


@operators("(x, q, dim, ...): quantile nanquantile")
def quantile(x: Tensor, q: Tensor | float, dim: int | Unknown | None = None) -> tuple[Cost, str]:
    """Quantiles q of all of x, or of each row along dim -> [q, ..].

    FLOPs: log2(row length), rounded up, comparisons for each element to sort it, and 3 for each
    interpolated output; the backward pass is not modelled.
    Bytes: x and q read, the quantiles written (the sorted copy is not counted).
    """
    wanted = elements(q.shape) if isinstance(q, Tensor) else 1
    rows, count = left(x.shape, dim), elements(x.shape)
    flops = comparisons(count, row_length(x.shape, dim))
    moved = add_known(tensor_bytes(x), byte_count(wanted, x.dtype))
    params = tensor_text(x)
    if rows is None:
        return Cost(flops + 3 * wanted, None, False), params
    moved = add_known(moved, byte_count(wanted * rows, x.dtype))
    return Cost(flops + 3 * wanted * rows, moved, False), params
