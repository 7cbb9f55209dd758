"""Norms of serving stacks: plain, with a residual, quantised, of heads; layer and group norm."""

from unit.ops.libraries.serving.serving_calls import exact, fp8, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp32
from unit.ops.ops_examples import Rows, check

X, N = 64, 32  # bytes and elements of x [4, 8] bf16
W = 16  # bytes of a weight [8] bf16
VALUES = {
    "x": bf16(4, 8), "out": bf16(4, 8), "w": bf16(8), "r": bf16(4, 8), "r2": bf16(4, 8),
    "y": bf16(4, 8), "small": fp8(4, 8), "scale": fp32(1), "scales": fp32(4, 1), "smooth": fp32(8),
    "limit": fp32(1), "heads": bf16(4, 6 * 8), "cache": bf16(100, 8), "at": fp32(4),
    "image": bf16(2, 6, 5), "c": bf16(6), "space": uint8(1000),
}  # fmt: skip
rows = Rows(VALUES)

PLAIN = """
_C::rms_norm out x w 0.1
sgl_kernel::rmsnorm out x w 0.1 true
sgl_kernel::gemma_rmsnorm out x w 0.1 false
flashinfer::rmsnorm out x w 0.1 true
flashinfer::gemma_rmsnorm out x w 0.1 true
aiter::rmsnorm out x w 0.1
aiter::rms_norm_cu out x w 0.1
aiter::rms_norm x w 0.1 0
aiter::rmsnorm2d_fwd x w 0.1 0
aiter::rmsnorm2d_fwd_ x w 0.1 0
aiter::rmsnorm2d_fwd_ck x w 0.1 0
trtllm::flashinfer_rmsnorm x w 0.1
trtllm::flashinfer_gemma_rmsnorm x w 0.1
vllm::rocm_aiter_rms_norm x w 0.1
sglang_profiler::rmsnorm_rmsnorm2d_fwd x w
sglang_profiler::rmsnorm_rmsnorm2d_fwd_3 x w
sglang_profiler::rmsnorm_rms_norm x w
"""
ADDED = """
_C::fused_add_rms_norm x r w 0.1
sgl_kernel::fused_add_rmsnorm x r w 0.1 true
sgl_kernel::gemma_fused_add_rmsnorm x r w 0.1 true
flashinfer::fused_add_rmsnorm x r w 0.1 true
flashinfer::gemma_fused_add_rmsnorm x r w 0.1 true
trtllm::flashinfer_fused_add_rmsnorm x r w 0.1
trtllm::flashinfer_gemma_fused_add_rmsnorm x r w 0.1
aiter::fused_add_rms_norm_cu x r w 0.1
aiter::add_rmsnorm out x r r2 w 0.1
aiter::rmsnorm2d_fwd_with_add out x r r2 w 0.1 0
aiter::rmsnorm2d_fwd_with_add_ck out x r r2 w 0.1 0
aiter::rmsnorm2d_fwd_with_add_ x w r 0.1
vllm::rocm_aiter_rmsnorm2d_fwd_with_add x r w 0.1
vllm::rocm_aiter_triton_add_rmsnorm_pad x w 0.1 r 256
aiter::fused_add_rmsnorm_pad_ x w 0.1 r 256
sglang_profiler::rmsnorm_rmsnorm2d_fwd_with_add out x r r2 w
sglang_profiler::rmsnorm_rmsnorm2d_fwd_with_add_12 out x r r2 w
"""
TO_SCALE = """
_C::rms_norm_dynamic_per_token_quant small x w scales 0.1 - -
_C::rms_norm_per_block_quant small x w scales 0.1 - - 4 false
aiter::rmsnorm_quant small x scales w 0.1 0 false
aiter::rmsnorm2d_fwd_with_dynamicquant small x scales w 0.1 0
aiter::rmsnorm2d_fwd_with_dynamicquant_ck small x scales w 0.1 0
vllm::rocm_aiter_rmsnorm_fused_dynamic_quant small x w scales 0.1
"""
TO_SCALE_ADDED = """
_C::rms_norm_dynamic_per_token_quant small x w scales 0.1 - r
aiter::add_rmsnorm_quant small x r r2 scales w 0.1 0 false
aiter::rmsnorm2d_fwd_with_add_dynamicquant small x r r2 scales w 0.1 0
aiter::rmsnorm2d_fwd_with_add_dynamicquant_ck small x r r2 scales w 0.1 0
vllm::rocm_aiter_rmsnorm_fused_add_dynamic_quant small x r w scales 0.1
"""
SMOOTH_ADDED = """
aiter::rmsnorm2d_fwd_with_add_smoothquant small x r r2 smooth scales w 0.1 - 0
aiter::rmsnorm2d_fwd_with_add_smoothquant_ck small x r r2 smooth scales w 0.1 - 0
"""
HEADS = """
_C::fused_qk_norm_rope heads 3 1 2 8 0.1 w w cache true at
sgl_kernel::fused_qk_norm_rope heads 3 1 2 8 0.1 w w 10.0 true at 1.0 1.0 1.0 1.0
trtllm::fused_qk_norm_rope heads 3 1 2 8 0.1 w w 10.0 true at 1.0 1.0 1.0 1.0 true
trtllm::fused_qk_norm_rope heads 3 1 2 8 8 0.1 w w 10.0 true at 1.0 1.0 1.0 1.0 true
"""

