"""Normalisation."""

from fastprof.ops.normalisation import batch_norm, layer_norm, synchronised, unit_norm

__all__ = [
    "batch_norm",
    "layer_norm",
    "synchronised",
    "unit_norm",
]
