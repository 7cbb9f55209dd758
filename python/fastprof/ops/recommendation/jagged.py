"""Conversion between jagged tensors (samples of different length, concatenated) and padded ones.

A jagged tensor consists of values [n, d] and the start of each sample ("offsets", samples + 1
elements; a list of them if several dimensions are jagged). Source:
fbgemm_gpu/src/jagged_tensor_ops/jagged_tensor_ops_cpu.cpp in pytorch/FBGEMM.
"""

from __future__ import annotations

from math import prod
from typing import Any

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts


def offset_bytes(offsets: Any) -> int | None:
    """Bytes of one tensor of offsets or of a list of them."""
    listed = offsets if isinstance(offsets, tuple) else (offsets,)
    return moved(*(each for each in listed if isinstance(each, Tensor)))


def _samples(offsets: Any) -> int | None:
    first = offsets[0] if isinstance(offsets, tuple) and offsets else offsets
    if not isinstance(first, Tensor) or len(first.shape) != 1:
        return None
    return max(first.shape[0] - 1, 0)


@operators("""
    (values, offsets, longest, _): fbgemm::jagged_to_padded_dense
        fbgemm::jagged_to_padded_dense_forward fbgemm::jagged_1d_to_dense
        fb::jagged_to_padded_dense fb::jagged_to_padded_dense_forward fb::jagged_1d_to_dense
    (values, offsets, longest): fbgemm::jagged_2d_to_dense fb::jagged_2d_to_dense
""")
def padded(
    values: Tensor,
    offsets: Any,
    longest: Ints | Unknown | None = None,
    *,
    result: Tensor | Unknown = UNKNOWN,
    direction: str,
) -> tuple[Cost, str]:
    """Jagged values [n, d] as a dense tensor [samples, longest, d], padded.

    FLOPs: 0.
    Bytes: values and offsets read, the dense tensor written; backward the dense gradient at the
        values read, the gradient of the values written. Unknown if the capture does not record the
        length.
    """
    if direction == "bprop":
        return Cost(0, add_known(moved(values, values), offset_bytes(offsets))), texts(values)
    written = None
    samples = _samples(offsets)
    if isinstance(result, Tensor):
        written = moved(Tensor(result.shape, result.dtype or values.dtype))
    elif samples is not None and isinstance(longest, int | tuple):
        lengths = longest if isinstance(longest, tuple) else (longest,)
        count = samples * prod(lengths) * elements(values.shape[1:])
        written = byte_count(count, values.dtype)
    return Cost(0, add_known(moved(values), offset_bytes(offsets), written)), texts(values)


@operators("""
    (gradient, offsets, total): fbgemm::jagged_to_padded_dense_backward
        fb::jagged_to_padded_dense_backward
""")
def padded_gradient(
    gradient: Tensor, offsets: Any, total: int | Unknown | None = None
) -> tuple[Cost, str]:
    """Gradient of jagged values [total, d] from that of the dense tensor.

    FLOPs: 0.
    Bytes: offsets read, and one row per value read and written; at most those of the dense
        gradient, an estimate if the capture does not record the number.
    """
    return _taken(gradient, offsets, total)


@operators("""
    (dense, offsets, total): fbgemm::dense_to_jagged fbgemm::dense_to_jagged_forward
        fb::dense_to_jagged fb::dense_to_jagged_forward
""")
def unpadded(
    dense: Tensor, offsets: Any, total: int | Unknown | None = None, *, direction: str
) -> tuple[Cost, str]:
    """The rows of a dense tensor [samples, longest, d] within each sample's length, concatenated.

    FLOPs: 0.
    Bytes: offsets read, and one row per value read and written; at most those of the dense tensor,
        an estimate if the capture does not record the number. Backward the values' gradient read,
        the dense tensor's written.
    """
    cost, params = _taken(dense, offsets, total)
    if direction == "bprop":
        half = None if cost.bytes is None else (cost.bytes - (offset_bytes(offsets) or 0)) // 2
        moves = add_known(half, moved(dense), offset_bytes(offsets))
        return Cost(0, moves, cost.exact), params
    return cost, params


def _taken(dense: Tensor, offsets: Any, total: int | Unknown | None) -> tuple[Cost, str]:
    if len(dense.shape) < 2:
        raise CannotModel(f"shape {dense.shape} has no dimension that is padded")
    known = isinstance(total, int)
    levels = len(offsets) if isinstance(offsets, tuple) else 1
    width = elements(dense.shape[1 + levels :])
    count = total * width if isinstance(total, int) else elements(dense.shape)
    rows = byte_count(count, dense.dtype)
    return Cost(0, add_known(offset_bytes(offsets), rows, rows), known), texts(dense)


@operators("""
    (values, offsets, dense): fbgemm::jagged_dense_elementwise_add
        fbgemm::jagged_dense_elementwise_add_jagged_output fbgemm::jagged_dense_elementwise_mul
        fbgemm::jagged_dense_elementwise_mul_forward fb::jagged_dense_elementwise_add
        fb::jagged_dense_elementwise_add_jagged_output fb::jagged_dense_elementwise_mul
        fb::jagged_dense_elementwise_mul_forward
    (values, offsets, dense, second): fbgemm::jagged_dense_dense_elementwise_add_jagged_output
        fbgemm::jagged_dense_dense_elementwise_add_jagged_output_forward
        fb::jagged_dense_dense_elementwise_add_jagged_output
        fb::jagged_dense_dense_elementwise_add_jagged_output_forward
""")
def arithmetic(
    values: Tensor,
    offsets: Any,
    dense: Tensor,
    second: Tensor | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Jagged values [n, d] and one or two dense tensors added or multiplied, as jagged values.

    FLOPs: one for each value and dense tensor; backward the same.
    Bytes: values, offsets and the corresponding elements of each dense tensor read, the result
        written; backward the gradient and the same elements read, the gradients written.

    (The sum as a dense tensor, `jagged_dense_elementwise_add`, is counted the same.)
    """
    operands = 1 if second is None else 2
    count = elements(values.shape)
    of_dense = byte_count(count * operands, dense.dtype)
    if direction == "bprop":
        moves = add_known(moved(values, values, values), of_dense, offset_bytes(offsets))
    else:
        moves = add_known(moved(values, values), of_dense, offset_bytes(offsets))
    return Cost(count * operands, moves), texts(values, dense, second)
