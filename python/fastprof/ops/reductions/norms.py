"""FLOPs and bytes of vector and matrix norms."""

from __future__ import annotations

from math import inf, isnan
from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import POWER
from fastprof.ops.axes import Dims, axes, left
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.dtypes import Dtype, chosen, parts, real_result
from fastprof.ops.parameters import Ints, Number
from fastprof.ops.registry import operators
from fastprof.ops.tensor import broadcast, byte_count, elements, tensor_bytes, tensor_text

_ROOT: Final = 1  # PyProf's count for the root of a norm: n squares, n additions, 1 root
_EUCLIDEAN: Final = frozenset({2, "fro", None})
_WITHOUT_ROOT: Final = frozenset({0, 1, inf, -inf})

Order = Number | str | None | Unknown


@operators("""
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
    keepdim: bool | Unknown | None = None,
    dtype: Dtype = None,
    axis: Dims = None,
    third: Ints | str | Unknown | None = None,
    ord: Order = None,  # noqa: A002 -- the keyword of torch.linalg.norm
    *,
    direction: str,
) -> tuple[Cost, str]:
    """p-norm of the elements of x [..] over the dimensions dim (all without them) -> [..].

    FLOPs: 2 for each element (a square and an addition, or a magnitude and an addition or a
    comparison; a power for other p) and 1 for the root of each output; backward a product for each
    element and a division for each output (more if p is not 2).
    Bytes: x read, the norms written; backward x, the norms and their gradients read, the gradient
    of x written.

    If p is not recorded, 2 is assumed; if dim is not recorded, one root is counted; the cost is
    then an estimate. torch.linalg.norm of a matrix with a positional order is assumed to be
    torch.norm, because a marker's op is the same: right for "fro", a few comparisons short for 1
    and inf, wrong for 2, which is a singular value. FLOPs are PyProf's.
    """
    if third is not None and keepdim is None:
        dtype = third if not isinstance(third, tuple) else dtype
    elif third is not None:
        dim = _no_name(third)
    dim = axis if dim is None else dim
    if ord is not None:
        return _by_order(x, ord, dim, dtype, direction)
    return _norm(x, p, dim, dtype, direction)


def _no_name(dim: Ints | str | Unknown) -> Ints | Unknown:
    if isinstance(dim, str):
        raise CannotModel(f"no dimension {dim!r}")
    return dim


def _norm(x: Tensor, p: Order, dim: Dims, dtype: Dtype, direction: str) -> tuple[Cost, str]:
    order = _order(p)
    outputs, count, numbers = left(x.shape, dim), elements(x.shape), parts(x.dtype)
    written = None if outputs is None else byte_count(outputs, chosen(dtype, real_result(x.dtype)))
    roots = (1 if outputs is None else outputs) * _ROOT
    if direction == "fprop":
        flops = count * numbers * 2 + roots
        if order in _WITHOUT_ROOT:
            flops = count * numbers * 2
        elif order not in _EUCLIDEAN:
            flops = count * numbers * (POWER + 2) + roots * POWER
        moved = add_known(tensor_bytes(x), written)
    else:
        # x * (g / norm); sign(x) * g; x * |x|^(p - 2) * (g / norm^(p - 1)).
        flops = count * numbers + roots
        if order in _WITHOUT_ROOT:
            flops = 2 * count * numbers
        elif order not in _EUCLIDEAN:
            flops = count * numbers * (POWER + 3) + roots * (POWER + 1)
        moved = add_known(tensor_bytes(x), byte_count(count, x.dtype), written, written)
    exact = outputs is not None and not isinstance(p, Unknown)
    return Cost(flops, moved, exact), tensor_text(x)


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
    (x, ord, dim, keepdim, dtype): torch.linalg_norm
    (x, ord, dim, keepdim, dtype, ...): aten::linalg_norm
""")
def linalg_norm(
    x: Tensor,
    ord: Order = None,  # noqa: A002 -- torch's keyword
    dim: Dims = None,
    keepdim: bool | Unknown = False,
    dtype: Dtype = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """torch.linalg.norm of x [..]: a matrix norm if ord and two dims are given.

    FLOPs: those of the vector norm; a matrix norm of order 1 or inf is a sum of magnitudes by rows
    or columns and a comparison for each sum.
    Bytes: x read, the norms written; backward x, the norms and their gradients read, the gradient
    of x written.

    Orders 2, -2 and "nuc" of a matrix need singular values: no model.
    """
    return _by_order(x, ord, dim, dtype, direction)


@operators("""
    (x, ord, dim, keepdim, dtype): torch.matrix_norm torch.linalg_matrix_norm
    (x, ord, dim, keepdim, dtype, ...): aten::linalg_matrix_norm
""")
def matrix_norm(
    x: Tensor,
    ord: Order = "fro",  # noqa: A002 -- torch's keyword
    dim: Ints | Unknown = (-2, -1),
    keepdim: bool | Unknown = False,
    dtype: Dtype = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Norms of the matrices of x [.., m, n] -> [..].

    FLOPs: 2 for each element and a root for each "fro"; for 1 and inf a comparison for each sum.
    Bytes: x read, the norms written; backward x, the norms and their gradients read, the gradient
    of x written.

    Orders 2, -2 and "nuc" need singular values: no model. If the order is not recorded, "fro" is
    assumed.
    """
    if isinstance(dim, int):
        raise CannotModel("a matrix norm has two dimensions")
    return _matrix(x, ord, dim, dtype, direction)


def _by_order(x: Tensor, order: Order, dim: Dims, dtype: Dtype, direction: str) -> tuple[Cost, str]:
    matrix = len(dim) == 2 if isinstance(dim, tuple) else dim is None and len(x.shape) == 2
    if order is None or isinstance(order, Unknown) or not matrix:
        return _norm(x, order, dim, dtype, direction)
    return _matrix(x, order, (-2, -1) if dim is None else dim, dtype, direction)


def _matrix(x: Tensor, order: Order, dim: Dims, dtype: Dtype, direction: str) -> tuple[Cost, str]:
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
    torch.dist
    (x, other, p, ...): aten::dist
""")
def dist(
    x: Tensor, other: Tensor, p: Number | str | Unknown = 2, *, direction: str
) -> tuple[Cost, str]:
    """p-norm of x - other, broadcast -> [].

    FLOPs: a difference and the norm's own for each element; backward also a negation.
    Bytes: x and other read, the norm written; backward they, the norm and its gradient read, both
    gradients written.
    """
    difference = Tensor(broadcast(x.shape, other.shape), x.dtype)
    cost, _ = _norm(difference, p, None, None, direction)
    count = elements(difference.shape) * parts(x.dtype)
    operands = add_known(tensor_bytes(x), tensor_bytes(other))
    out = byte_count(1, real_result(x.dtype))
    params = f"{tensor_text(x)};{tensor_text(other)}"
    flops = add_known(cost.flops, count if direction == "fprop" else 2 * count)
    if direction == "fprop":
        return Cost(flops, add_known(operands, out), cost.exact), params
    return Cost(flops, add_known(operands, operands, out, out), cost.exact), params
