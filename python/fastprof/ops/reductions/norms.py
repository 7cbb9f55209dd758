"""FLOPs and bytes of vector and matrix norms, extremes, comparisons and cumulative sums."""

from __future__ import annotations

from math import inf, isnan
from typing import Final

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, POWER, Dims, axes, left
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import (
    Dtype,
    chosen,
    float_result,
    is_complex,
    parts,
    real_result,
    result_type,
    sum_result,
)
from fastprof.ops.parameters import Flag, Int, Ints, Number
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import broadcast, elements, flat, fresh, moved, resized, texts

# PyProf's count for a norm: n squares, n additions, 1 root.
_EUCLIDEAN: Final = frozenset({2, "fro", None})
_WITHOUT_ROOT: Final = frozenset({0, 1, inf, -inf})

Order = Number | str | None | Unknown


@operators("""
    p-norm of the elements of x [..] over the dimensions dim (all without them) -> [..].
    FLOPs: 2 for each element (a square and an addition, or a magnitude and an addition or a
    comparison; a power for other p) and 1 for the root of each output; backward a product for each
    element and a division for each output (more if p is not 2).
    Bytes: x read, the norms written; backward x, the norms and their gradients read, the gradient
    of x written.

    If p is not recorded, 2 is assumed; if dim is not recorded, one root is counted; the cost is
    then an estimate. torch.linalg.norm of a matrix with a positional order is assumed to be
    torch.norm, because a marker's op is the same: right for "fro", a few comparisons short for 1
    and inf, wrong for 2, which is a singular value. FLOPs are PyProf's.
    (x, p, dim, keepdim, _, dtype, axis, ord=ord): torch.norm
    (x, ord=p, dim, keepdim, dtype): torch.vector_norm
    (x, dim, keepdim): torch.frobenius_norm
    (x, p, third, keepdim, dtype): aten::norm
    (x, p, third, keepdim, ...): aten::norm
    (x, p, dim, keepdim, dtype, ...): aten::linalg_vector_norm
    (x, dim, keepdim, ...): aten::frobenius_norm
""")
def norm(
    x: Tensor,
    p: Order = 2,
    dim: Dims = None,
    keepdim: Flag | None = None,
    dtype: Dtype = None,
    axis: Dims = None,
    third: Ints | str | Unknown | None = None,
    ord: Order = None,  # noqa: A002 -- the keyword of torch.linalg.norm
    *,
    direction: str,
) -> Answer:
    if third is not None and keepdim is None:
        dtype = third if not isinstance(third, tuple) else dtype
    elif third is not None:
        if isinstance(third, str):
            raise CannotModel(f"no dimension {third!r}")
        dim = third
    dim = axis if dim is None else dim
    if ord is not None:
        return _by_order(x, ord, dim, dtype, direction)
    return _norm(x, p, dim, dtype, direction)


def _norm(x: Tensor, p: Order, dim: Dims, dtype: Dtype, direction: str) -> Answer:
    order = _order(p)
    outputs, count = left(x.shape, dim), elements(x.shape) * parts(x.dtype)
    written = flat(outputs, chosen(dtype, real_result(x.dtype)))
    roots = 1 if outputs is None else outputs
    back = direction == "bprop"
    # Backward: x * (g / norm); sign(x) * g; x * |x|^(p - 2) * (g / norm^(p - 1)).
    if order in _WITHOUT_ROOT:
        flops = 2 * count
    elif order in _EUCLIDEAN:
        flops = count * (1 if back else 2) + roots
    else:
        flops = count * (POWER + 2 + back) + roots * (POWER + back)
    moves = moved(x, fresh(x), written, written) if back else moved(x, written)
    return Cost(flops, moves, outputs is not None and not isinstance(p, Unknown)), texts(x)


def _order(p: Order) -> Order:
    # A number, None or "fro"; 2 if unknown.
    if isinstance(p, Unknown):
        return None
    if isinstance(p, str):
        p = {"inf": inf, "-inf": -inf}.get(p, p)
    if p == "fro" or p is None or (isinstance(p, (int, float)) and not isnan(p)):
        return p
    raise CannotModel(f"a norm of order {p!r} is not modelled")


@operators("""
    torch.linalg.norm of x [..]: a matrix norm if ord and two dims are given.
    FLOPs: those of the vector norm; a matrix norm of order 1 or inf is a sum of magnitudes by rows
    or columns and a comparison for each sum.
    Bytes: x read, the norms written; backward x, the norms and their gradients read, the gradient
    of x written.

    Orders 2, -2 and "nuc" of a matrix need singular values: no model.
    (x, ord, dim, keepdim, dtype): torch.linalg_norm
    (x, ord, dim, keepdim, dtype, ...): aten::linalg_norm
""")
def linalg_norm(
    x: Tensor,
    ord: Order = None,  # noqa: A002 -- torch's keyword
    dim: Dims = None,
    keepdim: Flag = False,
    dtype: Dtype = None,
    *,
    direction: str,
) -> Answer:
    return _by_order(x, ord, dim, dtype, direction)


