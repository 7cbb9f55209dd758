"""Fused operators of training packages: norms, activations, losses, products, state spaces."""

from functools import partial

from fastprof.model.call import Tensor
from fastprof.ops import work
from fastprof.ops.registry import find, why_unknown
from fastprof.ops.unmodelled import TRAINING
from unit.ops.ops_calls import aten, bf16, fp32
from unit.ops.ops_examples import cost, failures, listed

# Rows x[2, 3, 8] in bf16, with a weight and a bias of 8.
X, W, B = bf16(2, 3, 8), bf16(8), bf16(8)
N, ROWS = 48, 6
# x[6, 8] by a weight [10, 8], with a bias; 4 tokens, each to 2 of 3 experts; a scan's operands.
WEIGHT, BIAS = bf16(10, 8), bf16(10)
XS, BS = bf16(2, 8, 4, 6), bf16(2, 8, 2, 3)
VALUES = {
    "x": X, "w": W, "b": B, "halves": bf16(2, 3, 16), "weight": WEIGHT, "bias": BIAS,
    "rows": bf16(6, 8), "classes": bf16(6, 10), "labels": Tensor((6,), "int64"),
    "xs": XS, "bs": BS, "delta": fp32(2, 8, 4),
}  # fmt: skip


def both(table, forward, backward):
    """The calls of a table, forward and backward: FLOPs and bytes of each."""
    return listed(table, VALUES, *forward, back=backward)


def forward_only(table, flops, moved):
    return listed(table, VALUES, flops, moved)


# torch keeps statistics of bf16 rows in float32: two per row for a layer norm, one for an RMS norm.
LAYER = (8 * N, 2 * (N + N + 8 + 8) + 4 * 2 * ROWS)
LAYER_BACK = (13 * N, 2 * (3 * N + 8 + 16) + 4 * 2 * ROWS)
ROOT = (4 * N, 2 * (N + N + 8) + 4 * ROWS)
ROOT_BACK = (9 * N, 2 * (3 * N + 8 + 8) + 4 * ROWS)
LAYER_TABLE = """
FusedLayerNormAffineFunction x w b 1e-5 false
FusedLayerNormAffineMixedDtypesFunction x w b 1e-5 false
FastLayerNormFN x w b 1e-5 false
LigerLayerNormFunction x w b 1e-5 false
Fast_Layernorm x w b 1e-5 false
_LayerNorm x w b 1e-5 false
"""
ROOT_TABLE = """
FusedRMSNormAffineFunction x w 1e-6 0.0 true
FusedRMSNormAffineMixedDtypesFunction x w 1e-6 0.0 true
LigerRMSNormFunction x w 1e-6 0.0 true
Fast_RMS_Layernorm x w 1e-6 0.0 true
_RMSNorm x w 1e-6 0.0 true
"""
NORMS = [
    *both(LAYER_TABLE, LAYER, LAYER_BACK),
    *forward_only(
        """tex_ts::layernorm_fwd_fp8_inf_ts x w b 1e-5 fp32[1] fp32[1,3]
        tex_ts::layernorm_fwd_inf_ts x w b 1e-5 fp32[1] fp32[1,3]""",
        *LAYER,
    ),
    *both(ROOT_TABLE, ROOT, ROOT_BACK),
    *forward_only(
        """tex_ts::rmsnorm_fwd_fp8_inf_ts x w 1e-6 fp32[1]
        tex_ts::rmsnorm_fwd_inf_ts x w 1e-6 fp32[1]
        LayerNormFn x w - - 1e-5""",
        *ROOT,
    ),
    *forward_only(
        """FusedLayerNormFunction x 1e-5 false
        FusedRMSNormFunction x 1e-5 false""",
        *(6 * N, 2 * 2 * N + 4 * 2 * ROWS),
    ),
    # x[2, 6, 5] in 3 groups of two channels: read twice, statistics of each group.
    *forward_only(
        "LigerGroupNormFunction fp32[2,6,5] fp32[6] fp32[6] 6 3 1e-6",
        *(8 * 60, 4 * (3 * 60 + 6 + 6) + 4 * 2 * 6),
    ),
    # A residual read and the sum written.
    *forward_only("LigerFusedAddRMSNormFunction x x w 1e-6 0.0", 5 * N, ROOT[1] + 2 * 2 * N),
    *forward_only(
        """LayerNormFn x w b x - -
        DropoutAddLayerNormFn x x w b - - 0.1""",
        *(9 * N, LAYER[1] + 2 * 2 * N),
    ),
    *both(
        "LigerDyTFunction x bf16[1] w b",
        (23 * N, 2 * (2 * N + 17)),
        (30 * N, 2 * (3 * N + 2 * 17)),
    ),
    *both(
        "LigerPolyNormFunction x bf16[3] bf16[1] 1e-6 true",
        (17 * N, 2 * (2 * N + 4) + 4 * 3 * ROWS),
        (35 * N, 2 * (3 * N + 4) + 4 * 3 * ROWS),
    ),
]

