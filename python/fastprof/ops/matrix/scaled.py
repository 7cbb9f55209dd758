"""Matrix products of small types: scaled float8 and float4, integers, packed weights, groups."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.dtypes import Dtype, asked_type
from fastprof.ops.matrix.matmul import (
    Product,
    batched,
    forward,
    inner_size,
    plain,
    product_gradients,
    ranks,
)
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, numbers_per_element, present


@operators("""
    A[m, k] @ B[k, n] of int8, summed in int32.
    FLOPs: 2 m n k.
    Bytes: A and B read, the output written in int32.
    (*): aten::_int_mm
    (left, mat2, ...): torch._int_mm
""")
def int_mm(left: Tensor, mat2: Tensor) -> Work:
    ranks(2, left, mat2)
    return plain(_matrices(left, mat2), "fprop", "int32")


@operators("""
    (A[m, k] @ B[k, n]) times scales (+ bias[n]), in float8 or in float4 packed in pairs.
    FLOPs: 2 m n k; scales and bias are not counted, as in FlopCounterMode. A float4 element
    contains two numbers along k, which FlopCounterMode counts as one.
    Bytes: A, B, scales and bias read, the output written, each in its own type.
    (left, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum=_): _scaled_mm
    (left, mat2, bias, out_dtype, scale_a, scale_b, scale_result, use_fast_accum=_): _scaled_mm
    (left, mat2, scales_a*, _, _, scales_b*, _, _, bias, out_dtype, ...): _scaled_mm_v2
    (left, mat2, scale_a, _, _, scale_b, _, _, bias, out_dtype, ...): _scaled_mm_v2
""")
def scaled_mm(
    left: Tensor,
    mat2: Tensor,
    out_dtype: Dtype = None,
    scales_a: Tensors = (),
    scales_b: Tensors = (),
    *,
    read: Tensors,
) -> Work:
    ranks(2, left, mat2)
    product = _matrices(left, mat2)._replace(written=asked_type(out_dtype))
    return Work((forward(product, *read, *scales_a, *scales_b),))


# Dimensions of the operands of a grouped product.
_KINDS: Final = {(2, 2), (2, 3), (3, 2), (3, 3)}


@operators("""
    One product for each of g groups, as in a mixture of experts.

    By rank: A[rows, k] @ B[g, k, n] and A[g, m, k] @ B[k, columns], with rows or columns divided
    among groups; A[m, k] @ B[k, n] -> [g, m, n], with k divided among groups; and batches.

    FLOPs: 2 rows n k, 2 m columns k, 2 m n k, 2 g m n k; backward two products as large.
    Bytes: A, B and bias read, the output written; backward for each gradient A, B and the
    output's gradient.

    If a dimension is divided among groups, the cost is an **estimate**: the last group may end
    before the matrix, which is not recorded.
    (mat_a=left, mat_b=mat2, offs=ends, bias=bias, out_dtype=out_dtype): torch.grouped_mm
        torch._grouped_mm
    (left, mat2, ends, ...): torch._grouped_mm
    (left, mat2, ends, bias, out_dtype): aten::_grouped_mm
""")
def grouped_mm(
    left: Tensor,
    mat2: Tensor,
    ends: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Dtype = None,
    *,
    direction: str,
) -> Work:
    product = _grouped(left, mat2, ends, out_dtype)
    if direction == "bprop":
        return Work(product_gradients(product)).estimated(ends is None)
    return Work((forward(product, *present(ends, bias)),)).estimated(ends is None)


@operators("""
    Grouped products of float8 or float4, times scales.
    FLOPs: those of grouped_mm.
    Bytes: A, B, scales, ends of groups and bias read, the output written, each in its own type.
    (left, mat2, scale_a, scale_b, offs=ends, bias, scale_result, out_dtype, ...):
        _scaled_grouped_mm
    (left, mat2, scales_a*, _, _, scales_b*, _, _, ends, bias, out_dtype, ...):
        _scaled_grouped_mm_v2
    (left, mat2, scale_a, _, _, scale_b, _, _, ends, bias, out_dtype, ...):
        _scaled_grouped_mm_v2
