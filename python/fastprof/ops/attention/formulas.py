"""FLOPs and bytes of scaled dot-product attention: torch's operators and kernels, flash-attn.

Kernels and flash-attn have the heads last, or concatenated sequences. Source of flash-attn's
signatures: flash_attn/flash_attn_interface.py, hopper/flash_attn_interface.py and
hopper/flash_api.cpp in Dao-AILab/flash-attention. Its operators are named `flash_attn::` (in some
releases `flashattn::`). Its autograd functions appear under their bare names, with only tensor and
number arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.attention.sizes import (
    Attention,
    Operands,
    attention_backward,
    attention_forward,
    attention_work,
    check_gradient,
    heads_first,
    heads_last,
    packed_sizes,
)
from fastprof.ops.cost import Answer, CannotModel, Cost, Work, add_known
from fastprof.ops.parameters import Flag, Size
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, flat, fresh, moved, texts


def length(value: Size) -> int | None:
    """A length; None if not recorded."""
    return value if isinstance(value, int) else None


def lengths(*candidates: Any) -> tuple[int | None, int | None]:
    """The first two adjacent arguments that are both lengths, else (None, None).

    Releases differ in the arguments before the maximum lengths.
    """
    for first, second in pairwise(candidates):
        if type(first) is int and type(second) is int:
            return first, second
    return None, None


class SequenceLengths(NamedTuple):
    """Starts of concatenated sequences, if any, and the maximum numbers of queries and of keys."""

    starts: Tensor | None = None
    longest_query: Size = None
    longest_key: Size = None


def varlen_sizes(
    operands: Operands,
    starts: Tensor | None,
    longest: tuple[Size, Size],
    batch: Callable[..., Attention] = heads_last,
) -> Attention:
    """Sizes of concatenated sequences if `starts` is given, else of `batch`, [b, s, h, d]."""
    if starts is None:
        return batch(*operands)
    return packed_sizes(*operands, starts, (length(longest[0]), length(longest[1])))


@operators("""
    softmax(q k^T + mask) v: q [b, s, h, d], k [b, t, h/g, d], v [b, t, h/g, w].
    FLOPs: forward 2 b h s t (d + w), two products; backward 2 b h s t (3 d + 2 w), five.
    Bytes: forward q, k, v and mask read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    The heads are the third dimension, as in torch's kernels and flash-attn. (FlopCounterMode treats
    them as the second in torch's two kernels, which it counts only without their callers.) With the
    sequences' starts, q is [total, h, d]: see `sequences`.
    (q=query, k=key, v=value, ...): flash_attn.flash_attn_interface.flash_attn_func
    (query, key, value, cum_seq_q=starts, other, max_q=longest_query, max_k=longest_key, ...):
        aten::_flash_attention_forward
    (other, query, key, value, starts, other, longest_query, longest_key, ...):
        aten::_flash_attention_forward_no_dropout_inplace
    (query, key, value, bias=mask, starts, other, longest_query, longest_key, ...):
        aten::_efficient_attention_forward
    (query, key, value, ...): flash_attn|flashattn::_flash_attn_forward aten::FlashAttnFunc
