"""Rotary position embedding of serving stacks."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

_ROTATION: Final = 3  # of a pair: four products, two sums


@operators("""
    (positions, query, key, size, cache, _, ...): _C::rotary_embedding
        sgl_kernel::rotary_embedding vllm::flashinfer_rotary_embedding
        trtllm::flashinfer_apply_rope_with_cos_sin_cache_inplace
        vllm::rocm_aiter_triton_rotary_embedding
    (positions, query, key, size, cache, _, _, offsets): _C::batched_rotary_embedding
""")
def rotary_embedding(
    positions: Tensor,
    query: Tensor,
    key: Tensor | None = None,
    size: int | Unknown | None = None,
    cache: Tensor | None = None,
    offsets: Tensor | None = None,
) -> tuple[Cost, str]:
    """Queries and keys [tokens, heads d] rotated in place by the angles of their positions.

    FLOPs: 3 per rotated element: the first r of each head of d, with a cache of cosines and sines
    [positions, r].
    Bytes: rotated elements read and written, positions and a row of the cache for each token read.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension_rocm.cc,
    TensorRT-LLM tensorrt_llm/_torch/custom_ops/flashinfer_custom_ops.py. If d is not recorded,
    complete heads count, an estimate.
    """
    tokens = query.shape[0] if query.shape else 0
    depth = size if isinstance(size, int) and size > 0 else None
    turned = cache.shape[-1] if cache is not None and cache.shape else None
    if depth is not None and turned is not None and turned > depth:
        raise CannotModel(f"a cache {turned} wide does not fit heads of {depth}")
    exact = depth is not None and turned is not None
    pieces = [_turned(tensor, depth, turned) for tensor in (query, key) if tensor is not None]
    angles = None if cache is None else Tensor((tokens, cache.shape[-1]), cache.dtype)
    cost = Cost(
        _ROTATION * sum(elements(tensor.shape) for tensor in pieces),
        moved(*pieces, *pieces, positions, offsets, angles),
        exact,
    )
    return cost, texts(query, key)


@operators("""
    (query, key, query_out, key_out, cache, positions, _, _, _, values, key_cache, value_cache,
        slots): sgl_kernel::apply_rope_pos_ids_cos_sin_cache
    (query, key, query_out, key_out, cache, positions, _, _):
        sgl_kernel::apply_rope_pos_ids_cos_sin_cache
    (query, key, query_out, key_out, cache, positions, ...):
        flashinfer::apply_rope_pos_ids_cos_sin_cache
    (query, key, query_out, key_out, positions, offsets, turned, ...): flashinfer::apply_rope
        flashinfer::apply_llama31_rope
    (query, key, query_out, key_out, positions, turned, ...): flashinfer::apply_rope_pos_ids
        flashinfer::apply_llama31_rope_pos_ids
""")
def apply_rope_pos_ids_cos_sin_cache(
    query: Tensor,
    key: Tensor,
    query_out: Tensor,
    key_out: Tensor,
    positions: Tensor,
    cache: Tensor | None = None,
    offsets: Tensor | None = None,
    turned: int | Unknown | None = None,
    values: Tensor | None = None,
    key_cache: Tensor | None = None,
    value_cache: Tensor | None = None,
    slots: Tensor | None = None,
) -> tuple[Cost, str]:
    """Queries and keys [tokens, heads, d] rotated by the angles of their positions, into new
    tensors.

    FLOPs: 3 per rotated element, the first r of each head; computing angles is not counted.
    Bytes: queries and keys read and written, positions and a row of the cache for each token read;
    with slots of a key-value cache, values read and keys and values written there.

    Signatures: SGLang sgl-kernel/csrc/common_extension.cc, FlashInfer flashinfer/rope.py.
    """
    del key_cache
    tokens, depth = (query.shape[0], query.shape[-1]) if query.shape else (0, 0)
    width = cache.shape[-1] if cache is not None and cache.shape else turned
    share = depth if not isinstance(width, int) else min(width, depth)
    count = elements(query.shape) + elements(key.shape)
    angles = None if cache is None else Tensor((tokens, share), cache.dtype)
    stored = [] if value_cache is None or values is None else [key, values, values]
    cost = Cost(
        _ROTATION * (count // depth * share if depth else 0),
        moved(query, key, query_out, key_out, positions, offsets, angles, slots, *stored),
        isinstance(width, int),
    )
    return cost, texts(query, key)


@operators("""
    (out, x, angles, ...): aiter::rope_fwd_impl aiter::rope_bwd_impl
    (out, more_out, x, more, angles, ...): aiter::rope_2c_fwd_impl aiter::rope_2c_bwd_impl
    (out, x, angles, more_angles, ...): aiter::rope_cached_fwd_impl aiter::rope_cached_bwd_impl
        aiter::rope_cached_positions_fwd_impl aiter::rope_cached_positions_offsets_fwd_impl
    (out, more_out, x, more, angles, more_angles, ...): aiter::rope_cached_2c_fwd_impl
        aiter::rope_cached_2c_bwd_impl aiter::rope_cached_positions_2c_fwd_impl
        aiter::rope_cached_positions_offsets_2c_fwd_impl
    (out, x, _starts, angles, ...): aiter::rope_thd_fwd_impl aiter::rope_thd_bwd_impl
""")
def rope_fwd_impl(
    out: Tensor,
    x: Tensor,
    angles: Tensor,
    more_angles: Tensor | None = None,
    more: Tensor | None = None,
    more_out: Tensor | None = None,
    _starts: Tensor | None = None,
) -> tuple[Cost, str]:
    """x [s, b, h, d], and a second tensor, rotated by angles or their cosines and sines.

    FLOPs: 3 per element.
    Bytes: x and the second read, both results written, a row of angles for each position read.

    Signatures: aiter aiter/ops/rope.py. Partially rotated heads count completely.
    """
    del out, more_out
    positions = elements(x.shape[:-2])
    rows = [
        Tensor((min(positions, elements(tensor.shape[:-1])), tensor.shape[-1]), tensor.dtype)
        for tensor in (angles, more_angles)
        if tensor is not None and tensor.shape
    ]
    both = [tensor for tensor in (x, more) if tensor is not None]
    cost = Cost(
        _ROTATION * sum(elements(tensor.shape) for tensor in both),
        moved(*both, *map(fresh, both), *rows),
    )
    return cost, texts(*both)


def _turned(x: Tensor, depth: int | None, turned: int | None) -> Tensor:
    # The rotated part of x [tokens, heads d] or [tokens, heads, d].
    count = elements(x.shape)
    if depth is None or turned is None:
        return Tensor((count,), x.dtype)
    if count % depth:
        raise CannotModel(f"{x.shape} does not contain heads of {depth}")
    return Tensor((count // depth, turned), x.dtype)
