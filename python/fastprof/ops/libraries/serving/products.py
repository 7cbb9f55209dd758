"""Products of serving stacks with plain, scaled and packed weights, and their quantisation.

Signatures of the operators: vLLM csrc/libtorch_stable/torch_bindings.cpp,
csrc/rocm/torch_bindings.cpp, vllm/_aiter_ops.py,
vllm/model_executor/layers/quantization/utils/fp8_utils.py, vllm/utils/flashinfer.py,
csrc/torch_bindings.cpp; aiter aiter/tuned_gemm.py, aiter/ops/gemm_op_a16w16.py,
aiter/ops/gradlib.py, aiter/ops/gemm_op_a8w8.py, aiter/ops/gemm_op_a4w4.py,
aiter/ops/triton/gemm/batched/batched_gemm_a16wfp4.py, aiter/ops/quant.py; TensorRT-LLM
cpp/tensorrt_llm/thop/cublasScaledMM.cpp, dsv3RouterGemmOp.cpp, fp8BlockScalingGemm.cpp,
cpp/tensorrt_llm/thop/fp4Gemm.cpp, cpp/tensorrt_llm/thop/fp8Op.cpp,
cpp/tensorrt_llm/thop/fp4Quantize.cpp, fp8Quantize.cpp; SGLang sgl-kernel/csrc/common_extension.cc.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost, Work
from fastprof.ops.dtypes import Dtype, asked_type, canonical_type
from fastprof.ops.matrix.matmul import Product, forward
from fastprof.ops.parameters import Flag, Int, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, moved, numbers_per_element, present, texts


def dense(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None,
    written: str | Unknown | None,
    *,
    float4: bool = False,
) -> Product:
    """x[.., k] times a weight of k n numbers, stored as [n, k], [k, n] or in tiles.

    The orientation is irrelevant: n is the weight's size over k. With three dimensions each, the
    first is a batch. A float4 element of either operand contains two numbers along k; with
    `float4`, bytes are such elements. Raises CannotModel when the size of the weight is not a
    multiple of k, or the output has another width.
    """
    if not x.shape or not weight.shape:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    if float4:
        x, weight = packed_float4(x), packed_float4(weight)
    inner = x.shape[-1]
    batch = None
    rows = elements(x.shape[:-1])
    numbers = elements(weight.shape)
    if len(x.shape) == len(weight.shape) == 3 and weight.shape[0] in x.shape[:2]:
        batch = weight.shape[0]
        if not batch:
            raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
        rows, numbers = rows // batch, numbers // batch
    k, numbers = inner * numbers_per_element(x), numbers * numbers_per_element(weight)
    if not k or numbers % k:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    columns = numbers // k
    _fits(out, columns)
    return Product(rows, columns, k, x, weight, batch, written=_type(out, written))


def with_columns(
    x: Tensor, weight: Tensor, columns: int, out: Tensor | None, written: str | Unknown | None
) -> Product:
    """x[.., k] times a packed weight of n columns, which do not follow from its shape.

    Raises CannotModel when the weight is too small for k n numbers of one bit or too large for k n
    of 64.
    """
    if not x.shape or columns < 1:
        raise CannotModel(f"cannot multiply {x.shape} with {columns} columns")
    inner, stored = x.shape[-1], elements(weight.shape)
    if stored > inner * columns * 2 or inner * columns > stored * 64:
        raise CannotModel(f"{weight.shape} does not pack {inner} times {columns} numbers")
    _fits(out, columns)
    written = _type(out, written)
    return Product(elements(x.shape[:-1]), columns, inner, x, weight, written=written)


def _type(out: Tensor | None, written: str | Unknown | None) -> str | Unknown | None:
    return written if out is None else canonical_type(out.dtype) or Unknown.UNKNOWN


def _fits(out: Tensor | None, columns: int) -> None:
    if out is not None and out.shape[-1:] != (columns,):
        raise CannotModel(f"an output {out.shape} does not have {columns} columns")


@operators("""
    x[.., k] times a weight of n columns, [n, k] or [k, n] (+ bias[n]).
    FLOPs: 2 rows n k, bias not counted.
    Bytes: x, weight and bias read, the output written in its own type or x's.
    (out, x, weight): _C|sgl_kernel::dsv3_fused_a_gemm _C::fp32_router_gemm
        sglang::flashinfer_dsv3_router_gemm _moe_C|sgl_kernel::dsv3_router_gemm
    (weight, x, ...): _rocm_C::LLMM1
    (weight, x, bias, _): _rocm_C::wvSplitK _rocm_C::wvSplitKrc
    (weight, x, _): _rocm_C::wvSplitK
    (x, weight, bias, out_dtype, ...): aiter::gemm_a16w16 trtllm::cublas_mm
    (x, weight, out_dtype, out, ...): aiter::gemm_a16w16_atomic_
    (x, weight, out, bias, ...): aiter::gemm_a16w16_asm
    (x, weight, out, _semaphores, bias, ...): aiter::_gemm_a16w16_asm
    (x, weight, _, bias, out_dtype, _scale, _scale, _scale, ...): aiter::hipb_mm
    (x, weight, bias): vllm::rocm_unquantized_gemm
    (x, weight, bias, out_dtype): trtllm::dsv3_router_gemm_op trtllm::dsv3_fused_a_gemm_op
    (x, weight, out, ...): sglang_profiler::gemm_kernels_flydsl_hgemm