""")
def flash_attn_func(
    operands: Operands, sequences: SequenceLengths, other: Tensor | None = None, *, direction: str
) -> Work:
    return attention_work(varlen_sizes(operands, sequences.starts, sequences[1:]), direction)


class Bounds(NamedTuple):
    """Starts of concatenated sequences, and where releases pass the maximum lengths."""

    starts: Tensor | None = None
    first: Any = None
    second: Any = None
    third: Any = None
    fourth: Any = None

    @property
    def longest(self) -> tuple[int | None, int | None]:
        """The maximum numbers of queries and of keys."""
        return lengths(*self[1:])


@operators("""
    Attention over concatenated sequences: q [s, h, d], k [t, h/g, d], v [t, h/g, w].
    FLOPs: forward 2 h p (d + w), backward 2 h p (3 d + 2 w), p being the sum over the sequences of
        queries times keys.
    Bytes: forward q, k and v read, output and 4 bytes per query (softmax sums) written; backward
        all of these and the output's gradient read, gradients of q, k, v written.

    The lengths are values of a tensor, which no capture records. If the maximum lengths are known,
    p is min(s * longest keys, t * longest queries): exact for equally long sequences, else an upper
    bound. If not, p is s t / n, which assumes equally long sequences, an estimate. Paged keys
    (block tables) are not modelled.
    (q=query, k=key, v=value, cu_seqlens_q=starts, cu_seqlens_k=other, max_seqlen_q=first,
        max_seqlen_k=second, ...): flash_attn.flash_attn_interface.flash_attn_varlen_func
    (query, key, value, starts, other, first, second, third, fourth, ...):
        flash_attn|flashattn::_flash_attn_varlen_forward aten::FlashAttnVarlenFunc
        torch_attn::_varlen_attn xformers_flash|xformers_flash3::flash_fwd
    (other, query, key, value, starts, other, first, second, ...): torch_attn::_varlen_attn_out
""")
def sequences(operands: Operands, bounds: Bounds, *, direction: str) -> Work:
    return attention_work(varlen_sizes(operands, bounds.starts, bounds.longest), direction)


@operators("""
    softmax(q k^T + mask) v: q [b, h, s, d], k [b, h/g, t, d], v [b, h/g, t, w].
    FLOPs: forward 2 b h s t (d + w), two products; backward 2 b h s t (3 d + 2 w), five.
    Bytes: forward q, k, v and mask read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    With the sequences' starts, q is [total, h, d]: see `sequences`.
    (query, key, value, attn_bias=mask, starts, other, longest_query, longest_key, ...):
        aten::_cudnn_attention_forward
""")
def cudnn_attention_forward(
    operands: Operands, sequences: SequenceLengths, other: Tensor | None = None, *, direction: str
) -> Work:
    sizes = varlen_sizes(operands, sequences.starts, sequences[1:], heads_first)
    return attention_work(sizes, direction)


@operators("""
    Attention of queries, keys and values in one tensor [b, s, 3, h, d].
    FLOPs: forward 4 b h s^2 d, two products; backward 10 b h s^2 d, five.
    Bytes: forward the tensor read, output and 4 bytes per query (softmax sums) written; backward
        these and the output's gradient read, the tensor's gradient written.
    (qkv, ...): flash_attn.flash_attn_interface.flash_attn_qkvpacked_func
        aten::FlashAttnQKVPackedFunc
""")
def flash_attn_qkvpacked_func(qkv: Tensor, *, direction: str) -> Work:
    query, key, value = unpacked(qkv, 3)
    return attention_work(heads_last(query, key, value), direction)


@operators("""
    Attention over concatenated sequences, q, k and v in one tensor [s, 3, h, d].
    FLOPs: forward 4 h p d, backward 10 h p d, p as for `sequences`.
    Bytes: forward the tensor read, output and 4 bytes per query (softmax sums) written; backward
        these and the output's gradient read, the tensor's gradient written.
    (qkv, cu_seqlens=starts, max_seqlen=longest, ...):
        flash_attn.flash_attn_interface.flash_attn_varlen_qkvpacked_func
    (qkv, starts, longest, ...): aten::FlashAttnVarlenQKVPackedFunc
""")
def flash_attn_varlen_qkvpacked_func(
    qkv: Tensor, starts: Tensor | None = None, longest: Any = None, *, direction: str
) -> Work:
    query, key, value = unpacked(qkv, 3)
    both = lengths(longest, longest)
    return attention_work(packed_sizes(query, key, value, None, starts, both), direction)


@operators("""
    Attention of q [b, s, h, d] over keys and values in one tensor [b, t, 2, h/g, d].
    FLOPs: forward 4 b h s t d, two products; backward 10 b h s t d, five.
    Bytes: forward both tensors read, output and 4 bytes per query (softmax sums) written; backward
        these and the output's gradient read, the gradients of both written.
    (q=query, kv, ...): flash_attn.flash_attn_interface.flash_attn_kvpacked_func
    (query, kv, ...): aten::FlashAttnKVPackedFunc
