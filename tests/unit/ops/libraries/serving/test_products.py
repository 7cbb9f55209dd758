"""Products of serving stacks: float16, float8, float4, and weights packed to few bits."""

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from unit.ops.libraries.serving.serving_calls import fp8, int8, int32, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp16, fp32, int64, tensor
from unit.ops.ops_examples import Rows, listed

# x [5, 32] times a weight of 16 columns.
FLOPS = 2 * 5 * 16 * 32
VALUES = {
    "x": bf16(5, 32), "w": bf16(16, 32), "wt": bf16(32, 16), "out": bf16(5, 16), "b": bf16(16),
    "x8": fp8(5, 32), "w8": fp8(16, 32), "w8t": fp8(32, 16), "xi": int8(5, 32), "wi": int8(32, 16),
    "xs": fp32(5, 1), "ws": fp32(16, 1), "s": fp32(1), "zero": int32(16), "point": int32(5, 1),
    "space": uint8(1 << 20), "sem": tensor("uint32", 64),
    "xb": fp8(3, 5, 32), "wb": fp8(3, 32, 16), "ob": bf16(3, 5, 16),
    "x4": uint8(5, 16), "w4": uint8(16, 16), "xg": fp8(5, 2), "wg": fp8(16, 2), "alpha": fp32(1),
}  # fmt: skip
rows = Rows(VALUES)
X, W, OUT, B = 2 * 5 * 32, 2 * 16 * 32, 2 * 5 * 16, 2 * 16
X8, W8 = X // 2, W // 2
SCALES = 4 * 5 + 4 * 16