""")
def dsv3_fused_a_gemm(
    x: Tensor, weight: Tensor, out: Tensor | None = None, out_dtype: Dtype = None, *, read: Tensors
) -> Work:
    return Work((forward(dense(x, weight, out, asked_type(out_dtype)), *read),))


@operators("""
    x[.., k] times a weight of n columns, both in float8 or int8, times scales (+ bias[n]).
    FLOPs: 2 rows n k; scales, zeros and bias are not counted.
    Bytes: x, weight, scales and bias read, the output written in its own type or the requested
    type, by default bfloat16.
    (out, x, weight, x_scale, w_scale, bias): _C::cutlass_scaled_mm
    (out, x, weight, x_scale, w_scale, zero, more_zero, bias): _C::cutlass_scaled_mm_azp
    (x, weight, x_scale, w_scale, out_dtype, bias): sgl_kernel::int8_scaled_mm
        sgl_kernel::fp8_scaled_mm
    (x, weight, x_scale, w_scale, out_dtype): sgl_kernel::fp8_blockwise_scaled_mm
    (x, weight, out, x_scale, w_scale, _workspace, ...): sgl_kernel::bmm_fp8
    (_workspace, x, weight, x_scale, w_scale, out, ...): flashinfer::bmm_fp8
    (x, weight, x_scale, w_scale, out_dtype, _): vllm::bmm_fp8
    (weight, x, bias, out, w_scale, x_scale, _): _rocm_C::wvSplitKQ
    (weight, x, out, w_scale, x_scale, _): _rocm_C::wvSplitKQ
    (x, weight, x_scale, w_scale, bias, out_dtype, ...): aiter::gemm_a8w8
        aiter::gemm_a8w8_bpreshuffle trtllm::cublas_scaled_mm trtllm::cuda_scaled_mm
    (x, weight, x_scale, w_scale, out, bias, ...): aiter::gemm_a8w8_ck aiter::batched_gemm_a8w8
    (x, weight, x_scale, w_scale, out, ...): aiter::gemm_a8w8_bpreshuffle_ck
        aiter::gemm_a8w8_bpreshuffle_cktile aiter::gemm_a8w8_blockscale_ck
        aiter::gemm_a8w8_blockscale_cktile aiter::gemm_a8w8_blockscale_bpreshuffle_ck
        aiter::gemm_a8w8_blockscale_bpreshuffle_cktile aiter::flatmm_a8w8_blockscale_asm
        aiter::_flatmm_a8w8_blockscale_asm aiter::gfx950_a8w8_blockscale_asm
    (x, weight, x_scale, w_scale, out, _, bias, ...): aiter::gemm_a8w8_asm aiter::_gemm_a8w8_asm
    (x, weight, x_scale, w_scale, out_dtype, ...): aiter::gemm_a8w8_blockscale
        aiter::gemm_a8w8_blockscale_bpreshuffle vllm::rocm_aiter_gemm_a8w8_blockscale
        vllm::rocm_aiter_gemm_a8w8_blockscale_bpreshuffle
        vllm::rocm_aiter_triton_gemm_a8w8_blockscale
    (x, weight, out, x_scale, w_scale, bias, ...): aiter::_gemm_a8w8_blockscale_bpreshuffle_asm
    (x, weight, x_scale, w_scale, bias, out_dtype): vllm::rocm_aiter_gemm_w8a8
        vllm::rocm_aiter_w8a8_gemm vllm::rocm_aiter_preshuffled_per_token_w8a8_gemm
        vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm vllm::rocm_aiter_hipb_mm_fp8
    (x, weight, out_dtype, x_scale, w_scale): vllm::rocm_aiter_gemm_a8w8_bpreshuffle
    (x, weight, out_dtype, x_scale, w_scale, bias):
        vllm::rocm_per_tensor_float_w8a8_scaled_mm_impl
    (x, weight, x_scale, w_scale, _, out_dtype): vllm::w8a8_triton_block_scaled_mm_func
        vllm::padded_cutlass
    (x, x_scale, weight, w_scale, out, _): vllm::fp8_gemm_nt_op
    (x, x_scale, weight, w_scale, out): sglang::deep_gemm_fp8_fp8_bf16_nt
    (x, weight, x_scale, w_scale, ...): sglang_profiler::fp8_utils_gemm_a8w8_blockscale
        sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale
        trtllm::fp8_block_scaling_gemm
    (x, weight, x_scale, w_scale): trtllm::fp8_block_scaling_gemm_impl
    (x, x_scale, weight, w_scale, zero, out_dtype): trtllm::mxfp8_mxfp8_gemm