""")
def flash_attn_kvpacked_func(query: Tensor, kv: Tensor, *, direction: str) -> Work:
    key, value = unpacked(kv, 2)
    return attention_work(heads_last(query, key, value), direction)


@operators("""
    Attention over concatenated sequences: q [s, h, d], k and v in one [t, 2, h/g, d].
    FLOPs: forward 4 h p d, backward 10 h p d, p as for `sequences`.
    Bytes: forward both tensors read, output and 4 bytes per query (softmax sums) written; backward
        these and the output's gradient read, the gradients of both written.
    (q=query, kv, cu_seqlens_q=starts, cu_seqlens_k=other, max_seqlen_q=first,
        max_seqlen_k=second, ...):
        flash_attn.flash_attn_interface.flash_attn_varlen_kvpacked_func
    (query, kv, starts, other, first, second, ...): aten::FlashAttnVarlenKVPackedFunc
""")
def flash_attn_varlen_kvpacked_func(
    query: Tensor, kv: Tensor, bounds: Bounds, *, direction: str
) -> Work:
    key, value = unpacked(kv, 2)
    attention = packed_sizes(query, key, value, None, bounds.starts, bounds.longest)
    return attention_work(attention, direction)


def unpacked(tensor: Tensor, count: int) -> list[Tensor]:
    """The tensors [.., h, d] in one [.., count, h, d].

    Raises CannotModel when the shape is another.
    """
    shape = tensor.shape
    if len(shape) not in (4, 5) or shape[-3] != count:
        raise CannotModel(f"shape {shape} is not [.., {count}, h, d]")
    return [Tensor((*shape[:-3], *shape[-2:]), tensor.dtype)] * count


@operators("""
    softmax(q k^T) v: q [b, s, h, d] or [s, h, d], k [b, t, h/g, d], [t, h/g, d] or in pages.
    FLOPs: forward 2 p h (d + w), backward 2 p h (3 d + 2 w), p being the sum over the sequences of
        queries times keys; with a second query of the values' size 2 p h w more.
    Bytes: forward q, k and v read, output and 4 bytes per query (softmax sums) written; backward
        all of these and the output's gradient read, gradients of q, k, v written.

    If the lengths are values of tensors (starts, lengths in use, pages), p is an upper bound or
    assumes equally long sequences, and the cost is an estimate.
    (query, key, value, new_key, new_value, second_query, other, starts, key_starts, other,
        other, used, longest_query, longest_key, pages, ...): flash_attn_3::fwd
        flash_attn_3::_flash_attn_forward
