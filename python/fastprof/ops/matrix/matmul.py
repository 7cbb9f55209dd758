"""FLOPs and bytes of products of matrices and vectors, and of linear layers, by parts.

A product is C[b, m, n] = A[b, m, k] @ B[b, k, n]: 2 b m n k FLOPs. As in torch's FlopCounterMode,
addends, alpha and beta are not counted. A complex multiply-add is four real ones, 8 FLOPs, which
FlopCounterMode counts as 2. The gradients are two more such products: dA = dC @ B^T and dB = A^T @
dC.

cuBLAS is column-major and computes C^T = B^T A^T: its M is n, its N is m. For linear, x[rows, in] @
w[out, in]^T, that gives M = out, N = rows, K = in.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import (
    Dtype,
    asked_type,
    canonical_type,
    is_complex,
    result_type,
    short_type,
)
from fastprof.ops.parameters import Number
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, byte_count, elements, tensor_bytes
from fastprof.ops.tensor_cores import why_not

GEMM: Final = frozenset({"gemm"})
ELEMENTWISE: Final = frozenset({"elementwise"})
REDUCTION: Final = frozenset({"reduction"})


class Product(NamedTuple):
    """Sizes of C[b, m, n] = A[b, m, k] @ B[b, k, n] and its operands A and B.

    `batch` is None for plain matrices. `summed`: C is the sum over the batch. `shares`: the number
    of matrices C, among which k is divided. `written`: the requested type of C, UNKNOWN if not
    recorded. An operand that is broadcast over the batch is read once.
    """

    m: int
    n: int
    k: int
    left: Tensor
    right: Tensor
    batch: int | None = None
    summed: bool = False
    written: str | Unknown | None = None
    shares: int = 1

    @property
    def dtype(self) -> str | None:
        """Canonical type of the operands, printed in params; None if unknown."""
        if short_type(self.left.dtype) == short_type(self.right.dtype):
            return canonical_type(self.left.dtype)  # float8 formats have no common type
        return result_type((self.left, self.right))

    @property
    def output_type(self) -> str | None:
        """Canonical type of C; None if unknown."""
        if isinstance(self.written, Unknown):
            return None
        return self.dtype if self.written is None else self.written

    @property
    def flops(self) -> int:
        """Multiplications and additions, of the product and of each gradient."""
        multiply_add = 8 if is_complex(self.dtype) else 2
        matrices = 1 if self.batch is None else self.batch
        return multiply_add * matrices * self.m * self.n * self.k

    @property
    def output_elements(self) -> int:
        """Elements of C."""
        matrices = 1 if self.batch is None or self.summed else self.batch
        return matrices * self.shares * self.m * self.n

    @property
    def output_bytes(self) -> int | None:
        """Bytes of C."""
        return byte_count(self.output_elements, self.output_type)

    def no_tensor_cores(self, m: int, n: int, k: int) -> str:
        """Why cuBLAS may not use tensor cores for its M, N and K; "" where one is a vector."""
        if 1 in (self.m, self.n):
            return ""
        return why_not(self.dtype, {"M": m, "N": n, "K": k})

    def params(self, m: int, n: int, k: int) -> str:
        """The params text of a product with cuBLAS's M, N and K."""
        batch = "" if self.batch is None else f"B={self.batch},"
        return f"{batch}M={m},N={n},K={k},{short_type(self.dtype)},"

    @property
    def forward_params(self) -> str:
        """The params text of C = A @ B."""
        return self.params(self.n, self.m, self.k)


def forward(product: Product, *addends: Tensor) -> Part:
    """C = A @ B: both operands and addends (or scales) read, C written."""
    read = map(tensor_bytes, (product.left, product.right, *addends))
    moved = add_known(*read, product.output_bytes)
    reason = product.no_tensor_cores(product.n, product.m, product.k)
    cost = Cost(product.flops, moved)
    return Part("main", cost, product.forward_params, kernels=GEMM, no_tensor_cores=reason)


def product_gradients(product: Product, *, weight_by_rows: bool = False) -> tuple[Part, Part]:
    """dA and dB, distinguished by the layout in their kernels' names.

    With `weight_by_rows`, B is the transpose of a row-major weight (linear) and the layouts are
    certain: dA^T = W^T dC^T is "nn", dW^T = A^T dC is "nt".

    Otherwise it is a **guess**: "nt" is dB, any other layout is dA. This is right for row-major
    operands (dA is "tn", dB "nt") and for a transposed view on the right (dA "nn", dB "nt"). It
    fails for a transposed view on the left, where dB is "nn": both kernels then count as dA, and
    dB's FLOPs are missing. It also fails for kernel names without a layout. Shapes do not
    distinguish the cases. dA and dB have the same FLOPs and bytes but different params.
    """
    m, n, k = product.m, product.n, product.k
    moved = add_known(product.output_bytes, tensor_bytes(product.left), tensor_bytes(product.right))
    cost = Cost(product.flops, moved)
    of_left, of_right = (k, m, n), (k, n, m) if weight_by_rows else (n, k, m)
    results = []
    layouts = ("nn" if weight_by_rows else None, "nt")
    for role, sizes, layout in zip(("dgrad", "wgrad"), (of_left, of_right), layouts, strict=True):
        reason = product.no_tensor_cores(*sizes)
        results.append(Part(role, cost, product.params(*sizes), None, GEMM, layout, True, reason))
    return results[0], results[1]


