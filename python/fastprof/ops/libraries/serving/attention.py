"""Attention of serving stacks over paged and latent caches (MLA), and concatenated sequences.

Signatures of the operators: vLLM csrc/torch_bindings.cpp, csrc/rocm/torch_bindings.cpp,
vllm/attention/layer.py, vllm/_aiter_ops.py; aiter aiter/ops/attention.py, aiter/ops/mha.py;
FlashInfer flashinfer/decode.py, flashinfer/prefill.py, flashinfer/cascade.py;
vllm-project/flash-attention csrc/flash_attn/flash_api_torch_lib.cpp,
hopper/flash_api_torch_lib.cpp; SGLang sgl-kernel/csrc/flash_extension.cc,
python/sglang/srt/layers/radix_attention.py, sgl-kernel/csrc/common_extension.cc,
sgl-kernel/csrc/flashmla_extension.cc; ROCm/ATOM atom/model_ops/base_attention.py.
"""

from __future__ import annotations

from dataclasses import replace

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.attention.sizes import (
    Attention,
    attention_forward,
    attention_work,
    heads_last,
    packed_sizes,
)
from fastprof.ops.cost import CannotModel, Cost, Work
from fastprof.ops.libraries.serving.lengths import lengths_of
from fastprof.ops.parameters import Flag, Size
from fastprof.ops.registry import generated, operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, moved

Batch = str | Unknown | None


class Attended(NamedTuple):
    """Queries times keys of one head, the keys read, and whether both are exact."""

    scores: int
    keys: int
    exact: bool


def longest(*limits: Size) -> int | None:
    """The minimum of the known limits."""
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    return min(known) if known else None


def attended(tokens: int, batch: Batch, sequences: int | None, limit: int | None) -> Attended:
    """The keys that a number of queries attend to.

    Raises CannotModel when the number of keys is unknown.

    Parameters
    ----------
    tokens : int
        Queries of all sequences.
    batch : str, Unknown or None
        Name of the batch's range, which contains the lengths.
    sequences : int or None
        Number of sequences.
    limit : int or None
        Number of keys of the longest sequence, or an upper bound; the result is then an estimate.
    """
    recorded = lengths_of(batch, tokens) if isinstance(batch, str) else None
    if recorded is not None and recorded.scores is not None and recorded.keys is not None:
        return Attended(recorded.scores, recorded.keys, recorded.exact)
    if limit is None:
        raise CannotModel("the lengths of the sequences are not in the capture")
    return Attended(tokens * limit, min(sequences or tokens, tokens) * limit, False)


def heads_of(x: Tensor, size: int | None) -> tuple[int, int, int]:
    """Tokens, heads and their size: of [.., heads, size], or of [tokens, heads * size].

    Raises CannotModel when the heads cannot be determined.
    """
    if len(x.shape) >= 3:
        return elements(x.shape[:-2]), x.shape[-2], x.shape[-1]
    if len(x.shape) == 2 and size and x.shape[1] % size == 0:
        return x.shape[0], x.shape[1] // size, size
    raise CannotModel(f"cannot determine the heads of {x.shape}")


def size_of_head(x: Tensor) -> int:
    """The last size of a tensor; raises CannotModel when it has no dimensions."""
    if not x.shape:
        raise CannotModel("no heads")
    return x.shape[-1]


def over_cache(query: Tensor, heads: int, read: Attended, key: Tensor, value: Tensor) -> Work:
    """The work of attention over cached keys and values.

    Parameters
    ----------
    query : Tensor
        Of `heads` heads.
    read : Attended
        The keys that the queries attend to.
    key, value : Tensor, [heads, size]
        Of one position. Values without heads are part of the keys and not read again.
    """
    depth, width = key.shape[-1], value.shape[-1]
    tokens = elements(query.shape[:-2]) if len(query.shape) > 2 else query.shape[0]
    if not tokens:
        raise CannotModel(f"0 rows do not fit {query.shape}")
    keys, values = (Tensor((read.keys, *one.shape), one.dtype) for one in (key, value))
    rows, scores = tokens * heads, read.scores * heads
    sizes = Attention(query, keys, values, None, rows, scores, depth, width, read.exact)
    return Work((attention_forward(sizes, sums=False),))


