"""Mixtures of experts: selection, ordering, products, sums."""

from fastprof.model.call import UNKNOWN
from fastprof.ops import work
from unit.ops.libraries.serving.serving_calls import fp8, int32, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp32
from unit.ops.ops_examples import Rows, listed

# 5 tokens of 16, 8 experts, 2 per token.
SCORES, FOUND = 4 * 5 * 8, 4 * 5 * 2
VALUES = {
    "g": fp32(5, 8), "b": fp32(8), "wt": fp32(5, 2), "ids": int32(5, 2), "src": int32(5, 2),
    "order": int32(10), "blocks": int32(4), "total": int32(1), "sorted": int32(64),
    "sw": fp32(64), "cum": int32(9), "x": bf16(5, 16), "xe": bf16(10, 16), "starts": int32(9),
    "y": bf16(5, 2, 16), "out": bf16(5, 16), "counts": int32(8, 3), "lists": int32(8),
}  # fmt: skip
rows = Rows(VALUES)

SOFTMAX = """
_moe_C::topk_softmax wt ids src g true -
aiter::topk_softmax wt ids src g true 0 -
aiter::topk_softmax_asm wt ids src g true
vllm::rocm_aiter_topk_softmax wt ids src g true
"""
GROUPED = """
_moe_C::grouped_topk g 4 2 2 true 1.0 b 1
_moe_C::grouped_topk g b 4 2 2 true 1.0 1
sgl_kernel::moe_fused_gate g b 4 2 2 0 1.0 false
sgl_kernel::kimi_k2_moe_fused_gate g b 2 true 1.0 false
aiter::biased_grouped_topk_hip g b wt ids 4 2 true 1.0
aiter::biased_grouped_topk g b wt ids 4 2 true 1.0
aiter::moe_fused_gate g b wt ids 4 2 2 0 1.0
vllm::rocm_aiter_biased_grouped_topk g b wt ids 4 2 true 1.0
trtllm::noaux_tc_op g b 4 2 2 1.0
"""
ALIGNED = """
_moe_C::moe_align_block_size ids 8 16 sorted blocks total -
_moe_C::sgl_moe_align_block_size ids 8 16 sorted blocks total
"""
CHOSEN = [
    *rows(SOFTMAX, 25 * 40, SCORES + 3 * FOUND, "[5,8]fp32"),
    *rows("sgl_kernel::topk_softmax wt ids g true 0.0 -", 25 * 40, SCORES + 2 * FOUND),
    *rows("sgl_kernel::topk_softmax wt ids g true 0.0 b", 26 * 40, SCORES + 2 * FOUND + 32),
    *rows("_moe_C::topk_sigmoid wt ids src g true b", 24 * 40, SCORES + 3 * FOUND + 32),
    *rows("sgl_kernel::topk_sigmoid wt ids g true b", 24 * 40, SCORES + 2 * FOUND + 32),
    *rows(
        "aiter::topk_sigmoid|vllm::rocm_aiter_topk_sigmoid wt ids g", 23 * 40, SCORES + 2 * FOUND,
    ),
    *rows(
        "_moe_C::topk_softplus_sqrt|_moe_C::topk_softplus_sqrt_fast wt ids src g true 1.0 b - -",
        63 * 40, SCORES + 3 * FOUND + 32,
    ),
    *rows(
        "aiter::topk_softplus|aiter::topk_gating wt ids g b true 1.0",
        63 * 40, SCORES + 2 * FOUND + 32,
    ),
    *rows(
        """_moe_C::moe_sum y out
        aiter::moe_sum y out
        sgl_kernel::moe_sum y out
        sgl_kernel::moe_sum_reduce y out 1.0""",
        80, 2 * 160 + 160,
    ),
    *rows(
        """_moe_C::moe_unpermute xe wt order starts 2 out
        _moe_C::moe_unpermute xe wt order starts 2 8 out""",
        2 * 160, 320 + 40 + FOUND + 36 + 160,
    ),
    *rows(
        "_moe_C::moe_unpermute xe wt ids order starts 2 8 out",
        2 * 160, 320 + 40 + 2 * FOUND + 36 + 160,
    ),
    *rows("sgl_kernel::apply_shuffle_mul_sum xe out order wt", 320, 320 + 40 + FOUND + 160),
    *rows("trtllm::moe_unpermute xe ids wt", 320, 320 + 2 * FOUND + 160),
    *rows(
        "_moe_C::shuffle_rows|_C::shuffle_rows|sgl_kernel::shuffle_rows x order xe",
        0, 2 * 320 + 40,
    ),
    # Counts of 8 experts, their sizes [8, 3] twice, and two orders of 10.
    *rows(
        """_C::get_cutlass_moe_mm_data ids lists counts counts order order 8 16 16 - false
        sgl_kernel::get_cutlass_w4a8_moe_mm_data ids lists counts counts order order 8 16 16""",
        0, 40 + 32 + 2 * 96 + 2 * 40,
    ),
    *rows(
        "sgl_kernel::prepare_moe_input ids lists lists counts counts order order 8 16 16",
        0, 40 + 2 * 32 + 2 * 96 + 2 * 40,
    ),
    *rows(
        """_C::get_cutlass_batched_moe_mm_data lists counts counts ids 8 16 16 16
        _C::get_cutlass_pplx_moe_mm_data lists counts counts ids 8 16 16 16
        _C::get_cutlass_moe_mm_problem_sizes ids counts counts 8 16 16 lists -
        _C::get_cutlass_moe_mm_problem_sizes_from_expert_offsets ids counts counts lists 16 16""",
        0, 40 + 2 * 96 + 32,
    ),
    *rows("trtllm::moe_permute x - - order 1 2 3", 0, 2 * 320 + 40),
]  # fmt: skip
CHOSEN_ESTIMATES = [
    *rows(GROUPED, 25 * 40, SCORES + 32 + 2 * FOUND),
    *rows(
        """aiter::grouped_topk g wt ids 4 2 true true 1.0
        vllm::rocm_aiter_grouped_topk g wt ids 4 2 true _ 1.0""",
        25 * 40, SCORES + 2 * FOUND,
    ),
    *rows(ALIGNED, 0, 40 + 256 + 16 + 4),
    *rows("_moe_C::batched_moe_align_block_size 8 16 ids sorted blocks total", 0, 316),
    *rows("sgl_kernel::moe_align_block_size ids 8 16 sorted blocks total cum true", 0, 352),
    *rows("aiter::moe_align_block_size ids 8 16 sorted blocks cum total", 0, 352),
    *rows(
        """aiter::moe_sorting_fwd ids wt sorted sw blocks total out 8 16 - - 0
        aiter::moe_sorting_opus_fwd ids wt sorted sw blocks total out 8 16 - - 0""",
        0, 2 * 40 + 2 * 256 + 16 + 4 + 160,
    ),
    *rows(
        """_moe_C::moe_permute x ids src - 8 8 2 xe starts order order
        _moe_C::moe_permute x ids src - 8 8 2 - xe starts order order -
        _moe_C::moe_permute_with_scratch x ids src - 8 8 2 xe starts order order - -""",
        0, 2 * 320 + 2 * 40 + 36 + 2 * 40,
    ),
    *rows("_moe_C::moe_permute x wt ids src 8 2 xe starts order", 0, 2 * 320 + 3 * 40 + 36 + 40),
]  # fmt: skip

