"""Jagged tensors of fbgemm: padding, products and softmax, sample by sample.

Source: fbgemm_gpu/src/jagged_tensor_ops/jagged_tensor_ops_cpu.cpp and
fbgemm_gpu/fbgemm_gpu/docs/jagged_tensor_ops.py in pytorch/FBGEMM.

A jagged tensor consists of values [n, d] and the start of each sample ("offsets", samples + 1
elements; a list of them if several dimensions are jagged). Source:
fbgemm_gpu/src/jagged_tensor_ops/jagged_tensor_ops_cpu.cpp in pytorch/FBGEMM.
"""

from __future__ import annotations

from math import prod
from typing import Any

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.arithmetic import EXPONENTIAL
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Ints
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts

# Conversion between jagged tensors (samples of different length, concatenated) and padded ones.


def offset_bytes(offsets: Any) -> int | None:
    """Bytes of one tensor of offsets or of a list of them."""
    listed = offsets if isinstance(offsets, tuple) else (offsets,)
    return moved(*(tensor for tensor in listed if isinstance(tensor, Tensor)))


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
def jagged_to_padded_dense(
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
def jagged_to_padded_dense_backward(
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
def dense_to_jagged(
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
def jagged_dense_elementwise_add(
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


@operators("""
    (vectors, values, offsets): fbgemm::batched_dense_vec_jagged_2d_mul
        fbgemm::batched_dense_vec_jagged_2d_mul_forward fb::batched_dense_vec_jagged_2d_mul
        fb::batched_dense_vec_jagged_2d_mul_forward
""")
def batched_dense_vec_jagged_2d_mul(
    vectors: Tensor, values: Tensor, offsets: Any, *, direction: str
) -> tuple[Cost, str]:
    """Row vectors [b h, longest] times jagged matrices, values [n, h d]: [b h, d].

    FLOPs: 2 n h d; backward 4 n h d, a product for each operand.
    Bytes: values, offsets and one element of the vectors for each value's row and head read, the
        result written; backward these and the result's gradient read, both gradients written.
    """
    if len(vectors.shape) != 2 or len(values.shape) != 2:
        raise CannotModel(f"cannot multiply {vectors.shape} and jagged {values.shape}")
    samples = _known_samples(offsets)
    heads = max(vectors.shape[0] // max(samples, 1), 1)
    weights = byte_count(values.shape[0] * heads, vectors.dtype)
    result = byte_count(samples * values.shape[1], values.dtype)
    once = add_known(moved(values), weights, result)
    moves = add_known(once, offset_bytes(offsets))
    flops = 2 * elements(values.shape)
    if direction == "bprop":
        gradients = add_known(moved(values), byte_count(elements(vectors.shape), vectors.dtype))
        return Cost(2 * flops, add_known(moves, gradients)), texts(vectors, values)
    return Cost(flops, moves), texts(vectors, values)


@operators("""
    (values, offsets, dense, _): fbgemm::jagged_dense_bmm fbgemm::jagged_dense_bmm_forward
        fb::jagged_dense_bmm fb::jagged_dense_bmm_forward
    (values, second, offsets, _): fbgemm::jagged_jagged_bmm fbgemm::jagged_jagged_bmm_forward
        fb::jagged_jagged_bmm fb::jagged_jagged_bmm_forward
""")
def products(
    values: Tensor,
    offsets: Any,
    dense: Tensor | None = None,
    second: Tensor | None = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Jagged [n, d] times dense [b, d, t] -> jagged [n, t]; or times jagged [n, t] -> [b, d, t].

    FLOPs: 2 n d t; backward 4 n d t, a product for each operand.
    Bytes: operands and offsets read, the result written; backward these and the result's gradient
        read, both gradients written.
    """
    rows, depth = _two(values)
    if dense is not None and len(dense.shape) == 3 and dense.shape[1] == depth:
        width = dense.shape[2]
        result = byte_count(rows * width, values.dtype)
    elif second is not None and _two(second)[0] == rows:
        width = second.shape[1]
        result = byte_count(_known_samples(offsets) * depth * width, values.dtype)
    else:
        raise CannotModel(f"cannot multiply jagged {values.shape} and this operand")
    operands = moved(values, dense, second)
    moves = add_known(operands, offset_bytes(offsets), result)
    flops = 2 * rows * depth * width
    if direction == "bprop":
        return Cost(2 * flops, add_known(moves, operands)), texts(values, dense, second)
    return Cost(flops, moves), texts(values, dense, second)


@operators("""
    (values, offsets, _): fbgemm::jagged_softmax fbgemm::jagged_softmax_forward
        fb::jagged_softmax fb::jagged_softmax_forward
""")
def jagged_softmax(values: Tensor, offsets: Any, *, direction: str) -> tuple[Cost, str]:
    """Softmax of jagged values [n, d] over each sample's rows.

    FLOPs: 24 for each value (largest 1, difference 1, exponential 20, sum 1, division 1); backward
        4 (product and sum 2, difference and product 2).
    Bytes: values and offsets read, the same amount written; backward values and gradient read.
    """
    count = elements(values.shape)
    if direction == "bprop":
        return Cost(
            4 * count, add_known(moved(values, values, values), offset_bytes(offsets))
        ), texts(values)
    moves = add_known(moved(values, values), offset_bytes(offsets))
    return Cost(count * (EXPONENTIAL + 4), moves), texts(values)


def _two(values: Tensor) -> tuple[int, int]:
    if len(values.shape) != 2:
        raise CannotModel(f"jagged values of shape {values.shape}, not 2-d")
    return values.shape[0], values.shape[1]


def _known_samples(offsets: Any) -> int:
    count = _samples(offsets)
    if count is None:
        raise CannotModel("the number of samples is not in the capture")
    return count