# Gated: two tensors of 48, or the halves of one [2, 3, 16].
SILU, GELU, QUICK = 23, 28, 24
SILU_BACK, GELU_BACK, QUICK_BACK = 26, 35, 28
IN_TWO = 2 * 2 * N


def gated(table, act, back):
    """An activation of one part times the other."""
    return both(table, (N * (act + 1), IN_TWO + 2 * N), (N * (back + 4), 2 * IN_TWO + 2 * N))


def biased(table, act, back):
    """A bias of 16 is added to all 96 elements."""
    return both(
        table,
        (N * (act + 1) + 2 * N, IN_TWO + 2 * 16 + 2 * N),
        (N * (back + 4) + 2 * 2 * N, 2 * (IN_TWO + 2 * 16) + 2 * N),
    )


def weighted(table, act, back):
    return both(
        table,
        (N * (act + 1) + 2 * N, IN_TWO + 4 * 6 + 2 * N),
        (N * (back + 4) + 2 * 2 * N, 2 * (IN_TWO + 4 * 6) + 2 * N),
    )


def in_fp8(name, act, count):
    """Written in fp8 (8 is e5m2): scaling and comparison of magnitudes."""
    call = f"tex_ts::{name} halves fp32[3] fp32[1,3] fp32[3] 0 8"
    return forward_only(call, count * (act + 3), 2 * 96 + count)


ACTIVATIONS = [
    *gated("LigerSiLUMulFunction x x", SILU, SILU_BACK),
    *gated("LigerGELUMulFunction x x", GELU, GELU_BACK),
    *gated("SwiGLUFunction x x\nSwiGLUFunction halves false false", SILU, SILU_BACK),
    *gated("GeGLUFunction halves", GELU, GELU_BACK),
    *gated("QuickGeGLUFunction halves false 0.0", QUICK, QUICK_BACK),
    *biased("BiasSwiGLUFunction halves bf16[16] false", SILU, SILU_BACK),
    *biased("BiasGeGLUFunction halves bf16[16] false", GELU, GELU_BACK),
    *weighted("WeightedSwiGLUFunction bf16[6,16] fp32[6,1] false", SILU, SILU_BACK),
    *weighted("WeightedQuickGeGLUFunction bf16[6,16] fp32[6,1] false", QUICK, QUICK_BACK),
    *both(
        "GeLUFunction x b",
        (N * (GELU + 1), 2 * (2 * N + 8)),
        (N * (GELU_BACK + 3), 2 * (3 * N + 2 * 8)),
    ),
    *both("FastGeLUFunction x", (N * GELU, 2 * 2 * N), (N * (GELU_BACK + 1), 2 * 3 * N)),
    *both(
        "WeightedSquaredReLUFunction bf16[6,8] fp32[6,1]",
        (N * 3, 2 * 2 * N + 4 * 6),
        (N * 5, 2 * 3 * N + 2 * 4 * 6),
    ),
    *forward_only("xformers::silu_bw_fused x x x", N * 53, 2 * 6 * N),
    *in_fp8("gelu_ts", GELU, 96),
    *in_fp8("relu_ts", 1, 96),
    *in_fp8("qgelu_ts", QUICK, 96),
    *in_fp8("srelu_ts", 2, 96),
    *in_fp8("cast_to_fp8_ts", 0, 96),
    *in_fp8("geglu_ts", GELU + 1, 48),
    *in_fp8("reglu_ts", 2, 48),
    *in_fp8("swiglu_ts", SILU + 1, 48),
    *in_fp8("qgeglu_ts", QUICK + 1, 48),
    *in_fp8("sreglu_ts", 3, 48),
    *forward_only(
        "tex_ts::swiglu_ts halves fp32[0] fp32[0] fp32[0] 0 6", 48 * (SILU + 1), 2 * 96 + 2 * 48
    ),
    *forward_only("tex_ts::gelu_ts halves fp32[3] fp32[1,3] fp32[3] 0 []", 96 * (GELU + 3), None),
    *forward_only(
        "tex_ts::cast_to_fp8_noalloc_ts x fp32[3] uint8[2,3,8] fp32[1,3] fp32[3] 0 7",
        *(3 * N, 2 * N + N),
    ),
    *forward_only("tex_ts::cast_from_fp8_ts uint8[2,3,8] fp32[3] 0 7 6", N, N + 2 * N),
]

