"""Attention of FlashAttention 3: one operator for batches, sequences and caches.

Source: hopper/flash_attn_interface.py and hopper/flash_api.cpp in Dao-AILab/flash-attention.
"""

from __future__ import annotations

from typing import Any

from fastprof.model.call import Tensor
from fastprof.ops.attention.packages import lengths, varlen_sizes
from fastprof.ops.attention.sizes import Attention, backward, forward
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements


@operators("""
    (query, key, value, new_key, new_value, second_query, other, starts, key_starts, other,
        other, used, longest_query, longest_key, pages, ...): flash_attn_3::fwd
        flash_attn_3::_flash_attn_forward
""")
def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    new_key: Tensor | None = None,
    new_value: Tensor | None = None,
    second_query: Tensor | None = None,
    starts: Tensor | None = None,
    key_starts: Tensor | None = None,
    used: Tensor | None = None,
    longest_query: Any = None,
    longest_key: Any = None,
    pages: Tensor | None = None,
    other: Any = None,
    *,
    direction: str,
) -> Work:
    """softmax(q k^T) v: q [b, s, h, d] or [s, h, d], k [b, t, h/g, d], [t, h/g, d] or in pages.

    FLOPs: forward 2 p h (d + w), backward 2 p h (3 d + 2 w), p being the sum over the sequences of
        queries times keys; with a second query of the values' size 2 p h w more.
    Bytes: forward q, k and v read, output and 4 bytes per query (softmax sums) written; backward
        all of these and the output's gradient read, gradients of q, k, v written.

    If the lengths are values of tensors (starts, lengths in use, pages), p is an upper bound or
    assumes equally long sequences, and the cost is an estimate.
    """
    del other, new_value
    longest = lengths(longest_query, longest_key)
    if pages is not None:
        found = _paged(query, key, value, longest, pages)
    elif starts is not None and key_starts is None and len(key.shape) == 4:
        found = _against_batch(query, key, value)
    else:
        found = varlen_sizes(query, key, value, None, starts, longest)
        if used is not None or new_key is not None:
            found = found._replace(exact=False)
    if second_query is not None:
        found = found._replace(depth=found.depth + found.width)
    return Work((forward(found) if direction == "fprop" else backward(found),))


def _paged(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    longest: tuple[int | None, int | None],
    pages: Tensor,
) -> Attention:
    # Keys [pages, size, h/g, d]; assume that each sequence uses all its pages.
    _alike(key, value)
    if len(key.shape) != 4 or len(pages.shape) != 2 or len(query.shape) not in (3, 4):
        raise CannotModel(
            f"cannot compute attention of {query.shape} over pages {key.shape} {pages.shape}"
        )
    sequences, places = pages.shape
    most = places * key.shape[1]
    keys = most if longest[1] is None else min(longest[1], most)
    rows = elements(query.shape[:-1])
    heads = key.shape[2]
    read = Tensor((sequences, keys, heads, key.shape[3]), key.dtype)
    values = Tensor((sequences, keys, heads, value.shape[3]), value.dtype)
    return Attention(
        query, read, values, None, rows, rows * keys, query.shape[-1], value.shape[3], exact=False
    )


def _against_batch(query: Tensor, key: Tensor, value: Tensor) -> Attention:
    # Queries [s, h, d] of concatenated sequences, keys [b, t, h/g, d] of a batch.
    _alike(key, value)
    if len(query.shape) != 3:
        raise CannotModel(f"cannot compute attention of {query.shape} over {key.shape}")
    rows = elements(query.shape[:-1])
    return Attention(
        query,
        key,
        value,
        None,
        rows,
        rows * key.shape[1],
        query.shape[-1],
        value.shape[-1],
        exact=False,
    )


def _alike(key: Tensor, value: Tensor) -> None:
    if key.shape[:-1] != value.shape[:-1]:
        raise CannotModel(f"keys {key.shape} and values {value.shape} do not fit")


@operators("""
    (gradient, query, key, value, other, other, other, other, other, starts, other, other,
        other, longest_query, longest_key, ...): flash_attn_3::bwd
    (gradient, query, key, value, other, other, starts, other, other, other, longest_query,
        longest_key, ...): flash_attn_3::_flash_attn_backward
""")
def attention_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    starts: Tensor | None = None,
    longest_query: Any = None,
    longest_key: Any = None,
    other: Any = None,
) -> Work:
    """Gradients of attention: q [b, s, h, d] or [s, h, d], k [b, t, h/g, d] or [t, h/g, d].

    FLOPs: 2 p h (3 d + 2 w): the scores computed again, and four products for the gradients.
    Bytes: q, k, v, output, its gradient and 4 bytes per query read, gradients of q, k, v written.

    With the sequences' starts: see `sequences`.
    """
    del other
    longest = lengths(longest_query, longest_key)
    found = varlen_sizes(query, key, value, None, starts, longest)
    if elements(gradient.shape) != found.rows * found.width:
        raise CannotModel(f"a gradient of {gradient.shape} does not fit {query.shape}")
    return Work((backward(found),))
