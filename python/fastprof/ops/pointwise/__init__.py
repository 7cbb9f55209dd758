"""Pointwise operators."""

from fastprof.ops.pointwise import activations, arithmetic, formula, functions, special, table

__all__ = [
    "activations",
    "arithmetic",
    "formula",
    "functions",
    "special",
    "table",
]