# Queries [2, 5, 4, 8] and keys [2, 5, 2, 8], rotated by tables of 5 positions.
TABLES = {"q": bf16(2, 5, 4, 8), "k": bf16(2, 5, 2, 8), "half": bf16(5, 4), "all": bf16(1, 5, 8)}
rotary = partial(listed, values=TABLES)
TURN = 3 * 320, 2 * (2 * 320 + 40)
ROTARY = [
    *rotary(
        """ApplyRotaryEmb q half half false
        Fast_RoPE_Embedding q half half false
        FusedRoPECachedFunc q half half false""",
        flops=TURN[0], moved=TURN[1], back=TURN,
    ),
    # Half of the elements are rotated.
    *rotary(
        "ApplyRotaryEmb q bf16[5,2] bf16[5,2] true", flops=3 * 160, moved=2 * (2 * 320 + 20)
    ),
    *rotary(
        """LigerRopeFunction q k all all - 1
        LigerQwen2VLMRopeFunction q k all all - 1
        Fast_RoPE_Embedding_QK q k all all - 1""",
        flops=3 * 480, moved=2 * (2 * 480 + 80),
    ),
    *rotary(
        "ApplyRotaryEmbQKV_ bf16[2,5,3,4,8] half half - - false",
        flops=3 * 640, moved=2 * (2 * 640 + 40),
    ),
    *rotary(
        "ApplyRotaryEmbKV_ bf16[2,5,2,4,8] half half false 0",
        flops=3 * 320, moved=2 * (2 * 320 + 40),
    ),
    # 40 angles, whose cosines and sines are computed; t[5, 2, 4, 8].
    *rotary(
        "FusedRoPEFunc bf16[5,2,4,8] fp32[5,1,1,8] false",
        flops=3 * 320 + 2 * 20 * 40, moved=2 * 2 * 320 + 4 * 40,
    ),
    *rotary(
        "FusedRoPETHDFunc bf16[10,4,8] int64[3] fp32[5,1,1,8]",
        flops=3 * 320 + 2 * 20 * 40, moved=2 * 2 * 320 + 8 * 3 + 4 * 40,
    ),
    *rotary("FusedRoPE2DFunc q 1 5 half*4", flops=3 * 320, moved=2 * (2 * 320 + 4 * 20)),
    *rotary("LigerLlama4RopeFunction q k fp32[5,4]", flops=3 * 480, moved=2 * 2 * 480 + 4 * 20),
]  # fmt: skip

# Scores [2, 4, 3, 5].
S = 120
SOFTMAX = [
    *both(
        """ScaledUpperTriangMaskedSoftmax bf16[2,4,3,5] 0.5
        ScaledAlignedCausalMaskedSoftmax bf16[2,4,3,5] 0.5
        ScaledSoftmax bf16[2,4,3,5] 0.5""",
        (25 * S, 4 * S),
        (5 * S, 6 * S),
    ),
    *both(
        """ScaledMaskedSoftmax bf16[2,4,3,5] bool[2,1,3,5] 0.5
        GenericScaledMaskedSoftmax bf16[2,4,3,5] bool[2,1,3,5] 0.5""",
        (26 * S, 4 * S + 30),
        (5 * S, 6 * S),
    ),
    *both("LigerSoftmaxFunction bf16[2,4,3,5]", (24 * S, 4 * S), (4 * S, 6 * S)),
]