PLAIN = """
_C::dsv3_fused_a_gemm out x w
_C::fp32_router_gemm out x w
sglang::flashinfer_dsv3_router_gemm out x w
_moe_C::dsv3_router_gemm out x w
sgl_kernel::dsv3_fused_a_gemm out x w
sgl_kernel::dsv3_router_gemm out x w
_rocm_C::LLMM1 w x 4
_rocm_C::wvSplitK w x - 304
_rocm_C::wvSplitK w x 304
aiter::gemm_a16w16 x w - - - - -
aiter::gemm_a16w16_atomic_ x w 15 out _
aiter::gemm_a16w16_asm x w out - _ _ false
aiter::hipb_mm x wt 5 - 15 - - - false
vllm::rocm_unquantized_gemm x w -
trtllm::cublas_mm x wt - - -
trtllm::dsv3_router_gemm_op x wt - 15
trtllm::dsv3_fused_a_gemm_op x wt - 15
sglang_profiler::gemm_kernels_flydsl_hgemm x w out
sglang_profiler::gemm_kernels_flydsl_hgemm_0 x w out
"""
BIASED = """
_rocm_C::wvSplitK w x b 304
_rocm_C::wvSplitKrc w x b 304
aiter::gemm_a16w16 x w b - - - -
vllm::rocm_unquantized_gemm x w b
trtllm::cublas_mm x wt b - -
"""
SCALED = """
_C::cutlass_scaled_mm out x8 w8t xs ws -
sgl_kernel::int8_scaled_mm xi wi xs ws 15 -
sgl_kernel::fp8_scaled_mm x8 w8t xs ws 15 -
sgl_kernel::fp8_blockwise_scaled_mm x8 w8t xs ws 15
vllm::bmm_fp8 x8 w8t xs ws 15 -
_rocm_C::wvSplitKQ w8 x8 - out ws xs 304
_rocm_C::wvSplitKQ w8 x8 out ws xs 304
aiter::gemm_a8w8 x8 w8 xs ws - 15 -
aiter::gemm_a8w8_bpreshuffle x8 w8 xs ws - 15 false
aiter::gemm_a8w8_ck x8 w8 xs ws out - 0
aiter::gemm_a8w8_bpreshuffle_ck x8 w8 xs ws out 0 -
aiter::gemm_a8w8_bpreshuffle_cktile x8 w8 xs ws out 0 -
aiter::gemm_a8w8_asm x8 w8 xs ws out - - true 0.0 -
aiter::_gemm_a8w8_asm x8 w8 xs ws out - - true 0 -
aiter::gemm_a8w8_blockscale x8 w8 xs ws 15 false
aiter::gemm_a8w8_blockscale_bpreshuffle x8 w8 xs ws 15
aiter::gemm_a8w8_blockscale_ck x8 w8 xs ws out
aiter::gemm_a8w8_blockscale_cktile x8 w8 xs ws out
aiter::gemm_a8w8_blockscale_bpreshuffle_ck x8 w8 xs ws out
aiter::gemm_a8w8_blockscale_bpreshuffle_cktile x8 w8 xs ws out
aiter::_gemm_a8w8_blockscale_bpreshuffle_asm x8 w8 out xs ws - 0 - true
aiter::flatmm_a8w8_blockscale_asm x8 w8 xs ws out
aiter::_flatmm_a8w8_blockscale_asm x8 w8 xs ws out
aiter::gfx950_a8w8_blockscale_asm x8 w8 xs ws out
vllm::rocm_aiter_gemm_w8a8 x8 w8 xs ws - 15
vllm::rocm_aiter_w8a8_gemm x8 w8 xs ws - 15
vllm::rocm_aiter_preshuffled_per_token_w8a8_gemm x8 w8 xs ws - 15
vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm x8 w8 xs ws - 15
vllm::rocm_aiter_hipb_mm_fp8 x8 w8 xs ws - 15
vllm::rocm_aiter_gemm_a8w8_bpreshuffle x8 w8 15 xs ws
vllm::rocm_aiter_gemm_a8w8_blockscale x8 w8 xs ws 15
vllm::rocm_aiter_gemm_a8w8_blockscale_bpreshuffle x8 w8 xs ws 15
vllm::rocm_aiter_triton_gemm_a8w8_blockscale x8 w8 xs ws 15
vllm::rocm_per_tensor_float_w8a8_scaled_mm_impl x8 w8 15 xs ws -
vllm::w8a8_triton_block_scaled_mm_func x8 w8 xs ws _ 15
vllm::padded_cutlass x8 w8 xs ws _ 15
vllm::fp8_gemm_nt_op x8 xs w8 ws out true
sglang::deep_gemm_fp8_fp8_bf16_nt x8 xs w8 ws out
sglang_profiler::fp8_utils_gemm_a8w8_blockscale x8 w8 xs ws
sglang_profiler::fp8_utils_gemm_a8w8_blockscale_7 x8 w8 xs ws
sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale x8 w8 xs ws
trtllm::cublas_scaled_mm x8 w8t xs ws - 15 false
trtllm::cuda_scaled_mm x8 w8t xs ws - 15 false
trtllm::fp8_block_scaling_gemm x8 w8 xs ws 4096
trtllm::fp8_block_scaling_gemm_impl x8 w8 xs ws
trtllm::mxfp8_mxfp8_gemm x8 xs w8 ws - 15
"""
BATCHED = """
sgl_kernel::bmm_fp8 xb wb ob s s space 0
flashinfer::bmm_fp8 space xb wb s s ob
aiter::batched_gemm_a8w8 xb wb s s ob - 0
"""
FLOAT4 = """
_C::cutlass_scaled_fp4_mm out x4 w4 xg wg alpha
sgl_kernel::cutlass_scaled_fp4_mm out x4 w4 xg wg alpha
vllm::flashinfer_mm_fp4 x4 w4 xg wg alpha 15 true _
trtllm::fp4_gemm x4 w4 xg wg alpha 1 15
trtllm::fp4_gemm_trtllmgen x4 w4 xg wg alpha 1 15
trtllm::nvfp4_gemm x4 w4 xg wg alpha 15 false _
"""
FLOAT4_PLAIN = """
aiter::gemm_a4w4 x4 w4 xg wg out - 1.0 0.0 true
aiter::gemm_a4w4 x4 w4 xg wg - 15 1.0 0.0 true
aiter::gemm_a4w4_asm x4 w4 xg wg out _ - 1.0 0.0 true
aiter::_gemm_a4w4_asm x4 w4 xg wg out _ - 1.0 0.0 true
aiter::gemm_a4w4_blockscale x4 w4 xg wg out 0
aiter::gemm_afp4wfp4_ x4 w4 xg wg 15 out _
"""

