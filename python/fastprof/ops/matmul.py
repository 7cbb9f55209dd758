"""Matrix products, matrix-vector products and dot products to FLOPs and bytes."""

from __future__ import annotations

from typing import Final

from fastprof.call import Tensor
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.product import (
    ELEMENTWISE,
    GEMM,
    Product,
    bias_added,
    bias_gradient,
    forward,
    gradients,
)
from fastprof.ops.registry import TORCH, op
from fastprof.ops.tensor import broadcast, elements, tensor_bytes

__all__ = ["addbmm", "addmm", "addmv", "baddbmm", "bmm", "dot", "linear", "matmul", "mm", "mv"]


@op(TORCH, "linear", aten=("linear",))
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, direction: str) -> Work:
    """x[.., k] @ w[n, k]^T (+ bias[n]): all leading dimensions of x are rows of one product.

    Under autocast a Python call shows the types before the cast.
    """
    if len(weight.shape) not in (1, 2):
        raise CannotModel(f"weight has shape {weight.shape}, not 1-d or 2-d")
    rows, columns = elements(x.shape[:-1]), elements(weight.shape[:-1])
    product = Product(rows, columns, _inner(x.shape, -1, weight.shape, -1), x, weight)
    if bias is not None and elements(bias.shape) != columns:
        raise CannotModel(f"bias {bias.shape} does not fit weight {weight.shape}")
    if direction == "fprop":
        added = () if bias is None else (bias_added(product),)
        return Work(
            (
                forward(product),
                *added,
            )
        )
    summed = () if bias is None else (bias_gradient(product, bias),)
    return Work((*gradients(product, weight_by_rows=True), *summed))


@op(TORCH, "mm", aten=("mm",))
def mm(left: Tensor, mat2: Tensor, *, direction: str) -> Work:
    """A[m, k] @ B[k, n]."""
    _ranks(2, left, mat2)
    return _plain(_matrices(left, mat2), direction)


_ADDMM: Final = ("addmm(addend, mat1, mat2, ...)", "addmm_(addend, mat1, mat2, ...)")


@op(TORCH, *_ADDMM, aten=_ADDMM)
def addmm(addend: Tensor, mat1: Tensor, mat2: Tensor, *, direction: str) -> Work:
    """C + A[m, k] @ B[k, n], C broadcast to [m, n] and read by its own size."""
    _ranks(2, mat1, mat2)
    product = _matrices(mat1, mat2)
    return _with_addend(product, addend, (product.m, product.n), direction)


@op(TORCH, "bmm", aten=("bmm",))
def bmm(left: Tensor, mat2: Tensor, *, direction: str) -> Work:
    """A[b, m, k] @ B[b, k, n]."""
    _ranks(3, left, mat2)
    return _plain(_batched(left, mat2), direction)


_BADDBMM: Final = ("baddbmm(addend, batch1, batch2, ...)", "baddbmm_(addend, batch1, batch2, ...)")


@op(TORCH, *_BADDBMM, aten=_BADDBMM)
def baddbmm(addend: Tensor, batch1: Tensor, batch2: Tensor, *, direction: str) -> Work:
    """C + A[b, m, k] @ B[b, k, n], C broadcast to [b, m, n]."""
    _ranks(3, batch1, batch2)
    product = _batched(batch1, batch2)
    return _with_addend(product, addend, (batch1.shape[0], product.m, product.n), direction)


_ADDBMM: Final = ("addbmm(addend, batch1, batch2, ...)", "addbmm_(addend, batch1, batch2, ...)")


@op(TORCH, *_ADDBMM, aten=_ADDBMM)
def addbmm(addend: Tensor, batch1: Tensor, batch2: Tensor, *, direction: str) -> Work:
    """C + sum over b of A[b, m, k] @ B[b, k, n], C broadcast to [m, n]."""
    _ranks(3, batch1, batch2)
    product = _batched(batch1, batch2)._replace(summed=True)
    return _with_addend(product, addend, (product.m, product.n), direction)


@op(
    TORCH,
    "matmul(left, other=right)",
    "matmul(left, tensor2=right)",
    "__matmul__(left, right)",
    "__rmatmul__(right, left)",
    aten=("matmul",),
)
def matmul(left: Tensor, right: Tensor, *, direction: str) -> Work:
    """A @ B by rank, as torch splits it.

    A matrix or vector on the right folds all leading dimensions of A into the rows of one
    product; otherwise the batch dimensions broadcast and an operand is read by its own size.
    (Torch may also fold a matrix on the left, or copy a broadcast operand: not modelled.)
    """
    if len(right.shape) == 1:
        return _dot(left, right, direction) if len(left.shape) == 1 else _mv(left, right, direction)
    if len(right.shape) == 2:
        inner = _inner(left.shape, -1, right.shape, -2)
        rows = elements(left.shape[:-1])
        return _plain(Product(rows, right.shape[1], inner, left, right), direction)
    return _plain(_batched(left, right), direction)