@operators("""
    Norms of the matrices of x [.., m, n] -> [..].
    FLOPs: 2 for each element and a root for each "fro"; for 1 and inf a comparison for each sum.
    Bytes: x read, the norms written; backward x, the norms and their gradients read, the gradient
    of x written.

    Orders 2, -2 and "nuc" need singular values: no model. If the order is not recorded, "fro" is
    assumed.
    (x, ord, dim, keepdim, dtype): torch.matrix_norm torch.linalg_matrix_norm
    (x, ord, dim, keepdim, dtype, ...): aten::linalg_matrix_norm
""")
def matrix_norm(
    x: Tensor,
    ord: Order = "fro",  # noqa: A002 -- torch's keyword
    dim: Ints | Unknown = (-2, -1),
    keepdim: Flag = False,
    dtype: Dtype = None,
    *,
    direction: str,
) -> Answer:
    if isinstance(dim, int):
        raise CannotModel("a matrix norm has two dimensions")
    return _matrix(x, ord, dim, dtype, direction)


def _by_order(x: Tensor, order: Order, dim: Dims, dtype: Dtype, direction: str) -> Answer:
    matrix = len(dim) == 2 if isinstance(dim, tuple) else dim is None and len(x.shape) == 2
    if order is None or isinstance(order, Unknown) or not matrix:
        return _norm(x, order, dim, dtype, direction)
    return _matrix(x, order, (-2, -1) if dim is None else dim, dtype, direction)


def _matrix(x: Tensor, order: Order, dim: Dims, dtype: Dtype, direction: str) -> Answer:
    if len(x.shape) < 2:
        raise CannotModel(f"{x.shape} is not a matrix")
    if isinstance(order, Unknown):
        return _norm(x, order, dim, dtype, direction)
    order = _order(order)
    if order in (None, "fro"):
        return _norm(x, order, dim, dtype, direction)
    if order not in (1, -1, inf, -inf) or not isinstance(dim, tuple) or len(dim) != 2:
        raise CannotModel(f"a matrix norm of order {order!r} is not modelled")
    axes(len(x.shape), dim)
    summed = dim[0] if order in (1, -1) else dim[1]
    sums = left(x.shape, summed) or 0
    cost, params = _norm(x, 1, dim, dtype, direction)
    return cost + Cost(sums, 0), params


@operators("""
    p-norm of x - other, broadcast -> [].
    FLOPs: a difference and the norm's own for each element; backward also a negation.
    Bytes: x and other read, the norm written; backward they, the norm and its gradient read, both
    gradients written.
    (*): torch.dist
    (x, other, p, ...): aten::dist
""")
def dist(x: Tensor, other: Tensor, p: Number | str | Unknown = 2, *, direction: str) -> Answer:
    difference = fresh(x, broadcast(x.shape, other.shape))
    cost, _ = _norm(difference, p, None, None, direction)
    back = direction == "bprop"
    flops = add_known(cost.flops, elements(difference.shape) * parts(x.dtype) * (1 + back))
    moves = moved(x, other, Tensor((), real_result(x.dtype)))
    return Cost(flops, add_known(moves, moves) if back else moves, cost.exact), texts(x, other)


def selected(x: Tensor, flops: int, outputs: int | None, exact: bool = True) -> Cost:
    """Cost of selecting values along a dimension with their int64 indices: x read, both written."""
    return Cost(flops, moved(x, flat(outputs, x.dtype), flat(outputs, "int64")), exact)


def selected_gradient(x: Tensor, outputs: int | None) -> Cost:
    """Gradient of selected values: scattered to their indices in zeros of the shape of x."""
    return Cost(0, moved(flat(outputs, x.dtype), flat(outputs, "int64"), fresh(x)))