# 6 rows of 10 classes; a model of 8 features.
PRODUCT = (2 * 6 * 10 * 8, 2 * (48 + 80 + 60))
LOSSES = [
    *both(
        """SoftmaxCrossEntropyLoss classes labels 0.0
        CrossEntropyLoss classes labels 0.0
        Fast_CrossEntropyLoss classes labels 0.0""",
        (23 * 60, 2 * 60 + 8 * 6 + 2 * 4 * 6),
        (23 * 60, 2 * 2 * 60 + 8 * 6 + 2 * 4 * 6),
    ),
    *both(
        """LigerCrossEntropyFunction classes labels - -100
        CrossEntropyFunction classes labels - -100""",
        (46 * 60, 3 * 2 * 60 + 8 * 6 + 4 * 6),
        (60, 2 * 2 * 60),
    ),
    *both(
        "LigerFusedLinearCrossEntropyFunction rows weight labels - - -100",
        (3 * PRODUCT[0] + 46 * 60, 3 * PRODUCT[1] + 3 * 2 * 60 + 8 * 6),
        (48 + 80, 2 * 2 * (48 + 80)),
    ),
    *both(
        """LigerKLDivLossFunction classes classes 0.5
        LigerJSDFunction classes classes 0.5
        LigerTVDLossFunction classes classes 0.5""",
        (45 * 60, 3 * 2 * 60),
        (60, 2 * 2 * 60),
    ),
    *both(
        "LigerFusedLinearJSDFunction rows weight rows weight -",
        (4 * PRODUCT[0] + 46 * 120, 4 * PRODUCT[1] + 3 * 2 * 120),
        (48 + 80, 2 * 2 * (48 + 80)),
    ),
]

# A layer of 8 to 10 features over [2, 3, 8].
LINEAR = (2 * 6 * 10 * 8, 2 * (48 + 80 + 60))
LINEAR_BACK = (2 * LINEAR[0], 2 * LINEAR[1])
# The bias added by a separate kernel: 60 additions.
ADDED, SUMMED = (60, 2 * 2 * 60), (60, 2 * (60 + 10))


def plus(*costs):
    return tuple(map(sum, zip(*costs, strict=True)))


