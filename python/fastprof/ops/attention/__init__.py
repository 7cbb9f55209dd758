"""Scaled dot-product attention."""

from fastprof.ops.attention import backward, forward, packages, sizes

__all__ = [
    "backward",
    "forward",
    "packages",
    "sizes",
]
