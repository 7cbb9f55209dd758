"""Traces of torch.profiler: from events to rows."""

import gzip
import json

import pytest

import fastprof
from fastprof.cli import main
from support.kineto_files import PID, KinetoFile

ENGINE = "autograd::engine::evaluate_function: "
MM = {"dims": [[8, 16], [16, 4]], "types": ["float", "float"]}


def one(trace: KinetoFile, at: int = 10, tid: int = 1, corr: int = 7, **others) -> KinetoFile:
    """The trace with a launch at a time and its kernel."""
    trace.launch(at, at + 5, corr, tid)
    return trace.kernel(1000 + at, 1012 + at, corr, **others)


def test_a_kernel_has_what_its_event_says(rows):
    keys = ("kernel", "sil", "device", "stream", "grid", "block", "registers", "shared_memory")
    assert rows(one(KinetoFile(), name="void at::native::relu<4>(int)"), *keys) == [
        ("relu", 12, 0, 7, (2, 3, 4), (128, 1, 1), 32, 64)
    ]
    assert rows(one(KinetoFile()), "tid", "pid", "launch", "kind", "start") == [
        (1, PID, "cudaLaunchKernel", "kernel", 1010)
    ]


def test_a_kernel_belongs_to_the_operator_around_its_launch(rows):
    trace = KinetoFile().op(0, 100, "aten::linear", seq=3).op(5, 50, "aten::mm", **MM, seq=4)
    trace.op(0, 100, "aten::relu", tid=2, dims=[[3]], types=["float"])
    assert rows(one(trace), "op", "mod", "params", "flops", "bytes", "seq", "dir") == [
        ("mm", "aten", "M=4,N=8,K=16,fp32,", 2 * 8 * 16 * 4, 4 * (128 + 64 + 32), 4, "fprop")
    ]