@operators("""
    Maximum or minimum: of all of x, along dim (with indices), or of x and other, broadcast.
    FLOPs: a comparison for each element of x (of the output for two tensors). Backward: of all of
    x, a comparison, an addition and a product for each element; along a dimension none; of two
    tensors, a comparison and two products for each element of the output.
    Bytes: x (and other) read, values and int64 indices written; backward the gradient (and values
    or indices) read, those of the operands written.

    In a range without values, the number of arguments determines the case.
    (x, second, keepdim, dim=dim, other=other, axis=axis): torch.max torch.min
    (x, second, keepdim, ...): aten::max aten::min
    (x, other, ...): aten::max aten::min
""")
def torch_max(
    x: Tensor,
    second: Tensor | int | Unknown | None = None,
    keepdim: Flag | None = None,
    dim: Dims = None,
    other: Tensor | None = None,
    axis: Dims = None,
    *,
    direction: str,
) -> Answer:
    if isinstance(second, Tensor) and keepdim is not None:
        second = UNKNOWN  # a number, recorded as a tensor without dimensions
    elif isinstance(second, Tensor):
        other, second = second, None
    if other is not None:
        output = Tensor(broadcast(x.shape, other.shape), result_type((x, other)))
        count = elements(output.shape)
        if direction == "fprop":
            return Cost(count, moved(x, other, output)), texts(x, other)
        return Cost(3 * count, moved(x, other, x, other, output)), texts(x, other)
    if second is None and isinstance(keepdim, Unknown):
        second = keepdim
    for each in (second, axis):
        dim = each if dim is None else dim
    count = elements(x.shape)
    if dim is None and direction == "fprop":
        return Cost(count, moved(x, fresh(x, ()))), texts(x)
    if dim is None:
        return Cost(3 * count, _masked(x, fresh(x, ()))), texts(x)
    if direction == "fprop":
        return selected(x, count, left(x.shape, dim)), texts(x)
    return selected_gradient(x, left(x.shape, dim)), texts(x)


def _masked(x: Tensor, output: Tensor) -> int | None:
    # x, the outputs and their gradients read, the gradient of x written.
    return moved(x, fresh(x), output, output)


@operators("""
    Smallest and largest of x [..], of all or along dim -> two of [..].
    FLOPs: two comparisons for each element; backward twice a comparison, an addition, a product.
    Bytes: x read, both results written; backward x, both and their gradients read, the gradient of
    x written.
    (x, dim): torch.aminmax torch._aminmax
    (x, dim, ...): aten::aminmax aten::_aminmax
""")
def aminmax(x: Tensor, dim: Int | None = None, *, direction: str) -> Answer:
    outputs, count = left(x.shape, dim), elements(x.shape)
    both = flat(None if outputs is None else 2 * outputs, x.dtype)
    if direction == "fprop":
        return Cost(2 * count, moved(x, both)), texts(x)
    return Cost(6 * count, _masked(x, both)), texts(x)


@operators("""
    Gradient of values picked along a dimension (max, sort, topk, median, mode, kthvalue).
    FLOPs: none, the gradient is scattered into zeros.
    Bytes: gradient and indices read, a tensor of the input's sizes written.
    (*): aten::value_selecting_reduction_backward
""")
def value_selecting_reduction_backward(
    gradient: Tensor, dim: Int, indices: Tensor, sizes: Ints | Unknown, keepdim: Flag = False
) -> Answer:
    moves = moved(gradient, indices, resized(gradient, sizes))
    return Cost(0, moves), texts(gradient, indices)


_BOOL: Final = Tensor((), "bool")
_CLOSE: Final = 7  # |x - other| <= absolute + relative * |other|, or x = other


@operators("""
    Whether x and other have one shape and equal elements -> [].
    FLOPs: a comparison and a logical and for each element, none if the shapes differ.
    Bytes: both read, one bool written.
    (*): equal
""")
def equal(x: Tensor, other: Tensor) -> Answer:
    if x.shape != other.shape:
        return Cost(0, 0), texts(x, other)
    return Cost(2 * elements(x.shape), moved(x, other, _BOOL)), texts(x, other)


@operators("""
    Whether all elements of x and other, broadcast, are close -> [].
    FLOPs: the 7 of isclose and a logical and for each element; no backward pass.
    Bytes: both read, one bool written.
    (x, other, ...): allclose
""")
def allclose(x: Tensor, other: Tensor) -> Answer:
    count = elements(broadcast(x.shape, other.shape))
    return Cost((_CLOSE + 1) * count, moved(x, other, _BOOL)), texts(x, other)


table_row("""
    Whether the single element of x is not zero.
    FLOPs: one comparison.
    Bytes: the element read.
    (x): is_nonzero torch.__bool__
    (x, ...): _assert_async aten::_functional_assert_async
""")("x", lambda x: (Cost(1, moved(fresh(x, ()))), texts(x)))


@operators("""
    Running sum of x along a dimension, of its shape.
    FLOPs: an addition for each element, forward and backward.
    Bytes: x read, the sums written (int64 of integers); backward their gradient read, that of x
    written.
    (x, _, dtype): torch.cumsum
    (x, _, dtype, ...): aten::cumsum
    (x, _): aten::_cumsum
""")
def cumsum(x: Tensor, dtype: Dtype = None, *, direction: str) -> Answer:
    result = Tensor(x.shape, chosen(dtype, sum_result(x.dtype)))
    own = x if direction == "fprop" else fresh(x)
    return Cost(parts(x.dtype) * elements(x.shape), moved(own, result)), texts(x)