DOWN_COST = (2 * 6 * 8 * 5, 2 * (30 + 40 + 48))  # from the gated half of 10, 5, back to 8
NORM, NORM_BACK = (8 * N, 2 * 2 * N), (13 * N, 2 * 3 * N)
ACT, ACT_BACK = (24 * 60, 2 * 2 * 60), (28 * 60, 2 * 3 * 60)
LAYERS = [
    *both(
        """_Linear weight x bias - false
        _Linear weight - - x bias true - false
        _Linear weight uint8[10,8] x bias true
        _Linear x weight bias
        FusedDenseFunc x weight bias""",
        plus(LINEAR, ADDED),
        plus(LINEAR_BACK, SUMMED),
    ),
    *both(
        """_Linear weight rows
        DenseNoBiasFunc x weight
        LinearWithFrozenWeight x weight - false""",
        LINEAR,
        LINEAR_BACK,
    ),
    *listed(
        "LinearWithGradAccumulationAndAsyncCommunication x weight - true false",
        VALUES,
        *LINEAR_BACK,
        direction="bprop",
    ),
    *both(
        """_LayerNormLinear x w b weight - bias true 1e-5
        LayerNormLinearFn x w b weight - - 1e-5""",
        plus(LINEAR, NORM),
        plus(LINEAR_BACK, NORM_BACK),
    ),
    *both(
        "_LayerNormMLP x w b weight bias bf16[8,5] - 1e-5",
        plus(LINEAR, DOWN_COST, NORM, ACT),
        plus(LINEAR_BACK, DOWN_COST, DOWN_COST, NORM_BACK, ACT_BACK),
    ),
    *both(
        """FusedDenseGeluDenseFunc x weight bias bf16[8,10] b
        FusedMLPFunc x weight bias bf16[8,10] b true
        MlpFunction 1 1 x weight bf16[8,10] bias b""",
        plus(LINEAR, LINEAR),
        plus(LINEAR_BACK, LINEAR_BACK),
    ),
    # silu(x @ w1^T) * (x @ w2^T) @ w3^T.
    *both(
        """_SwiGLUFusedFunc x weight - weight - bf16[8,10] -
        _SwiGLUFusedFunc x weight weight bf16[8,10]
        _SwiGLUDecomposedFunc x weight - weight - bf16[8,10] -
        _SwiGLUDecomposedFunc x weight weight bf16[8,10]""",
        plus(*[LINEAR] * 3),
        plus(*[LINEAR_BACK] * 3),
    ),
    *forward_only(
        "xformers::dual_gemm_silu_identity_mul rows weight - weight -", *plus(LINEAR, LINEAR)
    ),
    # For te_gemm, x[6, 8] by a weight [10, 8], which is A, transposed.
    *forward_only(
        """xformers::gemm_fused_operand_sum rows bf16[8,10] bf16[6,10] bias
        tex_ts::te_gemm_ts weight fp32[3] 0 6 1 rows fp32[3] 0 6 0 bf16[6,10] fp32[0] 6 fp32[0]"""
        """ bias 6 bf16[0] 0 uint8[99] 99 0 0
        tex_ts::te_gemm_ts weight fp32[3] 6 1 rows fp32[3] 6 0 bf16[6,10] 6 bf16[0]*2 0"""
        " uint8[99] 99 0 0",
        *LINEAR,
    ),
    # Two experts: 6 rows, two weights read.
    *both(
        """_GroupedLinear rows weight weight bias bias
        _GroupedLinear rows bf16[2,10,8]
        GroupedGemm rows bf16[2,8,10] int64[2] false""",
        (LINEAR[0], LINEAR[1] + 2 * 80),
        (2 * LINEAR[0], 2 * (LINEAR[1] + 2 * 80)),
    ),
]

# 4 tokens of 8 elements, each to 2 of 3 experts.
EXPERTS = [
    *both(
        "_moe_permute_index_map bf16[4,8] int64[4,2] -1 -1",
        (0, 8 * 8 + 2 * 2 * 64),
        (64, 8 * 8 + 2 * (32 + 64)),
    ),
    *forward_only("_moe_permute_mask_map bf16[4,8] bool[4,3] 8 fp32[4,3]", 0, 12 + 2 * 2 * 64),
    *forward_only("_moe_permute_mask_map bf16[4,8] bool[4,3] _", 0, None),
    *both(
        "_moe_unpermute_index_map bf16[8,8] int64[8] fp32[4,2]",
        (128, 2 * 64 + 8 * 8 + 4 * 8 + 2 * 32),
        (128, 2 * 2 * 64 + 8 * 8 + 4 * 8 + 2 * 32),
    ),
    *forward_only("_moe_unpermute_mask_map bf16[8,8] int64[8] - (4,8)", 64, 2 * 2 * 64 + 8 * 8),
    *forward_only("_moe_chunk_sort bf16[8,8] int64[2] int64[2]", 0, 2 * 2 * 64 + 8 * 4),
]

# bitsandbytes: x[6, 8] by [10, 8].
BITS = {"x": Tensor((6, 8), "float16"), "x8": Tensor((6, 8), "int8"),
        "w8": Tensor((10, 8), "int8"), "packed": Tensor((40, 1), "uint8"),
        "p": Tensor((80,), "float16"), "u8": Tensor((80,), "uint8")}  # fmt: skip
SCALED = 48 + 80 + 2 * 60


def bits(table, flops, moved):
    """Operators of bitsandbytes."""
    return listed(f"bitsandbytes::{table}", BITS, flops, moved)


