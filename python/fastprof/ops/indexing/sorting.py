"""FLOPs and bytes of sorting and selecting by order.

The number of comparisons depends on the algorithm and the data, so all costs here are estimates
(`exact` is False): n log2 n for sorting rows of n, n for selecting one or k of them (linear
selection; torch's radix select makes several passes over the bits).

FLOPs and bytes of masked fill, masked select and nonzero.

The number of elements selected by a mask is not recorded: if it determines the output, bytes are
unknown without the size of the result.

FLOPs and bytes of look-up by value: binary search, membership, distinct values, histograms.

The number of distinct values is not recorded: if it determines the output, bytes are unknown.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import left, replaced, row_length
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints, Number
from fastprof.ops.reductions.norms import selected, selected_gradient
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import (
    broadcast,
    byte_count,
    canonical_type,
    elements,
    tensor_bytes,
    tensor_text,
    texts,
)

Dim = int | Unknown


def comparisons(count: int, length: int) -> int:
    """Comparisons to sort `count` elements in rows of `length`: log2(length) each, rounded up."""
    return count * max(length - 1, 0).bit_length()


_LAST: Final = -1


@operators("""
    Rows of x along dim in order, with their indices -> two of x's shape.
    FLOPs: log2(row length), rounded up, comparisons for each element; backward none.
    Bytes: x read, values and int64 indices written; backward gradient and indices read, the
    gradient of x written.

    An estimate. If dim is not recorded, it is assumed to be the last, torch's default.
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
) -> Answer:
    count = elements(x.shape)
    if direction == "bprop":
        return selected_gradient(x, count), tensor_text(x)
    return selected(x, comparisons(count, row_length(x.shape, dim)), count, False), tensor_text(x)


@operators("""
    Columns of x along its first dimension in order -> x's shape.
    FLOPs: log2(column length), rounded up, comparisons for each element; backward none.
    Bytes: x read, the values written; backward gradient and int64 indices read, the gradient of x
    written.
    (*): torch.msort
    (x, ...): aten::msort
""")
def msort(x: Tensor, *, direction: str) -> Answer:
    count = elements(x.shape)
    if direction == "bprop":
        return selected_gradient(x, count), tensor_text(x)
    moved = add_known(tensor_bytes(x), byte_count(count, x.dtype))
    return Cost(comparisons(count, row_length(x.shape, 0)), moved, False), tensor_text(x)


@operators("""
    Indices that put the rows of x along dim in order -> int64 of x's shape.
    FLOPs: log2(row length), rounded up, comparisons for each element; no backward pass.
    Bytes: x read, int64 indices written (torch also writes the sorted values; they are not
    counted).
    (x, dim, descending, stable): torch.argsort
    (x, dim, descending): aten::argsort
    (x, stable, dim, descending, ...): aten::argsort
""")
def argsort(
    x: Tensor,
    dim: Dim = _LAST,
    descending: bool | Unknown = False,
    stable: bool | Unknown | None = None,
) -> Answer:
    count = elements(x.shape)
    moved = add_known(tensor_bytes(x), byte_count(count, "int64"))
    return Cost(comparisons(count, row_length(x.shape, dim)), moved, False), tensor_text(x)


@operators("""
    The k largest or smallest of each row of x along dim, with their indices.
    FLOPs: a comparison for each element of x (a selection; sorting the k is not counted); backward
    none.
    Bytes: x read, k values and int64 indices a row written; backward gradients and indices read,
    the gradient of x written.
    (x, k, dim, ...): topk
""")
def topk(x: Tensor, k: int | Unknown, dim: Dim = _LAST, *, direction: str) -> Answer:
    if not isinstance(k, Unknown) and not 0 <= k <= row_length(x.shape, dim):
        raise CannotModel(f"cannot select {k} from a row of {x.shape}")
    outputs = None if isinstance(k, Unknown) else replaced(x.shape, dim, k)
    if direction == "bprop":
        return selected_gradient(x, outputs), tensor_text(x)
    return selected(x, elements(x.shape), outputs, False), tensor_text(x)


