"""The rules of the oracle for real traces, on a few events each."""

import re
import sqlite3
from pathlib import Path

import pytest

from oracle import databases, kineto
from oracle.capture import Capture, Range
from oracle.flops import flops
from oracle.kineto import nanoseconds
from oracle.links import Links, direction
from oracle.nodes import fits, is_node, shared_words
from oracle.work import Work, call_of
from support.kineto_files import KinetoFile

MAIN, ENGINE = 1, 2
MM = "aten::mm, seq = 3, op_id = 4, sizes = [[2, 3], [3, 4]]"
EVALUATE = "autograd::engine::evaluate_function: "


def captured(trace: KinetoFile, tmp_path: Path) -> Capture:
    return kineto.read(Path(trace.write(tmp_path / "one.json")))


def node(trace: KinetoFile, start: int, end: int, name: str, seq: int) -> KinetoFile:
    """The evaluation of a node, and the node in it."""
    trace.op(start, end, EVALUATE + name, ENGINE, seq=seq, **{"Fwd thread id": 1})
    return trace.op(start + 1, end - 1, name, ENGINE, seq=seq, **{"Fwd thread id": 1})


def names(ranges: list[Range]) -> list[str]:
    return [range_.name for range_ in ranges]


def test_it_shares_no_code_with_what_it_checks() -> None:
    files = list((Path(__file__).parents[2] / "oracle").glob("*.py"))
    assert len(files) > 5
    for file in files:
        assert not re.search(r"^\s*(?:from|import) fastprof", file.read_text(), re.M), file.name


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1", 1000), ("1.5", 1500), ("1682725898707727.0014", 1682725898707727001),
     ("0.0005", 1), ("0.0004", 0)],
)  # fmt: skip
def test_microseconds_become_nanoseconds_without_floats(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


def test_a_kernel_is_in_the_innermost_range_around_its_launch(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 100, "aten::linear").op(10, 50, "aten::addmm")
    trace.launch(20, 25, 1).launch(60, 65, 2).launch(200, 210, 3)
    for number in (1, 2, 3):
        trace.kernel(300 + number, 400, number)
    kernels = captured(trace, tmp_path).kernels
    assert [k.range and k.range.name for k in kernels] == ["aten::addmm", "aten::linear", None]
    assert [k.launched for k in kernels] == [20, 60, 200]


def test_of_carriers_of_a_number_the_last_that_can_have_made_the_node(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 10, "aten::zeros", seq=7).op(20, 60, "aten::linear", seq=7)
    trace.op(30, 50, "aten::addmm", seq=7).op(40, 45, "aten::zero_", seq=7)
    node(trace, 100, 200, "AddmmBackward0", 7)
    trace.launch(110, 120, 1, ENGINE).kernel(300, 400, 1)
    capture = captured(trace, tmp_path)
    (kernel,), links = capture.kernels, Links(capture)
    result = links.node(kernel.range.chain())
    assert direction(capture, kernel) == "bprop"
    assert result.name == "AddmmBackward0"
    assert names(links.forwards(result)) == ["aten::addmm"]


def test_the_call_of_a_custom_function_is_the_operator_of_the_gap(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 40, "fbgemm::bounds_check").op(10, 20, "aten::zero_", seq=7)
    trace.op(50, 90, "fbgemm::split_embedding_lookup_adagrad_function")
    trace.op(95, 99, "aten::cat", seq=8)
    node(trace, 100, 200, "torch::autograd::CppNode<SplitLookupFunction_adagrad_Op>", 7)
    capture = captured(trace, tmp_path)
    result = next(
        range_ for range_ in capture.ranges if range_.name.startswith("torch::autograd::Cpp")
    )
    forwards = Links(capture).forwards(result)
    assert names(forwards) == ["fbgemm::split_embedding_lookup_adagrad_function"]


def test_what_checkpointing_does_again_is_forward_work(tmp_path: Path) -> None:
    trace = node(KinetoFile(), 0, 1000, "ReluBackward0", 7)
    trace.python(10, 500, "torch/utils/checkpoint.py(1500): recompute_fn", ENGINE)
    trace.op(20, 100, "aten::conv2d", ENGINE, seq=9)
    trace.launch(30, 40, 1, ENGINE).launch(600, 610, 2, ENGINE)
    trace.kernel(2000, 2100, 1).kernel(2200, 2300, 2)
    capture = captured(trace, tmp_path)
    assert [direction(capture, kernel) for kernel in capture.kernels] == ["fprop", "bprop"]


def test_gradients_that_the_engine_adds_up_are_backward_work(tmp_path: Path) -> None:
    trace = node(KinetoFile(), 0, 100, "MmBackward0", 7).op(200, 300, "aten::add_", ENGINE)
    trace.op(200, 300, "aten::add_", MAIN)
    trace.launch(210, 220, 1, ENGINE).launch(210, 220, 2, MAIN).launch(900, 910, 3, MAIN)
    for number in (1, 2, 3):
        trace.kernel(1000 * number, 1000 * number + 10, number)
    capture = captured(trace, tmp_path)
    assert [direction(capture, kernel) for kernel in capture.kernels] == ["bprop", "fprop", None]


def test_arrows_of_the_file_come_first(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 10, "aten::mm", seq=7).op(20, 30, "aten::mm", seq=7)
    node(trace, 100, 200, "MmBackward0", 7)
    ends = (("s", 0, MAIN), ("f", 101, ENGINE))
    for phase, at, tid in ends:
        trace.event(phase, "fwdbwd", "fwdbwd", at, pid=100, tid=tid, id=1)
    capture = captured(trace, tmp_path)
    result = next(range_ for range_ in capture.ranges if range_.name == "MmBackward0")
    assert [forward.start for forward in Links(capture).forwards(result)] == [0]


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        ("LogSoftmaxBackward0", "aten::_log_softmax"),
        ("ReluBackward1", "aten::relu_"),
        ("MaxPool2DWithIndicesBackward0", "aten::max_pool2d_with_indices"),
        ("NllLossBackward0", "aten::nll_loss_forward"),
        ("SplitWithSizesBackward0", "aten::split_with_sizes"),
        ("All2All_Pooled_ReqBackward", "All2All_Pooled_Req"),
        ("AddmmBackward", "addmm"),
    ],
)
def test_a_node_is_named_after_its_operator(name: str, operator: str) -> None:
    assert fits(name, operator)
    assert is_node(name)
    assert is_node(EVALUATE + name)
    assert not fits(name, "aten::zero_")


