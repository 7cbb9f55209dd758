"""Matrix decompositions and linear solvers."""

from fastprof.ops.decompositions import factors, solutions

__all__ = [
    "factors",
    "solutions",
]