""")
def scaled_grouped_mm(
    left: Tensor,
    mat2: Tensor,
    ends: Tensor | None = None,
    out_dtype: Dtype = None,
    scales_a: Tensors = (),
    scales_b: Tensors = (),
    *,
    read: Tensors,
) -> Work:
    product = _grouped(left, mat2, ends, out_dtype)
    added = present(ends, *read, *scales_a, *scales_b)
    return Work((forward(product, *added),)).estimated(ends is None)


@operators("""
    The functions of torch.nn.functional for scaled products, plain or grouped by `offs`.
    FLOPs: those of scaled_mm, with groups those of grouped_mm.
    Bytes: A, B, scales and bias read, the output written, by default in bfloat16.
    (mat_a=left, mat_b=mat2, scale_a, _, scale_b, _, _, _, bias, output_dtype=out_dtype, ...):
        torch.scaled_mm
    (mat_a=left, mat_b=mat2, scale_a=scales_a*, _, scale_b=scales_b*, _, _, _, bias,
        output_dtype=out_dtype, ...): torch.scaled_mm
    (mat_a=left, mat_b=mat2, scale_a, scale_b, bias, output_dtype=out_dtype, ...):
        torch.scaled_mm
    (mat_a=left, mat_b=mat2, scale_a, _, scale_b, _, _, _, bias, offs=ends,
        output_dtype=out_dtype, ...): torch.scaled_grouped_mm
    (mat_a=left, mat_b=mat2, scale_a=scales_a*, _, scale_b=scales_b*, _, _, _, bias, offs=ends,
        output_dtype=out_dtype, ...): torch.scaled_grouped_mm
    (mat_a=left, mat_b=mat2, scale_a, scale_b, bias, offs=ends, output_dtype=out_dtype, ...):
        torch.scaled_grouped_mm
""")
def torch_scaled_mm(
    left: Tensor,
    mat2: Tensor,
    ends: Tensor | None = None,
    out_dtype: Dtype = "bfloat16",
    scales_a: Tensors = (),
    scales_b: Tensors = (),
    *,
    read: Tensors,
) -> Work:
    scales = (scales_a, scales_b)
    if ends is None and len(left.shape) == 2:
        return scaled_mm(left, mat2, out_dtype, *scales, read=read)
    return scaled_grouped_mm(left, mat2, ends, out_dtype, *scales, read=read)


@operators("""
    x[.., k] @ w[n, k]^T of floats, w packed in int8 or int4 with scales [n] or [k/g, n, 2].
    FLOPs: 2 rows n k; dequantising w is not counted.
    Bytes: x, packed w, scales and bias read, the output written in x's type.
    (left, mat2, scales, ...): torch._weight_int8pack_mm
    (left, mat2, _, int4_scales): _weight_int4pack_mm
    (left, mat2, scales, bias, _): _mixed_dtypes_linear
    (left, mat2, scales): aten::_weight_int8pack_mm
""")
def weight_int8pack_mm(
    left: Tensor,
    mat2: Tensor,
    scales: Tensor | None = None,
    int4_scales: Tensor | None = None,
    bias: Tensor | None = None,
) -> Work:
    packed = int4_scales if scales is None else scales
    if packed is None or not left.shape:
        raise CannotModel("no scales to determine the number of columns")
    if scales is None and len(packed.shape) != 3:
        raise CannotModel(f"scales {packed.shape} are not [k / group, n, 2]")
    columns = packed.shape[1] if scales is None else elements(packed.shape)
    rows, inner = elements(left.shape[:-1]), left.shape[-1]
    if not mat2.shape or inner * columns < elements(mat2.shape):
        raise CannotModel(f"{mat2.shape} does not pack {inner} times {columns} numbers")
    product = Product(rows, columns, inner, left, mat2)
    return Work((forward(product, *present(packed, bias)),))


def _matrices(left: Tensor, right: Tensor) -> Product:
    inner = inner_size(left.shape, -1, right.shape, -2)
    return Product(left.shape[-2], right.shape[-1], inner * numbers_per_element(left), left, right)


def _grouped(left: Tensor, right: Tensor, ends: Tensor | None, asked: Dtype) -> Product:
    inner = inner_size(left.shape, -1, right.shape, -2) * numbers_per_element(left)
    kinds = len(left.shape), len(right.shape)
    if kinds not in _KINDS or (ends is None) != (kinds == (3, 3)):
        raise CannotModel(f"cannot form groups of {left.shape} and {right.shape}")
    written = asked_type(asked)
    if ends is None:
        return batched(left, right)._replace(k=inner, written=written)
    groups = elements(ends.shape)
    of_batch = [tensor.shape[0] for tensor in (left, right) if len(tensor.shape) == 3]
    if of_batch not in ([], [groups]):
        raise CannotModel(f"{groups} groups do not fit {left.shape} and {right.shape}")
    shares = 1 if of_batch else groups
    rows, columns = left.shape[-2], right.shape[-1]
    return Product(rows, columns, inner, left, right, written=written, shares=shares)