def test_operators_are_no_nodes() -> None:
    for name in ("aten::convolution_backward", "aten::mm", "Backward", "## backward ##", "forward"):
        assert not is_node(name), name


def test_words_of_a_custom_function() -> None:
    name = "torch::autograd::CppNode<fbgemm_gpu::PermutePooledEmbsFunction<&f> >"
    assert shared_words(name, "fbgemm::permute_pooled_embs_auto_grad") == 3
    assert shared_words(name, "aten::to") == 0


def op(name: str, dims: list[list[int]], concrete: list[str] | None = None) -> Range:
    return Range("aten::" + name, 0, 1, (0, 0), "op", dims=dims, concrete=concrete)


CONVOLUTION = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (op("mm", [[5, 3], [3, 7]]), 2 * 5 * 3 * 7),
        (op("addmm", [[7], [5, 3], [3, 7], [], []]), 2 * 5 * 3 * 7),
        (op("mm", [[5, 3], [3, 7], [5, 7]]), 2 * 5 * 3 * 7),  # out
        (op("bmm", [[2, 5, 3], [2, 3, 7]]), 2 * 2 * 5 * 3 * 7),
        (op("matmul", [[2, 4, 5, 3], [3, 7]]), 2 * 8 * 5 * 3 * 7),
        (op("mv", [[5, 3], [3]]), 2 * 5 * 3),
        (op("mm", [[5, 3], [4, 7]]), None),
        (op("mm", [[5, 3], []]), None),
        (op("convolution", [[2, 4, 9, 9], [6, 4, 3, 3], []], CONVOLUTION),
         2 * (2 * 6 * 5 * 5) * 4 * 9),
        (op("conv2d", [[2, 4, 9, 9], [6, 2, 3, 3], []]), None),
        (op("convolution_backward", [[2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3], *[[]] * 8],
            [*[""] * 7, "False", "", "1", "[True, True, False]"]), 2 * 2 * (2 * 6 * 5 * 5) * 4 * 9),
        (op("convolution_backward", [[2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3], *[[]] * 8],
            [*[""] * 7, "False", "", "1", "[False, True, True]"]), 2 * (2 * 6 * 5 * 5) * 4 * 9),
        (op("scaled_dot_product_attention", [[2, 8, 16, 64], [2, 8, 32, 64], [2, 8, 32, 64]]),
         4 * 2 * 8 * 16 * 32 * 64),
        (op("_scaled_dot_product_flash_attention_backward",
            [[2, 8, 16, 64], [2, 8, 16, 64], [2, 8, 32, 64], [2, 8, 32, 64]]),
         5 * 2 * 2 * 8 * 16 * 32 * 64),
    ],
)  # fmt: skip
def test_flops_by_own_sizes(call: Range, expected: int | None) -> None:
    assert flops(call) == expected