EXAMPLES = [
    *rows(PLAIN, FLOPS, X + W + OUT, "M=16,N=5,K=32,bf16,"),
    *rows(BIASED, FLOPS, X + W + OUT + B),
    *rows("aiter::_gemm_a16w16_asm x w out sem - _ _ false", FLOPS, X + W + OUT),
    *rows(SCALED, FLOPS, X8 + W8 + SCALES + OUT),
    *rows(
        "_C::cutlass_scaled_mm_azp out xi wi xs ws zero point b",
        FLOPS, X8 + W8 + SCALES + OUT + 64 + 20 + B,
    ),
    *rows(BATCHED, 3 * FLOPS, 3 * (X8 + W8 + OUT) + 8),
    # Two float4 numbers in a byte.
    *rows(FLOAT4, FLOPS, X8 // 2 + W8 // 2 + 2 * 5 + 2 * 16 + 4 + OUT),
    # x of 16 bits: [5, 32] times [16, 16 pairs].
    *rows(
        "vllm::gemm_with_dynamic_quant x w4 wg false 15 -",
        FLOPS, X + W8 // 2 + 2 * 16 + OUT, "M=16,N=5,K=32,na,",
    ),
    *listed(
        "aiter::batched_gemm_a16wfp4_ xh wh s 15 ob - false true -",
        {**VALUES, "xh": bf16(3, 5, 32), "wh": uint8(3, 16, 16)},
        3 * FLOPS, 3 * (X + W8 // 2 + OUT) + 4,
    ),
    *rows(FLOAT4_PLAIN, FLOPS, X8 // 2 + W8 // 2 + 2 * 5 + 2 * 16 + OUT),
]  # fmt: skip


def test_params_name_the_type_of_the_operands():
    done = work(aten("_C::cutlass_scaled_mm", bf16(5, 16), fp8(5, 32), fp8(32, 16), fp32(1),
                     fp32(1), None), "fprop")  # fmt: skip
    assert done.parts[0].params == "M=16,N=5,K=32,fp8,"


def test_sizes_that_do_not_fit_are_unknown():
    call = aten("_moe_C::dsv3_router_gemm", bf16(5, 15), bf16(5, 32), bf16(16, 32))
    assert reason(call) == "an output (5, 15) does not have 16 columns"
    call = aten("_moe_C::dsv3_router_gemm", bf16(5, 16), bf16(5, 33), bf16(16, 32))
    assert reason(call) == "cannot multiply (5, 33) and (16, 32)"


# Packed: GPTQ has 8 weights of 4 bits along k in an int32, AWQ along n, Marlin tiles of 16.
PACKED = {
    "x": fp16(5, 64), "gptq": int32(8, 16), "awq": int32(64, 2), "marlin": int32(4, 32),
    "s": fp16(2, 16), "z": int32(2, 2), "order": int32(64), "out": fp16(5, 16), "b": fp16(16),
    "space": int32(128), "meta": tensor("int16", 4, 32), "gs": fp16(1), "perm": int32(64),
    "xi": int8(5, 64), "w8": int8(64, 16), "half": int8(16, 32), "one": fp16(16), "sums": fp16(5),
    "row": fp16(5), "gi": int8(2, 16), "raw": uint8(16, 36), "m8": int32(4, 64),
    "mach": int32(8, 16), "xf": fp8(5, 64), "xt": fp32(5, 1), "ch": fp32(16, 1), "w4": int32(64, 2),
}  # fmt: skip
packed = Rows(PACKED)
PACKED_FLOPS = 2 * 5 * 16 * 64
PX, PW, PS, PZ, PO, OUT16 = 2 * 5 * 64, 4 * 8 * 16, 2 * 2 * 16, 4 * 2 * 2, 4 * 64, 2 * 5 * 16

GPTQ = """
_C::gptq_gemm x gptq z s order true false 4
sgl_kernel::gptq_gemm x gptq z s order true 4
_rocm_C::gptq_gemm_rdna3 x gptq z s order true
_rocm_C::gptq_gemm_rdna3_wmma x gptq z s order true
"""
MARLIN = """
_C::gptq_marlin_gemm x out marlin s - z order perm space 4 5 16 64 true false true false
_C::gptq_marlin_gemm x marlin s z order perm space 4 5 16 64 true false true false
sgl_kernel::gptq_marlin_gemm x out marlin s - z order perm space 4 5 16 64 true false true false
"""
MARLIN_BIAS = """
_C::marlin_gemm x out marlin b s - - z order perm space 4 5 16 64 true false true false
_C::gptq_marlin_gemm x out marlin b s - - z order perm space 4 5 16 64 true false true false
_C::gptq_marlin_gemm x out marlin b s - z order perm space 4 5 16 64 true false true false
"""
REPACKED = """
_C::gptq_marlin_repack gptq order 64 16 4
_C::gptq_shuffle gptq order 4
_C::permute_cols gptq order
sgl_kernel::gptq_marlin_repack gptq order 64 16 4
sgl_kernel::gptq_shuffle gptq order 4
"""
REPACKED_PLAIN = """
_C::awq_marlin_repack gptq 64 16 4
_C::machete_prepack_B gptq 5 _ _
_C::cutlass_encode_and_reorder_int4b gptq
sgl_kernel::awq_marlin_repack gptq 64 16 4
"""
PACKED_EXAMPLES = [
    *packed(GPTQ, PACKED_FLOPS, PX + PW + PZ + PS + PO + OUT16),
    *packed("_C::awq_gemm x awq s z 8", PACKED_FLOPS, PX + PW + PS + PZ + OUT16),
    *packed(
        "_C::allspark_w8a16_gemm x w8 s - 16 -1 80 9 1024 false true",
        PACKED_FLOPS, PX + 64 * 16 + PS + OUT16,
    ),
    *packed(
        "_C::machete_mm x mach 5 - s - 32 - - -",
        PACKED_FLOPS, PX + PW + PS + OUT16, "M=16,N=5,K=64,fp16,",
    ),
    # Activations of 8 bits: scales of columns and rows, output float16.
    *packed(
        "_C::machete_mm xi mach 5 - - - - ch xt -",
        PACKED_FLOPS, PX // 2 + PW + 4 * 16 + 4 * 5 + OUT16,
    ),
    *packed(
        "_C::cutlass_w4a8_mm xf w4 s 32 one sums - -",
        PACKED_FLOPS, PX // 2 + PW + PS + 32 + 10 + OUT16,
    ),
    *packed(
        "_C::ggml_mul_mat_a8|_C::ggml_mul_mat_vec_a8 raw x 2 16",
        PACKED_FLOPS, 16 * 36 + PX + OUT16,
    ),
    *packed(
        "sgl_kernel::qserve_w4a8_per_chn_gemm xi half one row one sums out",
        PACKED_FLOPS, PX // 2 + 512 + 32 + 10 + 32 + 10 + OUT16,
    ),
    *packed(
        "sgl_kernel::qserve_w4a8_per_group_gemm xi half gi gi one row out",
        PACKED_FLOPS, PX // 2 + 512 + 32 + 32 + 32 + 10 + OUT16,
    ),
    *packed(MARLIN, PACKED_FLOPS, PX + PW + PS + PZ + 2 * PO + OUT16),
    *packed(MARLIN_BIAS, PACKED_FLOPS, PX + PW + PS + PZ + 2 * PO + OUT16 + 32),
    *packed(
        "_C::gptq_marlin_24_gemm x marlin meta s space 4 5 16 64",
        PACKED_FLOPS, PX + PW + 256 + PS + OUT16,
    ),
    *packed("_C::fp8_marlin_gemm x m8 s space 8 5 16 64", PACKED_FLOPS, PX + 1024 + PS + OUT16),
    *packed(
        "_C::marlin_qqq_gemm xi marlin xt ch s space 5 16 64",
        PACKED_FLOPS, PX // 2 + PW + 20 + 64 + PS + OUT16,
    ),
    *packed(REPACKED, 0, 2 * PW + PO),
    *packed(REPACKED_PLAIN, 0, 2 * PW),
]  # fmt: skip
EXAMPLES += PACKED_EXAMPLES


def test_columns_come_from_the_scales_where_no_argument_tells_them():
    call = aten("_C::gptq_marlin_gemm", fp16(5, 64), None, int32(4, 32), fp16(2, 16), None, None,
                None, None, int32(128), UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, True)  # fmt: skip
    done = work(call, "fprop")
    assert done.cost.flops == PACKED_FLOPS


def test_a_packed_weight_too_small_for_its_columns_is_unknown():
    call = aten("_C::gptq_gemm", fp16(5, 6400), int32(1, 16), None, fp16(1, 16), None, True, 4)
    assert reason(call) == "(1, 16) does not pack 6400 times 16 numbers"
    assert reason(aten("_C::awq_gemm", fp16(5, 64), int64(64, 2), None, None, 8)) is not None