""")
def cutlass_scaled_mm(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None = None,
    out_dtype: Dtype = "bfloat16",
    *,
    read: Tensors,
) -> Work:
    return Work((forward(dense(x, weight, out, asked_type(out_dtype)), *read),))


@operators("""
    x[.., k / 2] times a weight of n columns, both in float4 pairs, times scales (+ bias[n]).
    FLOPs: 2 rows n k: an element contains two numbers, also if its type is recorded as uint8; x may
    have 16 bits, [.., k].
    Bytes: x, weight, scales and bias read, the output written in its own type or the requested
    type, by default bfloat16.
    (out, x, weight, x_scale, w_scale, alpha): _C|sgl_kernel::cutlass_scaled_fp4_mm
    (x, weight, x_scale, w_scale, alpha, out_dtype, ...): vllm::flashinfer_mm_fp4
        trtllm::nvfp4_gemm
    (x, weight, x_scale, w_scale, alpha, _, out_dtype, ...): trtllm::fp4_gemm
        trtllm::fp4_gemm_trtllmgen trtllm::nvfp4_gemm
    (x, weight, x_scale, w_scale, out, bias, ...): aiter::gemm_a4w4
    (x, weight, x_scale, w_scale, bias, out_dtype, ...): aiter::gemm_a4w4
    (x, weight, x_scale, w_scale, out, _, bias, ...): aiter::gemm_a4w4_asm aiter::_gemm_a4w4_asm
    (x, weight, x_scale, w_scale, out, ...): aiter::gemm_a4w4_blockscale
    (x, weight, x_scale, w_scale, out_dtype, out, ...): aiter::gemm_afp4wfp4_
    (x, weight, w_scale, out_dtype, out, ...): aiter::batched_gemm_a16wfp4_
    (x, weight, w_scale, _, out_dtype, x_scale): vllm::gemm_with_dynamic_quant
""")
def cutlass_scaled_fp4_mm(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None = None,
    out_dtype: Dtype = "bfloat16",
    *,
    read: Tensors,
) -> Work:
    if canonical_type(weight.dtype) is None:
        weight = Tensor(weight.shape, "uint8", weight.strides)
    product = dense(x, weight, out, asked_type(out_dtype), float4=True)
    return Work((forward(product, *read),))


@operators("""
    x[.., k] times a packed weight of n columns; n follows from the output or the scales.
    FLOPs: 2 rows n k; dequantising the weight is not counted.
    Bytes: x, the packed weight, scales, zeros and orders read, the output written in the requested
    type or x's (float16 for int8 and float8).
    (x, weight, zeros, scales, order, ...): _C|sgl_kernel::gptq_gemm _rocm_C::gptq_gemm_rdna3
        _rocm_C::gptq_gemm_rdna3_wmma
    (x, weight, scales, zeros, _): _C::awq_gemm
    (x, weight, scales, zeros, columns, ...): _C::allspark_w8a16_gemm
    (x, weight, _, out_dtype, scales, zeros, _, more, order, _): _C::machete_mm
    (x, weight, more, _, scales, order, out_dtype, _): _C::cutlass_w4a8_mm
    (weight, x, _, columns): _C::ggml_mul_mat_a8 _C::ggml_mul_mat_vec_a8
    (x, weight, more, order, zeros, sums, out): sgl_kernel::qserve_w4a8_per_chn_gemm
    (x, weight, zeros, sums, more, order, out): sgl_kernel::qserve_w4a8_per_group_gemm