BLOCKS = [
    *bits("int8_linear_matmul x8 w8", LINEAR[0], 48 + 80 + 4 * 60),
    *bits("int8_scaled_mm x8 w8 fp32[6] fp32[10] - 15", LINEAR[0], SCALED),
    *bits("int8_mixed_scaled_mm x x8 w8 fp32[6] fp32[10] - -", LINEAR[0], SCALED),
    *bits("int8_vectorwise_quant x 0.0", 4 * 48, 2 * 48 + 48 + 4 * 6),
    *bits("int8_double_quant x 0.0", 8 * 48, 2 * 48 + 2 * 48 + 4 * (6 + 8)),
    *bits("int8_vectorwise_dequant x8 fp32[6]", 2 * 48, 48 + 4 * 6 + 4 * 48),
    *bits("int8_mm_dequant int32[6,10] fp32[6] fp32[10]", 3 * 60, 4 * (60 + 16) + 2 * 60),
    *bits("quantize_4bit fp16[10,8] 64 'nf4' 0", 7 * 80, 2 * 80 + 40 + 4 * 2),
    *bits("dequantize_4bit packed fp32[2] 64 'nf4' (10,8) 15", 80, 40 + 4 * 2 + 2 * 80),
    *bits("quantize_blockwise fp16[10,8] fp32[256] 64", 11 * 80, 2 * 80 + 4 * 256 + 80 + 4 * 2),
    *bits("dequantize_blockwise u8 fp32[2] fp32[256] 64 6", 80, 80 + 4 * (2 + 256) + 4 * 80),
    *bits(
        "gemv_4bit fp16[1,8] packed (10,8) fp32[2] fp32[16] 64",
        *(2 * 80, 2 * 8 + 40 + 4 * 2 + 2 * 10),
    ),
    *bits("gemm_4bit x packed (10,8) fp32[2] 64 'nf4'", LINEAR[0], 2 * 48 + 40 + 4 * 2 + 2 * 60),
    *listed(
        "MatMul4Bit x packed - -",
        BITS,
        *(LINEAR[0] + 80, LINEAR[1] + 40 + 2 * 80),
        back=(LINEAR[0] + 80, LINEAR[1] + 40 + 2 * 80),
    ),
    *listed(
        "MatMul8bitLt x w8 - -",
        BITS,
        LINEAR[0] + 4 * 48 + 3 * 60,
        (48 + 80 + 4 * 60) + (2 * 48 + 48 + 4 * 60 + 2 * 60),
        back=(LINEAR[0] + 80, LINEAR[1] + 80 + 2 * 80),
    ),
    *bits(
        "optimizer_update_32bit 'adam' p p fp32[80]*2 - 0.0 0.0 0.9",
        *(32 * 80, 2 * (2 + 4 + 4) * 80 + 2 * 80),
    ),
    *bits(
        "optimizer_update_8bit_blockwise 'adam' p p u8*2 0.9 0.9 0.0 0.0 1e-8 1 1e-3 fp32[256]*2"
        " fp32[1]*2 0.0 1.0",
        *((32 + 24) * 80, 2 * (2 + 1 + 1) * 80 + 2 * 80 + 2 * 4 * 2),
    ),
]

# A scan of u[2, 4, 5] with 3 states; a chunked one of x[2, 8, 4, 6] with B, C [2, 8, 2, 3].
SCANNED = {"u": Tensor((2, 4, 5), "float16"), "taps": Tensor((4, 4), "float16"),
           "bc": Tensor((2, 1, 3, 5), "float16"), "block": bf16(2, 8, 58)}  # fmt: skip
SCAN_IN = 2 * (40 + 40 + 30 + 30 + 40) + 4 * (12 + 4)
CHUNK_IN = 2 * (384 + 96 + 96) + 4 * 64
CHUNKS = 4 * 2 * 3 + 4 * 4 * 6 + 2 * 4 * 6 * 3
# Taps [4, 4] over [2, 4, 5].
CONVOLVED, CONVOLVED_BACK = (8 * 40, 2 * (80 + 16 + 4)), (16 * 40, 2 * (3 * 40 + 2 * 20))
# A block: gate 24, x 24, B and C 6, 4 heads; 30 channels are convolved.
BLOCK_SCAN = 2 * 16 * (4 * 3 + 4 * 24 + 2 * 24 * 3) + 2 * 4 * 16 * 30


