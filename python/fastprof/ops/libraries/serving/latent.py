"""Multi-head latent attention (MLA) over a cache of latent vectors shared by all heads."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.libraries.serving.scores import (
    Batch,
    Length,
    attended,
    heads_of,
    longest,
    over_cache,
    size_of_head,
)
from fastprof.ops.registry import operators


@operators("""
    (out, _sums, query, rotated, cache, lengths, table, ..., @batch):
        _C::sm100_cutlass_mla_decode
    (out, query, rotated, cache, lengths, table, ..., @batch): _C::cutlass_mla_decode
        sgl_kernel::cutlass_mla_decode
""")
def sm100_cutlass_mla_decode(
    query: Tensor,
    cache: Tensor,
    rotated: Tensor,
    out: Tensor | None = None,
    lengths: Tensor | None = None,
    table: Tensor | None = None,
    batch: Batch = None,
    _sums: Tensor | None = None,
) -> Work:
    """Attention of q in two parts, [tokens, h, w] and [tokens, h, r], over latent vectors of w + r.

    FLOPs: 2 h (2 w + r) for each query and attended vector, two products.
    Bytes: q read, the vectors of all sequences read once, the output written.

    Exact if the batch's range records the lengths; else unknown. Signatures: vLLM
    csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc.
    """
    del table
    tokens, heads, width = heads_of(query, None)
    depth = width + size_of_head(rotated)
    if cache.shape[-1:] != (depth,):
        raise CannotModel(f"a cache {cache.shape} is not {depth} wide")
    whole = Tensor((tokens, heads, depth), query.dtype)
    sequences = lengths.shape[0] if lengths is not None and lengths.shape else None
    found = attended(tokens, batch, sequences, None)
    width = out.shape[-1] if out is not None and len(out.shape) > 2 else width
    return over_cache(
        whole, tokens * heads, found, (1, depth, cache.dtype), (0, width, cache.dtype)
    )


@operators("""
    (query, cache, _starts, _starts, _pages, _last, _split, _split, _split, _split, _, _, _, _,
        _partial, _partial, out, ..., @batch): aiter::mla_decode_stage1_asm_fwd
    (query, cache, _starts, _starts, _pages, _last, _, _, out, ..., @batch):
        aiter::mla_decode_stage1_asm_fwd aiter::mla_prefill_asm_fwd
    (query, cache, _starts, _starts, _pages, _last, _split, _split, _, _, _partial, _partial,
        out, @batch): aiter::hk_mla_decode_fwd
    (query, cache, out, ..., @batch): vllm::rocm_aiter_mla_decode_fwd
        vllm::rocm_aiter_mla_decode_fwd_lse
    (query, cache, width, lengths, table, ..., @batch): sgl_kernel::fwd_kvcache_mla
    (query, cache, _part, width, lengths, table, ..., @batch): _flashmla_C::fwd_kvcache_mla
    (query, cache, width, lengths, table, ..., @batch): _flashmla_C::fwd_kvcache_mla
        _flashmla_extension_C::fwd_kvcache_mla_fp8
""")
def mla_decode_stage1_asm_fwd(
    query: Tensor,
    cache: Tensor,
    out: Tensor | None = None,
    width: Length = None,
    lengths: Tensor | None = None,
    table: Tensor | None = None,
    batch: Batch = None,
    _starts: Tensor | None = None,
    _pages: Tensor | None = None,
    _last: Tensor | None = None,
    _split: Tensor | None = None,
    _partial: Tensor | None = None,
    _part: Tensor | None = None,
) -> Work:
    """Attention of q [tokens, h, w + r] over latent vectors of w + r, the first w of which are the
    values.

    FLOPs: 2 h (2 w + r) for each query and attended vector, two products.
    Bytes: q read, the vectors of all sequences read once, the output written.

    w is that of the output, or 512 of 576 (DeepSeek). Exact if the batch's range records the
    lengths; else an upper bound from the width of the block table; else unknown. Signatures: aiter
    aiter/ops/attention.py, vLLM vllm/_aiter_ops.py, SGLang sgl-kernel/csrc/flashmla_extension.cc.
    """
    tokens, heads, depth = heads_of(query, None)
    if cache.shape[-1:] != (depth,):
        raise CannotModel(f"a cache {cache.shape} is not {depth} wide")
    if out is not None and len(out.shape) > 2:
        values = out.shape[-1]
    else:
        values = width if isinstance(width, int) else depth * 8 // 9
    limit = None
    if table is not None and len(table.shape) == 2 and len(cache.shape) == 4:
        limit = table.shape[1] * cache.shape[1]
    sequences = lengths.shape[0] if lengths is not None and lengths.shape else None
    found = attended(tokens, batch, sequences, longest(limit))
    return over_cache(
        query, tokens * heads, found, (1, depth, cache.dtype), (0, values, cache.dtype)
    )
