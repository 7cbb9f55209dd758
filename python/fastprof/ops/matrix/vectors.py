"""FLOPs and bytes of products of a matrix and a vector, and of two vectors."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import Cost, Part, Work, add_known
from fastprof.ops.matrix.matrices import fits, inner_size, ranks
from fastprof.ops.matrix.product import ELEMENTWISE, GEMM, Product, forward
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, is_complex, tensor_bytes


@operators("mv")
def mv(left: Tensor, vec: Tensor, *, direction: str) -> Work:
    """A[m, k] @ v[k].

    FLOPs: 2 m k, which FlopCounterMode does not count; backward m k for dA, an elementwise product,
    and 2 m k for dv.
    Bytes: A and v read, the output written; backward for each gradient the same three.
    """
    ranks(2, left)
    ranks(1, vec)
    return matrix_vector(left, vec, direction)


@operators("(addend, mat, vec, ...): addmv addmv_")
def addmv(addend: Tensor, mat: Tensor, vec: Tensor, *, direction: str) -> Work:
    """c + A[m, k] @ v[k], c broadcast to [m].

    FLOPs: 2 m k, as mv; backward 3 m k.
    Bytes: A, v and c read, the output written; backward A, v and the output's gradient for each
    of two gradients.
    """
    ranks(2, mat)
    ranks(1, vec)
    fits(addend, mat.shape[:1])
    return matrix_vector(mat, vec, direction, addend)


@operators("""
    aten::dot aten::vdot
    (left, tensor=right): torch.dot
    (left, other=right): torch.vdot
""")
def dot(left: Tensor, right: Tensor, *, direction: str) -> Work:
    """v[k] . w[k].

    FLOPs: 2 k, which FlopCounterMode does not count; backward two elementwise products, 2 k.
    Bytes: both read, one element written; backward both read and both gradients written.
    """
    ranks(1, left, right)
    return dot_product(left, right, direction)


def matrix_vector(
    left: Tensor, right: Tensor, direction: str, addend: Tensor | None = None
) -> Work:
    """A[.., k] @ v[k]. Backward: dA = dc v^T, an elementwise product, and dv = A^T @ dc.

    A product with a vector does not use tensor cores.
    """
    inner = inner_size(left.shape, -1, right.shape, -1)
    product = Product(elements(left.shape[:-1]), 1, inner, left, right)
    if direction == "fprop":
        return Work((forward(product, *(() if addend is None else (addend,))),))
    moved = add_known(product.output_bytes, tensor_bytes(left), tensor_bytes(right))
    outer = Cost(_multiply(product) * product.m * product.k, moved)
    params = product.params(product.k, product.m, 1)
    matrix = Part("dgrad", outer, params, kernels=ELEMENTWISE, optional=True)
    params = product.params(1, product.k, product.m)
    vector = Part("wgrad", Cost(product.flops, moved), params, kernels=GEMM, optional=True)
    return Work((matrix, vector))


def dot_product(left: Tensor, right: Tensor, direction: str) -> Work:
    """v[k] . w[k]. Backward: dv = dc w and dw = dc v, two elementwise products."""
    product = Product(1, 1, inner_size(left.shape, -1, right.shape, -1), left, right)
    if direction == "fprop":
        return Work((forward(product),))
    operands = add_known(tensor_bytes(left), tensor_bytes(right))
    cost = Cost(2 * _multiply(product) * product.k, add_known(operands, operands))
    return Work((Part("main", cost, product.params(1, 1, product.k)),))


def _multiply(product: Product) -> int:
    return 6 if is_complex(product.dtype) else 1