EXAMPLES = [
    *rows(PLAIN, 4 * N, X + W + X, "[4,8]bf16;[8]bf16"),
    *rows("_C::rms_norm_weightless out x 0.1", 3 * N, 2 * X),
    *rows(ADDED, 5 * N, 4 * X + W),
    *rows("_C::fused_add_rms_norm_weightless x r 0.1", 4 * N, 4 * X),
    *rows("trtllm::flashinfer_fused_add_add_rmsnorm x y r w 0.1", 6 * N, 5 * X + W),
    *rows("_C::rms_norm_static_fp8_quant small x w scale 0.1", 7 * N, X + W + 4 + N),
    *rows("flashinfer::rmsnorm_quant small x w 0.5 0.1 true", 7 * N, X + W + N),
    *rows("flashinfer::rmsnorm_quant small x w scale 0.1", 7 * N, X + W + 4 + N),
    *rows(
        """_C::fused_add_rms_norm_static_fp8_quant small x r w scale 0.1
        flashinfer::fused_add_rmsnorm_quant small x r w scale 0.1
        trtllm::flashinfer_fused_add_rmsnorm_quant small x r w scale 0.1""",
        8 * N, 3 * X + W + 4 + N,
    ),
    *rows(TO_SCALE, 9 * N, X + W + N + 16, "[4,8]bf16;[8]bf16"),
    *rows(TO_SCALE_ADDED, 10 * N, 3 * X + W + N + 16),
    *rows(SMOOTH_ADDED, 11 * N, 3 * X + W + N + 16 + 32),
    *rows(
        """aiter::rmsnorm2d_fwd_with_smoothquant small x smooth scales w 0.1 0
        aiter::rmsnorm2d_fwd_with_smoothquant_ck small x smooth scales w 0.1 0""",
        10 * N, X + W + N + 16 + 32,
    ),
    # Missing in the call: a byte per element.
    *rows("vllm::rocm_aiter_rmsnorm_fp8_group_quant x w 0.1 128", 9 * N, X + W + N),
    *rows("vllm::rocm_aiter_rmsnorm_with_add_fp8_group_quant x r w 0.1 128", 10 * N, 3 * X + W + N),
    # 3 heads of q and 1 of k of 8 in 6 heads: 4 tokens of 32, of 2 bytes; a row of angles each.
    *rows(HEADS.splitlines()[1], 7 * 128, 2 * 256 + 2 * W + 16 + 4 * 16),
    *rows("\n".join(HEADS.splitlines()[2:]), 7 * 128, 2 * 256 + 2 * W + 16),
    *rows("flashinfer::layernorm x w w 0.1", 8 * N, X + 2 * W + X),
    *rows("aiter::layernorm2d_fwd x w w 0.1 -", 8 * N, X + 2 * W + X),
    # [2, 6, 5] in 3 groups: read twice, written, weight and bias, two fp32 numbers per group.
    *rows(
        """aiter::_groupnorm_run image 3 c c 0.1
        aiter::_groupnorm_run image space image 3 c c 0.1""",
        8 * 60, 3 * 120 + 2 * 12 + 2 * 6 * 4,
    ),
]  # fmt: skip


def test_heads_that_are_not_told_are_an_estimate():
    (example,) = rows(
        "_C::fused_qk_norm_rope heads _ _ _ 8 0.1 w w cache true at",
        7 * 192,
        2 * 384 + 2 * W + 16 + 64,
    )
    check(example)
    assert not exact(example)


def test_sizes_that_do_not_fit_are_unknown():
    told = reason(aten("_C::rms_norm", bf16(4, 8), bf16(4, 8), bf16(7), 0.1))
    assert told == "a weight (7,) does not fit (4, 8)"
    told = reason(aten("_C::fused_add_rms_norm", bf16(4, 8), bf16(2, 8), bf16(8), 0.1))
    assert told == "a residual (2, 8) does not fit (4, 8)"