""")
def gptq_gemm(
    x: Tensor,
    weight: Tensor,
    scales: Tensor | None = None,
    columns: Size = None,
    out: Tensor | None = None,
    out_dtype: Dtype = None,
    more: Tensor | None = None,
    *,
    read: Tensors,
) -> Work:
    written = asked_type(out_dtype)
    if written is None and _short(x):
        written = "float16"
    of_columns = scales
    if scales is None and more is not None:
        of_columns = Tensor((elements(more.shape),), more.dtype)
    product = with_columns(x, weight, _columns(columns, out, of_columns), out, written)
    return Work((forward(product, *present(scales, more), *read),))


@operators("""
    x[m, k] times a weight in Marlin's tiles, with m, n and k as arguments.
    FLOPs: 2 m n k; dequantising the weight is not counted.
    Bytes: x, the packed weight, scales, zeros, orders and bias read, the output written in x's type
    (float16 for int8 and float8).

    If n is not recorded, it follows from the scales.
    (x, out, weight, bias, scales, more, global_scale, zeros, order, permutation, _workspace, _,
        rows, columns, inner, ...): _C::marlin_gemm _C::gptq_marlin_gemm
    (x, out, weight, bias, scales, global_scale, zeros, order, permutation, _workspace, _, rows,
        columns, inner, ...): _C::gptq_marlin_gemm
    (x, out, weight, scales, global_scale, zeros, order, permutation, _workspace, _, rows,
        columns, inner, ...): _C|sgl_kernel::gptq_marlin_gemm
    (x, weight, scales, zeros, order, permutation, _workspace, _, rows, columns, inner, ...):
        _C::gptq_marlin_gemm
    (x, weight, more, scales, _workspace, _, rows, columns, inner): _C::gptq_marlin_24_gemm
    (x, weight, scales, _workspace, _, rows, columns, inner): _C::fp8_marlin_gemm
    (x, weight, more, zeros, scales, _workspace, rows, columns, inner): _C::marlin_qqq_gemm
""")
def marlin_gemm(
    x: Tensor,
    weight: Tensor,
    scales: Tensor,
    rows: Int,
    columns: Int,
    inner: Int,
    out: Tensor | None = None,
    *,
    read: Tensors,
) -> Work:
    if isinstance(inner, int) and x.shape[-1:] != (inner,):
        raise CannotModel(f"{x.shape} is not {inner} wide")
    written = "float16" if _short(x) else None
    product = with_columns(x, weight, _columns(columns, out, scales), out, written)
    return Work((forward(product, scales, *read),))


table_row("""
    A packed weight in another order.
    FLOPs: 0.
    Bytes: the weight and the order read, the size of the weight written.
    (weight, order, _): _C|sgl_kernel::gptq_shuffle
    (weight, order, ...): _C|sgl_kernel::gptq_marlin_repack
    (weight, ...): _C|sgl_kernel::awq_marlin_repack _C::machete_prepack_B
    (weight, order): _C::permute_cols
    (weight): _C::cutlass_encode_and_reorder_int4b
""")("weight, order?", Traffic(0, "weight order weight"))


def _short(x: Tensor) -> bool:
    # int8 and float8 are never output types.
    name = x.dtype or ""
    return "8" in name or name.endswith("char")


def _columns(columns: Size, out: Tensor | None, scales: Tensor | None) -> int:
    if isinstance(columns, int):
        return columns
    for tensor in (out, scales):
        if tensor is not None and tensor.shape:
            return tensor.shape[-1]
    raise CannotModel("the number of columns is not in the capture")


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
    (out, x, scale, ...): _C::static_scaled_fp8_quant
    (out, x, scale, zero): _C::static_scaled_int8_quant
    (out, x, scale): aiter::static_per_tensor_quant
    (x, scale): tensorrt_llm|trtllm::static_quantize_e4m3_per_tensor
        trtllm::static_quantize_e4m3_activation
""")("x, scale, out?, zero?", Traffic(SCALE, "x scale zero out/x:float8_e4m3fn"))