@operators("""
    Running product of x along a dimension, of its shape.
    FLOPs: a product for each element; backward 3: product, running sum, division.
    Bytes: x read, the products written; backward x, the products and their gradient read, the
    gradient of x written. The separate path for zeros in x is not counted.
    (x, _, dtype): torch.cumprod
    (x, _, dtype, ...): aten::cumprod
    (x, _): aten::_cumprod
""")
def cumprod(x: Tensor, dtype: Dtype = None, *, direction: str) -> Answer:
    result = Tensor(x.shape, chosen(dtype, sum_result(x.dtype)))
    if direction == "fprop":
        return Cost(_product(x.dtype) * elements(x.shape), moved(x, result)), texts(x)
    return Cost(_back_product(x), moved(x, result, result, fresh(x))), texts(x)


def _product(dtype: str | None) -> int:
    return 6 if is_complex(dtype) else 1


def _back_product(x: Tensor) -> int:
    # Product, running sum, division.
    return elements(x.shape) * (2 * _product(x.dtype) + parts(x.dtype))


table_row("""
    Running sum of x along a dimension, in place of x.
    FLOPs: an addition for each element, forward and backward.
    Bytes: x read and written; backward its gradient read and written.
    (x, ...): cumsum_
""")("x", lambda x, direction: cumsum(x, x.dtype, direction=direction))

table_row("""
    Running product of x along a dimension, in place of x.
    FLOPs: a product for each element; backward 3: product, running sum, division.
    Bytes: x read and written; backward x, the products and their gradient read, the gradient of x
    written.
    (x, ...): cumprod_
""")("x", lambda x, direction: cumprod(x, x.dtype, direction=direction))


@operators("""
    Running logarithm of a sum of exponentials of x along a dimension, of its shape.
    FLOPs: 44 for each element: larger, smaller, difference, exponential, 1 + and logarithm, and an
    addition; backward twice that, and two exponentials, logarithms and differences.
    Bytes: x read, the result written; backward x, the result and its gradient read, the gradient
    of x written.
    (x, ...): torch.logcumsumexp
    (x, _, ...): aten::logcumsumexp aten::_logcumsumexp
""")
def logcumsumexp(x: Tensor, *, direction: str) -> Answer:
    count, result = elements(x.shape), Tensor(x.shape, float_result(x.dtype))
    step = EXPONENTIAL + LOGARITHM + 4
    if direction == "fprop":
        return Cost(step * count, moved(x, result)), texts(x)
    flops = 2 * count * (step + EXPONENTIAL + LOGARITHM + 1)
    return Cost(flops, moved(x, result, result, result)), texts(x)


@operators("""
    Running maximum or minimum of x along a dimension and its indices, both of its shape.
    FLOPs: a comparison for each element; backward an addition for each.
    Bytes: x read, values and int64 indices written; backward gradient and indices read, the
    gradient of x written.
    (x, ...): torch.cummax torch.cummin
    (x, _, ...): aten::cummax aten::cummin
""")
def cummax(x: Tensor, *, direction: str) -> Answer:
    count = elements(x.shape)
    if direction == "fprop":
        return selected(x, count, count), texts(x)
    return Cost(count, selected_gradient(x, count).bytes), texts(x)


table_row("""
    Running maximum or minimum of x along a dimension, into values and indices.
    FLOPs: a comparison for each element.
    Bytes: x read, values and indices written.
    (x, values, indices, _): aten::_cummax_helper aten::_cummin_helper
""")("x, values, indices", Traffic(1, "x values indices"))


table_row("""
    Gradient of a running maximum or minimum: summed at its indices.

    FLOPs: an addition for each element.
    Bytes: gradient and indices read, the gradient of x written.
    (gradient, x, indices, _): aten::cummaxmin_backward
""")(
    "gradient, x, indices",
    lambda gradient, x, indices: (
        Cost(elements(gradient.shape), moved(gradient, indices, fresh(gradient, x.shape))),
        texts(gradient, indices),
    ),
)


table_row("""
    Gradient of a running product: running sum of gradient * output from the end, by x.

    FLOPs: 3 for each element: product, addition, division.
    Bytes: gradient, x and output read, the gradient of x written.
    (gradient, x, _, output): aten::cumprod_backward
""")(
    "gradient, x, output",
    lambda gradient, x, output: (
        Cost(_back_product(x), moved(gradient, x, output, fresh(x))),
        texts(x),
    ),
)
