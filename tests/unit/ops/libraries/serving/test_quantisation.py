"""Quantisation in serving stacks: given and computed scales, experts' rows; dequantisation."""

from unit.ops.libraries.serving.serving_calls import fp8, int8, int32, reason, uint8
from unit.ops.ops_calls import aten, bf16, fp16, fp32
from unit.ops.ops_examples import Rows

N, X = 64, 128  # elements and bytes of x [4, 16] bf16
VALUES = {
    "x": bf16(4, 16), "small": fp8(4, 16), "i8": int8(4, 16), "scale": fp32(1), "zero": int32(1),
    "scales": fp32(4, 1), "groups": fp32(4, 2), "four": uint8(4, 8), "starts": int32(3),
    "smooth": fp32(2, 16), "limit": fp32(2), "w4": int32(16, 4), "ws": fp16(2, 32),
    "zeros": int32(2, 4), "raw": uint8(32, 18),
    "k": bf16(4, 8), "v": bf16(4, 8), "pool": fp8(90, 8), "slots": int32(4),
}  # fmt: skip
rows = Rows(VALUES)

WITH_SCALE = """
_C::static_scaled_fp8_quant small x scale -
aiter::static_per_tensor_quant small x scale
tensorrt_llm::static_quantize_e4m3_per_tensor x scale
trtllm::static_quantize_e4m3_per_tensor x scale
trtllm::static_quantize_e4m3_activation x scale
sgl_kernel::sgl_per_tensor_quant_fp8 x small scale true
vllm::rocm_aiter_per_tensor_quant small x scale false
"""
BY_TENSOR = """
_C::dynamic_scaled_fp8_quant small x scale
aiter::dynamic_per_tensor_quant small x scale
sgl_kernel::sgl_per_tensor_quant_fp8 x small scale false
vllm::rocm_aiter_per_tensor_quant small x scale true
"""
BY_ROW = """
_C::dynamic_per_token_scaled_fp8_quant small x scales -
_C::dynamic_scaled_int8_quant i8 x scales -
sgl_kernel::sgl_per_token_quant_fp8 x small scales
aiter::dynamic_per_token_scaled_quant small x scales - false - 1
"""
BY_GROUP = """
_C::per_token_group_fp8_quant x small groups 8 0.1 0.0 448.0 false false false
_C::per_token_group_fp8_quant_packed x small groups 8 0.1 0.0 448.0
_C::per_token_group_quant_int8 x i8 groups 8 0.1 0.0 127.0
sgl_kernel::sgl_per_token_group_quant_fp8 x small groups 8 0.1 0.0 448.0 false
sgl_kernel::sgl_per_token_group_quant_int8 x i8 groups 8 0.1 0.0 127.0
sgl_kernel::sgl_per_token_group_quant_8bit x small groups 8 0.1 0.0 448.0 false
aiter::dynamic_per_group_scaled_quant small x groups 8 false - 1
"""
FLOAT4 = """
_C::scaled_fp4_quant four x groups scale true
_C::scaled_fp4_quant x scale true four groups
sgl_kernel::scaled_fp4_quant four x groups scale
"""
OF_SOME = """
_C::scaled_fp4_experts_quant four groups x limit starts starts
sgl_kernel::scaled_fp4_experts_quant four groups x limit starts starts
"""
NEW = """
vllm::triton_per_token_group_quant_fp8 x 8
vllm::rocm_aiter_group_fp8_quant x 8 false
vllm::rocm_aiter_per_token_quant x 24 -
aiter::per_token_quant_hip x - 24 - 1
aiter::per_group_quant_hip x - 24 8 false - 1
trtllm::mxfp8_quantize x true 32
trtllm::fp8_quantize_1x128_packed_ue8m0 x false
tensorrt_llm::quantize_e4m3_per_tensor x
trtllm::quantize_e4m3_per_tensor x
trtllm::quantize_e4m3_activation x
trtllm::fp8_quantize_1x128 x false
"""
ESTIMATES = [
    *rows(OF_SOME, 5 * N, X + 32 + 32 + 8 + 2 * 12),
    *rows(
        """_C::mxfp4_experts_quant four groups x starts starts 2
        _C::mxfp8_experts_quant x starts starts starts four groups
        aiter::fused_dynamic_mx_quant_moe_sort_hip four groups x starts starts 1 1 1
        aiter::fused_dynamic_mxfp4_quant_moe_sort_hip four groups x starts starts 1 1 1""",
        5 * N, X + 32 + 32 + 2 * 12,
    ),
    *rows("aiter::moe_smoothquant_fwd i8 x smooth starts scales", 5 * N, X + 64 + 128 + 12 + 16),
    *rows("sgl_kernel::sgl_per_tensor_quant_fp8 x small scale _", 5 * N, 2 * X + N + 4),
]  # fmt: skip
EXAMPLES = [
    *rows(WITH_SCALE, 3 * N, X + 4 + N, "[4,16]bf16"),
    *rows("_C::static_scaled_int8_quant i8 x scale zero", 3 * N, X + 4 + 4 + N),
    *rows(BY_TENSOR, 5 * N, 2 * X + N + 4),
    *rows(BY_ROW, 5 * N, X + N + 16),
    *rows("aiter::smoothquant_fwd i8 x smooth scales", 5 * N, X + 128 + N + 16),
    *rows(BY_GROUP, 5 * N, X + N + 32),
    *rows(FLOAT4, 5 * N, X + 32 + 32 + 4),
    *rows(
        """aiter::dynamic_per_group_scaled_quant_fp4 four x groups 32 true - 1
        aiter::quant_mxfp4 x four groups 32 true""",
        5 * N, X + 32 + 32,
    ),
    *rows("_C::scaled_fp4_quant x scale true", 5 * N, X + 32 + 4),
    *rows("trtllm::fp4_quantize x scale 16 false true", 5 * N, X + 32 + 4),
    *rows(NEW, 5 * N, X + N),
    *rows("aiter::per_token_quant_hip x - 1 - 1", 5 * N, X + N),  # int8
    *rows(
        "sgl_kernel::downcast_fp8 k v pool pool scale scale slots 4 8 2",
        3 * 64, 2 * 64 + 8 + 2 * 32,
    ),
    # [16, 4] of 8 weights each are [16, 32].
    *rows(
        """_C::awq_dequantize w4 ws zeros 0 0 0
        sgl_kernel::awq_dequantize w4 ws zeros""",
        2 * 512, 256 + 128 + 32 + 2 * 512,
    ),
    *rows("_C::ggml_dequantize raw 2 32 32 5", 2 * 1024, 32 * 18 + 2 * 1024),
    *ESTIMATES,
]  # fmt: skip


def test_what_the_capture_does_not_hold_is_said():
    call = aten("_C::ggml_dequantize", uint8(32, 18), 2, None, None, None)
    assert reason(call) == "the sizes of the weights are not in the capture"
    call = aten("trtllm::fp4_quantize", bf16(4, 15), fp32(1), 16, False, True)
    assert reason(call) == "(4, 15) has no pairs of numbers"
