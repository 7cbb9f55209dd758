"""All-reduces of serving stacks, with and without a fused norm; gathers and scatters."""

from fastprof.model.call import UNKNOWN
from unit.ops.libraries.serving.serving_calls import fp8, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp32, tensor
from unit.ops.ops_examples import Rows

# x [4, 8] bf16: 32 elements, 64 bytes.
N, X, W = 32, 64, 16
VALUES = {
    "x": bf16(4, 8), "out": bf16(4, 8), "r": bf16(4, 8), "r2": bf16(4, 8), "w": bf16(8),
    "buf": uint8(1 << 20), "small": fp8(4, 8), "scales": fp32(4, 1), "scale": fp32(1),
    "all": bf16(16, 8), "piece": bf16(1, 8), "ranks": (0, 1, 2, 3), "b": bf16(8),
    "space": tensor("int64", 7),
}  # fmt: skip
rows = Rows(VALUES)

REDUCED = """
_C_custom_ar::all_reduce _ x out 12345 8388608
_C_custom_ar::all_reduce_reg _ x out
_C_custom_ar::all_reduce_unreg _ x buf out
_C_custom_ar::qr_all_reduce _ x out 1 false
sgl_kernel::all_reduce _ x out 12345 8388608
sgl_kernel::all_reduce_reg _ x out
sgl_kernel::all_reduce_unreg _ x buf out
sgl_kernel::deterministic_all_reduce_reg _ x out
sgl_kernel::deterministic_all_reduce_unreg _ x buf out
sgl_kernel::qr_all_reduce _ x out 1 false
sgl_kernel::mscclpp_allreduce _ x out 24 512
aiter::all_reduce _ x out true false -
aiter::all_reduce_ x _ true
aiter::qr_all_reduce _ x out 1 false
vllm::all_reduce x _
vllm::all_reduce_symmetric_with_copy x
vllm::inplace_all_reduce x _
vllm::outplace_all_reduce x _ _
sglang::inplace_all_reduce x _
sglang::outplace_all_reduce x _ _
trtllm::userbuffers_allreduce_finalize x false
"""
NORMED = """
sglang::flashinfer_allreduce_residual_rmsnorm x r w 0.1 2048 true true false
vllm::rocm_aiter_fused_allreduce_rmsnorm x r w 0.1
aiter::fused_allreduce_rmsnorm_ x r w 0.1 _
aiter::fused_allreduce_rmsnorm _ x r r2 out w 0.1 -
aiter::fused_allreduce_rmsnorm_pad _ x r r2 out w 0.1 -
trtllm::allreduce x r w - - - ranks 1 1 0.1 false
trtllm::autotuned_allreduce x r w - - - ranks 1 1 0.1 false
trtllm::allreduce_pg x r w - - - ranks 0 _ 1 1 0.1 false
trtllm::mnnvl_fusion_allreduce x w r 0.1 buf buf false
vllm::flashinfer_trtllm_fused_allreduce_norm x r w 0.1 4 0 true true 2048 1 - - - -
vllm::flashinfer_trtllm_fused_allreduce_norm x r w 0.1 4 0 true true 2048 1 1 - - - -
vllm::flashinfer_trtllm_fused_allreduce_norm x r w 0.1 4 0 true true 2048 1 1 1 - - - -
"""
QUANTISED = """
aiter::fused_allreduce_rmsnorm_quant _ x r r2 small scales w 0.1 -
aiter::fused_allreduce_rmsnorm_quant_per_group _ x r r2 small scales w 0.1 8 -
aiter::fused_allreduce_rmsnorm_mxfp4_quant _ x r r2 small scales w 0.1 8 -
"""
ESTIMATES = [
    *rows(REDUCED, N, 2 * X, "[4,8]bf16"),
    *rows("trtllm::allreduce x - - - - - ranks 1 1 0.1 false", N, 2 * X),
    # The sum, the new residual and the norm: 1 + 1 + 4 for an element.
    *rows(NORMED, 6 * N, 4 * X + W, "[4,8]bf16;[8]bf16"),
    *rows(QUANTISED, 11 * N, 3 * X + W + N + 16),
    *rows(
        "vllm::flashinfer_trtllm_fused_allreduce_norm x r w 0.1 4 0 true true 2048 1 - small -"
        " scale",
        11 * N, 3 * X + W + N + 4,
    ),
    *rows(
        "_C::minimax_allreduce_rms|trtllm::minimax_allreduce_rms x w space 0 4 0.1",
        6 * N - N, 2 * X + W,
    ),
]  # fmt: skip
EXAMPLES = [
    *ESTIMATES,
    *rows(
        """aiter::all_gather_reg _ x all 0
        aiter::all_gather_unreg _ x buf all 0
        sglang::reg_all_gather_into_tensor all x _
        vllm::all_gather x 0 4 _
        trtllm::allgather x - ranks""",
        0, X + 4 * X,
    ),
    # 4 ranks: 3 numbers added for each of 8.
    *rows(
        """aiter::reduce_scatter _ x piece false
        vllm::reduce_scatter x 0 4 _
        trtllm::reducescatter x - ranks""",
        3 * 8, X + X // 4,
    ),
]  # fmt: skip


def test_ranks_that_are_not_told_are_unknown():
    told = reason(aten("vllm::all_gather", bf16(4, 8), 0, UNKNOWN, UNKNOWN))
    assert told == "the number of ranks is not in the capture"
    told = reason(aten("vllm::reduce_scatter", bf16(4, 8), 0, UNKNOWN, UNKNOWN))
    assert told == "the number of ranks is not in the capture, or does not divide"