@op(TORCH, "mv", aten=("mv",))
def mv(left: Tensor, vec: Tensor, *, direction: str) -> Work:
    """A[m, k] @ v[k]."""
    _ranks(2, left)
    _ranks(1, vec)
    return _mv(left, vec, direction)


_ADDMV: Final = ("addmv(addend, mat, vec, ...)", "addmv_(addend, mat, vec, ...)")


@op(TORCH, *_ADDMV, aten=_ADDMV)
def addmv(addend: Tensor, mat: Tensor, vec: Tensor, *, direction: str) -> Work:
    """c + A[m, k] @ v[k], c broadcast to [m]."""
    _ranks(2, mat)
    _ranks(1, vec)
    _fits(addend, mat.shape[:1])
    return _mv(mat, vec, direction, addend)


@op(
    TORCH,
    "dot(left, tensor=right)",
    "vdot(left, other=right)",
    "inner(left, other=right)",
    aten=("dot", "vdot", "inner"),
)
def dot(left: Tensor, right: Tensor, *, direction: str) -> Work:
    """v[k] . w[k]; an inner of more dimensions is not modelled."""
    _ranks(1, left, right)
    return _dot(left, right, direction)


def _ranks(rank: int, *tensors: Tensor) -> None:
    for each in tensors:
        if len(each.shape) != rank:
            raise CannotModel(f"shape {each.shape} is not {rank}-d")


def _inner(left: tuple[int, ...], axis: int, right: tuple[int, ...], other_axis: int) -> int:
    # The size k that both operands share.
    if len(left) < -axis or len(right) < -other_axis or left[axis] != right[other_axis]:
        raise CannotModel(f"no product of {left} and {right}")
    return left[axis]


def _fits(addend: Tensor, shape: tuple[int, ...]) -> None:
    if broadcast(addend.shape, shape) != shape:
        raise CannotModel(f"{addend.shape} does not broadcast to the output {shape}")


def _matrices(left: Tensor, right: Tensor) -> Product:
    inner = _inner(left.shape, -1, right.shape, -2)
    return Product(left.shape[-2], right.shape[-1], inner, left, right)


def _batched(left: Tensor, right: Tensor) -> Product:
    # A vector on the left is one row.
    inner = _inner(left.shape, -1, right.shape, -2)
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    batch = elements(broadcast(left.shape[:-2], right.shape[:-2]))
    return Product(rows, right.shape[-1], inner, left, right, batch)


def _plain(product: Product, direction: str) -> Work:
    if direction == "fprop":
        return Work((forward(product),))
    return Work((*gradients(product),))


def _with_addend(product: Product, addend: Tensor, output: tuple[int, ...], direction: str) -> Work:
    # The gradient of an addend of full size is the output's own and costs nothing.
    _fits(addend, output)
    if direction == "fprop":
        return Work((forward(product, addend),))
    smaller = elements(addend.shape) < product.output_elements
    summed = (bias_gradient(product, addend),) if smaller else ()
    return Work((*gradients(product), *summed))


def _mv(left: Tensor, right: Tensor, direction: str, addend: Tensor | None = None) -> Work:
    # A[.., k] @ v[k]. Backward: dA = dc v^T, an elementwise product, and dv = A^T @ dc. A product
    # with a vector runs on no tensor core.
    inner = _inner(left.shape, -1, right.shape, -1)
    product = Product(elements(left.shape[:-1]), 1, inner, left, right)
    if direction == "fprop":
        return Work((forward(product, addend),))
    moved = add_known(product.output_bytes, tensor_bytes(left), tensor_bytes(right))
    outer = Cost(product.m * product.k, moved)
    params = product.params(product.k, product.m, 1)
    matrix = Part("dgrad", outer, params, kernels=ELEMENTWISE, optional=True)
    params = product.params(1, product.k, product.m)
    vector = Part("wgrad", Cost(product.flops, moved), params, kernels=GEMM, optional=True)
    return Work((matrix, vector))


def _dot(left: Tensor, right: Tensor, direction: str) -> Work:
    # Backward: dv = dc w and dw = dc v, two elementwise products, both operands read and written.
    product = Product(1, 1, _inner(left.shape, -1, right.shape, -1), left, right)
    if direction == "fprop":
        return Work((forward(product),))
    operands = add_known(tensor_bytes(left), tensor_bytes(right))
    cost = Cost(2 * product.k, add_known(operands, operands))
    return Work((Part("main", cost, product.params(1, 1, product.k)),))
