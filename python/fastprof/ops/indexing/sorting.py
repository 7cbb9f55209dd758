"""FLOPs and bytes of sorting and selecting by order, by a mask, and of look-up by value.

The number of comparisons of a sort depends on the algorithm and the data, so its costs are
estimates (`exact` is False): n log2 n for sorting rows of n, n for selecting one or k of them
(linear selection; torch's radix select makes several passes over the bits).

The numbers of elements that a mask selects and of distinct values are not recorded: if they
determine the output, bytes are unknown without the size of the result.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import left, replaced, row_length
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.parameters import Flag, Int, Ints, Number
from fastprof.ops.reductions.norms import selected, selected_gradient
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import (
    broadcast,
    byte_count,
    elements,
    flat,
    fresh,
    moved,
    resized,
    tensor_bytes,
    texts,
)


def comparisons(count: int, length: int) -> int:
    """Comparisons to sort `count` elements in rows of `length`: log2(length) each, rounded up."""
    return count * max(length - 1, 0).bit_length()


_LAST: Final = -1


def _chosen(x: Tensor, flops: int, outputs: int | None, direction: str) -> Answer:
    # Values along a dimension, with their indices.
    if direction == "bprop":
        return selected_gradient(x, outputs), texts(x)
    return selected(x, flops, outputs, exact=False), texts(x)


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
    dim: Int = _LAST,
    descending: Flag = False,
    stable: Flag | None = None,
    *,
    direction: str,
) -> Answer:
    count = elements(x.shape)
    flops = comparisons(count, row_length(x.shape, dim)) if direction == "fprop" else 0
    return _chosen(x, flops, count, direction)


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
        return selected_gradient(x, count), texts(x)
    return Cost(comparisons(count, row_length(x.shape, 0)), moved(x, fresh(x)), False), texts(x)


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
    x: Tensor, dim: Int = _LAST, descending: Flag = False, stable: Flag | None = None
) -> Answer:
    flops = comparisons(elements(x.shape), row_length(x.shape, dim))
    return Cost(flops, moved(x, fresh(x, dtype="int64")), exact=False), texts(x)


@operators("""
    The k largest or smallest of each row of x along dim, with their indices.
    FLOPs: a comparison for each element of x (a selection; sorting the k is not counted); backward
    none.
    Bytes: x read, k values and int64 indices a row written; backward gradients and indices read,
    the gradient of x written.
    (x, k, dim, ...): topk
""")
def topk(x: Tensor, k: Int, dim: Int = _LAST, *, direction: str) -> Answer:
    if not isinstance(k, Unknown) and not 0 <= k <= row_length(x.shape, dim):
        raise CannotModel(f"cannot select {k} from a row of {x.shape}")
    outputs = None if isinstance(k, Unknown) else replaced(x.shape, dim, k)
    return _chosen(x, elements(x.shape), outputs, direction)


@operators("""
    The k-th smallest of each row of x along dim, with its index.
    FLOPs: a comparison for each element (a selection); backward none.
    Bytes: x read, a value and an int64 index per row written; backward they are read, the gradient
    of x written.
    (x, _, dim, ...): kthvalue
""")
def kthvalue(x: Tensor, dim: Int = _LAST, *, direction: str) -> Answer:
    return _chosen(x, elements(x.shape), left(x.shape, dim), direction)


@operators("""
    The median of all of x, or of each row along dim with its index.
    FLOPs: a comparison for each element (a selection); backward none along dim; for all of x 3 per
    element (a mask, its sum, a product).
    Bytes: x read, the values and along dim int64 indices written; backward they (for all of x: x,
    value and its gradient) are read, the gradient of x written.
    (x, dim, keepdim): torch.median torch.nanmedian
    (x, dim, keepdim, ...): aten::median aten::nanmedian