@operators("""
    softmax(q k^T) v: q [tokens, h, d]; keys and values in blocks of h/g heads of d.
    FLOPs: 4 h d for each query and attended key, two products.
    Bytes: q read, keys and values of all sequences read, each once, the output written.

    Exact if the batch's range records the lengths; else an upper bound from the maximum length;
    else unknown: reserved blocks do not determine it.
    (out, query, key, value, _, _, table, lengths, block, limit, ..., @batch):
        _C::paged_attention_v1
    (out, _sums, _sums, _sums, query, key, value, _, _, table, lengths, block, limit, ...,
        @batch): _C::paged_attention_v2
    (out, _sums, _sums, _sums, query, key, value, _, _, table, lengths, _starts, block, limit,
        ..., @batch): _rocm_C::paged_attention
    (out, _sums, _sums, _sums, query, key, value, _, _, table, lengths, block, limit, ...,
        @batch): _rocm_C::paged_attention aiter::paged_attention_rocm
    (out, _sums, query, key, value, _, table, _starts, lengths, limit, ..., @batch):
        aiter::paged_attention_v1
    (out, _sums, query, key, value, _, starts, _pages, _last, ..., @batch):
        aiter::paged_attention_ragged
    (out, _sums, query, key, value, starts, _pages, _last, ..., @batch):
        sglang_profiler::attention_paged_attention_ragged
    (query, key, value, table, lengths, _scales, _scales, limit, ..., @batch):
        aiter::pa_fwd_naive
    (query, key, value, table, lengths, ..., @batch): aiter::pa_fwd_asm aiter::_pa_fwd_asm
        aiter::pa_fwd
    (out, query, key, value, lengths, table, ..., @batch): aiter::pa_decode_gluon
    (query, key, value, starts, _starts, _pages, _, limit, ..., @batch):
        aiter::mha_batch_prefill
    (_sums, _plan, _, query, key, value, starts, _pages, _last, out, ..., @batch):
        flashinfer::batch_decode_run
    (_sums, _plan, _, query, key, value, _starts, starts, _pages, _last, out, ..., @batch):
        flashinfer::batch_prefill_paged_run
""")
def paged_attention_v1(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor | None = None,
    lengths: Tensor | None = None,
    starts: Tensor | None = None,
    table: Tensor | None = None,
    limit: Size = None,
    block: Size = None,
    batch: Batch = None,
) -> Work:
    tokens, heads, depth = heads_of(query, None)
    result = attended(tokens, batch, _sequences(lengths, starts), longest(limit))
    groups, width = _groups(key, heads, depth), _width(out, depth)
    keys, values = Tensor((groups, depth), key.dtype), Tensor((groups, width), value.dtype)
    return over_cache(query, heads, result, keys, values)


def _sequences(lengths: Tensor | None, starts: Tensor | None = None) -> int | None:
    of_starts = starts.shape[0] - 1 if starts is not None and starts.shape else None
    return lengths.shape[0] if lengths is not None and lengths.shape else of_starts


def _width(out: Tensor | None, otherwise: int) -> int:
    # Elements of a head of the output.
    return out.shape[-1] if out is not None and len(out.shape) > 2 else otherwise


def _of_table(table: Tensor | None, cache: Tensor) -> int | None:
    # Keys of a sequence that fills its row of the block table.
    if table is not None and len(table.shape) == 2 and len(cache.shape) == 4:
        return table.shape[1] * cache.shape[1]
    return None


@operators("""
    softmax(q k^T) v: q [tokens, h, d] of concatenated sequences, or [b, s, h, d].
    FLOPs: 2 h (d + w) for each query and attended key, two products.
    Bytes: q, keys and values read, the output written.

    Keys are paged [blocks, size, h/g, d] if there is a block table or lengths of cached keys, else
    concatenated [keys, h/g, d]. Paged: exact if the batch's range records the lengths, else an
    upper bound from the maximum length or the width of the table, else unknown. Concatenated: as
    `sequences` of flash-attn.
    (query, key, value, out, starts, key_starts, lengths, _part, table, _part, longest_query,
        limit, ..., @batch): _vllm_fa2_C::varlen_fwd
    (query, key, value, new_key, new_value, lengths, _part, _part, _part, _part, table, ...,
        @batch): _vllm_fa2_C::fwd_kvcache
    (query, key, value, new_key, new_value, _part, out, starts, key_starts, _new_starts, _used,
        lengths, longest_query, limit, table, ..., @batch): _vllm_fa3_C|sgl_kernel::fwd
    (query, key, value, starts, key_starts, longest_query, limit, ..., @batch):
        aiter::fmha_v3_varlen_fwd aiter::mha_varlen_fwd aiter::_flash_attn_varlen_forward
    (_part, _plan, _, query, key, value, starts, key_starts, out, ..., @batch):
        flashinfer::batch_prefill_ragged_run
""")
def varlen_fwd(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor | None = None,
    starts: Tensor | None = None,
    key_starts: Tensor | None = None,
    lengths: Tensor | None = None,
    table: Tensor | None = None,
    longest_query: Size = None,
    limit: Size = None,
    new_key: Tensor | None = None,
    new_value: Tensor | None = None,
    batch: Batch = None,
) -> Work:
    blocks = len(key.shape) >= 4 and (table is not None or lengths is not None)
    if not blocks and len(query.shape) == 4:
        return attention_work(heads_last(query, key, value), "fprop")
    if not blocks and len(key.shape) == 3:
        return _ragged(query, key, value, starts, (longest_query, limit), batch)
    tokens, heads, depth = heads_of(query, None)
    sequences, in_table = _sequences(lengths, starts), _of_table(table, key)
    if table is not None and in_table is not None:
        sequences = sequences or table.shape[0]
    result = attended(tokens, batch, sequences, longest(limit, in_table))
    stored = [tensor for tensor in (new_key, new_value) if tensor is not None]
    keys = Tensor((_groups(key, heads, depth), depth), key.dtype)
    width = size_of_head(value)
    values = Tensor((_groups(value, heads, width), width), value.dtype)
    (part,) = over_cache(query, heads, result, keys, values).parts
    stores = Cost(0, moved(*stored, *stored))
    return Work((replace(part, cost=part.cost + stores),))


