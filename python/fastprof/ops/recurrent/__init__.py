"""Recurrent layers and cells."""

from fastprof.ops.recurrent import gates, layers, library, modules

__all__ = [
    "gates",
    "layers",
    "library",
    "modules",
]
