"""Norms of serving stacks, with optional residual and quantisation, and rotary embedding.

Signatures of the operators: vLLM csrc/torch_bindings.cpp, vllm/_aiter_ops.py; SGLang
sgl-kernel/csrc/common_extension.cc, sgl-kernel/csrc/common_extension_rocm.cc; FlashInfer
flashinfer/norm.py, flashinfer/rope.py; aiter aiter/ops/rmsnorm.py, aiter/ops/norm.py,
aiter/ops/groupnorm.py, aiter/ops/rope.py; TensorRT-LLM
tensorrt_llm/_torch/custom_ops/flashinfer_custom_ops.py,
cpp/tensorrt_llm/thop/fusedQKNormRopeOp.cpp.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.libraries.serving.products import SCALE, SEARCH
from fastprof.ops.normalisation import layer_norm as plain
from fastprof.ops.parameters import Int, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements, fresh, moved, present, texts

_ROOT: Final = 3  # squares added 2, x / root 1


@operators("""
    x[.., d] / sqrt(mean(x^2) + eps) * weight[d].
    FLOPs: 4 per element (squares added 2, scaling 1, weight 1), 3 without weight.
    Bytes: x and weight read, y written.

    The addition of 1 to the weight in gemma's kernels is not counted.
    (out, x, weight): _C::rms_norm sgl_kernel|flashinfer|aiter::rmsnorm
        sgl_kernel|flashinfer::gemma_rmsnorm aiter::rms_norm_cu
    (out, x): _C::rms_norm_weightless
    (x, weight): aiter::rms_norm aiter::rmsnorm2d_fwd aiter::rmsnorm2d_fwd_
        aiter::rmsnorm2d_fwd_ck trtllm::flashinfer_rmsnorm trtllm::flashinfer_gemma_rmsnorm
        vllm::rocm_aiter_rms_norm sglang_profiler::rmsnorm_rmsnorm2d_fwd
        sglang_profiler::rmsnorm_rms_norm
""")
def rms_norm_of_rows(x: Tensor, weight: Tensor | None = None, out: Tensor | None = None) -> Answer:
    _row(x, weight)
    y = fresh(x) if out is None else out
    flops = elements(x.shape) * (_ROOT + (weight is not None))
    return Cost(flops, moved(x, weight, y)), texts(x, weight)


@operators("""
    residual + x, and the RMS norm of it: both [.., d].
    FLOPs: 5 per element (added 1, squares added 2, scaling 1, weight 1), 6 if two are added.
    Bytes: x, residual and weight read, the norm and the new residual written.
    (x, residual, weight): _C::fused_add_rms_norm sgl_kernel|flashinfer::fused_add_rmsnorm
        sgl_kernel|flashinfer::gemma_fused_add_rmsnorm trtllm::flashinfer_fused_add_rmsnorm
        trtllm::flashinfer_gemma_fused_add_rmsnorm aiter::fused_add_rms_norm_cu
        vllm::rocm_aiter_rmsnorm2d_fwd_with_add
    (x, residual): _C::fused_add_rms_norm_weightless
    (x, other, residual, weight): trtllm::flashinfer_fused_add_add_rmsnorm
    (out, x, residual, residual_out, weight): aiter::add_rmsnorm aiter::rmsnorm2d_fwd_with_add
        aiter::rmsnorm2d_fwd_with_add_ck sglang_profiler::rmsnorm_rmsnorm2d_fwd_with_add
    (x, weight, residual): aiter::rmsnorm2d_fwd_with_add_
    (x, weight, _, residual, _): vllm::rocm_aiter_triton_add_rmsnorm_pad
        aiter::fused_add_rmsnorm_pad_
