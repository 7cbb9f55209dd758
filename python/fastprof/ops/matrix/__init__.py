"""Matrix products."""

from fastprof.ops.matrix import (
    chain,
    einsum,
    linear,
    matmul,
    matrices,
    outer,
    product,
    scaled,
    vectors,
)

__all__ = [
    "chain",
    "einsum",
    "linear",
    "matmul",
    "matrices",
    "outer",
    "product",
    "scaled",
    "vectors",
]
