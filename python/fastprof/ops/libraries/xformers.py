"""Attention of xformers and of DeepSpeed's Evoformer: heads last, or a batch of matrices.

Source: xformers/csrc/attention/attention.cpp, xformers/ops/fmha/__init__.py in
facebookresearch/xformers; deepspeed/ops/deepspeed4science/evoformer_attn.py in
deepspeedai/DeepSpeed.
"""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.attention.formulas import (
    Bounds,
    gradients,
    scaled_dot_product_attention,
    sequences,
    varlen_sizes,
)
from fastprof.ops.attention.sizes import (
    Operands,
    attention_forward,
    attention_work,
    heads_first,
    heads_last,
)
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements, fresh

table_row("""
    softmax(q k^T + mask) v of xformers: q [b, s, h, d], k [b, t, h, d], v [b, t, h, w].
    FLOPs: forward 2 b h s t (d + w), two products; backward 2 b h s t (3 d + 2 w), five.
    Bytes: forward q, k, v and mask read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    For concatenated sequences see `sequences`.
    (query, key, value, mask, starts, other, first, second, ...):
        xformers::efficient_attention_forward_cutlass xformers::efficient_attention_forward_ck
""")(sequences)


@operators("""
    Gradients of xformers' attention: q [b, s, h, d], k [b, t, h, d], v [b, t, h, w].
    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read, gradients of q, k, v
        written.
    (gradient, query, key, value, mask, other, starts, other, first, second, ...):
        xformers::efficient_attention_backward_cutlass xformers::efficient_attention_backward_ck
    (gradient, query, key, value, mask, starts, other, first, second, ...):
        xformers::efficient_attention_backward_cutlass xformers::efficient_attention_backward_ck
""")
def efficient_attention_backward_cutlass(
    gradient: Tensor, operands: Operands, bounds: Bounds
) -> Work:
    starts = bounds.starts
    if starts is not None and len(starts.shape) != 1:
        raise CannotModel(f"starts of sequences have shape {starts.shape}, not 1-d")
    return gradients(gradient, operands, varlen_sizes(operands, starts, bounds.longest))


table_row("""
    softmax(q k^T + mask) v for heads of few elements: q [n, s, d], k [n, t, d], v [n, t, w].
    FLOPs: forward 2 n s t (d + w), two products; backward 2 n s t (3 d + 2 w), five.
    Bytes: forward q, k, v and mask read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.
    (query, key, value, _, mask, ...): xformers::efficient_attention
        xformers::efficient_attention_forward_small_k
""")(scaled_dot_product_attention)


@operators("""
    Gradients of attention for heads of few elements: q [n, s, d], k [n, t, d], v [n, t, w].
    FLOPs: 2 n s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, output, its gradient and 4 bytes per query read, gradients of q, k, v written.
    (gradient, query, key, value, other, other, ...): xformers::efficient_attention_backward
        xformers::efficient_attention_backward_small_k
""")
def efficient_attention_backward(gradient: Tensor, operands: Operands) -> Work:
    return gradients(gradient, operands, heads_first(*operands))


@operators("""
    Attention of a few queries [b, s, h, d] over a cache of keys and values [b, t, h, d].
    FLOPs: 2 b h s t (d + w), two products: an upper bound, because the used part of the cache is a
        tensor value.
    Bytes: q, k and v read, the output written: an upper bound.
    (query, key, value, ...): xformers::efficient_attention_forward_decoder
        xformers::efficient_attention_forward_decoder_ck
        xformers::efficient_attention_forward_decoder_splitk_ck
""")
def efficient_attention_forward_decoder(operands: Operands) -> Work:
    return Work((attention_forward(heads_last(*operands)._replace(exact=False), sums=False),))


@operators("""
    softmax(q k^T + mask) v: q [b, s, h, d] or [b, s, g, h, d], k and v alike.
    FLOPs: forward 2 b h s t (d + w), two products; backward 2 b h s t (3 d + 2 w), five.
    Bytes: forward q, k, v and mask read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    A batch of one is counted as one sequence. It may be concatenated sequences, whose lengths are
    not recorded; the cost is then an upper bound and marked as an estimate.
    (tensors**): aten::_fMHA
""")
def f_mha(tensors: Tensors, *, direction: str) -> Work:
    operands = _operands(tensors)
    attention = heads_last(*operands)
    if operands.query.shape[0] == 1:
        attention = attention._replace(exact=False)
    return attention_work(attention, direction)


@operators("""
    softmax(q k^T + biases) v: q [.., s, h, d], k [.., t, h, d], v [.., t, h, d].
    FLOPs: forward 4 n h s t d, two products, n being the batch; backward 10 n h s t d, five.
    Bytes: forward q, k, v and a bias read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.
    (tensors**): aten::EvoformerFusedAttention
""")
def evoformer_fused_attention(tensors: Tensors, *, direction: str) -> Work:
    *operands, mask = _operands(tensors)
    flat = []
    for tensor in operands:
        if tensor is None or len(tensor.shape) < 4:
            raise CannotModel(f"shape {tensor and tensor.shape} is not [.., s, h, d]")
        flat.append(fresh(tensor, (elements(tensor.shape[:-3]), *tensor.shape[-3:])))
    return attention_work(heads_last(flat[0], flat[1], flat[2], mask), direction)


def _operands(tensors: Tensors) -> Operands:
    if len(tensors) < 3:
        raise CannotModel(f"{len(tensors)} tensors are not queries, keys and values")
    return Operands(*tensors[:4])
