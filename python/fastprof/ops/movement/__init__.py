"""Data movement, views, types."""

from fastprof.ops.movement import conversion, copies, creation, sequences, views

__all__ = [
    "conversion",
    "copies",
    "creation",
    "sequences",
    "views",
]
