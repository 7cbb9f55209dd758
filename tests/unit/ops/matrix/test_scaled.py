"""Products of small types, packed weights and groups: FLOPs and bytes."""

import pytest

from fastprof.model.call import Tensor
from fastprof.ops import work
from unit.ops.ops_examples import Example, aten, bf16, fp32, int64, python, sizes, tensor


def fp8(*shape):
    return tensor("float8_e4m3fn", *shape)


SCALE = fp32(1)
A, B = fp8(16, 32), fp8(32, 64)
FLOPS = 2 * 16 * 64 * 32
READ = 16 * 32 + 32 * 64
OUT = 16 * 64
ENDS = tensor("int32", 4)
EXPERTS = bf16(100, 32), bf16(4, 32, 64)
SCALED = ((SCALE,), (0,), (), (SCALE,), (0,), ())
GROUPED = 2 * 100 * 64 * 32, 2 * (100 * 32 + 4 * 32 * 64 + 100 * 64) + 4 * 4
EXAMPLES = [
    *(
        Example(each("_int_mm", tensor("int8", 2, 3), tensor("int8", 3, 5)), 60, 6 + 15 + 4 * 10)
        for each in (aten, lambda *values: python("torch", *values))
    ),
    # torch 2.5 and later: scales, bias, scale of the result, type, fast accumulation.
    *(
        Example(each, FLOPS, READ + 4 + 4 + 2 * OUT, "M=64,N=16,K=32,fp8,")
        for each in (
            aten("_scaled_mm", A, B, SCALE, SCALE, None, None, 15, False),
            python("torch", "_scaled_mm", A, B, SCALE, SCALE, out_dtype="torch.bfloat16"),
            python("torch", "_scaled_mm", A, B, scale_a=SCALE, scale_b=SCALE, out_dtype="bfloat16"),
            # torch 2.1 to 2.4: bias, type, scales, scale of the result.
            aten("_scaled_mm", A, B, None, 15, SCALE, SCALE, None, False),
            aten("_scaled_mm", A, B, None, 15, SCALE, SCALE, None),
            aten("_scaled_mm_v2", A, B, *SCALED, None, 15, (), False),
            python("torch", "_scaled_mm_v2", A, B, *SCALED, None, "torch.bfloat16"),
            python("torch.nn.functional", "scaled_mm", A, B, SCALE, "TensorWise", SCALE, "x"),
            python("torch.nn.functional", "scaled_mm", A, B, (SCALE,), 0, (SCALE,), 0),
        )
    ),
    Example(
        aten("_scaled_mm", A, B, fp32(16, 1), fp32(1, 64), bf16(64), None, 15, True),
        FLOPS,
        READ + 4 * 16 + 4 * 64 + 2 * 64 + 2 * OUT,
    ),
    Example(aten("_scaled_mm", A, B, SCALE, SCALE, None, None, None, True), FLOPS, READ + 8 + OUT),
    Example(sizes("_scaled_mm", (16, 32), (32, 64), (), (), (), (), (), ()), FLOPS, None),
    Example(sizes("_scaled_mm_v2", (16, 32), (32, 64), (1,), (), (), (1,), *[()] * 5), FLOPS, None),
    # Two float8 types have no common type, but params print both as fp8.
    Example(
        aten("_scaled_mm", A, tensor("float8_e5m2", 32, 64), SCALE, SCALE, None, None, 15, False),
        FLOPS,
        READ + 8 + 2 * OUT,
        "M=64,N=16,K=32,fp8,",
    ),
    # float4 elements are pairs: 16 elements are 32 numbers.
    Example(
        aten(
            "_scaled_mm",
            *(tensor("float4_e2m1fn_x2", *shape) for shape in ((16, 16), (16, 64))),
            *(fp8(16, 2), fp8(2, 64), None, None, 15, False),
        ),
        FLOPS,
        16 * 16 + 16 * 64 + 32 + 128 + 2 * OUT,
    ),
    *(
        Example(each, *GROUPED)
        for each in (
            aten("_grouped_mm", *EXPERTS, ENDS, None, None),
            python("torch", "_grouped_mm", *EXPERTS, ENDS),
            python("torch.nn.functional", "grouped_mm", *EXPERTS, offs=ENDS),
        )
    ),
    Example(
        python("torch", "_grouped_mm", *EXPERTS, offs=ENDS),
        2 * GROUPED[0],
        2 * (GROUPED[1] - 16),
        None,
        "bprop",
    ),
    # Groups of columns, groups that divide k, and a batch.
    Example(
        aten("_grouped_mm", bf16(4, 16, 32), bf16(32, 100), ENDS, None, None),
        2 * 16 * 100 * 32,
        2 * (4 * 16 * 32 + 32 * 100 + 16 * 100) + 16,
    ),
    Example(
        aten("_grouped_mm", bf16(16, 100), bf16(100, 64), ENDS, None, None),
        2 * 16 * 64 * 100,
        2 * (1600 + 6400 + 4 * 16 * 64) + 16,
    ),
    Example(
        aten("_grouped_mm", bf16(4, 16, 32), bf16(4, 32, 64), None, None, None),
        2 * 4 * 16 * 64 * 32,
        2 * 4 * (512 + 2048 + 1024),
    ),
    *(
        Example(each, GROUPED[0], 3200 + 8192 + 400 + 1024 + 16 + 2 * 6400)
        for scales in ((fp32(100), fp32(4, 64)),)
        for each in (
            aten(
                "_scaled_grouped_mm", fp8(100, 32), fp8(4, 32, 64), *scales, ENDS, None, None, 15, 1
            ),
            python(
                *("torch", "_scaled_grouped_mm", fp8(100, 32), fp8(4, 32, 64), *scales),
                offs=ENDS,
                out_dtype="torch.bfloat16",
            ),
            aten(
                *("_scaled_grouped_mm_v2", fp8(100, 32), fp8(4, 32, 64), (scales[0],), (), ()),
                *((scales[1],), (), (), ENDS, None, 15, (), False),
            ),
            python(
                *("torch", "_scaled_grouped_mm_v2", fp8(100, 32), fp8(4, 32, 64)),
                *(scales[0], (), (), scales[1], (), (), ENDS, None, "bfloat16"),
            ),
            python(
                *("torch.nn.functional", "scaled_grouped_mm", fp8(100, 32), fp8(4, 32, 64)),
                *(scales[0], "RowWise", scales[1], "RowWise"),
                offs=ENDS,
            ),
        )
    ),
    # Packed weights: int8 one by one, int4 eight to an int32.
    *(
        Example(
            each("_weight_int8pack_mm", bf16(7, 32), tensor("int8", 64, 32), bf16(64)),
            2 * 7 * 64 * 32,
            2 * 7 * 32 + 64 * 32 + 2 * 64 + 2 * 7 * 64,
        )
        for each in (aten, lambda *values: python("torch", *values))
    ),
    *(
        Example(
            each(
                "_weight_int4pack_mm",
                *(bf16(7, 32), tensor("int32", 8, 1, 32, 1), 32, bf16(1, 64, 2)),
            ),
            2 * 7 * 64 * 32,
            2 * 7 * 32 + 4 * 256 + 2 * 128 + 2 * 7 * 64,
        )
        for each in (aten, lambda *values: python("torch", *values))
    ),
    *(
        Example(
            each(
                "_mixed_dtypes_linear",
                *(bf16(7, 32), tensor("int8", 64, 32), bf16(64), bf16(64), "relu"),
            ),
            2 * 7 * 64 * 32,
            2 * 7 * 32 + 64 * 32 + 2 * 64 + 2 * 64 + 2 * 7 * 64,
        )
        for each in (aten, lambda *values: python("torch", *values))
    ),
]


def test_groups_that_share_something_out_are_an_estimate():
    assert not work(python("torch", "_grouped_mm", *EXPERTS, ENDS), "fprop").cost.exact
    batch = bf16(4, 16, 32), bf16(4, 32, 64)
    assert work(python("torch", "_grouped_mm", *batch), "fprop").cost.exact


@pytest.mark.parametrize(
    "malformed",
    [
        aten("_scaled_mm", A, A, SCALE, SCALE),
        aten("_int_mm", tensor("int8", 2, 3), tensor("int8", 3)),
        aten("_grouped_mm", *EXPERTS),
        aten("_grouped_mm", *EXPERTS, int64(5)),
        aten("_grouped_mm", bf16(4, 16, 32), bf16(4, 32, 64), ENDS),
        aten("_weight_int8pack_mm", bf16(7, 32), tensor("int8", 65, 33), bf16(64)),
        aten("_weight_int4pack_mm", bf16(7, 32), tensor("int32", 8), 32, bf16(64)),
        aten("_weight_int8pack_mm", Tensor(()), tensor("int8", 65, 33), bf16(64)),
    ],
)
def test_a_malformed_call_has_no_work(malformed):
    assert work(malformed, "fprop") is None