@operators("""
    Attention of a layer over its cache: q [tokens, h, d], new keys [tokens, h/g, d].
    FLOPs: 2 h (d + w) for each query and attended key, two products.
    Bytes: q read, keys and values of all sequences read from the cache in the new keys' type, the
        output written.

    Exact if the batch's range records the sums of products, a lower bound if it records a prefill's
    totals, else unknown; the operators inside are then counted. Separate rotated parts of queries
    and keys increase their depth.
    (query, key, value, out, ..., @batch): vllm::unified_attention_with_output
    (query, key, value, ..., @batch): vllm::unified_attention
    (query, key, value, out, _, _, rotated, more, ..., @batch):
        sglang::unified_attention_with_output
    (query, _part, key, value, _part, _, latent, ..., @batch):
        aiter::unified_attention_with_output_base
""")
def unified_attention_with_output(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor | None = None,
    rotated: Tensor | None = None,
    more: Tensor | None = None,
    latent: Flag = False,
    batch: Batch = None,
) -> Work:
    if latent is not False:
        raise CannotModel("latent attention: counted by the operators inside")
    groups = key.shape[-2] if len(key.shape) >= 3 else None
    depth = key.shape[-1] if groups is not None else None
    tokens, heads, depth = heads_of(query, depth)
    if groups is None:
        if not key.shape or key.shape[-1] % depth:
            raise CannotModel(f"cannot determine the heads of {key.shape}")
        groups = key.shape[-1] // depth
    width = value.shape[-1] if len(value.shape) >= 3 else depth
    result = attended(tokens, batch, None, None)
    if rotated is not None and rotated.shape:
        depth += rotated.shape[-1]
        query = Tensor((tokens, heads, depth), query.dtype)
    keys, values = Tensor((groups, depth), key.dtype), Tensor((groups, width), value.dtype)
    return over_cache(query, heads, result, keys, values)


@operators("""
    softmax(q k^T) v: q [b, s, h, d], k [b, t, h/g, d], v [b, t, h/g, w], or one sequence.
    FLOPs: 2 b h s t (d + w), two products.
    Bytes: q, k and v read, output and 4 bytes per query (softmax sums) written.
    (query, key, value, ...): aiter::mha_fwd aiter::fmha_v3_fwd aiter::_flash_attn_forward
        aiter::wrapper_fmha_v3_fwd
    (query, key, value, _part, out, ...): flashinfer::single_prefill_run
""")
def mha_fwd(query: Tensor, key: Tensor, value: Tensor, out: Tensor | None = None) -> Work:
    if len(query.shape) == 3:
        query, key, value = (
            Tensor((1, *tensor.shape), tensor.dtype) for tensor in (query, key, value)
        )
    return attention_work(heads_last(query, key, value), "fprop")


table_row("""
    Merges attention over two parts of the keys, [tokens, h, d] each.
    FLOPs: 3 per element (both weighted, added); per-head operations are not counted.
    Bytes: both parts and their softmax sums read, the result and its sums written.
    (out, out_sums, x, sums, more, more_sums, ...): _C::merge_attn_states
    (x, sums, more, more_sums, out, out_sums): sgl_kernel::merge_state sgl_kernel::merge_state_v2
    (x, sums, more, more_sums): flashinfer::merge_state
    (x, sums, more, more_sums, _mask): flashinfer::merge_state_in_place
    (x, sums, _table, _table, _table, _, out, out_sums): aiter::mla_reduce_v1
""")(
    "x, sums, more?, more_sums?, out?, out_sums?, _mask?, _table?",
    Traffic(3, "x sums more more_sums out/x' out_sums/sums'"),
)


