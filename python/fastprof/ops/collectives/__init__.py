"""Collective communication."""

from fastprof.ops.collectives import bandwidth, distributed, functional

__all__ = [
    "bandwidth",
    "distributed",
    "functional",
]
