"""Fused operators of training packages: norms, activations, losses, products, state spaces."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastprof.model.call import UNKNOWN, Tensor
from fastprof.ops import work
from fastprof.ops.registry import find, why_unknown
from fastprof.ops.unmodelled import TRAINING
from unit.ops.ops_examples import Example, aten, bf16, cost, fp16, fp32, int64, tensor

NOTHING = Tensor(())  # a non-tensor argument in a trace

# Rows x[2, 3, 8] in bf16, with a weight and a bias of 8.
X, W, B = bf16(2, 3, 8), bf16(8), bf16(8)
N, ROWS = 48, 6


def both(call, forward, backward, params=None):
    return [Example(call, *forward, params), Example(call, *backward, params, direction="bprop")]


# torch keeps statistics of bf16 rows in float32: two per row for a layer norm, one for an RMS norm.
LAYER = (8 * N, 2 * (N + N + 8 + 8) + 4 * 2 * ROWS)
LAYER_BACK = (13 * N, 2 * (3 * N + 8 + 16) + 4 * 2 * ROWS)
ROOT = (4 * N, 2 * (N + N + 8) + 4 * ROWS)
ROOT_BACK = (9 * N, 2 * (3 * N + 8 + 8) + 4 * ROWS)
NORMS = [
    *(
        example
        for name in (
            "FusedLayerNormAffineFunction",
            "FusedLayerNormAffineMixedDtypesFunction",
            "FastLayerNormFN",
            "LigerLayerNormFunction",
            "Fast_Layernorm",
            "_LayerNorm",
        )
        for example in both(aten(name, X, W, B, 1e-5, False), LAYER, LAYER_BACK)
    ),
    *(
        Example(aten(f"tex_ts::{name}", X, W, B, 1e-5, fp32(1), fp32(1, 3)), *LAYER)
        for name in ("layernorm_fwd_fp8_inf_ts", "layernorm_fwd_inf_ts")
    ),
    *(
        example
        for name in (
            "FusedRMSNormAffineFunction",
            "FusedRMSNormAffineMixedDtypesFunction",
            "LigerRMSNormFunction",
            "Fast_RMS_Layernorm",
            "_RMSNorm",
        )
        for example in both(aten(name, X, W, 1e-6, 0.0, True), ROOT, ROOT_BACK)
    ),
    *(
        Example(aten(f"tex_ts::{name}", X, W, 1e-6, fp32(1)), *ROOT)
        for name in ("rmsnorm_fwd_fp8_inf_ts", "rmsnorm_fwd_inf_ts")
    ),
    *(
        Example(aten(name, X, 1e-5, False), 6 * N, 2 * 2 * N + 4 * 2 * ROWS)
        for name in ("FusedLayerNormFunction", "FusedRMSNormFunction")
    ),
    # x[2, 6, 5] in 3 groups of two channels: read twice, statistics of each group.
    Example(
        aten("LigerGroupNormFunction", fp32(2, 6, 5), fp32(6), fp32(6), 6, 3, 1e-6),
        8 * 60,
        4 * (3 * 60 + 6 + 6) + 4 * 2 * 6,
    ),
    # A residual read and the sum written.
    Example(aten("LigerFusedAddRMSNormFunction", X, X, W, 1e-6, 0.0), 5 * N, ROOT[1] + 2 * 2 * N),
    Example(aten("LayerNormFn", X, W, B, X, None, None), 9 * N, LAYER[1] + 2 * 2 * N),
    Example(aten("LayerNormFn", X, W, None, None, 1e-5), *ROOT),
    Example(
        aten("DropoutAddLayerNormFn", X, X, W, B, None, None, 0.1), 9 * N, LAYER[1] + 2 * 2 * N
    ),
    *both(
        aten("LigerDyTFunction", X, bf16(1), W, B),
        (23 * N, 2 * (2 * N + 17)),
        (30 * N, 2 * (3 * N + 2 * 17)),
    ),
    *both(
        aten("LigerPolyNormFunction", X, bf16(3), bf16(1), 1e-6, True),
        (17 * N, 2 * (2 * N + 4) + 4 * 3 * ROWS),
        (35 * N, 2 * (3 * N + 4) + 4 * 3 * ROWS),
    ),
]

# Gated: two tensors of 48, or the halves of one [2, 3, 16].
TWO, HALVES = (X, X), bf16(2, 3, 16)
SILU, GELU, QUICK = 23, 28, 24
SILU_BACK, GELU_BACK, QUICK_BACK = 26, 35, 28
IN_TWO = 2 * 2 * N
ACTIVATIONS = [
    *both(
        aten("LigerSiLUMulFunction", *TWO),
        (N * (SILU + 1), IN_TWO + 2 * N),
        (N * (SILU_BACK + 4), 2 * IN_TWO + 2 * N),
    ),
    *both(
        aten("LigerGELUMulFunction", *TWO),
        (N * (GELU + 1), IN_TWO + 2 * N),
        (N * (GELU_BACK + 4), 2 * IN_TWO + 2 * N),
    ),
    *(
        example
        for call in (aten("SwiGLUFunction", *TWO), aten("SwiGLUFunction", HALVES, False, False))
        for example in both(
            call, (N * (SILU + 1), IN_TWO + 2 * N), (N * (SILU_BACK + 4), 2 * IN_TWO + 2 * N)
        )
    ),
    *both(
        aten("GeGLUFunction", HALVES),
        (N * (GELU + 1), IN_TWO + 2 * N),
        (N * (GELU_BACK + 4), 2 * IN_TWO + 2 * N),
    ),
    *both(
        aten("QuickGeGLUFunction", HALVES, False, 0.0),
        (N * (QUICK + 1), IN_TWO + 2 * N),
        (N * (QUICK_BACK + 4), 2 * IN_TWO + 2 * N),
    ),
    # A bias of 16 is added to all 96 elements.
    *(
        example
        for name, act, back in (
            ("BiasSwiGLUFunction", SILU, SILU_BACK),
            ("BiasGeGLUFunction", GELU, GELU_BACK),
        )
        for example in both(
            aten(name, HALVES, bf16(16), False),
            (N * (act + 1) + 2 * N, IN_TWO + 2 * 16 + 2 * N),
            (N * (back + 4) + 2 * 2 * N, 2 * (IN_TWO + 2 * 16) + 2 * N),
        )
    ),
    *(
        example
        for name, act, back in (
            ("WeightedSwiGLUFunction", SILU, SILU_BACK),
            ("WeightedQuickGeGLUFunction", QUICK, QUICK_BACK),
        )
        for example in both(
            aten(name, bf16(6, 16), fp32(6, 1), False),
            (N * (act + 1) + 2 * N, IN_TWO + 4 * 6 + 2 * N),
            (N * (back + 4) + 2 * 2 * N, 2 * (IN_TWO + 4 * 6) + 2 * N),
        )
    ),
    *both(
        aten("GeLUFunction", X, B),
        (N * (GELU + 1), 2 * (2 * N + 8)),
        (N * (GELU_BACK + 3), 2 * (3 * N + 2 * 8)),
    ),
    *both(aten("FastGeLUFunction", X), (N * GELU, 2 * 2 * N), (N * (GELU_BACK + 1), 2 * 3 * N)),
    *both(
        aten("WeightedSquaredReLUFunction", bf16(6, 8), fp32(6, 1)),
        (N * 3, 2 * 2 * N + 4 * 6),
        (N * 5, 2 * 3 * N + 2 * 4 * 6),
    ),
    Example(aten("xformers::silu_bw_fused", X, X, X), N * 53, 2 * 6 * N),
    # Written in fp8 (8 is e5m2): scaling and comparison of magnitudes.
    *(
        Example(
            aten(f"tex_ts::{name}", HALVES, fp32(3), fp32(1, 3), fp32(3), 0, 8),
            count * (act + 3),
            2 * 96 + count,
        )
        for name, act, count in (
            ("gelu_ts", GELU, 96),
            ("relu_ts", 1, 96),
            ("qgelu_ts", QUICK, 96),
            ("srelu_ts", 2, 96),
            ("cast_to_fp8_ts", 0, 96),
            ("geglu_ts", GELU + 1, 48),
            ("reglu_ts", 2, 48),
            ("swiglu_ts", SILU + 1, 48),
            ("qgeglu_ts", QUICK + 1, 48),
            ("sreglu_ts", 3, 48),
        )
    ),
    Example(
        aten("tex_ts::swiglu_ts", HALVES, fp32(0), fp32(0), fp32(0), 0, 6),
        48 * (SILU + 1),
        2 * 96 + 2 * 48,
    ),
    Example(
        aten("tex_ts::gelu_ts", HALVES, fp32(3), fp32(1, 3), fp32(3), 0, NOTHING),
        96 * (GELU + 3),
        None,
    ),
    Example(
        aten(
            "tex_ts::cast_to_fp8_noalloc_ts",
            *(X, fp32(3), tensor("uint8", 2, 3, 8), fp32(1, 3), fp32(3), 0, 7),
        ),
        3 * N,
        2 * N + N,
    ),
    Example(
        aten("tex_ts::cast_from_fp8_ts", tensor("uint8", 2, 3, 8), fp32(3), 0, 7, 6), N, N + 2 * N
    ),
]

# Queries [2, 5, 4, 8] rotated by tables of 5 positions.
Q, K = bf16(2, 5, 4, 8), bf16(2, 5, 2, 8)
HALF, WHOLE = bf16(5, 4), bf16(1, 5, 8)
ROTARY = [
    *(
        Example(aten(name, Q, HALF, HALF, False), 3 * 320, 2 * (2 * 320 + 40), direction=direction)
        for name in ("ApplyRotaryEmb", "Fast_RoPE_Embedding", "FusedRoPECachedFunc")
        for direction in ("fprop", "bprop")
    ),
    # Half of the elements are rotated.
    Example(aten("ApplyRotaryEmb", Q, bf16(5, 2), bf16(5, 2), True), 3 * 160, 2 * (2 * 320 + 20)),
    *(
        Example(aten(name, Q, K, WHOLE, WHOLE, None, 1), 3 * 480, 2 * (2 * 480 + 80))
        for name in ("LigerRopeFunction", "LigerQwen2VLMRopeFunction", "Fast_RoPE_Embedding_QK")
    ),
    Example(
        aten("ApplyRotaryEmbQKV_", bf16(2, 5, 3, 4, 8), HALF, HALF, None, None, False),
        3 * 640,
        2 * (2 * 640 + 40),
    ),
    Example(
        aten("ApplyRotaryEmbKV_", bf16(2, 5, 2, 4, 8), HALF, HALF, False, 0),
        3 * 320,
        2 * (2 * 320 + 40),
    ),
    # 40 angles, whose cosines and sines are computed; t[5, 2, 4, 8].
    Example(
        aten("FusedRoPEFunc", bf16(5, 2, 4, 8), fp32(5, 1, 1, 8), False),
        3 * 320 + 2 * 20 * 40,
        2 * 2 * 320 + 4 * 40,
    ),
    Example(
        aten("FusedRoPETHDFunc", bf16(10, 4, 8), int64(3), fp32(5, 1, 1, 8)),
        3 * 320 + 2 * 20 * 40,
        2 * 2 * 320 + 8 * 3 + 4 * 40,
    ),
    Example(
        aten("FusedRoPE2DFunc", Q, 1, 5, HALF, HALF, HALF, HALF), 3 * 320, 2 * (2 * 320 + 4 * 20)
    ),
    Example(aten("LigerLlama4RopeFunction", Q, K, fp32(5, 4)), 3 * 480, 2 * 2 * 480 + 4 * 20),
]

# Scores [2, 4, 3, 5].
SCORES = bf16(2, 4, 3, 5)
S = 120
SOFTMAX = [
    *(
        example
        for name in (
            "ScaledUpperTriangMaskedSoftmax",
            "ScaledAlignedCausalMaskedSoftmax",
            "ScaledSoftmax",
        )
        for example in both(aten(name, SCORES, 0.5), (25 * S, 4 * S), (5 * S, 6 * S))
    ),
    *(
        example
        for name in ("ScaledMaskedSoftmax", "GenericScaledMaskedSoftmax")
        for example in both(
            aten(name, SCORES, tensor("bool", 2, 1, 3, 5), 0.5),
            (26 * S, 4 * S + 30),
            (5 * S, 6 * S),
        )
    ),
    *both(aten("LigerSoftmaxFunction", SCORES), (24 * S, 4 * S), (4 * S, 6 * S)),
]

# 6 rows of 10 classes; a model of 8 features.
CLASSES, LABELS = bf16(6, 10), int64(6)
HIDDEN, HEAD = bf16(6, 8), bf16(10, 8)
PRODUCT = (2 * 6 * 10 * 8, 2 * (48 + 80 + 60))
LOSSES = [
    *(
        example
        for name in ("SoftmaxCrossEntropyLoss", "CrossEntropyLoss", "Fast_CrossEntropyLoss")
        for example in both(
            aten(name, CLASSES, LABELS, 0.0),
            (23 * 60, 2 * 60 + 8 * 6 + 2 * 4 * 6),
            (23 * 60, 2 * 2 * 60 + 8 * 6 + 2 * 4 * 6),
        )
    ),
    *(
        example
        for name in ("LigerCrossEntropyFunction", "CrossEntropyFunction")
        for example in both(
            aten(name, CLASSES, LABELS, None, -100),
            (46 * 60, 3 * 2 * 60 + 8 * 6 + 4 * 6),
            (60, 2 * 2 * 60),
        )
    ),
    *both(
        aten("LigerFusedLinearCrossEntropyFunction", HIDDEN, HEAD, LABELS, None, None, -100),
        (3 * PRODUCT[0] + 46 * 60, 3 * PRODUCT[1] + 3 * 2 * 60 + 8 * 6),
        (48 + 80, 2 * 2 * (48 + 80)),
    ),
    *(
        example
        for name in ("LigerKLDivLossFunction", "LigerJSDFunction", "LigerTVDLossFunction")
        for example in both(
            aten(name, CLASSES, CLASSES, 0.5), (45 * 60, 3 * 2 * 60), (60, 2 * 2 * 60)
        )
    ),
    *both(
        aten("LigerFusedLinearJSDFunction", HIDDEN, HEAD, HIDDEN, HEAD, None),
        (4 * PRODUCT[0] + 46 * 120, 4 * PRODUCT[1] + 3 * 2 * 120),
        (48 + 80, 2 * 2 * (48 + 80)),
    ),
]

# A layer of 8 to 10 features over [2, 3, 8].
WEIGHT, BIAS = bf16(10, 8), bf16(10)
LINEAR = (2 * 6 * 10 * 8, 2 * (48 + 80 + 60))
LINEAR_BACK = (2 * LINEAR[0], 2 * LINEAR[1])
# The bias added by a separate kernel: 60 additions.
ADDED, SUMMED = (60, 2 * 2 * 60), (60, 2 * (60 + 10))


def plus(*costs):
    return tuple(map(sum, zip(*costs, strict=True)))


DOWN = bf16(8, 5)  # from the gated half of 10 back to 8
DOWN_COST = (2 * 6 * 8 * 5, 2 * (30 + 40 + 48))
NORM, NORM_BACK = (8 * N, 2 * 2 * N), (13 * N, 2 * 3 * N)
ACT, ACT_BACK = (24 * 60, 2 * 2 * 60), (28 * 60, 2 * 3 * 60)
LAYERS = [
    *(
        example
        for call in (
            aten("_Linear", WEIGHT, X, BIAS, None, False),
            aten("_Linear", WEIGHT, None, None, X, BIAS, True, None, False),
            aten("_Linear", WEIGHT, tensor("uint8", 10, 8), X, BIAS, True),
            aten("_Linear", X, WEIGHT, BIAS),
            aten("FusedDenseFunc", X, WEIGHT, BIAS),
        )
        for example in both(call, plus(LINEAR, ADDED), plus(LINEAR_BACK, SUMMED))
    ),
    *both(aten("_Linear", WEIGHT, bf16(6, 8)), LINEAR, LINEAR_BACK, None),
    *both(aten("DenseNoBiasFunc", X, WEIGHT), LINEAR, LINEAR_BACK),
    *both(aten("LinearWithFrozenWeight", X, WEIGHT, None, False), LINEAR, LINEAR_BACK),
    Example(
        aten("LinearWithGradAccumulationAndAsyncCommunication", X, WEIGHT, None, True, False),
        *LINEAR_BACK,
        direction="bprop",
    ),
    *both(
        aten("_LayerNormLinear", X, W, B, WEIGHT, None, BIAS, True, 1e-5),
        plus(LINEAR, NORM),
        plus(LINEAR_BACK, NORM_BACK),
    ),
    *both(
        aten("LayerNormLinearFn", X, W, B, WEIGHT, None, None, 1e-5),
        plus(LINEAR, NORM),
        plus(LINEAR_BACK, NORM_BACK),
    ),
    *both(
        aten("_LayerNormMLP", X, W, B, WEIGHT, BIAS, DOWN, None, 1e-5),
        plus(LINEAR, DOWN_COST, NORM, ACT),
        plus(LINEAR_BACK, DOWN_COST, DOWN_COST, NORM_BACK, ACT_BACK),
    ),
    *(
        example
        for call in (
            aten("FusedDenseGeluDenseFunc", X, WEIGHT, BIAS, bf16(8, 10), B),
            aten("FusedMLPFunc", X, WEIGHT, BIAS, bf16(8, 10), B, True),
            aten("MlpFunction", 1, 1, X, WEIGHT, bf16(8, 10), BIAS, B),
        )
        for example in both(call, plus(LINEAR, LINEAR), plus(LINEAR_BACK, LINEAR_BACK))
    ),
    # silu(x @ w1^T) * (x @ w2^T) @ w3^T.
    *(
        example
        for name in ("_SwiGLUFusedFunc", "_SwiGLUDecomposedFunc")
        for values in (
            (X, WEIGHT, None, WEIGHT, None, bf16(8, 10), None),
            (X, WEIGHT, WEIGHT, bf16(8, 10)),
        )
        for example in both(aten(name, *values), plus(*[LINEAR] * 3), plus(*[LINEAR_BACK] * 3))
    ),
    Example(
        aten("xformers::dual_gemm_silu_identity_mul", bf16(6, 8), WEIGHT, None, WEIGHT, None),
        *plus(LINEAR, LINEAR),
    ),
    Example(
        aten("xformers::gemm_fused_operand_sum", bf16(6, 8), bf16(8, 10), bf16(6, 10), bf16(10)),
        *LINEAR,
    ),
    # x[6, 8] by a weight [10, 8], which is A, transposed.
    Example(
        aten(
            "tex_ts::te_gemm_ts",
            *(WEIGHT, fp32(3), 0, 6, 1, bf16(6, 8), fp32(3), 0, 6, 0, bf16(6, 10), fp32(0), 6),
            *(fp32(0), BIAS, 6, bf16(0), 0, tensor("uint8", 99), 99, 0, 0),
        ),
        *LINEAR,
    ),
    Example(
        aten(
            "tex_ts::te_gemm_ts",
            *(WEIGHT, fp32(3), 6, 1, bf16(6, 8), fp32(3), 6, 0, bf16(6, 10), 6, bf16(0)),
            *(bf16(0), 0, tensor("uint8", 99), 99, 0, 0),
        ),
        *LINEAR,
    ),
    # Two experts: 6 rows, two weights read.
    *(
        example
        for call in (
            aten("_GroupedLinear", bf16(6, 8), WEIGHT, WEIGHT, BIAS, BIAS),
            aten("_GroupedLinear", bf16(6, 8), bf16(2, 10, 8)),
            aten("GroupedGemm", bf16(6, 8), bf16(2, 8, 10), int64(2), False),
        )
        for example in both(
            call, (LINEAR[0], LINEAR[1] + 2 * 80), (2 * LINEAR[0], 2 * (LINEAR[1] + 2 * 80))
        )
    ),
]

# 4 tokens of 8 elements, each to 2 of 3 experts.
TOKENS, COPIES = bf16(4, 8), bf16(8, 8)
EXPERTS = [
    *both(
        aten("_moe_permute_index_map", TOKENS, int64(4, 2), -1, -1),
        (0, 8 * 8 + 2 * 2 * 64),
        (64, 8 * 8 + 2 * (32 + 64)),
    ),
    Example(
        aten("_moe_permute_mask_map", TOKENS, tensor("bool", 4, 3), 8, fp32(4, 3)),
        0,
        12 + 2 * 2 * 64,
    ),
    Example(aten("_moe_permute_mask_map", TOKENS, tensor("bool", 4, 3), UNKNOWN), 0, None),
    *both(
        aten("_moe_unpermute_index_map", COPIES, int64(8), fp32(4, 2)),
        (128, 2 * 64 + 8 * 8 + 4 * 8 + 2 * 32),
        (128, 2 * 2 * 64 + 8 * 8 + 4 * 8 + 2 * 32),
    ),
    Example(
        aten("_moe_unpermute_mask_map", COPIES, int64(8), None, (4, 8)), 64, 2 * 2 * 64 + 8 * 8
    ),
    Example(aten("_moe_chunk_sort", COPIES, int64(2), int64(2)), 0, 2 * 2 * 64 + 8 * 4),
]

# bitsandbytes: x[6, 8] by [10, 8].
HALF_X = fp16(6, 8)
I8, PACKED = tensor("int8", 10, 8), tensor("uint8", 40, 1)
X8 = tensor("int8", 6, 8)
BLOCKS = [
    Example(aten("bitsandbytes::int8_linear_matmul", X8, I8), LINEAR[0], 48 + 80 + 4 * 60),
    Example(
        aten("bitsandbytes::int8_scaled_mm", X8, I8, fp32(6), fp32(10), None, 15),
        LINEAR[0],
        48 + 80 + 2 * 60,
    ),
    Example(
        aten("bitsandbytes::int8_mixed_scaled_mm", HALF_X, X8, I8, fp32(6), fp32(10), None, None),
        LINEAR[0],
        48 + 80 + 2 * 60,
    ),
    Example(aten("bitsandbytes::int8_vectorwise_quant", HALF_X, 0.0), 4 * 48, 2 * 48 + 48 + 4 * 6),
    Example(
        aten("bitsandbytes::int8_double_quant", HALF_X, 0.0), 8 * 48, 2 * 48 + 2 * 48 + 4 * (6 + 8)
    ),
    Example(
        aten("bitsandbytes::int8_vectorwise_dequant", X8, fp32(6)), 2 * 48, 48 + 4 * 6 + 4 * 48
    ),
    Example(
        aten("bitsandbytes::int8_mm_dequant", tensor("int32", 6, 10), fp32(6), fp32(10)),
        3 * 60,
        4 * (60 + 16) + 2 * 60,
    ),
    Example(
        aten("bitsandbytes::quantize_4bit", fp16(10, 8), 64, "nf4", 0), 7 * 80, 2 * 80 + 40 + 4 * 2
    ),
    Example(
        aten("bitsandbytes::dequantize_4bit", PACKED, fp32(2), 64, "nf4", (10, 8), 15),
        80,
        40 + 4 * 2 + 2 * 80,
    ),
    Example(
        aten("bitsandbytes::quantize_blockwise", fp16(10, 8), fp32(256), 64),
        11 * 80,
        2 * 80 + 4 * 256 + 80 + 4 * 2,
    ),
    Example(
        aten("bitsandbytes::dequantize_blockwise", tensor("uint8", 80), fp32(2), fp32(256), 64, 6),
        80,
        80 + 4 * (2 + 256) + 4 * 80,
    ),
    Example(
        aten("bitsandbytes::gemv_4bit", fp16(1, 8), PACKED, (10, 8), fp32(2), fp32(16), 64),
        2 * 80,
        2 * 8 + 40 + 4 * 2 + 2 * 10,
    ),
    Example(
        aten("bitsandbytes::gemm_4bit", HALF_X, PACKED, (10, 8), fp32(2), 64, "nf4"),
        LINEAR[0],
        2 * 48 + 40 + 4 * 2 + 2 * 60,
    ),
    *(
        Example(
            aten("MatMul4Bit", HALF_X, PACKED, None, None),
            LINEAR[0] + 80,
            LINEAR[1] + 40 + 2 * 80,
            direction=direction,
        )
        for direction in ("fprop", "bprop")
    ),
    *both(
        aten("MatMul8bitLt", HALF_X, I8, None, None),
        (LINEAR[0] + 4 * 48 + 3 * 60, (48 + 80 + 4 * 60) + (2 * 48 + 48 + 4 * 60 + 2 * 60)),
        (LINEAR[0] + 80, LINEAR[1] + 80 + 2 * 80),
    ),
    Example(
        aten(
            "bitsandbytes::optimizer_update_32bit",
            *("adam", fp16(80), fp16(80), fp32(80), fp32(80), None, 0.0, 0.0, 0.9),
        ),
        32 * 80,
        2 * (2 + 4 + 4) * 80 + 2 * 80,
    ),
    Example(
        aten(
            "bitsandbytes::optimizer_update_8bit_blockwise",
            *("adam", fp16(80), fp16(80), tensor("uint8", 80), tensor("uint8", 80), 0.9, 0.9, 0.0),
            *(0.0, 1e-8, 1, 1e-3, fp32(256), fp32(256), fp32(1), fp32(1), 0.0, 1.0),
        ),
        (32 + 24) * 80,
        2 * (2 + 1 + 1) * 80 + 2 * 80 + 2 * 4 * 2,
    ),
]

# A scan of u[2, 4, 5] with 3 states; a chunked one of x[2, 8, 4, 6] with B, C [2, 8, 2, 3].
U = fp16(2, 4, 5)
A2, BC = fp32(4, 3), fp16(2, 1, 3, 5)
SCAN_IN = 2 * (40 + 40 + 30 + 30 + 40) + 4 * (12 + 4)
XS, BS = bf16(2, 8, 4, 6), bf16(2, 8, 2, 3)
CHUNK_IN = 2 * (384 + 96 + 96) + 4 * 64
CHUNKS = 4 * 2 * 3 + 4 * 4 * 6 + 2 * 4 * 6 * 3
# Taps [4, 4] over [2, 4, 5].
TAPS = fp16(4, 4)
# A block: gate 24, x 24, B and C 6, 4 heads; 30 channels are convolved.
BLOCK, BLOCK_TAPS = bf16(2, 8, 58), bf16(30, 4)
BLOCK_SCAN = 2 * 16 * (4 * 3 + 4 * 24 + 2 * 24 * 3) + 2 * 4 * 16 * 30
STATES = [
    *both(
        aten("SelectiveScanFn", U, U, A2, BC, BC, fp32(4), U, None, True, False),
        (40 * (26 * 3 + 27), SCAN_IN + 2 * 40),
        (40 * (38 * 3 + 2 * 27), 2 * SCAN_IN + 2 * 40),
    ),
    *both(
        aten("MambaChunkScanCombinedFn", XS, fp32(2, 8, 4), fp32(4), BS, BS, 4, None, None),
        (2 * 16 * CHUNKS, CHUNK_IN + 2 * 384),
        (2 * 16 * (3 * CHUNKS - 96), 2 * CHUNK_IN + 2 * 384),
    ),
    *both(
        aten("CausalConv1dFn", U, TAPS, fp16(4), None, None, False),
        (8 * 40, 2 * (80 + 16 + 4)),
        (16 * 40, 2 * (3 * 40 + 2 * 20)),
    ),
    Example(
        aten("DaoAILab::_causal_conv1d_fwd_cpp", U, TAPS, fp16(4), None, None, U, None, True),
        8 * 40,
        2 * (80 + 16 + 4),
    ),
    Example(
        aten(
            "DaoAILab::_causal_conv1d_bwd_cpp",
            *(U, TAPS, fp16(4), U, None, None, None, U, TAPS, fp16(4), None, True),
        ),
        16 * 40,
        2 * (3 * 40 + 2 * 20),
    ),
    Example(
        aten(
            "DaoAILab::_causal_conv1d_update_cpp",
            *(fp16(2, 4), fp16(9, 4, 3), TAPS, fp16(4), fp16(2, 4), True, None, int64(2)),
        ),
        8 * 8,
        2 * (8 + 16 + 4 + 8) + 2 * 2 * 24,
    ),
    # dim 4, length 5, rank 2, 3 states, output 6.
    *both(
        aten(
            "MambaInnerFn",
            *(fp16(2, 8, 5), fp16(4, 1, 4), None, fp16(8, 4), fp16(4, 2), fp16(6, 4), None, A2),
        ),
        (
            2 * 10 * (32 + 8 + 24) + 40 * (26 * 3 + 2 * 4 + 27),
            2 * (64 + 10 * (12 + 6 + 10)) + 2 * (80 + 16 + 40 + 40) + 4 * 12,
        ),
        (
            2 * 2 * 10 * (32 + 8 + 24) + 40 * (38 * 3 + 2 * (2 * 4 + 27)),
            2 * (2 * (64 + 10 * (12 + 6 + 10)) + 2 * (80 + 16 + 40 + 40) + 4 * 12),
        ),
    ),
    Example(
        aten(
            "MambaSplitConv1dScanCombinedFn", BLOCK, BLOCK_TAPS, None, None, fp32(4), fp32(4, 6), 4
        ),
        BLOCK_SCAN,
        2 * (928 + 120 + 16 * 24),
    ),
    Example(
        aten(
            "MambaSplitConv1dScanCombinedFn",
            *(BLOCK, BLOCK_TAPS, bf16(30), fp32(4), fp32(4), fp32(4), 4, None, None, False),
            *(bf16(24), 1e-6, bf16(12, 24), None, 6, 1, True),
        ),
        BLOCK_SCAN + 2 * 16 * 12 * 24,
        2 * (928 + 120 + 24 + 288 + 16 * 12) + 2 * (16 * 24 + 288 + 16 * 12),
    ),
]

EXAMPLES = [*NORMS, *ACTIVATIONS, *ROTARY, *SOFTMAX, *LOSSES, *LAYERS, *EXPERTS, *BLOCKS, *STATES]


def test_a_parallel_linear_says_that_it_is_an_estimate():
    call = aten("_Linear", WEIGHT, X, BIAS)
    assert not cost(call).exact
    assert cost(aten("FusedDenseFunc", X, WEIGHT, BIAS)).exact


def test_the_product_inside_tells_the_sizes_of_megatrons_forward_pass():
    call = aten("LinearWithGradAccumulationAndAsyncCommunication", X, WEIGHT, None, True)
    assert why_unknown(call, "fprop") == "forward is counted by the operators inside"
    assert not cost(call, "bprop").exact


def test_a_norm_whose_row_is_not_told_is_an_estimate():
    assert not cost(aten("FusedLayerNormFunction", X, 1e-5)).exact


def test_without_the_size_of_a_chunk_the_default_is_an_estimate():
    call = aten("MambaChunkScanCombinedFn", XS, fp32(2, 8, 4), fp32(4), BS, BS, NOTHING)
    # A chunk is no longer than the sequence, 8.
    assert cost(call).flops == 2 * 16 * (8 * 2 * 3 + 8 * 4 * 6 + 2 * 4 * 6 * 3)
    assert not cost(call).exact
    known = aten("MambaChunkScanCombinedFn", XS, fp32(2, 8, 4), fp32(4), BS, BS, 4)
    assert cost(known).exact


def test_products_are_the_work_of_gemms_and_the_rest_of_other_kernels():
    done = work(aten("_LayerNormLinear", X, W, B, WEIGHT, BIAS), "fprop")
    assert done is not None
    assert [part.kernels for part in done.parts] == [{"gemm"}, frozenset()]


# The arguments of every example, with one omitted or of another shape, never raise an error.
@pytest.mark.parametrize("direction", ["fprop", "bprop"])
def test_arguments_that_do_not_fit_have_no_cost_and_a_reason(direction):
    for example in EXAMPLES:
        args = example.call.args
        for i, each in enumerate(args):
            for other in (None, Tensor((3,), "float32"), Tensor((2, 2, 2, 2), "float32"), 7, "x"):
                changed = (*args[:i], replace(each, value=other), *args[i + 1 :])
                reason = why_unknown(replace(example.call, args=changed), direction) or ""
                assert not reason.startswith("its formula failed"), (example.call.op, i, reason)
            shorter = replace(example.call, args=args[:i])
            reason = why_unknown(shorter, direction) or ""
            assert not reason.startswith("its formula failed"), (example.call.op, i, reason)


def test_what_is_said_to_have_no_formula_has_none():
    for name, reason in TRAINING.items():
        assert find(aten(name)) is None, name
        assert why_unknown(aten(name), "fprop") == reason
