"""The call that determines a cost: products inside, autocast, results; also in dict lines."""

from types import SimpleNamespace

import pytest

import fastprof
from fastprof import ops
from fastprof.profile import calls
from support import dict_lines
from support.kineto_files import KinetoFile
from unit.profile.kineto_programs import ENGINE, FLOAT, HALF, Program

NVJET = "nvjet_hsh_128x128_64x4_1x2_h_bz_coopA"
CAST = "void at::native::unrolled_elementwise_kernel<at::native::copy_kernel_cuda>(int)"


def in_dict_lines(path, *keys):
    rows = dict_lines.reopened(fastprof.open(path)).rows()
    return [tuple(row[key] for key in keys) for row in rows]


# linear of 8 rows, 16 in, 4 out
X, W = [8, 16], [4, 16]
FORWARD = (
    ("aten::linear", [X, W, [4]]),
    ("aten::addmm", [[4], X, [16, 4], [], []]),
)
NODE = (ENGINE + "AddmmBackward0", None), ("AddmmBackward0", [[8, 4]])
DGRAD = ("aten::mm", [[8, 4], [4, 16]])
WGRAD = ("aten::mm", [[4, 8], [8, 16]])
FLOPS = 2 * 8 * 16 * 4


@pytest.fixture
def linear():
    program = Program().run(FORWARD, NVJET, seq=5)
    program.run((*NODE, DGRAD), NVJET, seq=5, tid=2)
    # Two kernels, one of them a helper.
    program.run((*NODE, WGRAD), NVJET, "splitKreduce_kernel", seq=5, tid=2)
    program.run((*NODE, ("aten::sum", [[8, 4], []])), "reduce_kernel", seq=5, tid=2)
    return program


EXPECTED = [
    ("fprop", "linear", "M=4,N=8,K=16,{},", FLOPS),
    ("bprop", "linear", "M=16,N=8,K=4,{},", FLOPS),
    ("bprop", "linear", "M=16,N=4,K=8,{},", FLOPS),
    ("bprop", "linear", "M=16,N=4,K=8,{},", 0),
    ("bprop", "bias", "M=4,N=8,{},", 8 * 4),
]


def test_products_in_backward_have_their_own_sizes_whatever_their_kernels_are_called(told, linear):
    assert told(linear, "dir", "op", "params", "flops") == [
        (dir_, op, params.format("fp32"), flops) for dir_, op, params, flops in EXPECTED
    ]


def test_dict_lines_tell_the_same_products(told, linear, tmp_path):
    told(linear, "op")
    assert in_dict_lines(tmp_path / "trace.json", "dir", "op", "params", "flops") == [
        (dir_, op, params.format("na"), flops) for dir_, op, params, flops in EXPECTED
    ]


def test_two_products_of_the_same_sizes_are_two(told, tmp_path):
    square = [[8, 8], [8, 8]]
    program = Program().run([("aten::mm", square)], "sgemm_tn", seq=5)
    node = (ENGINE + "MmBackward0", None), ("MmBackward0", [[8, 8]])
    for name in ("sgemm_nt", "sgemm_nt"):
        program.run((*node, ("aten::mm", square)), name, seq=5, tid=2)
    expected = [(direction, "mm", 2 * 8**3) for direction in ("fprop", "bprop", "bprop")]
    assert told(program, "dir", "op", "flops") == expected
    assert in_dict_lines(tmp_path / "trace.json", "dir", "op", "flops") == expected


def test_sizes_that_are_no_product_leave_the_gradient_to_the_forward_call(told):
    program = Program().run([("aten::mm", [X, [16, 4]])], "sgemm_tn", seq=5)
    node = (ENGINE + "MmBackward0", None), ("MmBackward0", [[8, 4]])
    program.run((*node, ("aten::mm", [[16, 8], [8, 4]])), NVJET, seq=5, tid=2)
    program.run((*node, ("aten::mm", [[8, 4], [9, 9]])), NVJET, seq=5, tid=2)
    assert told(program, "op", "flops")[1:] == [("mm", FLOPS), ("mm", FLOPS)]


def test_a_product_in_backward_of_what_is_none_shows_itself(told):
    program = Program().run([("my::fused", [X])], "my_kernel", seq=5)
    node = (ENGINE + "FusedBackward", None), ("FusedBackward", [X])
    program.run((*node, DGRAD), "sgemm_tn", seq=5, tid=2)
    assert told(program, "dir", "op", "flops") == [
        ("fprop", "fused", None),
        ("bprop", "mm", FLOPS),
    ]


NOT_ALIGNED = "M=4 is not a multiple of 8 (fp16)"


