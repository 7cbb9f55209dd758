"""Softmax, losses, distances."""

from fastprof.ops.losses import (
    classes,
    cross_entropy,
    ctc,
    distance_matrices,
    distances,
    elementwise,
    loss_reduction,
    pairs,
    softmax,
)

__all__ = [
    "classes",
    "cross_entropy",
    "ctc",
    "distance_matrices",
    "distances",
    "elementwise",
    "loss_reduction",
    "pairs",
    "softmax",
]
