"""Activations of serving stacks: gated, plain, quantised."""

from unit.ops.libraries.serving.serving_calls import fp8, int32, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp16, fp32
from unit.ops.ops_examples import Rows

# x [4, 16] bf16 has 128 bytes, its halves 32 elements and 64 bytes.
X, N, OUT = 128, 32, 64
VALUES = {
    "x": bf16(4, 16), "out": bf16(4, 8), "plain": bf16(4, 16), "scale": fp32(1), "small": fp8(4, 8),
    "packed": uint8(4, 4), "scales": fp32(4, 1), "starts": int32(3), "limit": fp32(2),
}  # fmt: skip
rows = Rows(VALUES)
SILU, GELU, TANH = 24, 25, 29  # silu 23, gelu 24, gelu by tanh 28, each times the other half

OF_SOME = """
_C::silu_and_mul_scaled_fp4_experts_quant packed scales x limit starts starts
sgl_kernel::silu_and_mul_scaled_fp4_experts_quant packed scales x limit starts true
"""
ESTIMATES = [
    *rows(OF_SOME, 29 * N, X + 16 + 16 + 8 + 12),
    *rows(
        "_C::silu_and_mul_mxfp4_experts_quant packed scales x starts starts 2",
        29 * N,
        X + 16 + 16 + 12,
    ),
    *rows(
        "_C::persistent_masked_m_silu_mul_quant x starts small scales true",
        29 * N,
        X + 12 + 32 + 16,
    ),
]
EXAMPLES = [
    *rows(
        """_C::silu_and_mul out x
        _C::mul_and_silu out x
        sgl_kernel::silu_and_mul out x
        aiter::silu_and_mul out x
        flashinfer::silu_and_mul out x true
        trtllm::flashinfer_silu_and_mul x""",
        SILU * N, X + OUT, "[4,16]bf16",
    ),
    *rows(
        """_C::gelu_and_mul out x
        sgl_kernel::gelu_and_mul out x
        aiter::gelu_and_mul out x
        flashinfer::gelu_and_mul out x true""",
        GELU * N, X + OUT,
    ),
    *rows(
        """_C::gelu_tanh_and_mul out x
        sgl_kernel::gelu_tanh_and_mul out x
        aiter::gelu_tanh_and_mul out x
        flashinfer::gelu_tanh_and_mul out x true
        trtllm::flashinfer_gelu_tanh_and_mul x""",
        TANH * N, X + OUT,
    ),
    *rows("_C::fatrelu_and_mul out x 0.5", 2 * N, X + OUT),
    *rows(
        """_C::swigluoai_and_mul out x 1.702 7.0
        _C::silu_and_mul_with_clamp out x 7.0""",
        29 * N, X + OUT,
    ),
    *rows("_C::gelu_new|_C::gelu_fast|aiter::gelu_fast plain x", 28 * 2 * N, 2 * X),
    *rows("_C::gelu_quick|sgl_kernel::gelu_quick plain x", 24 * 2 * N, 2 * X),
    *rows(
        """_C::silu_and_mul_quant small x scale
        aiter::scaled_silu_and_mul small x scale
        trtllm::silu_and_mul x scale _""",
        27 * N, X + 4 + 32,
    ),
    *rows("trtllm::silu_and_mul x - -", SILU * N, X + OUT),
    *rows("_C::silu_and_mul_per_block_quant small x scales 8 - false", 29 * N, X + 32 + 16),
    *rows("_C::silu_and_mul_nvfp4_quant packed scales x limit", 29 * N, X + 16 + 16 + 8),
    *rows("vllm::rocm_aiter_act_mul_and_fp8_group_quant x 8", 29 * N, X + 32),
    *ESTIMATES,
]  # fmt: skip


def test_halves_that_do_not_fit_are_unknown():
    assert reason(aten("_C::silu_and_mul", fp16(4, 8), fp16(4, 15))) == "(4, 15) has no two halves"
    assert (
        reason(aten("_C::silu_and_mul", fp16(4, 7), fp16(4, 16))) == "(4, 7) is not half of (4, 16)"
    )