def test_an_external_id_tells_the_operator_where_there_is_no_launch(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", **MM, external=55)
    trace.kernel(200, 210, corr=1, external=55)
    assert rows(trace, "op", "launch") == [("mm", None)]


def test_an_external_id_that_repeats_the_correlation_tells_nothing(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", **MM, external=55)
    trace.kernel(200, 210, corr=55, external=55)
    assert rows(trace, "op") == [None]


def test_a_kernel_without_a_launch_is_of_the_process_of_its_operator(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", **MM, external=55, seq=3)
    trace.op(0, 100, "aten::mm", **MM, external=56, seq=3, pid=PID + 1)
    for at, external in ((200, 55), (210, 56), (220, 55), (230, 56)):
        trace.kernel(at, at + 10, corr=external + 100, external=external)
    assert rows(trace, "pid", "sub") == [(PID, 0), (PID + 1, 0), (PID, 1), (PID + 1, 1)]


def test_types_strides_and_values_reach_the_op_models(rows):
    trace = KinetoFile().op(
        0, 100, "aten::convolution",
        dims=[[1, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], []],
        types=["c10::Half", "c10::Half", "", "ScalarList", "ScalarList", "ScalarList", "Scalar",
               "ScalarList", "Scalar"],
        strides=[[192, 64, 8, 1], [27, 9, 3, 1], [], [], [], [], [], [], []],
        values=["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
    )  # fmt: skip
    ((flops, params),) = rows(one(trace), "flops", "params")
    assert flops == 2 * 4 * 4 * 4 * 3 * 3 * 3
    assert "fp16" in params


def test_lists_of_tensors_are_lists(rows):
    trace = KinetoFile().op(
        0, 100, "aten::cat", dims=[[[2, 3], [4, 3]], []], types=["TensorList", "Scalar"],
        values=["", "0"],
    )  # fmt: skip
    assert rows(one(trace), "op", "flops") == [("cat", 0)]


def test_a_list_whose_tensors_are_not_told_has_no_cost(rows):
    trace = KinetoFile().op(0, 100, "aten::_foreach_add_", dims=[[], [], []],
                            types=["TensorList", "TensorList", "Scalar"])  # fmt: skip
    assert rows(one(trace), "op", "flops") == [("_foreach_add_", None)]


def test_an_argument_that_is_left_without_a_type_is_none(rows):
    # mean(x, dtype=None): the trace would contain a requested type.
    trace = KinetoFile().op(0, 100, "aten::mean", dims=[[64], []], types=["float", ""])
    assert rows(one(trace), "flops", "bytes", "exact") == [(65, 4 * 65, 1)]


@pytest.mark.parametrize("told", ["", "TensorList"])
def test_an_index_that_is_not_told_picks_nobody_knows_how_much(rows, told):
    trace = KinetoFile().op(0, 100, "aten::index", dims=[[64, 8], []], types=["float", told])
    assert rows(one(trace), "op", "bytes") == [("index", None)]


def test_a_tensor_for_the_result_is_no_operand(rows):
    given = {"dims": [*MM["dims"], [8, 4]], "types": ["float"] * 3}
    plain = KinetoFile().op(0, 100, "aten::mm", dims=MM["dims"], types=["float"] * 2)
    out = KinetoFile().op(0, 100, "aten::mm", **given)
    told = ("flops", "bytes", "params")
    assert rows(one(out), *told) == rows(one(plain), *told)


def test_an_expanded_operand_counts_once(rows):
    types = ["float", "float", "Scalar"]
    trace = KinetoFile().op(0, 100, "aten::add", dims=[[64, 64], [64, 64], []], types=types,
                            strides=[[64, 1], [0, 0], []], values=["", "", "1"])  # fmt: skip
    assert rows(one(trace), "bytes") == [4 * (64 * 64 + 1 + 64 * 64)]


@pytest.mark.parametrize("arrows", [False, True])
def test_a_backward_kernel_belongs_to_the_forward_call(rows, arrows):
    trace = KinetoFile().annotation(0, 100, "layer:net").op(10, 90, "aten::matmul", seq=4)
    trace.op(20, 80, "aten::mm", **MM, seq=4)
    trace.op(500, 600, ENGINE + "MmBackward0", tid=2, seq=4, **{"Fwd thread id": 1})
    trace.op(510, 590, "MmBackward0", tid=2, seq=4, **{"Fwd thread id": 1})
    if arrows:
        trace.arrow(1, leaves=(20, 1), ends=(510, 2))
    one(trace, at=530, tid=2, name="sgemm_nt")
    assert rows(trace, "dir", "op", "layer", "flops") == [("bprop", "mm", ("net",), 1024)]


def test_where_arrows_are_they_are_the_truth(rows):
    trace = KinetoFile().annotation(0, 100, "layer:a").op(10, 90, "aten::mm", **MM, seq=4)
    trace.annotation(200, 300, "layer:b").op(210, 290, "aten::mm", **MM, seq=4)
    trace.op(500, 600, ENGINE + "MmBackward0", tid=2, seq=4)
    trace.op(510, 590, "MmBackward0", tid=2, seq=4).arrow(1, leaves=(10, 1), ends=(510, 2))
    assert rows(one(trace, at=530, tid=2), "layer") == [("a",)]


def test_modules_are_layers_and_lines_of_the_user_are_frames(rows):
    trace = KinetoFile().python(0, 900, "train.py(62): <module>")
    trace.python(
        10, 800, "/opt/lib/python3.11/site-packages/torch/nn/modules/module.py(1511): _call"
    )
    trace.python(20, 700, "nn.Module: ResNet_0").python(30, 600, "net/resnet.py(89): forward")
    trace.python(40, 500, "<built-in method conv2d>").python(45, 490, "nn.Module: Conv2d_3")
    trace.op(50, 400, "aten::mm", **MM)
    assert rows(one(trace, at=60), "layer", "trace", "ranges", "dir") == [
        (
            ("ResNet_0", "Conv2d_3"),
            ("train.py:62 <module>", "net/resnet.py:89 forward"),
            (),
            "fprop",
        )
    ]


def test_call_stacks_and_module_hierarchies_of_older_traces_are_read(rows):
    stack = "/usr/lib/torch/nn/functional.py(40): relu;net.py(7): forward;train.py(9): main"
    hierarchy = "TOP(Net)::forward.layer1(Block)::forward.conv(Conv2d)::forward"
    trace = KinetoFile().op(
        0,
        100,
        "aten::mm",
        cat="Operator",
        **{"Call stack": stack},
        **{"Module Hierarchy": hierarchy, "Input dims": [[2, 2], [2, 2]]},
    )
    assert rows(one(trace), "trace", "layer", "flops") == [
        (("train.py:9", "net.py:7"), ("layer1", "conv"), 16)
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("ProfilerStep#5", ("ProfilerStep#5",)), ("Torch-Compiled Region: 0/0", None), ("mine", None)],
)
def test_annotations_among_operators_are_the_users_ranges(rows, name, expected):
    trace = KinetoFile().op(0, 100, name, cat="Operator").op(5, 90, "aten::mm", **MM)
    assert rows(one(trace), "ranges", "op") == [(expected or (name,), "mm")]


def test_an_optimizer_without_operators_of_its_own_is_the_operator(rows):
    trace = KinetoFile().annotation(0, 100, "Optimizer.step#FusedAdam.step")
    assert rows(one(trace), "op", "dir") == [("Optimizer.step#FusedAdam.step", None)]
    trace = KinetoFile().annotation(0, 100, "Optimizer.step#SGD.step").op(5, 90, "aten::new_op")
    assert rows(one(trace), "op", "dir") == [("new_op", "fprop")]


@pytest.mark.parametrize("cat", ["user_annotation", "cpu_op", "Operator"])
@pytest.mark.parametrize("arguments", [{}, MM, {"dims": [[2, 4], []], "values": ["", "3"]}])
def test_markers_and_layers_are_what_they_are_in_any_category(rows, cat, arguments):
    marker = (
        "{'mod': 'torch', 'op': 'relu', 'args': [{'name': '', 'type': 'tensor', "
        "'shape': (2, 4), 'dtype': 'float32'}]}"
    )
    trace = KinetoFile().op(0, 100, "layer:conv1", cat=cat, **arguments)
    trace.op(1, 99, "{'traceMarker': ['train.py:310']}", cat=cat, **arguments)
    trace.op(2, 98, marker, cat=cat, **arguments).op(5, 90, "aten::relu", dims=[[2, 4]])
    assert rows(one(trace), "layer", "trace", "mod", "op", "params", "bytes") == [
        (("conv1",), ("train.py:310",), "torch", "relu", "[2,4]fp32", 2 * 8 * 4)
    ]


def test_an_operator_of_a_namespace_called_layer_is_an_operator(rows):
    trace = KinetoFile().op(0, 100, "layer::norm", dims=[[3]], types=["float"])
    assert rows(one(trace), "mod", "op", "layer") == [("layer", "norm", ())]


def test_copies_are_rows_when_they_are_asked_for(rows):
    trace = one(KinetoFile()).copy(2000, 2100, 8, "Memcpy HtoD (Pageable -> Device)", 4096)
    trace.copy(3000, 3100, 9, "Memset (Device)", 512)
    assert rows(trace, "kind") == ["kernel"]
    assert rows(trace, "kind", "copied", "copy_direction", "bytes", "flops", copies=True)[1:] == [
        ("memcpy", 4096, "HtoD", 4096, 0),
        ("memset", 512, None, 512, 0),
    ]


def test_durations_that_cannot_be_true_are_kept_out_of_totals_and_told(tmp_path, capsys):
    trace = KinetoFile().kernel(0, 900_000_000, corr=1, name="too long")
    trace.kernel(5000, 6000, corr=2).kernel(9000, 8000, corr=3, name="negative")
    trace.kernel(9100, 9200, corr=4).kernel(100, 90_000_000, corr=5, stream=8, name="alone")
    path = trace.write(tmp_path / "t.json")
    profile = fastprof.open(path)
    assert [(row["kernel"], row["sil"]) for row in profile.rows()] == [
        ("too_long", None), ("alone", 89_999_900), ("sgemm", 1000), ("negative", None),
        ("sgemm", 100),
    ]  # fmt: skip
    assert [row["damaged"] for row in profile.rows()] == [1, 0, 0, 1, 0]
    assert profile.coverage.total == 89_999_900 + 1000 + 100
    assert main(["prof", str(path)]) == 0
    assert "2 kernels have impossible durations" in capsys.readouterr().err


def test_a_runtime_call_is_preferred_to_a_driver_call(rows):
    trace = KinetoFile().launch(10, 20, 7, name="cuLaunchKernel", cat="cuda_driver")
    trace.launch(5, 25, 7).kernel(100, 110, 7)
    assert rows(trace, "launch") == ["cudaLaunchKernel"]


def test_calls_of_amd_are_launches(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", **MM).launch(10, 20, 7, name="hipLaunchKernel")
    trace.kernel(100, 110, 7, context=None)
    assert rows(trace, "launch", "op", "context") == [("hipLaunchKernel", "mm", None)]


def test_graph_kernels_keep_graph_and_node(rows):
    trace = KinetoFile().launch(10, 20, 7, name="cudaGraphLaunch")
    trace.kernel(100, 110, 7, **{"graph id": 3, "graph node id": 12})
    trace.kernel(120, 130, 7, **{"graph id": 3, "graph node id": 13})
    assert rows(trace, "graph_id", "graph_node", "launch") == [
        (3, 12, "cudaGraphLaunch"), (3, 13, "cudaGraphLaunch")
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["object", "list", "gzip", "members", "keys behind", "blanks"])
def test_all_forms_of_a_file_are_read_alike(tmp_path, form):
    trace = one(KinetoFile().op(0, 100, "aten::mm", **MM))
    text = {
        "list": json.dumps(trace.events),
        "keys behind": json.dumps({"traceEvents": trace.events, **trace.root}),
        "blanks": json.dumps({"traceEvents": trace.events}, indent=4),
    }.get(form, trace.text()).encode()  # fmt: skip
    if form == "gzip":
        text = gzip.compress(text)
    elif form == "members":
        text = gzip.compress(text[:100]) + gzip.compress(text[100:])
    (tmp_path / "trace").write_bytes(text)
    (row,) = fastprof.open(tmp_path / "trace").rows()
    assert (row["op"], row["flops"]) == ("mm", 1024)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1}', "{}", "[1, 2", '{"traceEvents"', "[", "{nonsense", '{"traceEvents": 3}'],
)
def test_what_is_no_trace_is_one_clear_line(tmp_path, capsys, text):
    (tmp_path / "x.json").write_text(text)
    code = main(["prof", str(tmp_path / "x.json")])
    lines = capsys.readouterr().err.splitlines()
    assert code == (0 if text == "[" else 1)  # a list truncated before its first event
    assert len(lines) == 1 or code == 0
    assert all(line.startswith(("fastprof: ", "Found 0 kernels")) for line in lines)
    assert len(lines) == 1 or code == 0


def test_texts_as_thread_ids_and_numbers_as_texts_are_read(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", tid="25738", **MM).launch(10, 20, 7, tid=25738)
    trace.kernel(100, 110, 7).op(0, 100, "aten::mm", tid="main", **MM)
    trace.launch(10, 20, 8, tid="main").kernel(200, 210, 8)
    assert rows(trace, "tid", "op") == [(25738, "mm"), (None, "mm")]


def test_ranges_without_a_process_are_left_out_and_nothing_else(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", **MM).op(5, 50, "aten::t", pid=None)
    assert rows(one(trace).python(6, 40, "train.py(3): f", tid=None), "op", "trace") == [("mm", ())]


def test_minus_one_is_a_thread_and_a_process_as_any_other(rows):
    trace = KinetoFile().op(0, 100, "aten::mm", **MM, tid=-1, pid=-1).launch(10, 15, 7, -1, pid=-1)
    assert rows(trace.kernel(20, 30, 7), "op", "launch") == [("mm", "cudaLaunchKernel")]


def test_names_with_escapes_and_other_alphabets_stay_as_they_are(rows):
    name = 'layer:é層 "x" \\ \u2028 \U0001f600'
    assert rows(one(KinetoFile().annotation(0, 100, name)), "layer") == [(name[6:],)]


def test_progress_is_told_in_bytes_of_the_file(tmp_path):
    path = one(KinetoFile()).write(tmp_path / "t.json.gz")
    told = []
    fastprof.open(path, progress=lambda *arguments: told.append(arguments))
    assert told[-1] == ("bytes of the trace", path.stat().st_size, path.stat().st_size)
