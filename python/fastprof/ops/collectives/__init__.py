"""Collective communication."""

from fastprof.ops.collectives import distributed, functional

__all__ = [
    "distributed",
    "functional",
]
