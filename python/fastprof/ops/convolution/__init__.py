"""Convolutions."""

from fastprof.ops.convolution import backward, forward, gradient, images, kind, parts, sizes, window

__all__ = [
    "backward",
    "forward",
    "gradient",
    "images",
    "kind",
    "parts",
    "sizes",
    "window",
]
