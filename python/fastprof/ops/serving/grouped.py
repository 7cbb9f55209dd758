"""Mixtures of experts: grouped products of rows with their experts' matrices."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.registry import operators
from fastprof.ops.serving.expert_sizes import Count, grouped, one_product
from fastprof.ops.serving.quantising import packed_float4


@operators("""
    (out, x, weight, x_scale, w_scale, ...): _C::cutlass_moe_mm _C::cutlass_w4a8_moe_mm
        sgl_kernel::cutlass_w4a8_moe_mm
    (x, weight, x_scale, w_scale, out, ...): _C::cutlass_mxfp8_grouped_mm
    (out, _table, _table, _table, _table, _table, x, weight, x_scale, w_scale, ...):
        sgl_kernel::fp8_blockwise_scaled_grouped_mm
    (x, out, weight, w_scale, zeros, ...): _moe_C::moe_wna16_gemm
    (x, weight, bias, out, x_scale, w_scale, zeros, ...):
        sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel
    (x, weight, _table, _table, _table, _, columns, k, tokens): _C::ggml_moe_a8
    (x, weight, _table, k, _, columns, tokens): _C::ggml_moe_a8_vec
""")
def grouped_products(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None = None,
    x_scale: Tensor | None = None,
    w_scale: Tensor | None = None,
    zeros: Tensor | None = None,
    bias: Tensor | None = None,
    columns: Count | None = None,
    k: Count | None = None,
    tokens: Count | None = None,
    _table: Tensor | None = None,
) -> Work:
    """Rows of x[.., k], each with its expert's matrix: the output is [rows, n].

    FLOPs: 2 rows n k, the rows being the output's.
    Bytes: x, scales, zeros and bias read, the output written; matrices of the selectable experts,
        an upper bound.

    An estimate: rows may include padding. Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp
    and csrc/moe/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc.
    """
    if out is None:
        if not (isinstance(columns, int) and isinstance(k, int) and isinstance(tokens, int)):
            raise CannotModel("the sizes of the product are not in the capture")
        out = Tensor((tokens * k, columns), x.dtype)
    return grouped(x, weight, out, (x_scale, w_scale, zeros, bias), 1)


@operators("""
    (out, x, weight, x_scale, w_scale, ...): _C::cutlass_fp4_group_mm _C::cutlass_mxfp4_group_mm
        sgl_kernel::cutlass_fp4_group_mm
""")
def grouped_float4_products(
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    x_scale: Tensor | None = None,
    w_scale: Tensor | None = None,
) -> Work:
    """Rows of x[.., k / 2], float4 in pairs, each with its expert's matrix: output [rows, n].

    FLOPs: 2 rows n k: an element contains two numbers.
    Bytes: x and scales read, the output written; matrices of the selectable experts, an upper
        bound.

    An estimate: rows may include padding. Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp,
    SGLang sgl-kernel/csrc/common_extension.cc.
    """
    x, weight = packed_float4(x), packed_float4(weight)
    return grouped(x, weight, out, (x_scale, w_scale), 2)


@operators("""
    (x, out, weight, bias, scales, more, more, zeros, more, more, _workspace, _order, _experts,
        _valid, weights, _, k, _, _, rows, columns, inner, ...): _moe_C::moe_wna16_marlin_gemm
    (x, out, weight, bias, scales, more, zeros, more, more, _workspace, _order, _experts,
        _valid, weights, _, k, _, _, _, rows, columns, inner, ...):
        _moe_C::moe_wna16_marlin_gemm
    (x, out, weight, scales, zeros, more, more, _workspace, _order, _experts, _valid, weights,
        _, k, _, _, _, rows, columns, inner, ...): _moe_C::moe_wna16_marlin_gemm
        sgl_kernel::moe_wna16_marlin_gemm
""")
def sized_products(
    x: Tensor,
    weight: Tensor,
    k: Count,
    rows: Count,
    columns: Count,
    inner: Count,
    scales: Tensor | None = None,
    out: Tensor | None = None,
    bias: Tensor | None = None,
    zeros: Tensor | None = None,
    weights: Tensor | None = None,
    more: Tensor | None = None,
    _workspace: Tensor | None = None,
    _order: Tensor | None = None,
    _experts: Tensor | None = None,
    _valid: Tensor | None = None,
) -> Work:
    """Each row of x[m, k] times the packed matrices of its experts, with the sizes as arguments.

    FLOPs: 2 m n k for each expert of a row.
    Bytes: x, scales, zeros and bias read, the output written; matrices of the selectable experts,
        an upper bound.

    An estimate: experts may be on other devices. Signatures: vLLM
    csrc/libtorch_stable/moe/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc.
    """
    del more
    sizes = (k, rows, columns, inner)
    if not all(isinstance(each, int) for each in sizes):
        raise CannotModel("the sizes of the product are not in the capture")
    taken = int(k) * int(rows) if isinstance(k, int) and isinstance(rows, int) else 0
    width = columns if isinstance(columns, int) else 0
    depth = inner if isinstance(inner, int) else 0
    written = Tensor((taken, width), x.dtype) if out is None else out
    touched = (x, bias, scales, zeros, weights, written)
    return one_product(x, weight, taken, width * depth, touched)