def test_a_call_is_the_sum_of_the_innermost_products(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 100, "aten::matmul", dims=[[4, 5, 3], [3, 7]])
    trace.op(10, 50, "aten::mm", dims=[[20, 3], [3, 7]])
    trace.launch(20, 25, 1).kernel(200, 300, 1)
    capture = captured(trace, tmp_path)
    call = call_of(capture.kernels[0].range)
    assert call.name == "aten::matmul"
    assert Work(capture.ranges, capture.kernels, Links(capture)).flops(call) == 2 * 20 * 3 * 7


def test_a_convolution_without_stride_has_the_size_of_its_gradient(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 50, "aten::conv2d", seq=7, dims=[[2, 4, 9, 9], [6, 4, 3, 3]])
    trace.op(10, 40, "aten::cudnn_convolution", seq=7, dims=[[2, 4, 9, 9], [6, 4, 3, 3]])
    trace.op(100, 200, "CudnnConvolutionBackward", ENGINE, seq=7, dims=[[2, 6, 5, 5]])
    trace.op(110, 190, "aten::cudnn_convolution_backward", ENGINE,
             dims=[[2, 4, 9, 9], [2, 6, 5, 5], [6, 4, 3, 3]])  # fmt: skip
    trace.launch(20, 25, 1).kernel(300, 400, 1)
    capture = captured(trace, tmp_path)
    result = Work(capture.ranges, capture.kernels, Links(capture)).flops(
        call_of(capture.kernels[0].range)
    )
    assert result == 2 * (2 * 6 * 5 * 5) * 4 * 9


def test_ranges_of_the_waiting_thread_hold_what_the_engine_launches(tmp_path: Path) -> None:
    path, process = tmp_path / "one.sqlite", 5
    main, engine = ((process << 24) | tid for tid in (11, 12))
    with sqlite3.connect(path) as connection:
        connection.executescript(f"""
            CREATE TABLE StringIds(id, value);
            INSERT INTO StringIds VALUES (1, 'pt_autograd_0'), (2, 'sgemm');
            CREATE TABLE ThreadNames(nameId, globalTid);
            INSERT INTO ThreadNames VALUES (1, {engine});
            CREATE TABLE NVTX_EVENTS(start, end, text, textId, globalTid, eventType);
            INSERT INTO NVTX_EVENTS VALUES (0, 100, 'Backward', NULL, {main}, 59),
                (10, 20, '{MM}', NULL, {main}, 59);
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start, globalTid, correlationId);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (12, {main}, 1), (50, {engine}, 2);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(
                start, end, demangledName, deviceId, globalPid, correlationId);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
                (200, 210, 2, 0, {process << 24}, 1), (220, 230, 2, 0, {process << 24}, 2);
        """)
    connection.close()
    capture = databases.read(path)
    first, second = capture.kernels
    assert (first.range.name, first.range.seq, first.range.dims) == (
        "aten::mm",
        3,
        [[2, 3], [3, 4]],
    )
    assert (direction(capture, first), flops(first.range)) == ("fprop", 48)
    assert (second.range.name, direction(capture, second)) == ("Backward", "bprop")