""")
def fwd(
    operands: Operands,
    new_key: Tensor | None = None,
    new_value: Tensor | None = None,
    second_query: Tensor | None = None,
    starts: Tensor | None = None,
    key_starts: Tensor | None = None,
    used: Tensor | None = None,
    longest_query: Any = None,
    longest_key: Any = None,
    pages: Tensor | None = None,
    *,
    direction: str,
) -> Work:
    longest = lengths(longest_query, longest_key)
    if pages is not None:
        attention = _paged(operands, longest, pages)
    elif starts is not None and key_starts is None and len(operands.key.shape) == 4:
        attention = _against_batch(operands)
    else:
        attention = varlen_sizes(operands, starts, longest)
        if used is not None or new_key is not None:
            attention = attention._replace(exact=False)
    if second_query is not None:
        attention = attention._replace(depth=attention.depth + attention.width)
    return attention_work(attention, direction)


def _paged(operands: Operands, longest: tuple[int | None, int | None], pages: Tensor) -> Attention:
    # Keys [pages, size, h/g, d]; assume that each sequence uses all its pages.
    query, key, value, _ = operands
    _alike(key, value)
    if len(key.shape) != 4 or len(pages.shape) != 2 or len(query.shape) not in (3, 4):
        raise CannotModel(
            f"cannot compute attention of {query.shape} over pages {key.shape} {pages.shape}"
        )
    sequences, places = pages.shape
    most = places * key.shape[1]
    keys = most if longest[1] is None else min(longest[1], most)
    rows, depth, width = elements(query.shape[:-1]), query.shape[-1], value.shape[3]
    read = fresh(key, (sequences, keys, *key.shape[2:]))
    values = fresh(value, (sequences, keys, key.shape[2], width))
    return Attention(query, read, values, None, rows, rows * keys, depth, width, exact=False)


def _against_batch(operands: Operands) -> Attention:
    # Queries [s, h, d] of concatenated sequences, keys [b, t, h/g, d] of a batch.
    query, key, value, _ = operands
    _alike(key, value)
    if len(query.shape) != 3:
        raise CannotModel(f"cannot compute attention of {query.shape} over {key.shape}")
    rows, depth, width = elements(query.shape[:-1]), query.shape[-1], value.shape[-1]
    scores = rows * key.shape[1]
    return Attention(query, key, value, None, rows, scores, depth, width, exact=False)


def _alike(key: Tensor, value: Tensor) -> None:
    if key.shape[:-1] != value.shape[:-1]:
        raise CannotModel(f"keys {key.shape} and values {value.shape} do not fit")


@operators("""
    Gradients of attention: q [b, s, h, d] or [s, h, d], k [b, t, h/g, d] or [t, h/g, d].
    FLOPs: 2 p h (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, output, its gradient and 4 bytes per query read, gradients of q, k, v written.

    With the sequences' starts: see `sequences`.
    (gradient, query, key, value, other, other, other, other, other, starts, other, other,
        other, longest_query, longest_key, ...): flash_attn_3::bwd
    (gradient, query, key, value, other, other, starts, other, other, other, longest_query,
        longest_key, ...): flash_attn_3::_flash_attn_backward
""")
def bwd(
    gradient: Tensor,
    operands: Operands,
    starts: Tensor | None = None,
    longest_query: Any = None,
    longest_key: Any = None,
) -> Work:
    attention = varlen_sizes(operands, starts, lengths(longest_query, longest_key))
    return gradients(gradient, operands, attention)


@operators("""
    softmax(q k^T + mask) v: q [.., h, s, d], k [.., h/g, t, d], v [.., h/g, t, w].
    FLOPs: forward 2 h s t (d + w) for each sequence, two products; backward 2 h s t (3 d + 2 w),
        five: the scores are computed again.
    Bytes: forward q, k, v and mask read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    As in torch's FlopCounterMode, softmax, mask and dropout count no FLOPs, and a causal mask does
    not halve the cost. A head of k may serve a group of g heads of q. The call does not determine
    the kernels: on torch's unfused path, backward has four products, scores are written and read
    (not counted), and no softmax sums are saved.
    (query, key, value, attn_mask=mask, ...): scaled_dot_product_attention
    (query, key, value, ...): aten::_scaled_dot_product_flash_attention
    (query, key, value, _, _, attn_mask=mask, _):
        aten::_scaled_dot_product_flash_attention_for_cpu
    (query, key, value, attn_bias=mask, ...): aten::_scaled_dot_product_cudnn_attention
        aten::_scaled_dot_product_fused_attention_overrideable
    (q=query, k=key, v=value, ...): aten::_triton_scaled_dot_attention
""")
def scaled_dot_product_attention(operands: Operands, *, direction: str) -> Work:
    return attention_work(heads_first(*operands), direction)


@operators("""
    softmax(q k^T + mask) v: q [b, h, s, d], k [b, h, t, d], v [b, h, t, w].
    FLOPs: forward 2 b h s t (d + w), two products; backward 2 b h s t (3 d + 2 w), five.
    Bytes: forward q, k, v and mask read, output and (if requested) 4 bytes per query written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    As `scaled_dot_product_attention`. An argument selects whether the softmax sums are written; if
    it is not recorded, they are counted.
    (query, key, value, attn_bias=mask, compute_log_sumexp=sums, ...):
        aten::_scaled_dot_product_efficient_attention
""")
def scaled_dot_product_efficient_attention(
    operands: Operands, sums: Flag = True, *, direction: str
) -> Work:
    attention = heads_first(*operands)
    if direction == "fprop":
        return Work((attention_forward(attention, sums=sums is not False),))
    return Work((attention_backward(attention),))


@operators("""
    softmax(q k^T + mask) v and the softmax, [.., h, s, t], by single products.
    FLOPs: forward 2 h s t (d + w) for each sequence; backward 4 h s t (d + w), four products.
    Bytes: forward q, k, v and mask read, output and softmax written; backward the operands, the
        softmax and the output's gradient read, gradients of q, k, v written.

    As in torch's FlopCounterMode. Intermediates (scores, scaled and masked copies) are not counted.
    (query, key, value, attn_mask=mask, ...): aten::_scaled_dot_product_attention_math
        aten::_scaled_dot_product_attention_math_for_mps
""")
def scaled_dot_product_attention_math(operands: Operands, *, direction: str) -> Work:
    attention, back = heads_first(*operands), direction == "bprop"
    softmax = flat(attention.scores, operands.query.dtype)
    read = (*operands[:3], *operands[:3]) if back else operands
    flops = attention.product_flops(1 + back, 1 + back)
    touched = add_known(moved(*read, softmax), attention.output_bytes)
    return Work((attention.part(Cost(flops, touched)),))


@operators("""
    An entire attention layer for inference: q [b, s, e], k and v [b, t, e], weights [3e, e] and
    [e, e].
    FLOPs: 2 b e^2 (s + 2 t) for the projections of q, k and v, 4 b s t e for attention over all
        heads, 2 b s e^2 for the projection of its output.
    Bytes: query, weights, biases and mask read, output written; key and value also read if their
        shapes differ from the query's.

    torch uses this path only if query, key and value are the same tensor, so equal shapes count
    once. Optional averaged weights are not counted.
    (query, key, value, _, _, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, ...):
        aten::_native_multi_head_attention aten::_triton_multi_head_attention
""")
def native_multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
) -> Work:
    if not len(query.shape) == len(key.shape) == 3 or key.shape != value.shape:
        raise CannotModel(
            f"cannot compute attention of {query.shape}, {key.shape} and {value.shape}"
        )
    (batch, rows, size), (keys_batch, columns, _) = query.shape, key.shape
    if batch != keys_batch or key.shape[-1] != size or qkv_weight.shape != (3 * size, size):
        raise CannotModel(f"weight {qkv_weight.shape} does not fit {query.shape}")
    if proj_weight.shape != (size, size):
        raise CannotModel(f"weight {proj_weight.shape} does not fit {query.shape}")
    projections = 2 * batch * size * size * (2 * rows + 2 * columns)
    products = 4 * batch * rows * columns * size
    inputs = (query,) if key.shape == query.shape else (query, key, value)
    weights = (qkv_weight, qkv_bias, proj_weight, proj_bias)
    touched = moved(*inputs, *weights, mask, Tensor(query.shape, query.dtype))
    attention = Attention(query, key, value, mask, 0, None, size, size)
    part = attention.part(Cost(projections + products, touched))
    return Work((part,))


@operators("""
    q, k and v [b, h, s, d] from projections [b, s, 3hd] and bias [3hd]; q is scaled.
    FLOPs: 4 b s h d: a bias added to each of the three, and q multiplied.
    Bytes: projections and bias read, the size of the projections written.
    (projected, bias, _): aten::_transform_bias_rescale_qkv
""")
def transform_bias_rescale_qkv(projected: Tensor, bias: Tensor) -> Answer:
    if not projected.shape or bias.shape != projected.shape[-1:] or projected.shape[-1] % 3:
        raise CannotModel(f"bias {bias.shape} does not fit {projected.shape}")
    count = elements(projected.shape)
    moves = moved(projected, bias, fresh(projected))
    return Cost(count + count // 3, moves), texts(projected, bias)


Flags = tuple[bool, ...]


def gradients(
    gradient: Tensor, operands: Operands, sizes: Attention, of_mask: bool = False
) -> Work:
    """The work of a backward operator, with the gradient of the mask if there is one."""
    check_gradient(gradient, sizes)
    of_mask = of_mask and operands.mask is not None
    return Work((attention_backward(sizes, mask_gradient=of_mask),))


@operators("""
    Gradients of attention: q [b, h, s, d], k [b, h/g, t, d], v [b, h/g, t, w].
    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read; the gradients of q, k, v
        written, and the mask's if requested.

    As in torch's FlopCounterMode. The mask's gradient is not counted if the capture does not record
    the request.
    (gradient, query, key, value, ...): aten::_scaled_dot_product_flash_attention_backward
    (gradient, query, key, value, other, other, _, _, mask, _):
        aten::_scaled_dot_product_flash_attention_for_cpu_backward
    (gradient, query, key, value, mask, other, other, other, other, _, wanted, ...):
        aten::_scaled_dot_product_efficient_attention_backward
    (gradient, query, key, value, other, other, other, other, mask, ...):
        aten::_scaled_dot_product_cudnn_attention_backward
    (gradient, query, key, value, mask, wanted, ...):
        aten::_scaled_dot_product_fused_attention_overrideable_backward
""")
def scaled_dot_product_flash_attention_backward(
    gradient: Tensor, operands: Operands, wanted: Flags | Unknown | None = None
) -> Work:
    flags = wanted if isinstance(wanted, tuple) else ()
    return gradients(gradient, operands, heads_first(*operands), flags[3:4] == (True,))


@operators("""
    Gradients of attention: q [b, s, h, d], k [b, t, h/g, d], v [b, t, h/g, w].
    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read; the gradients of q, k, v
        written, and the mask's if requested.

    With the sequences' starts, q is [total, h, d]: see `sequences`.
    (gradient, query, key, value, other, other, starts, other, longest_query, longest_key, ...):
        aten::_flash_attention_backward torch_attn::_varlen_attn_backward
    (gradient, query, key, value, mask, other, starts, other, longest_query, longest_key, other,
        other, other, other, _, mask_gradient, ...): aten::_efficient_attention_backward
    (gradient, query, key, value, ...): flash_attn|flashattn::_flash_attn_backward
    (gradient, query, key, value, other, other, other, other, other, starts, other, longest_query,
        longest_key, ...): flash_attn|flashattn::_flash_attn_varlen_backward
        xformers_flash::flash_bwd
    (_, gradient, query, key, value, other, other, starts, other, longest_query, longest_key,
        ...): xformers_flash|xformers_flash3::flash_bwd
""")
def flash_attention_backward(
    gradient: Tensor,
    operands: Operands,
    sequences: SequenceLengths,
    mask_gradient: Flag | None = None,
) -> Work:
    sizes = varlen_sizes(operands, sequences.starts, sequences[1:])
    return gradients(gradient, operands, sizes, mask_gradient is True)


@operators("""
    Gradients of attention: q [b, h, s, d], k [b, h/g, t, d], v [b, h/g, t, w].
    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read, gradients of q, k, v
        written.

    With the sequences' starts, q is [total, h, d]: see `sequences`.
    (gradient, query, key, value, other, other, other, other, mask, starts, other,
        longest_query, longest_key, ...): aten::_cudnn_attention_backward
""")
def cudnn_attention_backward(
    gradient: Tensor, operands: Operands, sequences: SequenceLengths
) -> Work:
    sizes = varlen_sizes(operands, sequences.starts, sequences[1:], heads_first)
    return gradients(gradient, operands, sizes)
