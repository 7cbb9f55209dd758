"""Quantisation and dequantisation for the products of serving stacks."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.dtypes import Dtype
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import canonical_type, elements
from fastprof.ops.traffic import moved, texts

# FLOPs of quantisation to float8, float4 or int8, alone and in fused kernels.

SCALE: Final = 3  # times the scale, clamped between two limits
SEARCH: Final = 2  # magnitude, comparison: the search for a scale


def packed_float4(tensor: Tensor) -> Tensor:
    """The tensor as float4, two numbers in a byte, which many kernels call uint8."""
    if canonical_type(tensor.dtype) not in ("uint8", "int8", None):
        return tensor
    return Tensor(tensor.shape, "float4_e2m1fn_x2", tensor.strides)


def scaled_up(x: Tensor, *, searched: bool) -> int:
    """FLOPs of quantising x, with or without the search for its scale."""
    return elements(x.shape) * (SCALE + (SEARCH if searched else 0))


table_row("""
    x[..] as float8 or int8, by a given scale.
    FLOPs: 3 per element (times scale 1, limits 2).
    Bytes: x and scale read, the result written.

    Signatures: vLLM csrc/torch_bindings.cpp, aiter aiter/ops/quant.py, TensorRT-LLM
    cpp/tensorrt_llm/thop/fp8Op.cpp.
    (out, x, scale, ...): _C::static_scaled_fp8_quant
    (out, x, scale, zero): _C::static_scaled_int8_quant
    (out, x, scale): aiter::static_per_tensor_quant
    (x, scale): tensorrt_llm::static_quantize_e4m3_per_tensor
        trtllm::static_quantize_e4m3_per_tensor trtllm::static_quantize_e4m3_activation
""")("x, scale, out?, zero?", Traffic(SCALE, "x scale zero out/x:float8_e4m3fn"))


@operators("""
    (out, x, scales): _C::dynamic_scaled_fp8_quant aiter::dynamic_per_tensor_quant
    (x, out, scales, given): sgl_kernel::sgl_per_tensor_quant_fp8
    (out, x, scales, searched): vllm::rocm_aiter_per_tensor_quant
""")
def dynamic_scaled_fp8_quant(
    x: Tensor,
    out: Tensor,
    scales: Tensor,
    given: bool | Unknown = False,
    searched: bool | Unknown = True,
) -> tuple[Cost, str]:
    """x[..] as float8 by one scale, which is computed unless given.

    FLOPs: 5 per element (magnitude compared 2, times scale 1, limits 2), 3 with the scale given.
    Bytes: x read twice (once with the scale given), the result and the scale written.

    Signatures: vLLM csrc/torch_bindings.cpp, aiter aiter/ops/quant.py, SGLang
    sgl-kernel/csrc/common_extension.cc. An estimate if the capture does not record which.
    """
    known = given is True or searched is False
    reads = [x] if known else [x, x]
    cost = Cost(
        scaled_up(x, searched=not known),
        moved(*reads, out, scales),
        not isinstance(given, Unknown) and not isinstance(searched, Unknown),
    )
    return cost, texts(x)


table_row("""
    x[..] as float8, float4 or int8, by a computed scale per row or group of a row.
    FLOPs: 5 per element (magnitude compared 2, times scale 1, limits 2).
    Bytes: x read once (a row stays on the chip), the result and the scales written.

    Signatures: vLLM csrc/torch_bindings.cpp and csrc/libtorch_stable/torch_bindings.cpp, SGLang
    sgl-kernel/csrc/common_extension.cc, aiter aiter/ops/quant.py.
    (out, x, scales, limit): _C::dynamic_per_token_scaled_fp8_quant _C::dynamic_scaled_int8_quant
        sgl_kernel::scaled_fp4_quant
    (x, out, scales, ...): _C::per_token_group_fp8_quant _C::per_token_group_fp8_quant_packed
        _C::per_token_group_quant_int8 sgl_kernel::sgl_per_token_group_quant_fp8
        sgl_kernel::sgl_per_token_group_quant_int8 sgl_kernel::sgl_per_token_group_quant_8bit
        sgl_kernel::sgl_per_token_quant_fp8 aiter::quant_mxfp4
    (out, x, scales, ...): aiter::dynamic_per_token_scaled_quant
        aiter::dynamic_per_group_scaled_quant aiter::dynamic_per_group_scaled_quant_fp4
    (out, x, limit, scales): aiter::smoothquant_fwd
""")("x, out, scales, limit?", Traffic(SEARCH + SCALE, "x limit out scales"))

table_row("""
    The experts' rows of x as float8 or float4, by computed scales.
    FLOPs: 5 per element of x, an upper bound: the number of rows is a tensor value.
    Bytes: x read, the result and the scales written, an upper bound.

    Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp, aiter aiter/ops/quant.py.
    (out, scales, x, limit, starts, more_starts): _C::scaled_fp4_experts_quant
        sgl_kernel::scaled_fp4_experts_quant
    (out, scales, x, starts, more_starts, _): _C::mxfp4_experts_quant
    (x, starts, more_starts, _offsets, out, scales): _C::mxfp8_experts_quant
    (out, x, limit, starts, scales): aiter::moe_smoothquant_fwd
    (out, scales, x, starts, more_starts, ...): aiter::fused_dynamic_mx_quant_moe_sort_hip
        aiter::fused_dynamic_mxfp4_quant_moe_sort_hip
