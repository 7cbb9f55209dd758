"""FLOPs and bytes of scaled dot-product attention: torch's own operators."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.attention.flash import Sequences, varlen_sizes
from fastprof.ops.attention.sizes import (
    Attention,
    Operands,
    attention_backward,
    attention_forward,
    attention_work,
    check_gradient,
    heads_first,
)
from fastprof.ops.cost import Answer, CannotModel, Cost, Work, add_known
from fastprof.ops.parameters import Flag
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, flat, fresh, moved, texts


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


# The separate backward operators of attention.

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
        ...): xformers_flash::flash_bwd xformers_flash3::flash_bwd
""")
def flash_attention_backward(
    gradient: Tensor, operands: Operands, sequences: Sequences, mask_gradient: Flag | None = None
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
def cudnn_attention_backward(gradient: Tensor, operands: Operands, sequences: Sequences) -> Work:
    sizes = varlen_sizes(operands, sequences.starts, sequences[1:], heads_first)
    return gradients(gradient, operands, sizes)
