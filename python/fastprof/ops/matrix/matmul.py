"""FLOPs and bytes of matrix products."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Work
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.dtypes import Dtype
from fastprof.ops.matrix.matrices import batched, fits, inner_size, plain, ranks
from fastprof.ops.matrix.product import Product, bias_gradient, forward, gradients
from fastprof.ops.matrix.vectors import dot_product, matrix_vector
from fastprof.ops.parameters import Number
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements


# torch.spmm and torch.dsmm are the same C function as torch.mm.
@operators("""
    (left, mat2, out_dtype, ...): torch.mm torch.spmm torch.dsmm
    (left, mat2, out_dtype): aten::mm
""")
def mm(left: Tensor, mat2: Tensor, out_dtype: Dtype = None, *, direction: str) -> Work:
    """A[m, k] @ B[k, n].

    FLOPs: 2 m n k; backward two products as large.
    Bytes: A and B read, the output written; backward for each gradient the same three.

    A sparse operand counts as dense: traces do not distinguish them.
    """
    ranks(2, left, mat2)
    return plain(_matrices(left, mat2), direction, out_dtype)


@operators("""
    (addend, mat1, mat2, out_dtype=asked, ...): torch.addmm
    (addend, mat1, mat2, ...): torch.addmm addmm_ _addmm_activation
    (_, addend, _, mat1, mat2, ...): torch.addmm torch.addmm_ torch._addmm_activation
    (_, addend, mat1, mat2, ...): torch.addmm torch.addmm_ torch._addmm_activation
    (addend, mat1, mat2, out_dtype, beta, alpha): aten::addmm
""")
def addmm(
    addend: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: Dtype | float = None,
    beta: Number | Unknown | None = None,
    alpha: Number | Unknown | None = None,
    asked: str | None = None,
    *,
    direction: str,
) -> Work:
    """C + A[m, k] @ B[k, n], C broadcast to [m, n].

    FLOPs: 2 m n k: the addition, beta, alpha and a fused activation are not counted; backward two
    products as large, and m n if a smaller C's gradient is a sum.
    Bytes: A, B and C (at its own size) read, the output written; backward A, B and the output's
    gradient for each product.
    """
    ranks(2, mat1, mat2)
    product = _matrices(mat1, mat2)
    product = _typed(product, asked, out_dtype, alpha)
    return _with_addend(product, addend, (product.m, product.n), direction)


@operators("""
    (left, mat2, out_dtype, ...): torch.bmm
    (left, mat2, out_dtype): aten::bmm
""")
def bmm(left: Tensor, mat2: Tensor, out_dtype: Dtype = None, *, direction: str) -> Work:
    """A[b, m, k] @ B[b, k, n].

    FLOPs: 2 b m n k; backward two products as large.
    Bytes: A and B read, expanded operands once, the output written; backward for each gradient the
    same three.
    """
    ranks(3, left, mat2)
    return plain(batched(left, mat2), direction, out_dtype)


@operators("""
    (addend, mat1, batch2=mat2, out_dtype=asked, ...): torch.baddbmm
    (addend, mat1, mat2, ...): torch.baddbmm baddbmm_
    (_, addend, _, mat1, mat2, ...): torch.baddbmm torch.baddbmm_
    (_, addend, mat1, mat2, ...): torch.baddbmm torch.baddbmm_
    (addend, batch1=mat1, batch2=mat2, ...): torch.baddbmm torch.baddbmm_
    (addend, mat1, mat2, out_dtype, beta, alpha): aten::baddbmm
""")
def baddbmm(
    addend: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: Dtype | float = None,
    beta: Number | Unknown | None = None,
    alpha: Number | Unknown | None = None,
    asked: str | None = None,
    *,
    direction: str,
) -> Work:
    """C + A[b, m, k] @ B[b, k, n], C broadcast to [b, m, n].

    FLOPs: 2 b m n k, as addmm; backward two products as large, and b m n if a smaller C's gradient
    is a sum.
    Bytes: A, B and C read, the output written; backward A, B and the output's gradient for each
    product.
    """
    ranks(3, mat1, mat2)
    product = _typed(batched(mat1, mat2), asked, out_dtype, alpha)
    return _with_addend(product, addend, (mat1.shape[0], product.m, product.n), direction)


@operators("(addend, batch1, batch2, ...): addbmm addbmm_")
def addbmm(addend: Tensor, batch1: Tensor, batch2: Tensor, *, direction: str) -> Work:
    """C + sum over b of A[b, m, k] @ B[b, k, n], C broadcast to [m, n].

    FLOPs: 2 b m n k; backward two products as large, and m n if a smaller C's gradient is a sum.
    Bytes: A, B and C read, one [m, n] written; backward A, B and the output's gradient for each
    product.
    """
    ranks(3, batch1, batch2)
    product = batched(batch1, batch2)._replace(summed=True)
    return _with_addend(product, addend, (product.m, product.n), direction)


@operators("""
    aten::matmul aten::linalg_matmul
    (left, other=right, ...): torch.matmul
    (left, tensor2=right, ...): torch.matmul
    (left, right): torch.__matmul__ torch.__imatmul__ torch.imatmul
    (right, left): torch.__rmatmul__
""")
def matmul(left: Tensor, right: Tensor, *, direction: str) -> Work:
    """A @ B by rank, as torch splits it.

    A matrix or vector on the right folds all leading dimensions of A into the rows of one
    product; otherwise the batch dimensions broadcast.

    FLOPs: 2 b m n k; backward two products as large (for a matrix and a vector one of the two is
    an elementwise product, for two vectors both).
    Bytes: A and B read at their own size, the output written; backward for each gradient the same
    three.

    torch may also fold a matrix on the left, which changes params but not FLOPs, or copy a
    broadcast operand, whose bytes are not counted.
    """
    if len(right.shape) == 1:
        return (
            dot_product(left, right, direction)
            if len(left.shape) == 1
            else matrix_vector(left, right, direction)
        )
    return plain(_matmul_product(left, right), direction)


def _matrices(left: Tensor, right: Tensor) -> Product:
    inner = inner_size(left.shape, -1, right.shape, -2)
    return Product(left.shape[-2], right.shape[-1], inner, left, right)


def _matmul_product(left: Tensor, right: Tensor) -> Product:
    # With a matrix on the right, all leading dimensions of A are rows.
    if len(right.shape) == 2:
        inner = inner_size(left.shape, -1, right.shape, -2)
        return Product(elements(left.shape[:-1]), right.shape[1], inner, left, right)
    return batched(left, right)


def _typed(
    product: Product, asked: str | None, fourth: Dtype | float, sixth: Number | Unknown | None
) -> Product:
    # The operator's fourth argument is a type if there are six arguments, else beta.
    return product._replace(written=asked_type(asked if sixth is None else fourth))


def _with_addend(product: Product, addend: Tensor, output: tuple[int, ...], direction: str) -> Work:
    # The gradient of an addend of full size is the output's gradient and has no cost.
    fits(addend, output)
    if direction == "fprop":
        return Work((forward(product, addend),))
    smaller = elements(addend.shape) < product.output_elements
    summed = (bias_gradient(product, addend),) if smaller else ()
    return Work((*gradients(product), *summed))