def scanned(table, forward, backward=None):
    return listed(table, SCANNED, *forward, back=backward)


STATES = [
    *scanned(
        "SelectiveScanFn u u fp32[4,3] bc bc fp32[4] u - true false",
        (40 * (26 * 3 + 27), SCAN_IN + 2 * 40),
        (40 * (38 * 3 + 2 * 27), 2 * SCAN_IN + 2 * 40),
    ),
    *both(
        "MambaChunkScanCombinedFn xs delta fp32[4] bs bs 4 - -",
        (2 * 16 * CHUNKS, CHUNK_IN + 2 * 384),
        (2 * 16 * (3 * CHUNKS - 96), 2 * CHUNK_IN + 2 * 384),
    ),
    *scanned("CausalConv1dFn u taps fp16[4] - - false", CONVOLVED, CONVOLVED_BACK),
    *scanned("DaoAILab::_causal_conv1d_fwd_cpp u taps fp16[4] - - u - true", CONVOLVED),
    *scanned(
        "DaoAILab::_causal_conv1d_bwd_cpp u taps fp16[4] u - - - u taps fp16[4] - true",
        CONVOLVED_BACK,
    ),
    *scanned(
        "DaoAILab::_causal_conv1d_update_cpp fp16[2,4] fp16[9,4,3] taps fp16[4] fp16[2,4] true -"
        " int64[2]",
        (8 * 8, 2 * (8 + 16 + 4 + 8) + 2 * 2 * 24),
    ),
    # dim 4, length 5, rank 2, 3 states, output 6.
    *scanned(
        "MambaInnerFn fp16[2,8,5] fp16[4,1,4] - fp16[8,4] fp16[4,2] fp16[6,4] - fp32[4,3]",
        (
            2 * 10 * (32 + 8 + 24) + 40 * (26 * 3 + 2 * 4 + 27),
            2 * (64 + 10 * (12 + 6 + 10)) + 2 * (80 + 16 + 40 + 40) + 4 * 12,
        ),
        (
            2 * 2 * 10 * (32 + 8 + 24) + 40 * (38 * 3 + 2 * (2 * 4 + 27)),
            2 * (2 * (64 + 10 * (12 + 6 + 10)) + 2 * (80 + 16 + 40 + 40) + 4 * 12),
        ),
    ),
    *scanned(
        "MambaSplitConv1dScanCombinedFn block bf16[30,4] - - fp32[4] fp32[4,6] 4",
        (BLOCK_SCAN, 2 * (928 + 120 + 16 * 24)),
    ),
    *scanned(
        "MambaSplitConv1dScanCombinedFn block bf16[30,4] bf16[30] fp32[4]*3 4 - - false bf16[24]"
        " 1e-6 bf16[12,24] - 6 1 true",
        (
            BLOCK_SCAN + 2 * 16 * 12 * 24,
            2 * (928 + 120 + 24 + 288 + 16 * 12) + 2 * (16 * 24 + 288 + 16 * 12),
        ),
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
    call = aten("MambaChunkScanCombinedFn", XS, fp32(2, 8, 4), fp32(4), BS, BS, Tensor(()))
    # A chunk is no longer than the sequence, 8.
    assert cost(call).flops == 2 * 16 * (8 * 2 * 3 + 8 * 4 * 6 + 2 * 4 * 6 * 3)
    assert not cost(call).exact
    known = aten("MambaChunkScanCombinedFn", XS, fp32(2, 8, 4), fp32(4), BS, BS, 4)
    assert cost(known).exact


def test_products_are_the_work_of_gemms_and_the_rest_of_other_kernels():
    done = work(aten("_LayerNormLinear", X, W, B, WEIGHT, BIAS), "fprop")
    assert [part.kernels for part in done.parts] == [{"gemm"}, frozenset()]


def test_arguments_that_do_not_fit_have_no_cost_and_a_reason():
    assert [*failures(EXAMPLES)] == []


def test_what_is_said_to_have_no_formula_has_none():
    for name, reason in TRAINING.items():
        assert find(aten(name)) is None, name
        assert why_unknown(aten(name), "fprop") == reason
