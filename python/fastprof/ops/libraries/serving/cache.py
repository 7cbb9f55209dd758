"""Writes to and copies of key-value caches.

Signatures of the operators: vLLM csrc/torch_bindings.cpp,
vllm/model_executor/layers/attention/attention.py, mla_attention.py,
csrc/libtorch_stable/torch_bindings.cpp; aiter aiter/ops/cache.py; SGLang
python/sglang/jit_kernel/kvcache.py, sgl-kernel/csrc/common_extension.cc; FlashInfer
flashinfer/page.py.
"""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import canonical_type, item_size
from fastprof.ops.libraries.serving.products import SCALE
from fastprof.ops.parameters import Int, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, moved, tensor_bytes, texts


@operators("""
    Keys and values [tokens, ..] stored in the slots of their caches.
    FLOPs: 0; 3 per element if the cache has a smaller type (times scale 1, limits 2).
    Bytes: keys, values and slots read, the same number of elements written in the caches' types.

    If there are more rows than slots, only the slots count.
    (key, value, key_cache, value_cache, slots, ...): _C_cache_ops|aiter::reshape_and_cache
        _C_cache_ops|aiter::reshape_and_cache_flash sglang::store_cache
        sglang_profiler::memory_pool__set_kv_buffer_impl
    (key, value, key_cache, value_cache, _scales, _scales, slots, _):
        aiter::reshape_and_cache_with_pertoken_quant aiter::reshape_and_cache_with_block_quant
    (key, value, key_cache, value_cache, _scales, _scales, slots, ...):
        aiter::reshape_and_cache_with_block_quant_for_asm_pa
    (key_cache, value_cache, slots, key, value): sgl_kernel::store_kv_cache
    (key, value, slots, positions, key_cache, value_cache, ...):
        flashinfer::append_paged_kv_cache flashinfer::append_paged_mla_kv_cache
""")
def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slots: Tensor,
    *,
    read: Tensors,
) -> Answer:
    tokens = elements(slots.shape)
    rows = _rows(key, tokens), _rows(value, tokens)
    written = _as(rows[0], key_cache), _as(rows[1], value_cache)
    cost = Cost(_scaled(rows, written), moved(*rows, slots, *read, *written))
    return cost, texts(key, value)


table_row("""
    Keys and values [tokens, ..] stored in the caches of a layer, which the call refers to by
    name.
    FLOPs: 0.
    Bytes: keys and values read, and the same amount written.

    An estimate: the cache may have a smaller type.
    (key, value, ...): vllm::unified_kv_cache_update vllm::unified_mla_kv_cache_update
""")("key, value", Traffic(0, "key value key value", "key value", exact=False))


@operators("""
    Latent and rotated part of keys [tokens, ..] concatenated into the slots of one cache.
    FLOPs: 0; 3 per element if the cache has a smaller type (times scale 1, limits 2).
    Bytes: both parts and slots read, the same number of elements written in the cache's type.

    Scales in a cache of bytes are not counted.
    (latent, rotated, cache, slots, ...): _C_cache_ops|aiter::concat_and_cache_mla
    (latent, cache, slots, ...): _C_cache_ops|aiter::indexer_k_quant_and_cache
""")
def concat_and_cache_mla(
    latent: Tensor, cache: Tensor, slots: Tensor, rotated: Tensor | None = None
) -> Answer:
    tokens = elements(slots.shape)
    rows = tuple(_rows(tensor, tokens) for tensor in (latent, rotated) if tensor is not None)
    written = tuple(_as(row, cache) for row in rows)
    return Cost(_scaled(rows, written), moved(*rows, slots, *written)), texts(*rows)


@operators("""
    Queries and the rotated part of keys rotated in place; keys stored in the cache's slots.
    FLOPs: 3 per rotated element, and 3 per element stored in a smaller type.
    Bytes: queries and the rotated part read and written, latent part, slots, positions and their
    cosines and sines read, keys written to the cache in its type; with an output tensor for
    complete queries, their other part also read and all written there, and keys written only to the
    cache.
    (positions, query, rotated, latent, angles, _, slots, cache, ...):
        _C_cache_ops::concat_and_cache_mla_rope_fused
    (whole, query, latent, rotated, cache, out, slots, _scale, _scale, positions, angles,
        more_angles, ...): aiter::fused_qk_rope_concat_and_cache_mla
""")
def concat_and_cache_mla_rope_fused(
    positions: Tensor,
    query: Tensor,
    rotated: Tensor,
    latent: Tensor,
    angles: Tensor,
    slots: Tensor,
    cache: Tensor,
    whole: Tensor | None = None,
    out: Tensor | None = None,
    more_angles: Tensor | None = None,
) -> Answer:
    tokens = elements(slots.shape)
    rows = _rows(latent, tokens), _rows(rotated, tokens)
    written = _as(rows[0], cache), _as(rows[1], cache)
    turned = elements(query.shape) + elements(rotated.shape)
    steps = [
        Tensor((elements(positions.shape), tensor.shape[-1]), tensor.dtype)
        for tensor in (angles, more_angles)
        if tensor is not None and tensor.shape
    ]
    turned_to = (query, rotated) if out is None else (whole, out)
    read = (query, rotated, rows[0], slots, positions, *steps)
    touched = moved(*read, *turned_to, *written)
    return Cost(3 * turned + _scaled(rows, written), touched), texts(query, latent, rotated)


