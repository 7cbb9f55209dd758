"""Collective communication."""

from fastprof.ops.collectives import bandwidth, custom, distributed, functional, messages

__all__ = [
    "bandwidth",
    "custom",
    "distributed",
    "functional",
    "messages",
]
