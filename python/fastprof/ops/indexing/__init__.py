"""Indexing, embedding, sorting."""

from fastprof.ops.indexing import advanced, embedding, masking, picking, placing, searching, sorting

__all__ = [
    "advanced",
    "embedding",
    "masking",
    "picking",
    "placing",
    "searching",
    "sorting",
]
