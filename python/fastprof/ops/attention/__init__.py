"""Scaled dot-product attention."""

from fastprof.ops.attention import (
    backward,
    flash3,
    forward,
    packages,
    sizes,
    transformer_engine,
    xformers,
)

__all__ = [
    "backward",
    "flash3",
    "forward",
    "packages",
    "sizes",
    "transformer_engine",
    "xformers",
]
