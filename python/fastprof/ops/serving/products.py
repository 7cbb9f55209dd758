"""Matrix products of serving stacks: float16, and scaled float8, float4 and int8."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import Work
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.dtypes import Dtype
from fastprof.ops.matrix.product import forward
from fastprof.ops.registry import op
from fastprof.ops.serving.sizes import dense
from fastprof.ops.tensor import canonical_type
from fastprof.ops.traffic import present

_OUT_FIRST: Final = "(out, x, weight)"


@op(
    None,
    aten=(
        f"_C::dsv3_fused_a_gemm{_OUT_FIRST}",
        f"_C::fp32_router_gemm{_OUT_FIRST}",
        f"sglang::flashinfer_dsv3_router_gemm{_OUT_FIRST}",
        f"_moe_C::dsv3_router_gemm{_OUT_FIRST}",
        f"sgl_kernel::dsv3_fused_a_gemm{_OUT_FIRST}",
        f"sgl_kernel::dsv3_router_gemm{_OUT_FIRST}",
        "_rocm_C::LLMM1(weight, x, ...)",
        "_rocm_C::wvSplitK(weight, x, bias, _)",
        "_rocm_C::wvSplitK(weight, x, _)",
        "_rocm_C::wvSplitKrc(weight, x, bias, _)",
        "aiter::gemm_a16w16(x, weight, bias, out_dtype, ...)",
        "aiter::gemm_a16w16_atomic_(x, weight, out_dtype, out, ...)",
        "aiter::gemm_a16w16_asm(x, weight, out, bias, ...)",
        "aiter::_gemm_a16w16_asm(x, weight, out, _semaphores, bias, ...)",
        "aiter::hipb_mm(x, weight, _, bias, out_dtype, _scale, _scale, _scale, ...)",
        "vllm::rocm_unquantized_gemm(x, weight, bias)",
        "trtllm::cublas_mm(x, weight, bias, out_dtype, ...)",
        "trtllm::dsv3_router_gemm_op(x, weight, bias, out_dtype)",
        "trtllm::dsv3_fused_a_gemm_op(x, weight, bias, out_dtype)",
        "sglang_profiler::gemm_kernels_flydsl_hgemm(x, weight, out, ...)",
    ),
)
def plain_product(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out: Tensor | None = None,
    out_dtype: Dtype = None,
    _semaphores: Tensor | None = None,
    _scale: Tensor | None = None,
) -> Work:
    """x[.., k] times a weight of n columns, [n, k] or [k, n] (+ bias[n]).

    FLOPs: 2 rows n k, bias not counted.
    Bytes: x, weight and bias read, the output written in its own type or x's.

    Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp and csrc/rocm/torch_bindings.cpp, aiter
    aiter/tuned_gemm.py, aiter/ops/gemm_op_a16w16.py and aiter/ops/gradlib.py, TensorRT-LLM
    cpp/tensorrt_llm/thop/cublasScaledMM.cpp and dsv3RouterGemmOp.cpp.
    """
    product = dense(x, weight, out, asked_type(out_dtype))
    return Work((forward(product, *present(bias)),))


_SCALED: Final = "(x, weight, x_scale, w_scale, out_dtype, bias)"
_SCALED_OUT: Final = "(out, x, weight, x_scale, w_scale, bias)"
_AITER: Final = "(x, weight, x_scale, w_scale, bias, out_dtype, ...)"
_AITER_OUT: Final = "(x, weight, x_scale, w_scale, out, ...)"
_AITER_BLOCKS: Final = "(x, weight, x_scale, w_scale, out_dtype, ...)"


@op(
    None,
    aten=(
        f"_C::cutlass_scaled_mm{_SCALED_OUT}",
        "_C::cutlass_scaled_mm_azp(out, x, weight, x_scale, w_scale, zero, more_zero, bias)",
        f"sgl_kernel::int8_scaled_mm{_SCALED}",
        f"sgl_kernel::fp8_scaled_mm{_SCALED}",
        "sgl_kernel::fp8_blockwise_scaled_mm(x, weight, x_scale, w_scale, out_dtype)",
        "sgl_kernel::bmm_fp8(x, weight, out, x_scale, w_scale, _workspace, ...)",
        "flashinfer::bmm_fp8(_workspace, x, weight, x_scale, w_scale, out, ...)",
        "vllm::bmm_fp8(x, weight, x_scale, w_scale, out_dtype, _)",
        "_rocm_C::wvSplitKQ(weight, x, bias, out, w_scale, x_scale, _)",
        "_rocm_C::wvSplitKQ(weight, x, out, w_scale, x_scale, _)",
        f"aiter::gemm_a8w8{_AITER}",
        f"aiter::gemm_a8w8_bpreshuffle{_AITER}",
        "aiter::gemm_a8w8_ck(x, weight, x_scale, w_scale, out, bias, ...)",
        f"aiter::gemm_a8w8_bpreshuffle_ck{_AITER_OUT}",
        f"aiter::gemm_a8w8_bpreshuffle_cktile{_AITER_OUT}",
        "aiter::gemm_a8w8_asm(x, weight, x_scale, w_scale, out, _, bias, ...)",
        "aiter::_gemm_a8w8_asm(x, weight, x_scale, w_scale, out, _, bias, ...)",
        f"aiter::gemm_a8w8_blockscale{_AITER_BLOCKS}",
        f"aiter::gemm_a8w8_blockscale_bpreshuffle{_AITER_BLOCKS}",
        f"aiter::gemm_a8w8_blockscale_ck{_AITER_OUT}",
        f"aiter::gemm_a8w8_blockscale_cktile{_AITER_OUT}",
        f"aiter::gemm_a8w8_blockscale_bpreshuffle_ck{_AITER_OUT}",
        f"aiter::gemm_a8w8_blockscale_bpreshuffle_cktile{_AITER_OUT}",
        "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm(x, weight, out, x_scale, w_scale, bias, ...)",
        f"aiter::flatmm_a8w8_blockscale_asm{_AITER_OUT}",
        f"aiter::_flatmm_a8w8_blockscale_asm{_AITER_OUT}",
        f"aiter::gfx950_a8w8_blockscale_asm{_AITER_OUT}",
        "aiter::batched_gemm_a8w8(x, weight, x_scale, w_scale, out, bias, ...)",
        "vllm::rocm_aiter_gemm_w8a8(x, weight, x_scale, w_scale, bias, out_dtype)",
        "vllm::rocm_aiter_w8a8_gemm(x, weight, x_scale, w_scale, bias, out_dtype)",
        "vllm::rocm_aiter_preshuffled_per_token_w8a8_gemm(x, weight, x_scale, w_scale, bias,"
        " out_dtype)",
        "vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm(x, weight, x_scale, w_scale, bias,"
        " out_dtype)",
        "vllm::rocm_aiter_hipb_mm_fp8(x, weight, x_scale, w_scale, bias, out_dtype)",
        "vllm::rocm_aiter_gemm_a8w8_bpreshuffle(x, weight, out_dtype, x_scale, w_scale)",
        f"vllm::rocm_aiter_gemm_a8w8_blockscale{_AITER_BLOCKS}",
        f"vllm::rocm_aiter_gemm_a8w8_blockscale_bpreshuffle{_AITER_BLOCKS}",
        f"vllm::rocm_aiter_triton_gemm_a8w8_blockscale{_AITER_BLOCKS}",
        "vllm::rocm_per_tensor_float_w8a8_scaled_mm_impl(x, weight, out_dtype, x_scale, w_scale,"
        " bias)",
        "vllm::w8a8_triton_block_scaled_mm_func(x, weight, x_scale, w_scale, _, out_dtype)",
        "vllm::padded_cutlass(x, weight, x_scale, w_scale, _, out_dtype)",
        "vllm::fp8_gemm_nt_op(x, x_scale, weight, w_scale, out, _)",
        "sglang::deep_gemm_fp8_fp8_bf16_nt(x, x_scale, weight, w_scale, out)",
        "sglang_profiler::fp8_utils_gemm_a8w8_blockscale(x, weight, x_scale, w_scale, ...)",
        "sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale(x, weight, x_scale, w_scale,"
        " ...)",
        "trtllm::cublas_scaled_mm(x, weight, x_scale, w_scale, bias, out_dtype, ...)",
        "trtllm::cuda_scaled_mm(x, weight, x_scale, w_scale, bias, out_dtype, ...)",
        "trtllm::fp8_block_scaling_gemm(x, weight, x_scale, w_scale, ...)",
        "trtllm::fp8_block_scaling_gemm_impl(x, weight, x_scale, w_scale)",
        "trtllm::mxfp8_mxfp8_gemm(x, x_scale, weight, w_scale, zero, out_dtype)",
    ),
)
def scaled_product(
    x: Tensor,
    weight: Tensor,
    x_scale: Tensor | None = None,
    w_scale: Tensor | None = None,
    bias: Tensor | None = None,
    out: Tensor | None = None,
    out_dtype: Dtype = "bfloat16",
    zero: Tensor | None = None,
    more_zero: Tensor | None = None,
    _workspace: Tensor | None = None,
) -> Work:
    """x[.., k] times a weight of n columns, both in float8 or int8, times scales (+ bias[n]).

    FLOPs: 2 rows n k; scales, zeros and bias are not counted.
    Bytes: x, weight, scales and bias read, the output written in its own type or the requested
    type, by default bfloat16.

    Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp, csrc/rocm/torch_bindings.cpp,
    vllm/_aiter_ops.py and vllm/model_executor/layers/quantization/utils/fp8_utils.py; SGLang
    sgl-kernel/csrc/common_extension.cc; aiter aiter/ops/gemm_op_a8w8.py; TensorRT-LLM
    cpp/tensorrt_llm/thop/cublasScaledMM.cpp and fp8BlockScalingGemm.cpp.
    """
    product = dense(x, weight, out, asked_type(out_dtype))
    return Work((forward(product, *present(x_scale, w_scale, zero, more_zero, bias)),))


_FP4: Final = "(x, weight, x_scale, w_scale, alpha, {}out_dtype, ...)"


@op(
    None,
    aten=(
        "_C::cutlass_scaled_fp4_mm(out, x, weight, x_scale, w_scale, alpha)",
        "sgl_kernel::cutlass_scaled_fp4_mm(out, x, weight, x_scale, w_scale, alpha)",
        "vllm::flashinfer_mm_fp4(x, weight, x_scale, w_scale, alpha, out_dtype, ...)",
        f"trtllm::fp4_gemm{_FP4.format('_, ')}",
        f"trtllm::fp4_gemm_trtllmgen{_FP4.format('_, ')}",
        f"trtllm::nvfp4_gemm{_FP4.format('')}",
        f"trtllm::nvfp4_gemm{_FP4.format('_, ')}",
        "aiter::gemm_a4w4(x, weight, x_scale, w_scale, out, bias, ...)",
        "aiter::gemm_a4w4(x, weight, x_scale, w_scale, bias, out_dtype, ...)",
        "aiter::gemm_a4w4_asm(x, weight, x_scale, w_scale, out, _, bias, ...)",
        "aiter::_gemm_a4w4_asm(x, weight, x_scale, w_scale, out, _, bias, ...)",
        "aiter::gemm_a4w4_blockscale(x, weight, x_scale, w_scale, out, ...)",
        "aiter::gemm_afp4wfp4_(x, weight, x_scale, w_scale, out_dtype, out, ...)",
        "aiter::batched_gemm_a16wfp4_(x, weight, w_scale, out_dtype, out, ...)",
        "vllm::gemm_with_dynamic_quant(x, weight, w_scale, _, out_dtype, x_scale)",
    ),
)
def float4_product(
    x: Tensor,
    weight: Tensor,
    x_scale: Tensor | None = None,
    w_scale: Tensor | None = None,
    alpha: Tensor | None = None,
    bias: Tensor | None = None,
    out: Tensor | None = None,
    out_dtype: Dtype = "bfloat16",
) -> Work:
    """x[.., k / 2] times a weight of n columns, both in float4 pairs, times scales (+ bias[n]).

    FLOPs: 2 rows n k: an element contains two numbers, also if its type is recorded as uint8; x may
    have 16 bits, [.., k].
    Bytes: x, weight, scales and bias read, the output written in its own type or the requested
    type, by default bfloat16.

    Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp and vllm/utils/flashinfer.py, SGLang
    sgl-kernel/csrc/common_extension.cc, aiter aiter/ops/gemm_op_a4w4.py and
    aiter/ops/triton/gemm/batched/batched_gemm_a16wfp4.py, TensorRT-LLM
    cpp/tensorrt_llm/thop/fp4Gemm.cpp.
    """
    if canonical_type(weight.dtype) is None:
        weight = Tensor(weight.shape, "uint8", weight.strides)
    product = dense(x, weight, out, asked_type(out_dtype), float4=True)
    return Work((forward(product, *present(x_scale, w_scale, alpha, bias)),))
