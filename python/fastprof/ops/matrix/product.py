"""The parts of a matrix product: forward pass, bias and gradients.

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
from fastprof.ops.cost import Cost, Part, add_known
from fastprof.ops.tensor import (
    byte_count,
    canonical_type,
    elements,
    is_complex,
    result_type,
    short_type,
    tensor_bytes,
)
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


def forward(product: Product, *addends: Tensor) -> Part:
    """C = A @ B: both operands and addends (or scales) read, C written."""
    read = map(tensor_bytes, (product.left, product.right, *addends))
    moved = add_known(*read, product.output_bytes)
    params = product.params(product.n, product.m, product.k)
    return Part(
        "main",
        Cost(product.flops, moved),
        params,
        kernels=GEMM,
        no_tensor_cores=product.no_tensor_cores(product.n, product.m, product.k),
    )


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
    left = Part(
        "dgrad",
        cost,
        product.params(*of_left),
        kernels=GEMM,
        layout="nn" if weight_by_rows else None,
        optional=True,
        no_tensor_cores=product.no_tensor_cores(*of_left),
    )
    right = Part(
        "wgrad",
        cost,
        product.params(*of_right),
        kernels=GEMM,
        layout="nt",
        optional=True,
        no_tensor_cores=product.no_tensor_cores(*of_right),
    )
    return left, right


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
