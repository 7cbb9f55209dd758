"""Calls that other calls inside of them restate: DTensor, vmap, fused layers that run products."""

import pytest

import fastprof
from support import dict_lines
from unit.profile.kineto_programs import ENGINE, FLOAT, HALF, Program

SGEMM, ADD = "ampere_sgemm_128x128_tn", "vectorized_elementwise_kernel"


# DTensor on two GPUs: a linear layer split by columns; [32, 16] x [16, 8], of which half is here.
GLOBAL = (
    ("aten::linear", [[4, 8, 16], [8, 16], []]),
    ("aten::matmul", [[4, 8, 16], [16, 8]]),
    ("aten::mm", [[32, 16], [16, 8]]),
)
LOCAL = ("aten::mm", [[32, 16], [16, 4]])
LOCAL_FLOPS = 2 * 32 * 16 * 4


def split_linear(*between):
    return Program().run((*GLOBAL, *between, LOCAL), SGEMM, seq=5)


@pytest.mark.parametrize("between", [(), (("DTensor::dispatch", None),)])
def test_the_local_product_of_a_dtensor_has_the_cost(told, between):
    expected = ("linear", "M=4,N=32,K=16,fp32,", LOCAL_FLOPS, 4 * (32 * 16 + 16 * 4 + 32 * 4))
    assert told(split_linear(*between), "op", "params", "flops", "bytes") == [expected]


def test_an_operator_on_tensors_without_data_launches_nothing_and_has_no_cost(told):
    program = Program()
    for name, dims in GLOBAL:
        program.trace.op(0, 300, name, dims=dims, types=[FLOAT if dim else "" for dim in dims])
    program.time = 10
    program.run([("aten::mm", GLOBAL[2][1])])  # computes the size of the result
    program.run([LOCAL], SGEMM)
    assert told(program, "op", "flops") == [("linear", LOCAL_FLOPS)]


def test_gradients_of_a_dtensor_have_their_local_sizes(told):
    program = split_linear()
    node = (ENGINE + "MmBackward0", None), ("MmBackward0", [[32, 8]])
    gradients = (
        (("aten::mm", [[16, 32], [32, 8]]), ("aten::mm", [[16, 32], [32, 4]])),
        (("aten::mm", [[32, 8], [8, 16]]), ("aten::mm", [[32, 4], [4, 16]])),
    )
    for both in gradients:
        program.run((*node, *both), SGEMM, seq=5, tid=2)
    assert told(program, "dir", "op", "params", "flops")[1:] == [
        ("bprop", "linear", "M=4,N=16,K=32,fp32,", LOCAL_FLOPS),
        ("bprop", "linear", "M=16,N=32,K=4,fp32,", LOCAL_FLOPS),
    ]


def test_other_operators_of_a_dtensor_have_local_sizes_forward_and_backward(told):
    program = Program()
    forward = ("aten::mul", [[8, 16], [8, 16]]), ("aten::mul", [[8, 8], [8, 8]])
    program.run(forward, ADD, seq=5)
    node = (ENGINE + "MulBackward0", None), ("MulBackward0", [[8, 16]])
    for _ in "ab":
        program.run((*node, *forward), ADD, seq=5, tid=2)
    rows = told(program, "dir", "op", "flops")
    assert rows[0] == ("fprop", "mul", 8 * 8)
    assert rows[1:] == [("bprop", "mul", 8 * 8)] * 2


def test_a_layer_of_a_dtensor_has_the_sizes_of_what_it_calls_locally(told):
    weight = [16]
    program = Program().run(
        (
            ("aten::layer_norm", [[8, 4, 16], [], weight, weight, [], []]),
            ("aten::native_layer_norm", [[8, 4, 16], [], weight, weight, []]),
            ("aten::native_layer_norm", [[8, 2, 16], [], weight, weight, []]),
        ),
        "vectorized_layer_norm_kernel",
    )
    alone = Program().run(
        [("aten::native_layer_norm", [[8, 2, 16], [], weight, weight, []])],
        "vectorized_layer_norm_kernel",
    )
    ((op, *costs),) = told(program, "op", "flops", "bytes")
    assert op == "layer_norm"
    assert costs == [*told(alone, "flops", "bytes")[0]]


