"""Products of small types, packed weights and groups: FLOPs and bytes."""

from fastprof.model.call import Tensor
from fastprof.ops import work
from unit.ops.ops_calls import aten, bf16, fp32, int64, python, tensor
from unit.ops.ops_examples import Rows

SCALE = fp32(1)
A, B = tensor("float8_e4m3fn", 16, 32), tensor("float8_e4m3fn", 32, 64)
FLOPS = 2 * 16 * 64 * 32
READ = 16 * 32 + 32 * 64
OUT = 16 * 64
ENDS = tensor("int32", 4)
EXPERTS = bf16(100, 32), bf16(4, 32, 64)
SCALED = ((SCALE,), (0,), (), (SCALE,), (0,), ())
GROUPED = 2 * 100 * 64 * 32, 2 * (100 * 32 + 4 * 32 * 64 + 100 * 64) + 4 * 4
A8, B8, BY_ROW, BY_COLUMN = "fp8[100,32]", "fp8[4,32,64]", "fp32[100]", "fp32[4,64]"
rows = Rows(globals())
two = Rows(globals(), "torch", "aten")
EXAMPLES = [
    *two("_int_mm int8[2,3] int8[3,5]", 60, 6 + 15 + 4 * 10),
    # torch 2.5 and later: scales, bias, scale of the result, type, fast accumulation; torch 2.1 to
    # 2.4: bias, type, scales, scale of the result.
    *rows(
        """_scaled_mm A B SCALE SCALE - - 15 false
        torch._scaled_mm A B SCALE SCALE out_dtype='torch.bfloat16'
        torch._scaled_mm A B scale_a=SCALE scale_b=SCALE out_dtype='bfloat16'
        _scaled_mm A B - 15 SCALE SCALE - false
        _scaled_mm A B - 15 SCALE SCALE -
        _scaled_mm_v2 A B *SCALED - 15 () false
        torch._scaled_mm_v2 A B *SCALED - 'torch.bfloat16'
        torch.nn.functional.scaled_mm A B SCALE 'TensorWise' SCALE 'x'
        torch.nn.functional.scaled_mm A B (SCALE) 0 (SCALE) 0""",
        *(FLOPS, READ + 4 + 4 + 2 * OUT, "M=64,N=16,K=32,fp8,"),
    ),
    *rows(
        "_scaled_mm A B fp32[16,1] fp32[1,64] bf16[64] - 15 true",
        *(FLOPS, READ + 4 * 16 + 4 * 64 + 2 * 64 + 2 * OUT),
    ),
    *rows("_scaled_mm A B SCALE SCALE -*3 true", FLOPS, READ + 8 + OUT),
    *rows("_scaled_mm [16,32] [32,64] []*6", FLOPS, None),
    *rows("_scaled_mm_v2 [16,32] [32,64] [1] []*2 [1] []*5", FLOPS, None),
    # Two float8 types have no common type, but params print both as fp8.
    *rows(
        "_scaled_mm A float8_e5m2[32,64] SCALE SCALE - - 15 false",
        *(FLOPS, READ + 8 + 2 * OUT, "M=64,N=16,K=32,fp8,"),
    ),
    # float4 elements are pairs: 16 elements are 32 numbers.
    *rows(
        "_scaled_mm float4_e2m1fn_x2[16,16] float4_e2m1fn_x2[16,64] fp8[16,2] fp8[2,64] -*2 15"
        " false",
        *(FLOPS, 16 * 16 + 16 * 64 + 32 + 128 + 2 * OUT),
    ),
    *rows(
        """_grouped_mm *EXPERTS ENDS - -
        torch._grouped_mm *EXPERTS ENDS
        torch.nn.functional.grouped_mm *EXPERTS offs=ENDS""",
        *GROUPED,
    ),
    *rows.back("torch._grouped_mm *EXPERTS offs=ENDS", 2 * GROUPED[0], 2 * (GROUPED[1] - 16)),
    # Groups of columns, groups that divide k, and a batch.
    *rows(
        "_grouped_mm bf16[4,16,32] bf16[32,100] ENDS - -",
        *(2 * 16 * 100 * 32, 2 * (4 * 16 * 32 + 32 * 100 + 16 * 100) + 16),
    ),
    *rows(
        "_grouped_mm bf16[16,100] bf16[100,64] ENDS - -",
        *(2 * 16 * 64 * 100, 2 * (1600 + 6400 + 4 * 16 * 64) + 16),
    ),
    *rows(
        "_grouped_mm bf16[4,16,32] bf16[4,32,64] -*3",
        *(2 * 4 * 16 * 64 * 32, 2 * 4 * (512 + 2048 + 1024)),
    ),
    *rows(
        f"""_scaled_grouped_mm {A8} {B8} {BY_ROW} {BY_COLUMN} ENDS -*2 15 1
        torch._scaled_grouped_mm {A8} {B8} {BY_ROW} {BY_COLUMN} offs=ENDS out_dtype='torch.bfloat16'
        _scaled_grouped_mm_v2 {A8} {B8} ({BY_ROW}) ()*2 ({BY_COLUMN}) ()*2 ENDS - 15 () false
        torch._scaled_grouped_mm_v2 {A8} {B8} {BY_ROW} ()*2 {BY_COLUMN} ()*2 ENDS - 'bfloat16'
        torch.nn.functional.scaled_grouped_mm {A8} {B8} {BY_ROW} 'RowWise' {BY_COLUMN} 'RowWise'"""
        " offs=ENDS",
        *(GROUPED[0], 3200 + 8192 + 400 + 1024 + 16 + 2 * 6400),
    ),
    # Packed weights: int8 one by one, int4 eight to an int32.
    *two(
        "_weight_int8pack_mm bf16[7,32] int8[64,32] bf16[64]",
        *(2 * 7 * 64 * 32, 2 * 7 * 32 + 64 * 32 + 2 * 64 + 2 * 7 * 64),
    ),
    *two(
        "_weight_int4pack_mm bf16[7,32] int32[8,1,32,1] 32 bf16[1,64,2]",
        *(2 * 7 * 64 * 32, 2 * 7 * 32 + 4 * 256 + 2 * 128 + 2 * 7 * 64),
    ),
    *two(
        "_mixed_dtypes_linear bf16[7,32] int8[64,32] bf16[64] bf16[64] 'relu'",
        *(2 * 7 * 64 * 32, 2 * 7 * 32 + 64 * 32 + 2 * 64 + 2 * 64 + 2 * 7 * 64),
    ),
]


def test_groups_that_share_something_out_are_an_estimate():
    assert not work(python("torch", "_grouped_mm", *EXPERTS, ENDS), "fprop").cost.exact
    batch = bf16(4, 16, 32), bf16(4, 32, 64)
    assert work(python("torch", "_grouped_mm", *batch), "fprop").cost.exact


MALFORMED = [
    aten("_scaled_mm", A, A, SCALE, SCALE),
    aten("_int_mm", tensor("int8", 2, 3), tensor("int8", 3)),
    aten("_grouped_mm", *EXPERTS),
    aten("_grouped_mm", *EXPERTS, int64(5)),
    aten("_grouped_mm", bf16(4, 16, 32), bf16(4, 32, 64), ENDS),
    aten("_weight_int8pack_mm", bf16(7, 32), tensor("int8", 65, 33), bf16(64)),
    aten("_weight_int4pack_mm", bf16(7, 32), tensor("int32", 8), 32, bf16(64)),
    aten("_weight_int8pack_mm", Tensor(()), tensor("int8", 65, 33), bf16(64)),
]