""")
def fused_add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    out: Tensor | None = None,
    residual_out: Tensor | None = None,
    other: Tensor | None = None,
) -> Answer:
    _row(x, weight)
    _same(x, residual)
    if other is not None:
        _same(x, other)
    flops = elements(x.shape) * (1 + _ROOT + (weight is not None) + (other is not None))
    written = out or fresh(x), residual_out or fresh(residual)
    return Cost(flops, moved(x, residual, other, weight, *written)), texts(x, residual, weight)


table_row("""
    The RMS norm of x[.., d] (+ residual), quantised by a given scale.
    FLOPs: 7 per element (norm 4, quantising 3), 8 with a residual.
    Bytes: x, residual, weight and scale read, the norm and the new residual written.
    (out, x, weight, scale): _C::rms_norm_static_fp8_quant
    (out, x, residual, weight, scale): _C::fused_add_rms_norm_static_fp8_quant
    (out, x, weight, scale, _): flashinfer::rmsnorm_quant
    (out, x, weight, _, _): flashinfer::rmsnorm_quant
    (out, x, residual, weight, scale, _): flashinfer::fused_add_rmsnorm_quant
        trtllm::flashinfer_fused_add_rmsnorm_quant
    (out, x, residual, weight, _, _): flashinfer::fused_add_rmsnorm_quant
""")(
    "x, weight, out, scale?, residual?",
    lambda x, weight, out, scale, residual: _quantised(x, weight, out, residual, (scale,), SCALE),
)


@operators("""
    The RMS norm of x[.., d] (+ residual), quantised by computed scales of rows or groups.
    FLOPs: 9 per element (norm 4, magnitude compared 2, quantising 3), 10 with a residual, one more
    with smoothing.
    Bytes: x, residual and weight read, the norm, the scales and the new residual written; if the
    call does not pass the norm, a byte per element is assumed, and the scales are not counted.
    (out, x, weight, scales, _, limit, residual): _C::rms_norm_dynamic_per_token_quant
    (out, x, weight, scales, _, limit, residual, _, _): _C::rms_norm_per_block_quant
    (out, x, scales, weight): aiter::rmsnorm_quant aiter::rmsnorm2d_fwd_with_dynamicquant
        aiter::rmsnorm2d_fwd_with_dynamicquant_ck
    (out, x, smooth, scales, weight): aiter::rmsnorm2d_fwd_with_smoothquant
        aiter::rmsnorm2d_fwd_with_smoothquant_ck
    (out, x, residual, residual_out, scales, weight): aiter::add_rmsnorm_quant
    (out, x, residual, residual_out, scales, weight, _, _):
        aiter::rmsnorm2d_fwd_with_add_dynamicquant aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck
    (out, x, residual, residual_out, smooth, scales, weight, _, unquantised):
        aiter::rmsnorm2d_fwd_with_add_smoothquant aiter::rmsnorm2d_fwd_with_add_smoothquant_ck
    (x, weight, _, _): vllm::rocm_aiter_rmsnorm_fused_dynamic_quant
        vllm::rocm_aiter_rmsnorm_fp8_group_quant
    (out, x, weight, scales, _): vllm::rocm_aiter_rmsnorm_fused_dynamic_quant
    (x, residual, weight, _, _): vllm::rocm_aiter_rmsnorm_fused_add_dynamic_quant
        vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant
    (out, x, residual, weight, scales, _): vllm::rocm_aiter_rmsnorm_fused_add_dynamic_quant
""")
def rms_norm_dynamic_per_token_quant(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None = None,
    residual: Tensor | None = None,
    residual_out: Tensor | None = None,
    smooth: Tensor | None = None,
    *,
    read: Tensors,
) -> Answer:
    out = fresh(x, dtype="float8_e4m3fn") if out is None else out
    more = SEARCH + SCALE + (smooth is not None)
    return _quantised(x, weight, out, residual, (smooth, *read), more)


@operators("""
    RMS norm and rotation of each head of q and k, in one tensor [tokens, (q + k + v) d].
    FLOPs: 7 per element of q and k (norm 4, rotation 3).
    Bytes: q and k read and written, weights, positions and their cosines and sines read.

    If the numbers of heads are not recorded, all of x counts, an estimate.
    (x, queries, keys, values, size, _, q_weight, k_weight, cache, _, positions, ...):
        _C::fused_qk_norm_rope
    (x, queries, keys, values, size, _, q_weight, k_weight, _, _, positions, ...):
        sgl_kernel::fused_qk_norm_rope
    (x, queries, keys, values, size, _, _, q_weight, k_weight, _, _, positions, ...):
        trtllm::fused_qk_norm_rope
    (x, queries, keys, values, size, _, q_weight, k_weight, _, _, positions, ...):
        trtllm::fused_qk_norm_rope