# FlashInfer compiles a module for each set of types and sizes and includes its name in the
# operators' names.
generated(r"flashinfer::\w*decode\w*_run", "flashinfer::batch_decode_run")
generated(r"flashinfer::batch_prefill\w*_paged_run", "flashinfer::batch_prefill_paged_run")
generated(r"flashinfer::batch_prefill\w*_ragged_run", "flashinfer::batch_prefill_ragged_run")
generated(r"flashinfer::single_prefill\w*_run", "flashinfer::single_prefill_run")


def _ragged(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor | None,
    limits: tuple[Size, Size],
    batch: Batch,
) -> Work:
    tokens, heads, depth = heads_of(query, None)
    try:
        result = attended(tokens, batch, None, None)
    except CannotModel:
        known = tuple(limit if isinstance(limit, int) else None for limit in limits)
        if None in known and starts is None:
            raise
        sizes = packed_sizes(query, key, value, None, starts, (known[0], known[1]))
        return attention_work(sizes, "fprop")
    keys = Tensor((key.shape[1], depth), key.dtype)
    values = Tensor((key.shape[1], size_of_head(value)), value.dtype)
    return over_cache(query, heads, result, keys, values)


def _groups(key: Tensor, heads: int, depth: int) -> int:
    # Heads of a cache [blocks, size, heads, d], [blocks, heads, size, d], [blocks, heads, d / x,
    # size, x], [blocks, heads, d, size] or without blocks [slots, heads, d]: a size between blocks
    # and d that divides the queries' heads. The second layout is the most common.
    shape = key.shape
    if len(shape) in (3, 5):
        candidates: tuple[int, ...] = (shape[1],)
    elif len(shape) == 4 and shape[-1] == depth:
        candidates = (shape[2], shape[1])
    elif len(shape) == 4:
        candidates = (shape[1], shape[2])
    else:
        raise CannotModel(f"a cache {key.shape} is not in blocks")
    for candidate in candidates:
        if candidate and heads % candidate == 0:
            return candidate
    raise CannotModel(f"{heads} heads do not share those of a cache {key.shape}")


@operators("""
    Attention of q in two parts, [tokens, h, w] and [tokens, h, r], over latent vectors of w + r.
    FLOPs: 2 h (2 w + r) for each query and attended vector, two products.
    Bytes: q read, the vectors of all sequences read once, the output written.

    Exact if the batch's range records the lengths; else unknown.
    (out, _sums, query, rotated, cache, lengths, table, ..., @batch):
        _C::sm100_cutlass_mla_decode
    (out, query, rotated, cache, lengths, table, ..., @batch): _C|sgl_kernel::cutlass_mla_decode
""")
def sm100_cutlass_mla_decode(
    query: Tensor,
    cache: Tensor,
    rotated: Tensor,
    out: Tensor | None = None,
    lengths: Tensor | None = None,
    table: Tensor | None = None,
    batch: Batch = None,
) -> Work:
    tokens, heads, width = heads_of(query, None)
    depth = width + size_of_head(rotated)
    if cache.shape[-1:] != (depth,):
        raise CannotModel(f"a cache {cache.shape} is not {depth} wide")
    whole = Tensor((tokens, heads, depth), query.dtype)
    result = attended(tokens, batch, _sequences(lengths), None)
    values = Tensor((0, _width(out, width)), cache.dtype)
    return over_cache(whole, heads, result, Tensor((1, depth), cache.dtype), values)


@operators("""
    Attention of q [tokens, h, w + r] over latent vectors of w + r, the first w of which are the
    values.
    FLOPs: 2 h (2 w + r) for each query and attended vector, two products.
    Bytes: q read, the vectors of all sequences read once, the output written.

    w is that of the output, or 512 of 576 (DeepSeek). Exact if the batch's range records the
    lengths; else an upper bound from the width of the block table; else unknown.
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
    width: Size = None,
    lengths: Tensor | None = None,
    table: Tensor | None = None,
    batch: Batch = None,
) -> Work:
    tokens, heads, depth = heads_of(query, None)
    if cache.shape[-1:] != (depth,):
        raise CannotModel(f"a cache {cache.shape} is not {depth} wide")
    values = _width(out, width if isinstance(width, int) else depth * 8 // 9)
    result = attended(tokens, batch, _sequences(lengths), longest(_of_table(table, cache)))
    keys = Tensor((1, depth), cache.dtype)
    return over_cache(query, heads, result, keys, Tensor((0, values), cache.dtype))
