"""Collective communication."""

from fastprof.ops.collectives import custom, distributed, functional

__all__ = [
    "custom",
    "distributed",
    "functional",
]