def test_autocast_of_a_dtensor_has_the_types_and_the_local_sizes(told):
    program = Program()
    program.trace.op(0, 400, "aten::linear", dims=GLOBAL[0][1], types=[FLOAT, FLOAT, ""])
    program.time = 10
    program.run([("aten::copy_", [[8, 16], [8, 16]], [HALF, FLOAT])], "copy_kernel")
    program.time = 150
    program.run([(*each, HALF) for each in (*GLOBAL, LOCAL)], "sm90_hgemm_tn")
    assert told(program, "op", "params", "flops", "bytes", "helper") == [
        ("linear", "M=4,N=32,K=16,fp16,", 0, 8 * 16 * (4 + 2), 1),
        ("linear", "M=4,N=32,K=16,fp16,", LOCAL_FLOPS, 2 * (32 * 16 + 16 * 4 + 32 * 4), 0),
    ]


def test_a_fused_optimizer_on_shards_has_the_sizes_of_the_shards(told):
    """FSDP2: lists of DTensors, then of their local parts."""
    sizes = [[[64, 16]], [[64, 16]], [[32, 16]], [[32, 16]]]
    outer, inner = sizes[:2], sizes[2:]
    types = [["float"], ["float"]]
    program = Program()
    program.trace.op(0, 100, "aten::_foreach_mul_", dims=outer, types=types)
    program.time = 10
    program.trace.op(10, 90, "aten::_foreach_mul_", dims=inner, types=types)
    program.launch("multi_tensor_apply_kernel", 20)
    ((op, flops),) = told(program, "op", "flops")
    assert (op, flops) == ("_foreach_mul_", 32 * 16)


# vmap over 7: the outer operators record no batch.
def test_what_vmap_runs_has_the_batch(told):
    program = Program().run(
        (
            ("aten::linear", [[5, 16], [8, 16], []]),
            ("aten::matmul", [[7, 5, 16], [7, 16, 8]]),
            ("aten::bmm", [[7, 5, 16], [7, 16, 8]]),
        ),
        SGEMM,
    )
    program.run((("aten::add", [[5, 8], [5, 8]]), ("aten::add", [[7, 5, 8], [7, 5, 8]])), ADD)
    assert told(program, "op", "params", "flops") == [
        ("linear", "B=7,M=8,N=5,K=16,fp32,", 2 * 7 * 5 * 16 * 8),
        ("add", "[7,5,8]fp32;[7,5,8]fp32", 7 * 5 * 8),
    ]