def bias_added(product: Product) -> Part:
    """The bias of a linear layer added by a separate kernel: one addition for each output.

    The output is read and written; the bias vector is not counted, as in PyProf.
    """
    moved = add_known(product.output_bytes, product.output_bytes)
    cost = Cost(_additions(product), moved)
    return Part("bias", cost, _bias_params(product), "bias", ELEMENTWISE, optional=True)


def bias_gradient(product: Product, bias: Tensor) -> Part:
    """Sum of dC down to the bias's shape: one addition and one read for each element of dC."""
    moved = add_known(product.output_bytes, byte_count(elements(bias.shape), product.output_type))
    cost = Cost(_additions(product), moved)
    return Part("bias", cost, _bias_params(product), "bias", REDUCTION, optional=True)


def _additions(product: Product) -> int:
    # One for each element of C, two if complex.
    return product.output_elements * (2 if is_complex(product.output_type) else 1)


def _bias_params(product: Product) -> str:
    return f"M={product.n},N={product.m},{short_type(product.dtype)},"


def ranks(rank: int, *tensors: Tensor) -> None:
    """Check the number of dimensions; raises CannotModel when a tensor has another rank."""
    for tensor in tensors:
        if len(tensor.shape) != rank:
            raise CannotModel(f"shape {tensor.shape} is not {rank}-d")


def inner_size(left: tuple[int, ...], axis: int, right: tuple[int, ...], other_axis: int) -> int:
    """The inner size k of both operands; raises CannotModel when they differ."""
    if len(left) < -axis or len(right) < -other_axis or left[axis] != right[other_axis]:
        raise CannotModel(f"cannot multiply {left} and {right}")
    return left[axis]


def fits(addend: Tensor, shape: tuple[int, ...]) -> None:
    """Check that an addend broadcasts to the output; raises CannotModel when it does not."""
    if broadcast(addend.shape, shape) != shape:
        raise CannotModel(f"{addend.shape} does not broadcast to the output {shape}")


def batched(left: Tensor, right: Tensor) -> Product:
    """A[.., m, k] @ B[.., k, n] with broadcast batch dimensions; a vector on the left is a row."""
    inner = inner_size(left.shape, -1, right.shape, -2)
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    batch = elements(broadcast(left.shape[:-2], right.shape[:-2]))
    return Product(rows, right.shape[-1], inner, left, right, batch)


def plain(product: Product, direction: str, out_dtype: Dtype = None) -> Work:
    """The work of a plain product in one direction."""
    product = product._replace(written=asked_type(out_dtype))
    if direction == "fprop":
        return Work((forward(product),))
    return Work((*product_gradients(product),))


@operators("""
    A[m, k] @ v[k].
    FLOPs: 2 m k, which FlopCounterMode does not count; backward m k for dA, an elementwise product,
    and 2 m k for dv.
    Bytes: A and v read, the output written; backward for each gradient the same three.
    (*): mv
""")
def mv(left: Tensor, vec: Tensor, *, direction: str) -> Work:
    ranks(2, left)
    ranks(1, vec)
    return matrix_vector(left, vec, direction)


@operators("""
    c + A[m, k] @ v[k], c broadcast to [m].
    FLOPs: 2 m k, as mv; backward 3 m k.
    Bytes: A, v and c read, the output written; backward A, v and the output's gradient for each
    of two gradients.
    (addend, mat, vec, ...): addmv addmv_
""")
def addmv(addend: Tensor, mat: Tensor, vec: Tensor, *, direction: str) -> Work:
    ranks(2, mat)
    ranks(1, vec)
    fits(addend, mat.shape[:1])
    return matrix_vector(mat, vec, direction, addend)


@operators("""
    v[k] . w[k].
    FLOPs: 2 k, which FlopCounterMode does not count; backward two elementwise products, 2 k.
    Bytes: both read, one element written; backward both read and both gradients written.
    (*): aten::dot aten::vdot
    (left, tensor=right): torch.dot
    (left, other=right): torch.vdot
""")
def dot(left: Tensor, right: Tensor, *, direction: str) -> Work:
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


