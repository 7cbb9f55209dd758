"""Fused operators of training packages: Transformer Engine, Liger, Apex, Megatron, bitsandbytes."""

from fastprof.ops.fused import (
    activations,
    experts,
    losses,
    norms,
    products,
    quantised,
    rotary,
    softmax,
    state_space,
)

__all__ = [
    "activations",
    "experts",
    "losses",
    "norms",
    "products",
    "quantised",
    "rotary",
    "softmax",
    "state_space",
]