# Attention of an nn.TransformerEncoder in inference: batch 2, sequence 6, size 8, 2 heads.
B, S, E, H = 2, 6, 8, 2
X = [B, S, E]
LAYER = (
    "aten::_native_multi_head_attention",
    [X, X, X, [], [], [3 * E, E], [3 * E], [E, E], [E], [], [], [], []],
)
HEADS = [B * H, S, E // H]
INSIDE = [
    (("aten::matmul", [X, [E, 3 * E]]), ("aten::mm", [[B * S, E], [E, 3 * E]])),
    (("aten::_transform_bias_rescale_qkv", [[B, S, 3 * E], [3 * E], []]),),
    (("aten::bmm", [HEADS, [B * H, E // H, S]]),),
    (("aten::_softmax", [[B, H, S, S], [], []]),),
    (("aten::bmm", [[B * H, S, S], HEADS]),),
    (("aten::addmm", [[E], [B * S, E], [E, E], [], []]),),
]
NAMES = [SGEMM, "transform_bias_rescale_qkv_kernel", SGEMM, "softmax_warp_forward", SGEMM, SGEMM]
PRODUCTS = [2 * B * S * E * 3 * E, 0, 2 * B * S * S * E, 0, 2 * B * S * S * E, 2 * B * S * E * E]


def encoder(inside=INSIDE, names=NAMES):
    program = Program()
    types = [FLOAT if each else "" for each in LAYER[1]]
    program.trace.op(0, 10_000, LAYER[0], dims=LAYER[1], types=types)
    for ranges, name in zip(inside, names, strict=True):
        program.time += 100
        program.run(ranges, name)
    return program


def test_products_of_a_fused_layer_have_the_cost_of_their_own_sizes(told):
    rows = told(encoder(), "op", "flops", "helper")
    assert [(op, flops) for op, flops, _ in rows] == [
        ("_native_multi_head_attention", flops) for flops in PRODUCTS
    ]
    assert [helper for *_, helper in rows] == [0, 1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    "attention",
    [
        ("my range", None),
        ("aten::_scaled_dot_product_efficient_attention", [[B, H, S, E // H]] * 3),
    ],
)
def test_kernels_outside_of_products_do_the_rest_of_the_layer(told, attention):
    """The attention itself is one kernel."""
    names = [SGEMM, NAMES[1], "fmha_cutlassF_f32_aligned_64x64_rf_sm80", SGEMM]
    program = encoder([*INSIDE[:2], (attention,), INSIDE[5]], names)
    flops = [flops for (flops,) in told(program, "flops")]
    assert flops == [PRODUCTS[0], 0, PRODUCTS[2] + PRODUCTS[4], PRODUCTS[5]]


def test_a_layer_without_a_formula_has_its_operators_as_calls(told):
    program = encoder()
    sizes = [X, [], [], [3 * E, E], [3 * E], [E, E], [E]]
    types = [FLOAT if size else "" for size in sizes]
    program.trace.op(0, 20_000, "aten::_transformer_encoder_layer_fwd", dims=sizes, types=types)
    program.time = 11_000
    program.run([("aten::addmm", [[E], [B * S, E], [E, E], [], []])], SGEMM)
    assert told(program, "op", "flops") == [
        *(("_native_multi_head_attention", flops) for flops in PRODUCTS),
        ("addmm", 2 * B * S * E * E),
    ]


def test_inner_calls_of_the_same_cost_leave_the_call_as_it_is(told):
    """A linear layer by addmm, and a product of batches by a wide one."""
    program = Program().run(
        (
            ("aten::linear", [[4, 8, 16], [8, 16], [8]]),
            ("aten::addmm", [[8], [32, 16], [16, 8], [], []]),
        ),
        SGEMM,
    )
    program.run((("aten::matmul", [[2, 4, 16], [16, 8]]), ("aten::mm", [[8, 16], [16, 8]])), SGEMM)
    program.run(
        (
            ("aten::matmul", [[2, 3, 4, 16], [2, 3, 16, 8]]),
            ("aten::bmm", [[6, 4, 16], [6, 16, 8]]),
        ),
        SGEMM,
    )
    assert told(program, "op", "flops") == [
        ("linear", 2 * 32 * 16 * 8),
        ("matmul", 2 * 8 * 16 * 8),
        ("matmul", 2 * 6 * 4 * 16 * 8),
    ]


def test_a_call_in_chunks_is_the_sum_of_its_products(told):
    program = Program()
    program.trace.op(0, 1000, "aten::matmul", dims=[[12, 16], [16, 8]], types=[FLOAT] * 2)
    for rows in (8, 4):
        program.time += 100
        program.run([("aten::mm", [[rows, 16], [16, 8]])], SGEMM)
    assert told(program, "op", "flops") == [
        ("matmul", 2 * 8 * 16 * 8),
        ("matmul", 2 * 4 * 16 * 8),
    ]


def test_variants_with_an_output_are_the_same_call(told):
    program = Program().run((("aten::abs", [[64]]), ("aten::abs", [[64], [0]])), ADD)
    program.run(
        (
            ("aten::repeat_interleave", [[64, 16], [64], [], []]),
            ("aten::repeat_interleave", [[64], []]),
        ),
        "compute_cuda_kernel",
    )
    assert told(program, "op", "bytes")[0] == ("abs", 2 * 4 * 64)


def test_dict_lines_tell_local_products_too(told, tmp_path):
    told(encoder(), "op")
    rows = dict_lines.reopened(fastprof.open(tmp_path / "trace.json")).rows()
    assert [row["flops"] for row in rows] == PRODUCTS