# torch.spmm and torch.dsmm are the same C function as torch.mm.
@operators("""
    A[m, k] @ B[k, n].
    FLOPs: 2 m n k; backward two products as large.
    Bytes: A and B read, the output written; backward for each gradient the same three.

    A sparse operand counts as dense: traces do not distinguish them.
    (left, mat2, out_dtype, ...): torch.mm torch.spmm torch.dsmm
    (left, mat2, out_dtype): aten::mm
""")
def mm(left: Tensor, mat2: Tensor, out_dtype: Dtype = None, *, direction: str) -> Work:
    ranks(2, left, mat2)
    return plain(_matrices(left, mat2), direction, out_dtype)


def _with_addend(product: Product, addend: Tensor, output: tuple[int, ...], direction: str) -> Work:
    # The gradient of an addend of full size is the output's gradient and has no cost.
    fits(addend, output)
    if direction == "fprop":
        return Work((forward(product, addend),))
    smaller = elements(addend.shape) < product.output_elements
    summed = (bias_gradient(product, addend),) if smaller else ()
    return Work((*product_gradients(product), *summed))


def _added(
    addend: Tensor,
    mat1: Tensor,
    mat2: Tensor,
    out_dtype: Dtype | float = None,
    beta: Number | Unknown | None = None,
    alpha: Number | Unknown | None = None,
    asked: str | None = None,
    *,
    rank: int,
    direction: str,
) -> Work:
    ranks(rank, mat1, mat2)
    product = _matrices(mat1, mat2) if rank == 2 else batched(mat1, mat2)
    # The operator's fourth argument is a type if there are six arguments, else beta.
    product = product._replace(written=asked_type(asked if alpha is None else out_dtype))
    output = (*mat1.shape[: rank - 2], product.m, product.n)
    return _with_addend(product, addend, output, direction)


table_row("""
    C + A[m, k] @ B[k, n], C broadcast to [m, n].
    FLOPs: 2 m n k: the addition, beta, alpha and a fused activation are not counted; backward two
    products as large, and m n if a smaller C's gradient is a sum.
    Bytes: A, B and C (at its own size) read, the output written; backward A, B and the output's
    gradient for each product.
    (addend, mat1, mat2, out_dtype=asked, ...): torch.addmm
    (addend, mat1, mat2, ...): torch.addmm addmm_ _addmm_activation
    (_, addend, _, mat1, mat2, ...): torch.addmm torch.addmm_ torch._addmm_activation
    (_, addend, mat1, mat2, ...): torch.addmm torch.addmm_ torch._addmm_activation
    (addend, mat1, mat2, out_dtype, beta, alpha): aten::addmm
""")(_added, rank=2)


@operators("""
    A[b, m, k] @ B[b, k, n].
    FLOPs: 2 b m n k; backward two products as large.
    Bytes: A and B read, expanded operands once, the output written; backward for each gradient the
    same three.
    (left, mat2, out_dtype, ...): torch.bmm
    (left, mat2, out_dtype): aten::bmm
""")
def bmm(left: Tensor, mat2: Tensor, out_dtype: Dtype = None, *, direction: str) -> Work:
    ranks(3, left, mat2)
    return plain(batched(left, mat2), direction, out_dtype)


table_row("""
    C + A[b, m, k] @ B[b, k, n], C broadcast to [b, m, n].
    FLOPs: 2 b m n k, as addmm; backward two products as large, and b m n if a smaller C's gradient
    is a sum.
    Bytes: A, B and C read, the output written; backward A, B and the output's gradient for each
    product.
    (addend, mat1, batch2=mat2, out_dtype=asked, ...): torch.baddbmm
    (addend, mat1, mat2, ...): torch.baddbmm baddbmm_
    (_, addend, _, mat1, mat2, ...): torch.baddbmm torch.baddbmm_
    (_, addend, mat1, mat2, ...): torch.baddbmm torch.baddbmm_
    (addend, batch1=mat1, batch2=mat2, ...): torch.baddbmm torch.baddbmm_
    (addend, mat1, mat2, out_dtype, beta, alpha): aten::baddbmm
""")(_added, rank=3)


@operators("""
    C + sum over b of A[b, m, k] @ B[b, k, n], C broadcast to [m, n].
    FLOPs: 2 b m n k; backward two products as large, and m n if a smaller C's gradient is a sum.
    Bytes: A, B and C read, one [m, n] written; backward A, B and the output's gradient for each
    product.
    (addend, batch1, batch2, ...): addbmm addbmm_
""")
def addbmm(addend: Tensor, batch1: Tensor, batch2: Tensor, *, direction: str) -> Work:
    ranks(3, batch1, batch2)
    product = batched(batch1, batch2)._replace(summed=True)
    return _with_addend(product, addend, (product.m, product.n), direction)