@operators("""
    The k-th smallest of each row of x along dim, with its index.
    FLOPs: a comparison for each element (a selection); backward none.
    Bytes: x read, a value and an int64 index per row written; backward they are read, the gradient
    of x written.
    (x, _, dim, ...): kthvalue
""")
def kthvalue(x: Tensor, dim: Dim = _LAST, *, direction: str) -> Answer:
    outputs = left(x.shape, dim)
    if direction == "bprop":
        return selected_gradient(x, outputs), tensor_text(x)
    return selected(x, elements(x.shape), outputs, False), tensor_text(x)


@operators("""
    The median of all of x, or of each row along dim with its index.
    FLOPs: a comparison for each element (a selection); backward none along dim; for all of x 3 per
    element (a mask, its sum, a product).
    Bytes: x read, the values and along dim int64 indices written; backward they (for all of x: x,
    value and its gradient) are read, the gradient of x written.
    (x, dim, keepdim): torch.median torch.nanmedian
    (x, dim, keepdim, ...): aten::median aten::nanmedian
""")
def median(
    x: Tensor, dim: int | Unknown | None = None, keepdim: bool | Unknown = False, *, direction: str
) -> Answer:
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


@operators("""
    The most frequent value of each row of x along dim, with an index of it.
    FLOPs: log2(row length), rounded up, comparisons for each element to sort it and 1 to count;
    backward none.
    Bytes: x read, a value and an int64 index per row written; backward they are read, the gradient
    of x written.
    (x, dim, ...): mode
""")
def mode(x: Tensor, dim: Dim = _LAST, *, direction: str) -> Answer:
    outputs, count = left(x.shape, dim), elements(x.shape)
    if direction == "bprop":
        return selected_gradient(x, outputs), tensor_text(x)
    flops = comparisons(count, row_length(x.shape, dim)) + count
    return selected(x, flops, outputs, False), tensor_text(x)


@operators("""
    Quantiles q of all of x, or of each row along dim -> [q, ..].
    FLOPs: log2(row length), rounded up, comparisons for each element to sort it, and 3 for each
    interpolated output; the backward pass is not modelled.
    Bytes: x and q read, the quantiles written (the sorted copy is not counted).
    (x, q, dim, ...): quantile nanquantile
""")
def quantile(x: Tensor, q: Tensor | float, dim: int | Unknown | None = None) -> Answer:
    wanted = elements(q.shape) if isinstance(q, Tensor) else 1
    rows, count = left(x.shape, dim), elements(x.shape)
    flops = comparisons(count, row_length(x.shape, dim))
    moved = add_known(tensor_bytes(x), byte_count(wanted, x.dtype))
    params = tensor_text(x)
    if rows is None:
        return Cost(flops + 3 * wanted, None, False), params
    moved = add_known(moved, byte_count(wanted * rows, x.dtype))
    return Cost(flops + 3 * wanted * rows, moved, False), params


def masked(x: Tensor, mask: Tensor, direction: str) -> Cost:
    """x with one number where the mask, broadcast, is true; no arithmetic."""
    shape = broadcast(x.shape, mask.shape)
    written = byte_count(elements(shape), x.dtype)
    read = tensor_bytes(x) if direction == "fprop" else written
    return Cost(0, add_known(read, tensor_bytes(mask), written))


def _with_result(
    read: tuple[Tensor, ...], result: Tensor | Unknown, dtype: str | None
) -> int | None:
    if isinstance(result, Unknown):
        return None
    written = byte_count(elements(result.shape), result.dtype or dtype)
    return add_known(written, *map(tensor_bytes, read))


table_row("""
    x with one number where the mask, broadcast, is true.
    FLOPs: none.
    Bytes: x and mask read, the output written; backward gradient and mask read, the gradient of x
    written. In place, all of x is also read and written.
    (x, mask, ...): masked_fill masked_fill_
""")("x, mask", lambda x, mask, direction: (masked(x, mask, direction), texts(x, mask)))