""")(
    "x, out, scales, starts, more_starts?, limit?, _offsets?",
    Traffic(SEARCH + SCALE, "x limit starts more_starts out scales", exact=False),
)


@operators("""
    (x, limit, _): _C::scaled_fp4_quant
    (out, x, scales, limit, _): _C::scaled_fp4_quant
    (x, limit, _, out, scales): _C::scaled_fp4_quant
    (x, group): vllm::triton_per_token_group_quant_fp8
    (x, group, _): vllm::rocm_aiter_group_fp8_quant
    (x, dtype, _scale): vllm::rocm_aiter_per_token_quant
    (x, _scale, dtype, _rows, _): aiter::per_token_quant_hip
    (x, _scale, dtype, group, _, _rows, ...): aiter::per_group_quant_hip
    (x, limit, group, ...): trtllm::fp4_quantize
    (x, ...): trtllm::mxfp8_quantize trtllm::fp8_quantize_1x128
    (x, _): trtllm::fp8_quantize_1x128_packed_ue8m0
    (x): tensorrt_llm::quantize_e4m3_per_tensor trtllm::quantize_e4m3_per_tensor
        trtllm::quantize_e4m3_activation
""")
def scaled_fp4_quant(
    x: Tensor,
    group: int | Unknown | None = None,
    dtype: Dtype = None,
    limit: Tensor | None = None,
    out: Tensor | None = None,
    scales: Tensor | None = None,
    _scale: Tensor | None = None,
    _rows: Tensor | None = None,
) -> tuple[Cost, str]:
    """x[..] as float8 or float4, by computed scales; both are new tensors.

    FLOPs: 5 per element (magnitude compared 2, times scale 1, limits 2).
    Bytes: x read, the result written, of the requested type or of one byte per element (float4:
    half a byte); new scales, one per group or row, are not counted.

    Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp and vllm/_aiter_ops.py, aiter
    aiter/ops/quant.py, TensorRT-LLM cpp/tensorrt_llm/thop/fp4Quantize.cpp and fp8Quantize.cpp.
    """
    del group
    asked = asked_type(dtype)
    written = Tensor(x.shape, asked if isinstance(asked, str) else "float8_e4m3fn")
    if limit is not None or asked == "float4_e2m1fn_x2":
        if not x.shape or x.shape[-1] % 2:
            raise CannotModel(f"{x.shape} has no pairs of numbers")
        written = Tensor((*x.shape[:-1], x.shape[-1] // 2), "float4_e2m1fn_x2")
    touched = moved(x, limit, written if out is None else out, scales)
    return Cost(scaled_up(x, searched=True), touched), texts(x)


@operators("""
    (key, value, key_out, value_out, k_scale, v_scale, _rows, ...): sgl_kernel::downcast_fp8
""")
def downcast_fp8(
    key: Tensor,
    value: Tensor,
    key_out: Tensor,
    value_out: Tensor,
    k_scale: Tensor,
    v_scale: Tensor,
    _rows: Tensor | None = None,
) -> tuple[Cost, str]:
    """Keys and values as float8, by given scales, into rows of larger tensors.

    FLOPs: 3 per element (times scale 1, limits 2).
    Bytes: keys, values and scales read, the same number of elements written.

    Signature: SGLang sgl-kernel/csrc/common_extension.cc.
    """
    flops = scaled_up(key, searched=False) + scaled_up(value, searched=False)
    written = Tensor(key.shape, key_out.dtype), Tensor(value.shape, value_out.dtype)
    return Cost(flops, moved(key, value, k_scale, v_scale, *written)), texts(key, value)


@operators("""
    (packed, scales, zeros, ...): _C::awq_dequantize
    (packed, scales, zeros): sgl_kernel::awq_dequantize
    (packed, _, rows, columns, dtype): _C::ggml_dequantize
""")
def awq_dequantize(
    packed: Tensor,
    scales: Tensor | None = None,
    zeros: Tensor | None = None,
    rows: int | Unknown | None = None,
    columns: int | Unknown | None = None,
    dtype: Dtype = "float16",
) -> tuple[Cost, str]:
    """Packed weights [k, n / 8] of 4 bits as floats [k, n], with n from the scales [groups, n].

    FLOPs: 2 per element (zero subtracted, times scale).
    Bytes: packed weights, scales and zeros read, the floats written.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc.
    """
    if scales is not None and scales.shape and packed.shape:
        out = Tensor((packed.shape[0], scales.shape[-1]), scales.dtype)
    elif isinstance(rows, int) and isinstance(columns, int):
        asked = asked_type(dtype)
        out = Tensor((rows, columns), asked if isinstance(asked, str) else None)
    else:
        raise CannotModel("the sizes of the weights are not in the capture")
    return Cost(2 * elements(out.shape), moved(packed, scales, zeros, out)), texts(packed, scales)