""")
def fused_qk_norm_rope(
    x: Tensor,
    queries: Int,
    keys: Int,
    values: Int,
    size: Int,
    q_weight: Tensor,
    k_weight: Tensor,
    positions: Tensor,
    cache: Tensor | None = None,
) -> Answer:
    known = [each for each in (queries, keys, values) if not isinstance(each, Unknown)]
    width = x.shape[-1] if x.shape else 0
    turned = width
    if len(known) == 3:
        heads = sum(known)
        if not heads or width % heads:
            raise CannotModel(f"{x.shape} does not contain {heads} heads")
        turned = width // heads * (known[0] + known[1])
    part = Tensor((*x.shape[:-1], turned), x.dtype)
    tokens = elements(positions.shape)
    angles = None if cache is None else Tensor((tokens, cache.shape[-1]), cache.dtype)
    moves = moved(part, part, q_weight, k_weight, positions, angles)
    cost = Cost(elements(part.shape) * (_ROOT + 1 + 3), moves, len(known) == 3)
    return cost, texts(x, q_weight, k_weight)


@operators("""
    x[.., d] normalised by row: (x - mean) / sqrt(var + eps) * weight[d] + bias[d].
    FLOPs: 8 per element (mean 1, variance 3, normalising 2, weight 1, bias 1).
    Bytes: x, weight and bias read, y written.
    (x, weight, bias): flashinfer::layernorm aiter::layernorm2d_fwd
""")
def served_layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Answer:
    _row(x, weight)
    flops = elements(x.shape) * (7 + (bias is not None))
    return Cost(flops, moved(x, weight, bias, fresh(x))), texts(x, weight, bias)


@operators("""
    x[n, c, ..] normalised for each n and group of channels, * weight[c] + bias[c].
    FLOPs: 8 per element, as torch's group_norm.
    Bytes: x read twice, y written, weight and bias read, two statistics of each group written.
    (x, num_groups, weight, bias, _): aiter::_groupnorm_run
    (_out, _workspace, x, num_groups, weight, bias, _): aiter::_groupnorm_run
""")
def served_group_norm(x: Tensor, num_groups: Int, weight: Tensor, bias: Tensor) -> Answer:
    return plain.group_norm(x, num_groups, weight, bias, direction="fprop")


def _quantised(
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    residual: Tensor | None,
    more: tuple[Tensor | None, ...],
    flops: int,
) -> Answer:
    _row(x, weight)
    if residual is not None:
        _same(x, residual)
    of_residual = None if residual is None else fresh(residual)
    each = _ROOT + 1 + (residual is not None) + flops
    cost = Cost(elements(x.shape) * each, moved(x, residual, weight, *more, of_residual, out))
    return cost, texts(x, weight)


def _row(x: Tensor, weight: Tensor | None) -> None:
    if not x.shape or (weight is not None and weight.shape != x.shape[-1:]):
        result = None if weight is None else weight.shape
        raise CannotModel(f"a weight {result} does not fit {x.shape}")


def _same(x: Tensor, other: Tensor) -> None:
    if elements(x.shape) != elements(other.shape):
        raise CannotModel(f"a residual {other.shape} does not fit {x.shape}")


_ROTATION: Final = 3  # of a pair: four products, two sums


@operators("""
    Queries and keys [tokens, heads d] rotated in place by the angles of their positions.
    FLOPs: 3 per rotated element: the first r of each head of d, with a cache of cosines and sines
    [positions, r].
    Bytes: rotated elements read and written, positions and a row of the cache for each token read.

    If d is not recorded, complete heads count, an estimate.
    (positions, query, key, size, cache, _, ...): _C|sgl_kernel::rotary_embedding
        vllm::flashinfer_rotary_embedding
        trtllm::flashinfer_apply_rope_with_cos_sin_cache_inplace
        vllm::rocm_aiter_triton_rotary_embedding
    (positions, query, key, size, cache, _, _, offsets): _C::batched_rotary_embedding