@operators("""
    x with elements of a source, in order, where the mask, broadcast, is true.
    FLOPs: none (the mask's prefix sum is not counted).
    Bytes: x, mask and source read, the output written; backward gradient and mask read, the
    gradients of x and source written.

    An estimate: the source may have more elements than the mask selects.
    (x, mask, source): torch.masked_scatter masked_scatter_
    (x, mask, source, ...): aten::masked_scatter
""")
def masked_scatter(x: Tensor, mask: Tensor, source: Tensor, *, direction: str) -> Answer:
    cost, whole = masked(x, mask, direction), tensor_bytes(source)
    if direction == "bprop":
        whole = add_known(whole, whole)  # picked from the gradient, written
    return Cost(0, add_known(cost.bytes, whole), False), texts(x, mask, source)


@operators("""
    Gradient of the source of a masked_scatter: the selected elements, then zeros.
    FLOPs: none.
    Bytes: mask and selected gradient read, a tensor of the source's sizes written.

    An estimate: the source may have more elements than the mask selects.
    (*): aten::masked_scatter_backward
""")
def masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: Ints | Unknown) -> Answer:
    params = texts(gradient, mask)
    if isinstance(sizes, Unknown):
        return Cost(0, None), params
    shape = (sizes,) if isinstance(sizes, int) else sizes
    if any(size < 0 for size in shape):
        raise CannotModel(f"invalid shape {shape}")
    whole = byte_count(elements(shape), gradient.dtype)
    return Cost(0, add_known(tensor_bytes(mask), whole, whole), False), params


