"""Products and softmax of jagged tensors, sample by sample.

Source: fbgemm_gpu/src/jagged_tensor_ops/jagged_tensor_ops_cpu.cpp and
fbgemm_gpu/fbgemm_gpu/docs/jagged_tensor_ops.py in pytorch/FBGEMM.
"""

from __future__ import annotations

from typing import Any

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import EXPONENTIAL
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.recommendation.jagged import offset_bytes
from fastprof.ops.registry import operators
from fastprof.ops.tensor import byte_count, elements
from fastprof.ops.traffic import moved, texts


@operators("""
    (vectors, values, offsets): fbgemm::batched_dense_vec_jagged_2d_mul
        fbgemm::batched_dense_vec_jagged_2d_mul_forward fb::batched_dense_vec_jagged_2d_mul
        fb::batched_dense_vec_jagged_2d_mul_forward
""")
def vector_products(
    vectors: Tensor, values: Tensor, offsets: Any, *, direction: str
) -> tuple[Cost, str]:
    """Row vectors [b h, longest] times jagged matrices, values [n, h d]: [b h, d].

    FLOPs: 2 n h d; backward 4 n h d, a product for each operand.
    Bytes: values, offsets and one element of the vectors for each value's row and head read, the
        result written; backward these and the result's gradient read, both gradients written.
    """
    if len(vectors.shape) != 2 or len(values.shape) != 2:
        raise CannotModel(f"cannot multiply {vectors.shape} and jagged {values.shape}")
    samples = _samples(offsets)
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
        result = byte_count(_samples(offsets) * depth * width, values.dtype)
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


def _samples(offsets: Any) -> int:
    first = offsets[0] if isinstance(offsets, tuple) and offsets else offsets
    if not isinstance(first, Tensor) or len(first.shape) != 1:
        raise CannotModel("the number of samples is not in the capture")
    return max(first.shape[0] - 1, 0)