""")
def median(x: Tensor, dim: Int | None = None, keepdim: Flag = False, *, direction: str) -> Answer:
    count, value = elements(x.shape), fresh(x, ())
    if dim is not None:
        return _chosen(x, count, left(x.shape, dim), direction)
    if direction == "bprop":
        return Cost(3 * count, moved(x, value, value, fresh(x))), texts(x)
    return Cost(count, moved(x, value), exact=False), texts(x)


@operators("""
    The most frequent value of each row of x along dim, with an index of it.
    FLOPs: log2(row length), rounded up, comparisons for each element to sort it and 1 to count;
    backward none.
    Bytes: x read, a value and an int64 index per row written; backward they are read, the gradient
    of x written.
    (x, dim, ...): mode
""")
def mode(x: Tensor, dim: Int = _LAST, *, direction: str) -> Answer:
    count = elements(x.shape)
    flops = comparisons(count, row_length(x.shape, dim)) + count
    return _chosen(x, flops, left(x.shape, dim), direction)


@operators("""
    Quantiles q of all of x, or of each row along dim -> [q, ..].
    FLOPs: log2(row length), rounded up, comparisons for each element to sort it, and 3 for each
    interpolated output; the backward pass is not modelled.
    Bytes: x and q read, the quantiles written (the sorted copy is not counted).
    (x, q, dim, ...): quantile nanquantile
""")
def quantile(x: Tensor, q: Tensor | float, dim: Int | None = None) -> Answer:
    wanted = elements(q.shape) if isinstance(q, Tensor) else 1
    rows = left(x.shape, dim)
    flops = comparisons(elements(x.shape), row_length(x.shape, dim))
    if rows is None:
        return Cost(flops + 3 * wanted, None, exact=False), texts(x)
    moves = moved(x, fresh(x, (wanted,)), fresh(x, (wanted * rows,)))
    return Cost(flops + 3 * wanted * rows, moves, exact=False), texts(x)


def masked(x: Tensor, mask: Tensor, direction: str) -> Cost:
    """x with one number where the mask, broadcast, is true; no arithmetic."""
    result = fresh(x, broadcast(x.shape, mask.shape))
    return Cost(0, moved(x if direction == "fprop" else result, mask, result))


def _found(result: Tensor | Unknown, dtype: str | None) -> Tensor:
    # What is found, of unknown bytes if the result is not recorded.
    return Tensor(()) if isinstance(result, Unknown) else fresh(result, dtype=result.dtype or dtype)


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
    cost = masked(x, mask, direction)
    both = (source, source) if direction == "bprop" else (source,)  # picked, written
    return Cost(0, add_known(cost.bytes, moved(*both)), exact=False), texts(x, mask, source)


@operators("""
    Gradient of the source of a masked_scatter: the selected elements, then zeros.
    FLOPs: none.
    Bytes: mask and selected gradient read, a tensor of the source's sizes written.

    An estimate: the source may have more elements than the mask selects.
    (*): aten::masked_scatter_backward