def autocast():
    """linear of floats that casts its weight and calls itself in half precision."""
    outer = ("aten::linear", [X, W, [4]])
    cast = [("aten::to", [W]), ("aten::_to_copy", [W]), ("aten::copy_", [W, W], [HALF, FLOAT])]
    inner = [("aten::linear", [X, W, [4]], HALF), ("aten::addmm", [[4], X, [16, 4]], HALF)]
    program = Program()
    program.trace.op(0, 300, outer[0], seq=5, dims=outer[1], types=[FLOAT] * 3)
    program.time = 10
    program.run(cast, CAST, seq=5)
    program.time = 150
    program.run(inner, "sgemm_tn", seq=7)
    program.time = 400
    return program


def test_autocast_has_the_types_of_the_call_that_it_makes_and_casts_help_it(told):
    keys = ("op", "params", "flops", "bytes", "tc_reason")
    assert told(autocast(), *keys) == [
        ("linear", "M=4,N=8,K=16,fp16,", 0, 64 * (4 + 2), "-"),
        ("linear", "M=4,N=8,K=16,fp16,", FLOPS, 2 * (8 * 16 + 64 + 32), NOT_ALIGNED),
    ]


def test_backward_of_autocast_has_its_types_too(told):
    program = autocast()
    program.run((*NODE, ("aten::sum", [[8, 4], []], HALF)), "reduce_kernel", seq=7, tid=2)
    node = (ENGINE + "ToCopyBackward0", None), ("ToCopyBackward0", [W], HALF)
    cast = ("aten::copy_", [W, W], [FLOAT, HALF])
    program.run((*node, cast), CAST, seq=5, tid=2)
    assert told(program, "dir", "op", "flops", "bytes")[2:] == [
        ("bprop", "bias", 32, 2 * (32 + 4)),
        ("bprop", "linear", 0, 64 * (4 + 2)),
    ]


def test_other_operators_that_autocast_calls_again_have_the_inner_types(told):
    program = Program()
    program.trace.op(0, 300, "aten::softmax", dims=[X], types=[HALF])
    program.time = 10
    program.run([("aten::copy_", [X, X], [FLOAT, HALF])], CAST)
    program.time = 150
    program.run([("aten::softmax", [X]), ("aten::_softmax", [X])], "softmax_warp_forward")
    assert told(program, "op", "params", "flops", "bytes") == [
        ("softmax", "[8,16]fp32", 0, 8 * 16 * 6),
        ("softmax", "[8,16]fp32", 24 * 8 * 16, 2 * 4 * 8 * 16),
    ]


# A convolution whose stride and padding are not recorded; its output is [2, 8, 5, 5].
IMAGES, FILTERS, OUTPUT = [2, 3, 9, 9], [8, 3, 3, 3], [2, 8, 5, 5]
CONVOLUTION = (
    ("aten::conv2d", [IMAGES, FILTERS, [], [], [], [], []]),
    ("aten::cudnn_convolution", [IMAGES, FILTERS, [], [], [], [], [], []]),
)
CONVOLUTION_FLOPS = 2 * (2 * 8 * 5 * 5) * (3 * 3 * 3)


def convolved():
    return Program().run(CONVOLUTION, "volta_scudnn_128x64_relu_medium_nn_v1", seq=5)


def test_the_gradient_of_the_output_tells_the_size_of_a_convolution(told, tmp_path):
    program = convolved()
    node = (ENGINE + "CudnnConvolutionBackward", None), ("CudnnConvolutionBackward", [OUTPUT])
    both = ("aten::cudnn_convolution_backward", [IMAGES, OUTPUT, FILTERS, [], [], [], []])
    for name in ("cudnn::detail::dgrad_engine<int>()", "cudnn::detail::wgrad_alg0_engine<int>()"):
        program.run((*node, both), name, seq=5, tid=2)
    expected = [
        ("fprop", "conv2d", CONVOLUTION_FLOPS),
        ("bprop", "conv2d", CONVOLUTION_FLOPS),
        ("bprop", "conv2d", CONVOLUTION_FLOPS),
    ]
    assert told(program, "dir", "op", "flops") == expected
    assert told(program, "exact") == [(1,)] * 3
    assert in_dict_lines(tmp_path / "trace.json", "dir", "op", "flops") == expected


def test_the_next_call_tells_it_too_as_an_estimate(told):
    program = convolved().run([("aten::batch_norm", [OUTPUT, [8], [8]])], "bn_fw_inf")
    assert told(program, "op", "flops", "exact")[0] == ("conv2d", CONVOLUTION_FLOPS, 0)