""")
def rotary_embedding(
    positions: Tensor,
    query: Tensor,
    key: Tensor | None = None,
    size: Size = None,
    cache: Tensor | None = None,
    offsets: Tensor | None = None,
) -> Answer:
    tokens = query.shape[0] if query.shape else 0
    depth = size if isinstance(size, int) and size > 0 else None
    turned = cache.shape[-1] if cache is not None and cache.shape else None
    if depth is not None and turned is not None and turned > depth:
        raise CannotModel(f"a cache {turned} wide does not fit heads of {depth}")
    exact = depth is not None and turned is not None
    pieces = [_turned(tensor, depth, turned) for tensor in present(query, key)]
    angles = None if cache is None else Tensor((tokens, cache.shape[-1]), cache.dtype)
    flops = _ROTATION * sum(elements(tensor.shape) for tensor in pieces)
    moves = moved(*pieces, *pieces, positions, offsets, angles)
    return Cost(flops, moves, exact), texts(query, key)


@operators("""
    Queries and keys [tokens, heads, d] rotated by the angles of their positions, into new
    tensors.
    FLOPs: 3 per rotated element, the first r of each head; computing angles is not counted.
    Bytes: queries and keys read and written, positions and a row of the cache for each token read;
    with slots of a key-value cache, values read and keys and values written there.
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
    turned: Size = None,
    values: Tensor | None = None,
    key_cache: Tensor | None = None,
    value_cache: Tensor | None = None,
    slots: Tensor | None = None,
) -> Answer:
    tokens, depth = (query.shape[0], query.shape[-1]) if query.shape else (0, 0)
    width = cache.shape[-1] if cache is not None and cache.shape else turned
    share = depth if not isinstance(width, int) else min(width, depth)
    count = elements(query.shape) + elements(key.shape)
    angles = None if cache is None else Tensor((tokens, share), cache.dtype)
    stored = [] if value_cache is None or values is None else [key, values, values]
    flops = _ROTATION * (count // depth * share if depth else 0)
    moves = moved(query, key, query_out, key_out, positions, offsets, angles, slots, *stored)
    return Cost(flops, moves, isinstance(width, int)), texts(query, key)


@operators("""
    x [s, b, h, d], and a second tensor, rotated by angles or their cosines and sines.
    FLOPs: 3 per element.
    Bytes: x and the second read, both results written, a row of angles for each position read.

    Partially rotated heads count completely.
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
) -> Answer:
    positions = elements(x.shape[:-2])
    rows = [
        Tensor((min(positions, elements(tensor.shape[:-1])), tensor.shape[-1]), tensor.dtype)
        for tensor in present(angles, more_angles)
        if tensor.shape
    ]
    both = present(x, more)
    flops = _ROTATION * sum(elements(tensor.shape) for tensor in both)
    return Cost(flops, moved(*both, *map(fresh, both), *rows)), texts(*both)


def _turned(x: Tensor, depth: int | None, turned: int | None) -> Tensor:
    # The rotated part of x [tokens, heads d] or [tokens, heads, d].
    count = elements(x.shape)
    if depth is None or turned is None:
        return Tensor((count,), x.dtype)
    if count % depth:
        raise CannotModel(f"{x.shape} does not contain heads of {depth}")
    return Tensor((count // depth, turned), x.dtype)