@operators("""
    Elements of x where the mask is true, both broadcast -> [selected].
    FLOPs: none (the mask's prefix sum is not counted); the backward pass is not modelled.
    Bytes: x and mask read, the selected elements written; unknown if the size of the result is.
    (*): torch.masked_select
    (x, mask, ...): aten::masked_select
""")
def masked_select(x: Tensor, mask: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> Answer:
    broadcast(x.shape, mask.shape)
    return Cost(0, _with_result((x, mask), result, x.dtype)), texts(x, mask)


@operators("""
    Gradient [selected] of a masked_select, scattered into zeros where the mask is true.
    FLOPs: none.
    Bytes: gradient and mask read, the gradient of the input written.
    (*): aten::masked_select_backward
""")
def masked_select_backward(gradient: Tensor, x: Tensor, mask: Tensor) -> Answer:
    written = byte_count(elements(broadcast(x.shape, mask.shape)), gradient.dtype)
    moved = add_known(tensor_bytes(gradient), tensor_bytes(mask), written)
    return Cost(0, moved), texts(gradient, x, mask)


@operators("""
    Indices of the nonzero elements of x -> int64 [found, dimensions].
    FLOPs: a comparison for each element.
    Bytes: x read, the indices written; unknown if the size of the result is.
    (x, ...): nonzero torch.argwhere
    (x): aten::nonzero_numpy aten::argwhere
""")
def nonzero(x: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> Answer:
    return Cost(elements(x.shape), _with_result((x,), result, "int64")), tensor_text(x)


@operators("""
    Indices of the first nonzero elements of x -> int64 [size, dimensions].
    FLOPs: a comparison for each element.
    Bytes: x read, the indices written.
    (x, size=size): torch.nonzero_static
    (x, size, ...): aten::nonzero_static
""")
def nonzero_static(x: Tensor, size: int | Unknown) -> Answer:
    if isinstance(size, Unknown):
        return Cost(elements(x.shape), None), tensor_text(x)
    if size < 0:
        raise CannotModel(f"invalid size {size}")
    written = byte_count(size * len(x.shape), "int64")
    return Cost(elements(x.shape), add_known(tensor_bytes(x), written)), tensor_text(x)


Operand = Tensor | Number


def _count(operand: Operand) -> int:
    return elements(operand.shape) if isinstance(operand, Tensor) else 1


def _bytes(operand: Operand) -> int | None:
    # Ranges record a number as a tensor without dimensions and type.
    if isinstance(operand, Tensor) and (operand.shape or canonical_type(operand.dtype)):
        return tensor_bytes(operand)
    return 0


@operators("""
    Index of each value in the sorted borders [.., n] -> integers of the shape of values.
    FLOPs: log2(n + 1), rounded up, comparisons for each value; no backward pass.
    Bytes: borders and values read, int64 (or int32) indices written.
    (borders, values, out_int32=out_int32): torch.searchsorted
    (values, boundaries=borders, out_int32=out_int32): torch.bucketize
    (borders, values, out_int32, ...): aten::searchsorted
    (values, borders, out_int32, ...): aten::bucketize
""")
def searchsorted(borders: Tensor, values: Operand, out_int32: bool | Unknown = False) -> Answer:
    length = borders.shape[-1] if borders.shape else 1
    width = None if isinstance(out_int32, Unknown) else "int32" if out_int32 else "int64"
    moved = add_known(tensor_bytes(borders), _bytes(values), byte_count(_count(values), width))
    return Cost(_count(values) * length.bit_length(), moved), texts(borders, values)


_LOOP_LIMIT: Final = (10, 0.145)  # aten/src/ATen/native/TensorCompare.cpp, isin


@operators("""
    Whether each value is one of others -> bool of the shape of values.
    FLOPs: a comparison with each of the others if they are few (torch's threshold), else both are
    sorted together: log2(all), rounded up, comparisons for each and 2 to mark duplicates; no
    backward pass.
    Bytes: both read, bools written.

    An estimate if both are sorted.
    (values, among, ...): isin
    (elements=values, test_elements=among, ...): torch.isin
""")
def isin(values: Operand, among: Operand) -> Answer:
    count, others = _count(values), _count(among)
    if not isinstance(values, Tensor) and not isinstance(among, Tensor):
        raise CannotModel("no tensor among the operands")
    moved = add_known(_bytes(values), _bytes(among), byte_count(count, "bool"))
    factor, exponent = _LOOP_LIMIT
    if others < factor * min(count, 1 << 60) ** exponent:
        return Cost(count * others, moved), texts(values, among)
    both = count + others
    return Cost(comparisons(both, both) + 2 * both, moved, False), texts(values, among)


@operators("""
    Distinct values of x (or distinct slices along dim), sorted.
    FLOPs: log2(n), rounded up, comparisons for each element to sort them and one to find repeats.
    Bytes: unknown, they depend on the number of distinct values.
    (x, _, _, _, dim): torch.unique
    (x, ...): _unique2 _unique
""")
def unique(x: Tensor, dim: int | Unknown | None = None) -> Answer:
    count = elements(x.shape)
    return Cost(comparisons(count, row_length(x.shape, dim)) + count, None, False), tensor_text(x)


@operators("""
    Distinct slices of x along dim, sorted.
    FLOPs: log2(slices), rounded up, comparisons for each element to sort them and one to find
    repeats: an upper bound, because comparing slices can stop early.
    Bytes: unknown, they depend on the number of distinct slices.
    (x, dim, ...): unique_dim
""")
def unique_dim(x: Tensor, dim: int | Unknown) -> Answer:
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    return unique(x, dim)


table_row("""
    Values of x without consecutive duplicates.
    FLOPs: a comparison for each element.
    Bytes: unknown, they depend on the number of distinct values.
    (x, ...): unique_consecutive unique_dim_consecutive
""")("x", lambda x: (Cost(elements(x.shape), None), tensor_text(x)))


@operators("""
    How often each number occurs in x [n], or the sum of its weights -> [largest number + 1].
    FLOPs: an addition for each element; no backward pass.
    Bytes: unknown, they depend on the largest number.
    (*): bincount
""")
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int | Unknown = 0) -> Answer:
    if weights is not None and weights.shape != x.shape:
        raise CannotModel(f"weights {weights.shape} do not fit {x.shape}")
    return Cost(elements(x.shape), None), tensor_text(x)


@operators("""
    Histogram of x with equal bins -> [bins] of x's type.
    FLOPs: 4 for each element: difference, product, rounding, and the addition to its bin.
    Bytes: x read, the bins written. Finding a range that is not given is not counted.
    (x, bins, min=_, max=_): torch.histc
    (x, bins, _, _, ...): aten::histc
""")
def histc(x: Tensor, bins: int | Unknown = 100) -> Answer:
    if not isinstance(bins, Unknown) and bins <= 0:
        raise CannotModel(f"invalid number of bins {bins}")
    written = None if isinstance(bins, Unknown) else byte_count(bins, x.dtype)
    return Cost(4 * elements(x.shape), add_known(tensor_bytes(x), written)), tensor_text(x)