@operators("""
    A @ B by rank, as torch splits it.

    A matrix or vector on the right folds all leading dimensions of A into the rows of one
    product; otherwise the batch dimensions broadcast.

    FLOPs: 2 b m n k; backward two products as large (for a matrix and a vector one of the two is
    an elementwise product, for two vectors both).
    Bytes: A and B read at their own size, the output written; backward for each gradient the same
    three.

    torch may also fold a matrix on the left, which changes params but not FLOPs, or copy a
    broadcast operand, whose bytes are not counted.
    (*): aten::matmul aten::linalg_matmul
    (left, other=right, ...): torch.matmul
    (left, tensor2=right, ...): torch.matmul
    (left, right): torch.__matmul__ torch.__imatmul__ torch.imatmul
    (right, left): torch.__rmatmul__
""")
def matmul(left: Tensor, right: Tensor, *, direction: str) -> Work:
    if len(right.shape) == 1:
        product = dot_product if len(left.shape) == 1 else matrix_vector
        return product(left, right, direction)
    if len(right.shape) == 2:
        return plain(_matrices(left, right), direction)
    return plain(batched(left, right), direction)


def _matrices(left: Tensor, right: Tensor) -> Product:
    # All leading dimensions of A are rows.
    inner = inner_size(left.shape, -1, right.shape, -2)
    return Product(elements(left.shape[:-1]), right.shape[-1], inner, left, right)


@operators("""
    x[.., k] @ w[n, k]^T (+ bias[n]): all leading dimensions of x are rows of one product.
    FLOPs: 2 rows n k, bias not counted (rows n if a separate kernel adds it); backward twice that,
    and rows n for the bias.
    Bytes: x and w read, the output written; backward for each gradient the same three.

    Under autocast, a Python call records the types before the cast.
    (*): linear
""")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, direction: str) -> Work:
    product = _product(x, weight, bias)
    if direction == "fprop":
        return Work((forward(product), *(() if bias is None else (bias_added(product),))))
    summed = () if bias is None else (bias_gradient(product, bias),)
    return Work((*product_gradients(product, weight_by_rows=True), *summed))


@operators("""
    Gradients of linear as one operator: dy[.., n] @ w[n, k] and dy^T @ x[.., k].
    FLOPs: 2 rows n k for each gradient selected by the mask, rows n for the bias's.
    Bytes: for each gradient the output's gradient, x (or the gradient of it) and w.
    (x, gradient, weight, mask): aten::linear_backward aten::mkldnn_linear_backward
""")
def linear_backward(
    x: Tensor, gradient: Tensor, weight: Tensor, mask: tuple[bool, ...] | Unknown
) -> Work:
    product = _product(x, weight)
    if gradient.shape[:-1] != x.shape[:-1] or gradient.shape[-1:] != weight.shape[:-1]:
        raise CannotModel(f"{gradient.shape} is not a gradient of {x.shape} by {weight.shape}")
    of_x, of_weight = product_gradients(product, weight_by_rows=True)
    of_bias = bias_gradient(product, Tensor((product.n,)))
    return Work(_asked((of_x, of_weight, of_bias), mask))


@operators("""
    Gradients of matmul as one operator: dC @ B^T and A^T @ dC.
    FLOPs: those of matmul for each gradient selected by the mask.
    Bytes: for each gradient A, B and the output's gradient, read or written.
    (_gradient, left, right, mask): aten::matmul_backward
""")
def matmul_backward(
    _gradient: Tensor, left: Tensor, right: Tensor, mask: tuple[bool, ...] | Unknown
) -> Work:
    return Work(_asked(matmul(left, right, direction="bprop").parts, mask))


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Product:
    # A weight w[k] has one output feature.
    if len(weight.shape) not in (1, 2):
        raise CannotModel(f"weight has shape {weight.shape}, not 1-d or 2-d")
    rows, columns = elements(x.shape[:-1]), elements(weight.shape[:-1])
    if bias is not None and elements(bias.shape) != columns:
        raise CannotModel(f"bias {bias.shape} does not fit weight {weight.shape}")
    return Product(rows, columns, inner_size(x.shape, -1, weight.shape, -1), x, weight)


def _asked(parts: tuple[Part, ...], mask: tuple[bool, ...] | Unknown) -> tuple[Part, ...]:
    # The parts selected by an output mask; all if it is not recorded.
    if isinstance(mask, Unknown):
        return parts
    return tuple(part for part, wanted in zip(parts, mask, strict=False) if wanted)
