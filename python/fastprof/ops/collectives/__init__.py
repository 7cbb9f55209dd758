"""Collective communication."""

from fastprof.ops.collectives import bandwidth, custom, distributed, functional

__all__ = [
    "bandwidth",
    "custom",
    "distributed",
    "functional",
]
