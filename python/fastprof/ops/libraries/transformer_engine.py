"""Attention of Transformer Engine: cuDNN's kernels behind autograd functions.

A function's layout ("bshd", "sbhd", "thd") is a string, which no capture records; it follows from
shapes and the number of sequences. Source: transformer_engine/pytorch/attention.py, later
.../attention/dot_product_attention/backends.py in NVIDIA/TransformerEngine.
"""

from __future__ import annotations

from typing import Any

from fastprof.model.call import Tensor
from fastprof.ops.attention.formulas import lengths, unpacked
from fastprof.ops.attention.sizes import attention_work, heads_last, packed_sizes
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.dtypes import is_integer
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import texts


@operators("""
    softmax(q k^T + bias) v: q [b, s, h, d], [s, b, h, d] or [total, h, d], k and v alike.
    FLOPs: forward 2 b h s t (d + w), two products; backward 2 b h s t (3 d + 2 w), five.
    Bytes: forward q, k, v and bias read, output and 4 bytes per query (softmax sums) written;
        backward all of these and the output's gradient read, gradients of q, k, v written.

    The number of sequence starts, or the maximum length, determines which of the first dimensions
    is the batch. Queries, keys and values may be packed in one tensor. For [total, h, d] see
    `sequences`.
    (_, longest_query, longest_key, tensors**): aten::FusedAttnFunc
    (tensors**): aten::FusedAttnFunc
    (_, longest_query, longest_key, tensors**): aten::FusedAttnFunc_kvpacked
    (tensors**): aten::FusedAttnFunc_kvpacked
    (_, longest_query, tensors**): aten::FusedAttnFunc_qkvpacked
    (tensors**): aten::FusedAttnFunc_qkvpacked
""")
def fused_attn_func(
    tensors: Tensors, longest_query: Any = None, longest_key: Any = None, *, direction: str
) -> Work:
    starts = next((tensor for tensor in tensors if _are_starts(tensor)), None)
    query, key, value, *rest = _operands([tensor for tensor in tensors if len(tensor.shape) >= 3])
    mask = next((tensor for tensor in rest if len(tensor.shape) == 4), None)
    longest = lengths(longest_query, longest_query if longest_key is None else longest_key)
    if len(query.shape) == 3:
        attention = packed_sizes(query, key, value, mask, starts, longest)
    else:
        first = [_batch_first(tensor, starts, longest) for tensor in (query, key, value)]
        attention = heads_last(first[0], first[1], first[2], mask)
        attention = attention._replace(query=query, key=key, value=value)
    return attention_work(attention, direction)


def _are_starts(tensor: Tensor) -> bool:
    return len(tensor.shape) == 1 and (tensor.dtype is None or is_integer(tensor.dtype))


def _operands(large: list[Tensor]) -> list[Tensor]:
    # Separate queries, keys and values, and the remaining tensors.
    if not large:
        raise CannotModel("queries, keys and values are not in the capture")
    first = large[0]
    if len(large) > 1 and len(large[1].shape) == len(first.shape) + 1:
        axis = next((axis for axis in (-3, -2) if large[1].shape[axis] == 2), 0)
        if axis:
            return [first, *_split(large[1], axis, 2), *large[2:]]
    for axis in (-3, -2):  # [.., 3, h, d] and [.., h, 3, d]
        alike = len(large) >= 3 and len({len(tensor.shape) for tensor in large[:3]}) == 1
        if len(first.shape) >= 4 and first.shape[axis] == 3 and not alike:
            return [*_split(first, axis, 3), *large[1:]]
    if len(large) < 3:
        raise CannotModel(f"cannot compute attention of {texts(*large)}")
    return large


def _split(tensor: Tensor, axis: int, count: int) -> list[Tensor]:
    shape = list(tensor.shape)
    packed_here = shape.pop(axis)
    shape.insert(len(shape) - 2, packed_here)
    return unpacked(Tensor(tuple(shape), tensor.dtype), count)


def _batch_first(
    tensor: Tensor, starts: Tensor | None, longest: tuple[int | None, int | None]
) -> Tensor:
    if len(tensor.shape) != 4:
        raise CannotModel(f"shape {tensor.shape} is not 4-d")
    first, second, heads, size = tensor.shape
    swapped = False
    if starts is not None and first != second:
        sequences = starts.shape[0] - 1
        swapped = second == sequences and first != sequences
    elif starts is None and first != second:
        swapped = first in longest and second not in longest
    shape = (second, first, heads, size) if swapped else tensor.shape
    return Tensor(shape, tensor.dtype)


table_row("""
    Queries, keys and values [s, b, h, d] transposed to batch first, in one pass.
    FLOPs: 0.
    Bytes: the tensors read, the same amount written.
    (tensors**): aten::_PrepareQKVForFA
""")("tensors*", Traffic(0, "tensors tensors"), both=True)
