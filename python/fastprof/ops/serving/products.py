"""Matrix products of serving stacks: float16, and scaled float8, float4 and int8."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import Work
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.dtypes import Dtype
from fastprof.ops.matrix.product import forward
from fastprof.ops.registry import operators
from fastprof.ops.serving.sizes import dense
from fastprof.ops.tensor import canonical_type
from fastprof.ops.traffic import present


@operators("""
    (out, x, weight): _C::dsv3_fused_a_gemm _C::fp32_router_gemm
        sglang::flashinfer_dsv3_router_gemm _moe_C::dsv3_router_gemm
        sgl_kernel::dsv3_fused_a_gemm sgl_kernel::dsv3_router_gemm
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


@operators("""
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


@operators("""
    (out, x, weight, x_scale, w_scale, alpha): _C::cutlass_scaled_fp4_mm
        sgl_kernel::cutlass_scaled_fp4_mm
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
