"""Pooling, interpolation, padding."""

from fastprof.ops.images import (
    folding,
    grid_sampling,
    interpolation,
    padding,
    pooling,
    pooling_adaptive,
    pooling_backward,
    pooling_windows,
)

__all__ = [
    "folding",
    "grid_sampling",
    "interpolation",
    "padding",
    "pooling",
    "pooling_adaptive",
    "pooling_backward",
    "pooling_windows",
]
