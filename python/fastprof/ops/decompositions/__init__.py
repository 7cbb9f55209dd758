"""Decompositions of matrices, and what is solved with them."""

from fastprof.ops.decompositions import factors, solutions

__all__ = [
    "factors",
    "solutions",
]