""")
def masked_scatter_backward(gradient: Tensor, mask: Tensor, sizes: Ints | Unknown) -> Answer:
    if isinstance(sizes, Unknown):
        return Cost(0, None), texts(gradient, mask)
    source = resized(gradient, sizes)
    return Cost(0, moved(mask, source, source), exact=False), texts(gradient, mask)


@operators("""
    Elements of x where the mask is true, both broadcast -> [selected].
    FLOPs: none (the mask's prefix sum is not counted); the backward pass is not modelled.
    Bytes: x and mask read, the selected elements written; unknown if the size of the result is.
    (*): torch.masked_select
    (x, mask, ...): aten::masked_select
""")
def masked_select(x: Tensor, mask: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> Answer:
    broadcast(x.shape, mask.shape)
    return Cost(0, moved(x, mask, _found(result, x.dtype))), texts(x, mask)


@operators("""
    Gradient [selected] of a masked_select, scattered into zeros where the mask is true.
    FLOPs: none.
    Bytes: gradient and mask read, the gradient of the input written.
    (*): aten::masked_select_backward
""")
def masked_select_backward(gradient: Tensor, x: Tensor, mask: Tensor) -> Answer:
    written = fresh(gradient, broadcast(x.shape, mask.shape))
    return Cost(0, moved(gradient, mask, written)), texts(gradient, x, mask)


@operators("""
    Indices of the nonzero elements of x -> int64 [found, dimensions].
    FLOPs: a comparison for each element.
    Bytes: x read, the indices written; unknown if the size of the result is.
    (x, ...): nonzero torch.argwhere
    (x): aten::nonzero_numpy aten::argwhere
""")
def nonzero(x: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> Answer:
    return Cost(elements(x.shape), moved(x, _found(result, "int64"))), texts(x)


@operators("""
    Indices of the first nonzero elements of x -> int64 [size, dimensions].
    FLOPs: a comparison for each element.
    Bytes: x read, the indices written.
    (x, size=size): torch.nonzero_static
    (x, size, ...): aten::nonzero_static
""")
def nonzero_static(x: Tensor, size: Int) -> Answer:
    if isinstance(size, Unknown):
        return Cost(elements(x.shape), None), texts(x)
    if size < 0:
        raise CannotModel(f"invalid size {size}")
    return Cost(elements(x.shape), moved(x, Tensor((size, len(x.shape)), "int64"))), texts(x)


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
def searchsorted(borders: Tensor, values: Operand, out_int32: Flag = False) -> Answer:
    length = borders.shape[-1] if borders.shape else 1
    width = None if isinstance(out_int32, Unknown) else "int32" if out_int32 else "int64"
    count = _count(values)
    moves = add_known(moved(borders), _bytes(values), byte_count(count, width))
    return Cost(count * length.bit_length(), moves), texts(borders, values)


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
    moves = add_known(_bytes(values), _bytes(among), byte_count(count, "bool"))
    factor, exponent = _LOOP_LIMIT
    if others < factor * min(count, 1 << 60) ** exponent:
        return Cost(count * others, moves), texts(values, among)
    both = count + others
    return Cost(comparisons(both, both) + 2 * both, moves, False), texts(values, among)


@operators("""
    Distinct values of x (or distinct slices along dim), sorted.
    FLOPs: log2(n), rounded up, comparisons for each element to sort them and one to find repeats.
    Bytes: unknown, they depend on the number of distinct values.
    (x, _, _, _, dim): torch.unique
    (x, ...): _unique2 _unique
""")
def unique(x: Tensor, dim: Int | None = None) -> Answer:
    count = elements(x.shape)
    return Cost(comparisons(count, row_length(x.shape, dim)) + count, None, False), texts(x)


@operators("""
    Distinct slices of x along dim, sorted.
    FLOPs: log2(slices), rounded up, comparisons for each element to sort them and one to find
    repeats: an upper bound, because comparing slices can stop early.
    Bytes: unknown, they depend on the number of distinct slices.
    (x, dim, ...): unique_dim
""")
def unique_dim(x: Tensor, dim: Int) -> Answer:
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    return unique(x, dim)


table_row("""
    Values of x without consecutive duplicates.
    FLOPs: a comparison for each element.
    Bytes: unknown, they depend on the number of distinct values.
    (x, ...): unique_consecutive unique_dim_consecutive
""")("x", lambda x: (Cost(elements(x.shape), None), texts(x)))


@operators("""
    How often each number occurs in x [n], or the sum of its weights -> [largest number + 1].
    FLOPs: an addition for each element; no backward pass.
    Bytes: unknown, they depend on the largest number.
    (*): bincount
""")
def bincount(x: Tensor, weights: Tensor | None = None, minlength: Int = 0) -> Answer:
    if weights is not None and weights.shape != x.shape:
        raise CannotModel(f"weights {weights.shape} do not fit {x.shape}")
    return Cost(elements(x.shape), None), texts(x)


@operators("""
    Histogram of x with equal bins -> [bins] of x's type.
    FLOPs: 4 for each element: difference, product, rounding, and the addition to its bin.
    Bytes: x read, the bins written. Finding a range that is not given is not counted.
    (x, bins, min=_, max=_): torch.histc
    (x, bins, _, _, ...): aten::histc
""")
def histc(x: Tensor, bins: Int = 100) -> Answer:
    if not isinstance(bins, Unknown) and bins <= 0:
        raise CannotModel(f"invalid number of bins {bins}")
    written = flat(None if isinstance(bins, Unknown) else bins, x.dtype)
    return Cost(4 * elements(x.shape), moved(x, written)), texts(x)
