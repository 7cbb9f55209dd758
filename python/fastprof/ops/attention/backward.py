"""The separate backward operators of attention."""

from __future__ import annotations

from typing import Any

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.attention.packages import Length, length, varlen_sizes
from fastprof.ops.attention.sizes import backward, check_gradient, heads_first, packed
from fastprof.ops.cost import Work
from fastprof.ops.registry import operators

Flags = tuple[bool, ...]


@operators("""
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
def attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    wanted: Flags | Unknown | None = None,
    other: Any = None,
) -> Work:
    """Gradients of attention: q [b, h, s, d], k [b, h/g, t, d], v [b, h/g, t, w].

    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read; the gradients of q, k, v
        written, and the mask's if requested.

    As in torch's FlopCounterMode. The mask's gradient is not counted if the capture does not record
    the request.
    """
    del other
    found = heads_first(query, key, value, mask)
    check_gradient(gradient, found)
    flags = wanted if isinstance(wanted, tuple) else ()
    return Work((backward(found, mask_gradient=mask is not None and flags[3:4] == (True,)),))


@operators("""
    (gradient, query, key, value, other, other, starts, other, longest_query, longest_key, ...):
        aten::_flash_attention_backward torch_attn::_varlen_attn_backward
    (gradient, query, key, value, mask, other, starts, other, longest_query, longest_key, other,
        other, other, other, _, mask_gradient, ...): aten::_efficient_attention_backward
    (gradient, query, key, value, ...): flash_attn::_flash_attn_backward
        flashattn::_flash_attn_backward
    (gradient, query, key, value, other, other, other, other, other, starts, other,
        longest_query, longest_key, ...): flash_attn::_flash_attn_varlen_backward
        flashattn::_flash_attn_varlen_backward xformers_flash::flash_bwd
    (_, gradient, query, key, value, other, other, starts, other, longest_query, longest_key,
        ...): xformers_flash::flash_bwd xformers_flash3::flash_bwd
""")
def flash_attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    starts: Tensor | None = None,
    longest_query: Length = None,
    longest_key: Length = None,
    mask_gradient: bool | Unknown | None = None,
    other: Any = None,
) -> Work:
    """Gradients of attention: q [b, s, h, d], k [b, t, h/g, d], v [b, t, h/g, w].

    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read; the gradients of q, k, v
        written, and the mask's if requested.

    With the sequences' starts, q is [total, h, d]: see `sequences`.
    """
    del other
    found = varlen_sizes(query, key, value, mask, starts, (longest_query, longest_key))
    check_gradient(gradient, found)
    return Work((backward(found, mask_gradient=mask is not None and mask_gradient is True),))


@operators("""
    (gradient, query, key, value, other, other, other, other, mask, starts, other,
        longest_query, longest_key, ...): aten::_cudnn_attention_backward
""")
def cudnn_attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    starts: Tensor | None = None,
    longest_query: Length = None,
    longest_key: Length = None,
    other: Any = None,
) -> Work:
    """Gradients of attention: q [b, h, s, d], k [b, h/g, t, d], v [b, h/g, t, w].

    FLOPs: 2 b h s t (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, mask, output, its gradient and 4 bytes per query read, gradients of q, k, v
        written.

    With the sequences' starts, q is [total, h, d]: see `sequences`.
    """
    del other
    if starts is None:
        found = heads_first(query, key, value, mask)
    else:
        longest = (length(longest_query), length(longest_key))
        found = packed(query, key, value, mask, starts, longest)
    check_gradient(gradient, found)
    return Work((backward(found),))
