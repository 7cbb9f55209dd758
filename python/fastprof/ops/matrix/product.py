"""One matrix product to parts: its forward pass, what is added to it, and its gradients.

A product is C[b, m, n] = A[b, m, k] @ B[b, k, n]: 2 b m n k FLOPs and nothing else (what is
added to it, and alpha and beta, count nothing, as in torch's FlopCounterMode). A complex
multiply-add is four real ones, 8 FLOPs, which FlopCounterMode counts as 2. The gradients are two
more such products: dA = dC @ B^T and dB = A^T @ dC.

cuBLAS stores matrices by columns, so it is asked for C^T = B^T A^T: its M is n, its N is m. For
linear, x[rows, in] @ w[out, in]^T, that gives M = out, N = rows, K = in.
"""

from __future__ import annotations

from typing import Final, NamedTuple

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

__all__ = [
    "ELEMENTWISE",
    "GEMM",
    "Product",
    "bias_added",
    "bias_gradient",
    "forward",
    "gradients",
]

GEMM: Final = frozenset({"gemm"})
ELEMENTWISE: Final = frozenset({"elementwise"})
REDUCTION: Final = frozenset({"reduction"})


class Product(NamedTuple):
    """Sizes of C[b, m, n] = A[b, m, k] @ B[b, k, n] and its operands A and B.

    `batch` is None for plain matrices. `summed` says that C is the sum over the batch, `shares`
    how many matrices C there are, among which k is shared out. `written`
    is the type of C where a call asks for one, UNKNOWN where what it asks for is not in the
    capture. The operands' bytes are their own: one that is broadcast over the batch is read once.
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
        """Canonical type of the operands, which params print; None when it is not known."""
        if short_type(self.left.dtype) == short_type(self.right.dtype):
            return canonical_type(self.left.dtype)  # the kinds of float8 have no common type
        return result_type((self.left, self.right))

    @property
    def output_type(self) -> str | None:
        """Canonical type of C, None when it is not known."""
        if isinstance(self.written, Unknown):
            return None
        return self.dtype if self.written is None else self.written

    @property
    def flops(self) -> int:
        """Multiplications and additions; of either gradient too."""
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
        """The params cell of a product with cuBLAS's M, N and K."""
        batch = "" if self.batch is None else f"B={self.batch},"
        return f"{batch}M={m},N={n},K={k},{short_type(self.dtype)},"


def forward(product: Product, *addends: Tensor) -> Part:
    """C = A @ B: both operands read, C written, and what is added to it (or scales it) read."""
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


def gradients(product: Product, *, weight_by_rows: bool = False) -> tuple[Part, Part]:
    """dA and dB, told apart by the layout letters of their kernels' names.

    With `weight_by_rows`, B is the transpose of a weight stored by rows (linear) and the layouts
    are sure: dA^T = W^T dC^T is "nn", dW^T = A^T dC is "nt".

    Otherwise it is a **guess**: "nt" is dB, any other layout is dA. It holds for operands stored
    by rows (dA is "tn", dB "nt") and for a transposed view on the right (dA "nn", dB "nt"). It
    fails for a transposed view on the left, where dB is "nn": then both kernels pass for dA and
    dB's FLOPs are missed; and it cannot tell kernels whose names have no layout. Shapes do not
    show which it was. FLOPs and bytes of dA and dB are the same, their params are not.
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
    """The bias of a linear, where a kernel of its own adds it: one addition for each output.

    The output is read and written; the bias vector's own bytes are left out, as PyProf did.
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
    # One for each element of C, two where it is complex.
    return product.output_elements * (2 if is_complex(product.output_type) else 1)


def _bias_params(product: Product) -> str:
    return f"M={product.n},N={product.m},{short_type(product.dtype)},"