@operators("""
    x[..] as float8 by one scale, which is computed unless given.
    FLOPs: 5 per element (magnitude compared 2, times scale 1, limits 2), 3 with the scale given.
    Bytes: x read twice (once with the scale given), the result and the scale written.

    An estimate if the capture does not record which.
    (out, x, scales): _C::dynamic_scaled_fp8_quant aiter::dynamic_per_tensor_quant
    (x, out, scales, given): sgl_kernel::sgl_per_tensor_quant_fp8
    (out, x, scales, searched): vllm::rocm_aiter_per_tensor_quant
""")
def dynamic_scaled_fp8_quant(
    x: Tensor, out: Tensor, scales: Tensor, given: Flag = False, searched: Flag = True
) -> Answer:
    known = given is True or searched is False
    reads = [x] if known else [x, x]
    exact = not isinstance(given, Unknown) and not isinstance(searched, Unknown)
    return Cost(scaled_up(x, searched=not known), moved(*reads, out, scales), exact), texts(x)


table_row("""
    x[..] as float8, float4 or int8, by a computed scale per row or group of a row.
    FLOPs: 5 per element (magnitude compared 2, times scale 1, limits 2).
    Bytes: x read once (a row stays on the chip), the result and the scales written.
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
    (out, scales, x, limit, starts, more_starts): _C|sgl_kernel::scaled_fp4_experts_quant
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
    x[..] as float8 or float4, by computed scales; both are new tensors.
    FLOPs: 5 per element (magnitude compared 2, times scale 1, limits 2).
    Bytes: x read, the result written, of the requested type or of one byte per element (float4:
    half a byte); new scales, one per group or row, are not counted.
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
    (x): tensorrt_llm|trtllm::quantize_e4m3_per_tensor trtllm::quantize_e4m3_activation
""")
def scaled_fp4_quant(
    x: Tensor,
    group: Size = None,
    dtype: Dtype = None,
    limit: Tensor | None = None,
    out: Tensor | None = None,
    scales: Tensor | None = None,
) -> Answer:
    asked = asked_type(dtype)
    written = Tensor(x.shape, asked if isinstance(asked, str) else "float8_e4m3fn")
    if limit is not None or asked == "float4_e2m1fn_x2":
        if not x.shape or x.shape[-1] % 2:
            raise CannotModel(f"{x.shape} has no pairs of numbers")
        written = Tensor((*x.shape[:-1], x.shape[-1] // 2), "float4_e2m1fn_x2")
    touched = moved(x, limit, written if out is None else out, scales)
    return Cost(scaled_up(x, searched=True), touched), texts(x)


@operators("""
    Keys and values as float8, by given scales, into rows of larger tensors.
    FLOPs: 3 per element (times scale 1, limits 2).
    Bytes: keys, values and scales read, the same number of elements written.
    (key, value, key_out, value_out, k_scale, v_scale, _rows, ...): sgl_kernel::downcast_fp8
""")
def downcast_fp8(
    key: Tensor, value: Tensor, key_out: Tensor, value_out: Tensor, k_scale: Tensor, v_scale: Tensor
) -> Answer:
    flops = scaled_up(key, searched=False) + scaled_up(value, searched=False)
    written = Tensor(key.shape, key_out.dtype), Tensor(value.shape, value_out.dtype)
    return Cost(flops, moved(key, value, k_scale, v_scale, *written)), texts(key, value)


@operators("""
    Packed weights [k, n / 8] of 4 bits as floats [k, n], with n from the scales [groups, n].
    FLOPs: 2 per element (zero subtracted, times scale).
    Bytes: packed weights, scales and zeros read, the floats written.
    (packed, scales, zeros, ...): _C::awq_dequantize
    (packed, scales, zeros): sgl_kernel::awq_dequantize
    (packed, _, rows, columns, dtype): _C::ggml_dequantize
""")
def awq_dequantize(
    packed: Tensor,
    scales: Tensor | None = None,
    zeros: Tensor | None = None,
    rows: Size = None,
    columns: Size = None,
    dtype: Dtype = "float16",
) -> Answer:
    if scales is not None and scales.shape and packed.shape:
        out = Tensor((packed.shape[0], scales.shape[-1]), scales.dtype)
    elif isinstance(rows, int) and isinstance(columns, int):
        asked = asked_type(dtype)
        out = Tensor((rows, columns), asked if isinstance(asked, str) else None)
    else:
        raise CannotModel("the sizes of the weights are not in the capture")
    return Cost(2 * elements(out.shape), moved(packed, scales, zeros, out)), texts(packed, scales)
