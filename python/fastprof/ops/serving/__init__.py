"""Serving stacks: vLLM, SGLang, FlashInfer, aiter, TensorRT-LLM."""

from fastprof.ops.serving import (
    attention,
    cache,
    experts,
    gates,
    grouped,
    latent,
    norms,
    numbered,
    packed,
    products,
    quantisation,
    rotation,
    routing,
    sampling,
    state_space,
)

__all__ = [
    "attention",
    "cache",
    "experts",
    "gates",
    "grouped",
    "latent",
    "norms",
    "numbered",
    "packed",
    "products",
    "quantisation",
    "rotation",
    "routing",
    "sampling",
    "state_space",
]
