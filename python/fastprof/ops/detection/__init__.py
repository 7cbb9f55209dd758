"""Operators of torchvision for detection."""

from fastprof.ops.detection import boxes, deformable, regions

__all__ = [
    "boxes",
    "deformable",
    "regions",
]