@pytest.mark.parametrize(
    "following",
    [
        ("aten::relu", [[2, 7, 5, 5]]),  # other channels
        ("aten::relu", [[3, 8, 5, 5]]),  # other images
        ("aten::relu", [[2, 8, 99, 99]]),  # larger than the image with the whole kernel around it
        ("aten::relu", [OUTPUT], HALF),
        ("aten::relu", [[16, 25]]),
    ],
)
def test_what_a_convolution_cannot_return_does_not_tell_it(told, following):
    program = convolved().run([following], "elementwise_kernel")
    assert told(program, "op", "flops")[0] == ("conv2d", None)


def test_another_thread_does_not_tell_it(told):
    program = convolved().run([("aten::relu", [OUTPUT])], "elementwise_kernel", tid=3)
    assert told(program, "op", "flops")[0] == ("conv2d", None)


# Indexing by a mask: traces do not record the number of selected elements.
PICKED = ("aten::index", [[900, 16], [[900]]], [FLOAT, ["bool"]])
INDEX_KERNEL = "void at::native::index_elementwise_kernel<128, 4, at::native::f()>(int)"


def test_the_grid_of_an_index_bounds_what_it_picks(told):
    program = Program().run([PICKED], INDEX_KERNEL)  # 2 blocks of 128 threads with 4 elements
    ((op, moved, exact),) = told(program, "op", "bytes", "exact")
    assert (op, exact) == ("index", 0)
    assert moved == 900 + 2 * 4 * (2 * 128 * 4)


@pytest.mark.parametrize(
    ("following", "picked"), [([70, 16], 70 * 16), ([70, 15], None), ([16], None)]
)
def test_what_follows_an_index_tells_what_it_picked(told, following, picked):
    program = Program().run([PICKED], "my_index_kernel")
    program.run([("aten::relu", [following])], "elementwise_kernel")
    moved, exact = told(program, "bytes", "exact")[0]
    assert moved == (None if picked is None else 900 + 2 * 4 * picked)
    assert picked is None or exact == 0


def test_casts_before_products_are_no_calls_of_their_own_in_dict_lines(told, tmp_path):
    told(autocast(), "op")
    flops = [flops for _, flops in in_dict_lines(tmp_path / "trace.json", "op", "flops")]
    assert sum(flops) == FLOPS


def test_kernels_between_those_of_a_call_do_not_part_it_in_dict_lines(told, tmp_path):
    program = Program().run(FORWARD, NVJET, seq=5)
    program.time = 0
    other = [("aten::mul", [X, X])]
    program.run(other, "vectorized_elementwise_kernel", tid=1)
    program.launch("cublasLt::epilogue::impl::globalKernel<int>(int)", 40)
    told(program, "op")
    rows = in_dict_lines(tmp_path / "trace.json", "op", "flops")
    assert sum(flops for op, flops in rows if op == "linear") == FLOPS


def test_backward_nodes_of_one_call_are_one_instance_in_dict_lines(told, tmp_path):
    loss = ("aten::cross_entropy_loss", [X, [8], [], [], []])
    program = Program()
    program.trace.op(0, 200, loss[0], seq=5, dims=loss[1], types=[FLOAT, "long int"])
    program.time = 1
    program.run([("aten::log_softmax", [X])], "softmax_warp_forward", seq=5)
    program.run([("aten::nll_loss_nd", [X, [8]], [FLOAT, "long int"])], "nll_loss_forward", seq=6)
    program.time = 300
    for node, number in (("NllLossBackward0", 6), ("LogSoftmaxBackward0", 5)):
        program.run([(ENGINE + node, None), (node, [X])], "my_" + node, seq=number, tid=2)
    capture = told(program, "dir", "op", "flops")
    lines = in_dict_lines(tmp_path / "trace.json", "dir", "op", "flops")
    for direction in ("fprop", "bprop"):
        sums = [
            sum(flops or 0 for dir_, _, flops in rows if dir_ == direction)
            for rows in (capture, lines)
        ]
        assert sums[0] == sums[1] > 0


def test_only_calls_around_kernels_have_their_cost_computed(tmp_path, monkeypatch):
    asked = []

    def noted(call, direction):
        asked.append((call.op, direction))
        return ops.work(call, direction)

    trace = KinetoFile()
    for i, (name, launches) in enumerate((("aten::mm", True), ("aten::bmm", False))):
        trace.op(100 * i, 100 * i + 90, name, dims=[[4, 4], [4, 4]], types=["float", "float"])
        if launches:
            trace.launch(100 * i + 1, 100 * i + 2, i + 1).kernel(100 * i + 5, 100 * i + 9, i + 1)
    monkeypatch.setattr(calls, "ops", SimpleNamespace(**vars(ops) | {"work": noted}))
    assert fastprof.open(trace.write(tmp_path / "t.json")).kernels["flops"].tolist() == [128]
    assert {op for op, _ in asked} == {"mm"}
    assert "bprop" not in {direction for _, direction in asked}  # no backward pass is recorded