@operators("""
    Blocks of the caches [blocks, ..] of all layers copied by the mapping [n, 2].
    FLOPs: 0.
    Bytes: n blocks of each cache read and written, the mapping read.
    (keys*, values*, mapping): _C_cache_ops|aiter::copy_blocks
    (keys*, mapping): _C_cache_ops::copy_blocks_mla
""")
def copy_blocks(keys: Tensors, mapping: Tensor, values: Tensors = ()) -> Answer:
    pairs = mapping.shape[0] if mapping.shape else 0
    blocks = [_block(tensor) for tensor in (*keys, *values)]
    copied = moved(*blocks, *blocks)
    total = None if copied is None else pairs * copied
    return Cost(0, add_known(total, tensor_bytes(mapping))), texts(mapping)


@operators("""
    Blocks of one cache [blocks, ..] copied to another by the mapping [n, 2].
    FLOPs: 0.
    Bytes: n blocks read and written.
    (source, target, size, mapping): _C_cache_ops::swap_blocks
    (source, target, mapping): _C_cache_ops|aiter::swap_blocks
""")
def swap_blocks(source: Tensor, target: Tensor, mapping: Tensor, size: Size = None) -> Answer:
    pairs = mapping.shape[0] if mapping.shape else 0
    block = size if isinstance(size, int) else tensor_bytes(_block(source))
    return Cost(0, None if block is None else 2 * pairs * block), texts(source, target, mapping)


table_row("""
    A cache converted to another type.
    FLOPs: 3 per element (times scale 1, limits 2).
    Bytes: one cache read, the other written.
    (target, source, ...): _C_cache_ops::convert_fp8
""")("target, source", Traffic(SCALE, "source target", "source target"))


@operators("""
    Rows of a cache gathered into one tensor.
    FLOPs: 0; 1 per element if the cache has another type (times scale).
    Bytes: the output written, the same number of elements read in the cache's type.

    An upper bound: the output may have more rows than are gathered.
    (cache, out, _table, ...): _C_cache_ops::gather_and_maybe_dequant_cache
        _C_cache_ops::gather_cache _C_cache_ops::cp_gather_cache
        _C_cache_ops::cp_gather_and_upconvert_fp8_kv_cache
    (cache, out, scales, _table, ...): _C_cache_ops|aiter::cp_gather_indexer_k_quant_cache
""")
def gathered_rows(cache: Tensor, out: Tensor, scales: Tensor | None = None) -> Answer:
    read = _as(out, cache)
    converted = canonical_type(read.dtype) != canonical_type(out.dtype)
    flops = elements(out.shape) if converted else 0
    return Cost(flops, moved(read, out, scales, scales), exact=False), texts(cache, out)


table_row("""
    Both parts of queries concatenated in one tensor.
    FLOPs: 0.
    Bytes: both parts read, the tensor written.
    (x, more, out): _C_cache_ops::concat_mla_q
""")("x, more, out", Traffic(0, "x more out", "x more"))


@operators("""
    Rows of a cache copied by index to another cache, between GPU and host.
    FLOPs: 0.
    Bytes: rows of `item_size` bytes of each layer read and written, for keys and for values if both
    are given; the indices read. Unknown if the size is not recorded.
    (source, target, more_source, more_target, rows, more_rows, size, ...):
        sgl_kernel::transfer_kv_per_layer
    (source, target, more_source, more_target, rows, more_rows, _, size, ...):
        sgl_kernel::transfer_kv_per_layer_pf_lf sgl_kernel::transfer_kv_per_layer_ph_lf
    (source, target, more_source, more_target, rows, more_rows, size, layers, ...):
        sgl_kernel::transfer_kv_all_layer
    (source, target, more_source, more_target, rows, more_rows, size, _, layers, ...):
        sgl_kernel::transfer_kv_all_layer_lf_pf sgl_kernel::transfer_kv_all_layer_lf_ph
    (source, target, rows, more_rows, size, ...): sgl_kernel::transfer_kv_per_layer_mla
    (source, target, rows, more_rows, _, size, ...): sgl_kernel::transfer_kv_per_layer_mla_pf_lf
    (source, target, rows, more_rows, size, layers, ...): sgl_kernel::transfer_kv_all_layer_mla
    (source, target, rows, more_rows, size, _, layers, ...):
        sgl_kernel::transfer_kv_all_layer_mla_lf_pf
""")
def transfer_kv_per_layer(
    source: Tensor,
    target: Tensor,
    rows: Tensor,
    more_rows: Tensor,
    size: Int,
    layers: Int = 1,
    more_source: Tensor | None = None,
    more_target: Tensor | None = None,
) -> Answer:
    if isinstance(size, Unknown) or isinstance(layers, Unknown):
        raise CannotModel("the size of a row is not in the capture")
    count = elements(rows.shape)
    pairs = 1 if more_source is None else 2
    indices = moved(rows, more_rows)
    payload = 2 * count * size * layers * pairs
    return Cost(0, None if indices is None else payload + indices), texts(source, rows)


def _rows(x: Tensor, tokens: int) -> Tensor:
    # The first rows of x, one per slot.
    if not x.shape:
        raise CannotModel("no rows to store")
    if tokens >= x.shape[0] or elements(x.shape) == 0:
        return Tensor(x.shape, x.dtype)
    return Tensor((tokens, *x.shape[1:]), x.dtype)


def _as(x: Tensor, cache: Tensor) -> Tensor:
    return Tensor(x.shape, cache.dtype)


def _scaled(rows: tuple[Tensor, ...], written: tuple[Tensor, ...]) -> int:
    smaller = [
        elements(row.shape)
        for row, cell in zip(rows, written, strict=True)
        if (item_size(cell.dtype) or 0) < (item_size(row.dtype) or 0)
    ]
    return SCALE * sum(smaller)


def _block(cache: Tensor) -> Tensor:
    return Tensor(cache.shape[1:], cache.dtype)