# Products: 8 experts, w1 [8, 2 * 12, 16], w2 [8, 16, 12]; 5 tokens, 2 of 8 each: 10 rows.
ONE1, ONE2 = 24 * 16, 16 * 12
ALL = 2 * 10 * (ONE1 + ONE2)
LAYER = {
    "x": bf16(5, 16), "w1": bf16(8, 24, 16), "w2": bf16(8, 16, 12), "wt": fp32(5, 2),
    "ids": int32(5, 2), "out": bf16(5, 16), "so": int32(40), "sw": fp32(40), "se": int32(4),
    "nv": int32(2), "g": fp32(5, 8), "b": fp32(8), "x8": fp8(5, 16), "xs": fp32(1, 5),
    "w18": fp8(8, 24, 16), "w28": fp8(8, 16, 12), "s1": fp32(8, 1, 1), "s2": fp32(8, 1, 1),
    "h": bf16(5, 2, 12), "rows": bf16(10, 16), "y1": bf16(10, 24), "pick": int32(8, 3),
    "r4": uint8(10, 8), "e4": uint8(8, 24, 8), "g4": fp8(10, 1), "h4": fp8(8, 24, 1),
    "q1": int32(8, 1, 48), "sc": bf16(8, 1, 24), "raw": uint8(8, 24, 18), "ptr": fp32(8),
    "half": uint8(8, 24, 8), "half2": uint8(8, 16, 6),
}  # fmt: skip
layer = Rows(LAYER)
XB, W12 = 2 * 5 * 16, 2 * 8 * (ONE1 + ONE2)
FUSED = """
vllm::inplace_fused_experts x w1 w2 wt ids _ false
vllm::outplace_fused_experts x w1 w2 wt ids _ false
vllm::fused_experts x w1 w2 wt ids _ false
vllm::rocm_aiter_fused_moe x w1 w2 wt ids - 0 0
vllm::rocm_aiter_asm_moe_tkw1 x w1 w2 wt ids - -
vllm::rocm_aiter_asm_moe x w1 w2 wt ids - -
vllm::rocm_aiter_ck_moe x w1 w2 wt ids
sglang::inplace_fused_experts x w1 w2 wt ids - -
sglang::outplace_fused_experts x w1 w2 wt ids - -
aiter::fused_moe_ x w1 w2 wt ids - 0
aiter::ck_moe x w1 w2 wt ids - -
"""
SORTED = """
aiter::fmoe out x w1 w2 so sw se nv 2
aiter::fmoe_g1u1 out x w1 w2 so sw se nv 2 xs s1 s2
aiter::fmoe_g1u1_tkw1 out x w1 w2 so sw se nv 2 xs s1 s2
aiter::fmoe_g1u1_a16 out x w1 w2 so sw se nv 2 s1 s2
aiter::fmoe_int8_g1u0 out x w1 w2 so sw se nv 2 xs s1 s2
aiter::fmoe_int8_g1u0_a16 out x w1 w2 so sw se nv 2 s1 s2
aiter::fmoe_fp8_blockscale_g1u1 out x w1 w2 so sw se nv 2 xs s1 s2
"""
ROUTED = """
sglang::trtllm_fp8_block_scale_moe_wrapper g b x8 xs w18 s1 w28 s2 8 2 4 2 12 0 8
flashinfer::trtllm_fp8_block_scale_moe g b x8 xs w18 s1 w28 s2 8 2 4 2 12 0 8
flashinfer::trtllm_fp8_block_scale_moe g - - b x8 xs w18 s1 w28 s2 out 8 2 4 2 12 0 8
trtllm::fp8_block_scale_moe_runner g b x8 xs w18 s1 w28 s2 8 2 4 2 12 0 8
"""
READ8 = 80 + 20 + 160 + 32  # x, its scales, scores, bias
ONE_GROUP = 2 * 10 * 16 + 2 * 8 * ONE1 + 2 * 10 * 24  # rows, all matrices, output
PRODUCTS = [
    *layer(FUSED, ALL, 2 * XB + 2 * FOUND + W12),
    *layer("trtllm::fused_moe x ids wt w1 - w2 - 15 -", ALL, 2 * XB + 2 * FOUND + W12),
    *layer(
        """flashinfer::cutlass_fused_moe out x ids wt w1 - w2 - 15 - -
        flashinfer::cutlass_fused_moe_sm80 out x ids wt w1 w2 15 - -
        flashinfer::cutlass_fused_moe_sm90 out x ids wt w1 w2 15 - -
        flashinfer::cutlass_fused_moe_sm100 out x ids wt w1 w2 15 - -""",
        ALL, 2 * XB + 2 * FOUND + W12,
    ),
    *layer(SORTED, ALL, 2 * XB + W12),
    # 2 numbers in a byte of the weights.
    *layer("aiter::fused_moe_ x half half2 wt ids - 0", ALL, 2 * XB + 2 * FOUND + W12 // 4),
    *layer(ROUTED, ALL, READ8 + 2 * 32 + XB + W12 // 2),
    *layer(
        "trtllm::mxe4m3_mxe2m1_block_scale_moe_runner g b x8 xs w18 s1 - - - - w28 s2 - 8 2 4 2",
        ALL, READ8 + 2 * 32 + XB + W12 // 2,
    ),
    # float4, in pairs: x [5, 8], w1 [8, 24, 8], w2 [8, 16, 6] of a byte each.
    *listed(
        "flashinfer::trtllm_fp4_block_scale_moe g - - b x4 xs half s1 - - - - half2 s2 - ptr ptr"
        " ptr 8 2 4 2 12 0 8",
        {**LAYER, "x4": uint8(5, 8)},
        ALL, 40 + 20 + 160 + 32 + 2 * 32 + XB + W12 // 4,
    ),
    *layer(
        "vllm::flashinfer_fused_moe_blockscale_fp8 g b x8 w18 s1 w28 s2 8 2 4 2 12 0 8",
        ALL, READ8 - 20 + 2 * 32 + XB + W12 // 2,
    ),
    *layer("vllm::flashinfer_fused_moe_bf16 g b x w1 w2 8 2 4 2", ALL, 160 + 160 + 32 + XB + W12),
    *layer(
        "vllm::fi_trtllm_fp8_per_tensor_moe g b x8 - w18 w28 s1 s2 ptr 8 2 4 2",
        ALL, READ8 - 20 + 2 * 32 + XB + W12 // 2,
    ),
    # 8 of 32 experts are local: a quarter of the 10 rows, 3, and 3 matrices of fp8.
    *layer(
        "sglang::trtllm_fp8_block_scale_moe_wrapper g b x8 xs w18 s1 w28 s2 32 2 4 2 12 0 8",
        2 * 3 * (ONE1 + ONE2), READ8 + 2 * 32 + XB + 3 * (ONE1 + ONE2),
    ),
    *layer(
        """aiter::ck_moe_stage1 x w1 w2 so se nv h 2 _ - - -
        aiter::ck_moe_stage1_fwd x w1 w2 so se nv h 2 _ - - -
        aiter::moe_stage1_g1u1 x w1 w2 so se nv h 24 24 _
        aiter::moe_cktile2stages_gemm1_ck x w1 h so se nv 2 0 0 -
        aiter::moe_cktile2stages_gemm1 x w1 h so se nv 2 0 0 -""",
        2 * 10 * ONE1, XB + 2 * 120 + 2 * 8 * ONE1,
    ),
    *layer(
        """aiter::ck_moe_stage2 h w1 w2 so se nv out 2 _ - - -
        aiter::ck_moe_stage2_fwd h w1 w2 so se nv out 2 _ - - -
        aiter::moe_cktile2stages_gemm2_ck h w2 out so se nv 2 0 0 -
        aiter::moe_cktile2stages_gemm2 h w2 out so se nv 2 0 0 -""",
        2 * 10 * ONE2, 2 * 120 + XB + 2 * 8 * ONE2,
    ),
    *layer(
        """_C::cutlass_moe_mm y1 rows w1 s1 s2 ptr pick ptr ptr ptr false false
        _C::cutlass_w4a8_moe_mm y1 rows w1 s1 s2 ptr pick ptr ptr ptr 128
        sgl_kernel::cutlass_w4a8_moe_mm y1 rows w1 s1 s2 ptr pick ptr ptr ptr 128
        _C::cutlass_mxfp8_grouped_mm rows w1 s1 s2 y1 pick ptr ptr
        sgl_kernel::fp8_blockwise_scaled_grouped_mm y1 ptr ptr ptr ptr ptr rows w1 s1 s2 ptr ptr""",
        2 * 10 * ONE1, ONE_GROUP + 2 * 32,
    ),
    *layer(
        "_moe_C::moe_wna16_gemm rows y1 raw s1 - sw so se nv 2 16 64 64 4",
        2 * 10 * ONE1, 320 + 8 * 24 * 18 + 480 + 32,
    ),
    *layer(
        """sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel rows w1 - y1 - - - wt
        sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel_1 rows w1 - y1 - - -""",
        2 * 10 * ONE1, ONE_GROUP,
    ),
    *layer(
        """_C::ggml_moe_a8 x raw so se nv 2 24 2 5
        _C::ggml_moe_a8_vec x raw ids 2 2 24 5""",
        2 * 10 * ONE1, XB + 8 * 24 * 18 + 480,
    ),
    *layer(
        """_C::cutlass_fp4_group_mm y1 r4 e4 g4 h4 ptr pick ptr ptr
        _C::cutlass_mxfp4_group_mm y1 r4 e4 g4 h4 pick ptr ptr
        sgl_kernel::cutlass_fp4_group_mm y1 r4 e4 g4 h4 ptr ptr ptr pick ptr ptr""",
        2 * 10 * ONE1, 80 + 8 * 24 * 8 + 10 + 192 + 480,
    ),
    # 5 rows of 2 experts each: [10, 24].
    *layer(
        """_moe_C::moe_wna16_marlin_gemm x y1 q1 - sc - - - - - so so se nv wt 64 2 false 4 5 24 16
        _moe_C::moe_wna16_marlin_gemm x y1 q1 - sc - - - - so so se nv wt 64 2 false _ 4 5 24 16
        _moe_C::moe_wna16_marlin_gemm x y1 q1 sc - - - so so se nv wt 64 2 false _ 4 5 24 16
        sgl_kernel::moe_wna16_marlin_gemm x y1 q1 sc - - - so so se nv wt 64 2 false _ 4 5 24 16""",
        2 * 10 * ONE1, XB + 480 + 8 * 48 * 4 + 8 * 24 * 2 + FOUND,
    ),
]  # fmt: skip

ESTIMATES = CHOSEN_ESTIMATES + PRODUCTS
EXAMPLES = CHOSEN + ESTIMATES


def test_matrices_of_one_expert_are_read_for_one_row():
    call = aten("aiter::fused_moe_", bf16(1, 16), bf16(8, 24, 16), bf16(8, 16, 12), fp32(1, 2),
                int32(1, 2))  # fmt: skip
    done = work(call, "fprop")
    assert done.cost.flops == 2 * 2 * (ONE1 + ONE2)
    assert done.cost.bytes == 2 * 32 + 2 * 8 + 2 * 2 * (ONE1 + ONE2)


def test_what_does_not_tell_how_many_experts_a_token_has_is_unknown():
    call = aten("sglang::trtllm_fp8_block_scale_moe_wrapper", fp32(5, 8), None, fp8(5, 16), fp32(5),
                fp8(8, 24, 16), fp32(8), fp8(8, 16, 12), fp32(8), 8, UNKNOWN)  # fmt: skip
    assert reason(call) == "the number of experts per token is not in the capture"


def test_weights_that_do_not_fit_are_unknown():
    call = aten("aiter::fused_moe_", bf16(1, 16), bf16(8, 24, 10), bf16(8, 16, 12), fp32(1, 2),
                int32(1, 2))  # fmt: skip
    assert reason(call) == "weights (8, 24, 10) do not fit a width of 16"
