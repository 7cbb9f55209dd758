"""Matrix products, matrix-vector products and dot products to FLOPs and bytes."""

from __future__ import annotations

from fastprof.call import Call, Tensor
from fastprof.ops.arguments import optional_tensor, tensor
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.product import (
    ELEMENTWISE,
    GEMM,
    Product,
    bias_added,
    bias_gradient,
    forward,
    gradients,
    work_of,
)
from fastprof.ops.registry import model
from fastprof.ops.tensor import broadcast, elements, tensor_bytes

__all__ = ["addbmm", "addmm", "addmv", "baddbmm", "bmm", "dot", "linear", "matmul", "mm", "mv"]


@model("linear")
def linear(call: Call, direction: str) -> Work:
    """x[.., k] @ w[n, k]^T (+ bias[n]): all leading dimensions of x are rows of one product.

    Under autocast a Python call shows the types before the cast.
    """
    x, weight = tensor(call, 0, "input"), tensor(call, 1, "weight")
    bias = optional_tensor(call, 2, "bias")
    if bias is not None and not bias.shape:
        bias = None  # torch ranges write a tensor that is not there as one without dimensions
    if len(weight.shape) not in (1, 2):
        raise CannotModel(f"linear: weight has shape {weight.shape}, not 1-d or 2-d")
    rows, columns = elements(x.shape[:-1]), elements(weight.shape[:-1])
    product = Product(rows, columns, _inner(x.shape, -1, weight.shape, -1), x, weight)
    if bias is not None and elements(bias.shape) != columns:
        raise CannotModel(f"linear: bias {bias.shape} does not fit weight {weight.shape}")
    if direction == "fprop":
        added = () if bias is None else (bias_added(product),)
        return work_of(product, forward(product), *added)
    summed = () if bias is None else (bias_gradient(product, bias),)
    return work_of(product, *gradients(product, weight_by_rows=True), *summed)


@model("mm")
def mm(call: Call, direction: str) -> Work:
    """A[m, k] @ B[k, n]."""
    left = tensor(call, 0, "input", "self", rank=2)
    right = tensor(call, 1, "mat2", rank=2)
    return _plain(_matrices(left, right), direction)


@model("addmm", "addmm_")
def addmm(call: Call, direction: str) -> Work:
    """C + A[m, k] @ B[k, n], C broadcast to [m, n] and read by its own size."""
    addend = tensor(call, 0, "input", "self")
    left = tensor(call, 1, "mat1", rank=2)
    right = tensor(call, 2, "mat2", rank=2)
    product = _matrices(left, right)
    return _with_addend(product, addend, (product.m, product.n), direction)


@model("bmm")
def bmm(call: Call, direction: str) -> Work:
    """A[b, m, k] @ B[b, k, n]."""
    left = tensor(call, 0, "input", "self", rank=3)
    right = tensor(call, 1, "mat2", rank=3)
    return _plain(_batched(left, right), direction)


@model("baddbmm", "baddbmm_")
def baddbmm(call: Call, direction: str) -> Work:
    """C + A[b, m, k] @ B[b, k, n], C broadcast to [b, m, n]."""
    addend = tensor(call, 0, "input", "self")
    left = tensor(call, 1, "batch1", rank=3)
    right = tensor(call, 2, "batch2", rank=3)
    product = _batched(left, right)
    return _with_addend(product, addend, (left.shape[0], product.m, product.n), direction)


@model("addbmm", "addbmm_")
def addbmm(call: Call, direction: str) -> Work:
    """C + sum over b of A[b, m, k] @ B[b, k, n], C broadcast to [m, n]."""
    addend = tensor(call, 0, "input", "self")
    left = tensor(call, 1, "batch1", rank=3)
    right = tensor(call, 2, "batch2", rank=3)
    product = _batched(left, right)._replace(summed=True)
    return _with_addend(product, addend, (product.m, product.n), direction)


@model("matmul", "__matmul__", "__rmatmul__")
def matmul(call: Call, direction: str) -> Work:
    """A @ B by rank, as torch splits it.

    A matrix or vector on the right folds all leading dimensions of A into the rows of one
    product; otherwise the batch dimensions broadcast and an operand is read by its own size.
    (Torch may also fold a matrix on the left, or copy a broadcast operand: not modelled.)
    """
    left, right = tensor(call, 0, "input", "self"), tensor(call, 1, "other", "tensor2")
    if call.op == "__rmatmul__":
        left, right = right, left
    if len(right.shape) == 1:
        return _dot(left, right, direction) if len(left.shape) == 1 else _mv(left, right, direction)
    if len(right.shape) == 2:
        inner = _inner(left.shape, -1, right.shape, -2)
        rows = elements(left.shape[:-1])
        return _plain(Product(rows, right.shape[1], inner, left, right), direction)
    return _plain(_batched(left, right), direction)


@model("mv")
def mv(call: Call, direction: str) -> Work:
    """A[m, k] @ v[k]."""
    left = tensor(call, 0, "input", "self", rank=2)
    return _mv(left, tensor(call, 1, "vec", rank=1), direction)


@model("addmv", "addmv_")
def addmv(call: Call, direction: str) -> Work:
    """c + A[m, k] @ v[k], c broadcast to [m]."""
    addend = tensor(call, 0, "input", "self")
    left = tensor(call, 1, "mat", rank=2)
    right = tensor(call, 2, "vec", rank=1)
    _fits(addend, left.shape[:1])
    return _mv(left, right, direction, addend)


@model("dot", "vdot", "inner")
def dot(call: Call, direction: str) -> Work:
    """v[k] . w[k]; an inner of more dimensions is not modelled."""
    left = tensor(call, 0, "input", "self", rank=1)
    return _dot(left, tensor(call, 1, "tensor", "other", rank=1), direction)


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
        return work_of(product, forward(product))
    return work_of(product, *gradients(product))


def _with_addend(product: Product, addend: Tensor, output: tuple[int, ...], direction: str) -> Work:
    # The gradient of an addend of full size is the output's own and costs nothing.
    _fits(addend, output)
    if direction == "fprop":
        return work_of(product, forward(product, addend))
    smaller = elements(addend.shape) < product.output_elements
    summed = (bias_gradient(product, addend),) if smaller else ()
    return work_of(product, *gradients(product), *summed)


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
