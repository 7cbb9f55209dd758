"""A real graph replay and its capture, against plain Python over their JSON."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.errors import BadInputError
from fastprof.profile.callpath.attribution import attribute
from fastprof.profile.callpath.nesting import nest
from fastprof.profile.captured_graphs.operators import Operators
from fastprof.readers.detect import read_trace
from real.open_traces import events, profile
from support.hypothesis_profiles import IS_FULL
from support.real_data import real

PAIR = ("kineto/sglang_graph_decode.json.gz", "kineto/sglang_graph_capture.json.gz")
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm"}


def end(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]


def around(calls: list[dict[str, Any]], ranges: list[dict[str, Any]]) -> Iterator[list[Any]]:
    """The ranges around each call; both are in order of start."""
    started = 0
    unfinished: list[dict[str, Any]] = []
    for call in calls:
        while started < len(ranges) and ranges[started]["ts"] <= call["ts"]:
            unfinished.append(ranges[started])
            started += 1
        unfinished = [each for each in unfinished if call["ts"] <= end(each)]
        yield [
            event for event in unfinished if end(call) <= end(event) and event["tid"] == call["tid"]
        ]


@pytest.fixture(scope="module")
def replayed():
    """The columns of each kernel of the graph, and the ranges around the call at its position in
    the capture, outermost first."""
    trace, capture = (real(path) for path in PAIR)
    profile = fastprof.open(trace, graph_capture=capture)
    rows = [row for row in profile.rows() if row["launch"] == "hipGraphLaunch"]
    told = events(PAIR[1])
    begin, stop = (
        next(event["ts"] for event in told if event["name"] == f"hipStream{what}Capture")
        for what in ("Begin", "End")
    )
    calls = [
        event for event in told if begin < event["ts"] < stop and "kernel" in event.get("args", {})
    ]
    calls.sort(key=lambda each: each["ts"])
    ranges = [event for event in told if event.get("cat") in ("cpu_op", "python_function")]
    ranges = [range_ for range_ in ranges if range_["ts"] < stop and begin < end(range_)]
    ranges.sort(key=lambda each: (each["ts"], -each["dur"]))
    return list(zip(rows, calls, around(calls, ranges), strict=True))


def test_each_kernel_is_the_one_that_was_put_into_the_graph_at_its_place(replayed):
    assert len(replayed) == 544
    for row, call, _ in replayed:
        assert row["name"] == call["args"]["kernel"]
        assert list(row["grid"]) == call["args"]["grid"]
        assert list(row["block"]) == call["args"]["block"]


def test_layer_and_operator_are_those_around_the_call(replayed):
    for row, _, around in replayed:
        modules = [re.fullmatch("nn.Module: (.*)", each["name"]) for each in around]
        assert row["layer"] == tuple(match[1] for match in modules if match)
        operators = [event["name"].split("::")[-1] for event in around if event["cat"] == "cpu_op"]
        assert row["op"] is None or any(name.startswith(row["op"]) for name in operators)


def test_flops_of_products_are_those_of_their_own_dims(replayed):
    counted = 0
    for row, call, around in replayed:
        products = [each for each in around if each["name"] in PRODUCTS]
        if not products or "Cijk" not in call["args"]["kernel"]:
            continue
        *_, left, right = (dims for dims in products[-1]["args"]["Input Dims"] if len(dims) == 2)
        assert row["flops"] == 2 * left[0] * left[1] * right[1]
        counted += 1
    assert counted == 145


# Real eager runs as stand-ins for a graph's capture and launch: calls in one trace, kernels in
# another.


def as_graph(trace: list[dict[str, Any]], folder: Path, without: int | None = None) -> list[Path]:
    """Write the replay and the capture; `without` a call of that place in order."""
    is_kernel = [event.get("cat") == "kernel" for event in trace]
    kernels = [dict(each) for each, yes in zip(trace, is_kernel, strict=True) if yes]
    calls = [each for each, yes in zip(trace, is_kernel, strict=True) if not yes]
    calls = [call for call in calls if not str(call.get("cat")).startswith("gpu_")]
    launched = {kernel["args"]["correlation"] for kernel in kernels}
    puts = sorted(
        (call for call in calls if call.get("args", {}).get("correlation") in launched
         and call.get("cat") in ("cuda_runtime", "cuda_driver")),
        key=lambda each: each["ts"],
    )  # fmt: skip
    if without is not None:
        calls.remove(puts[without])
    for kernel in kernels:
        kernel["args"] = kernel["args"] | {"correlation": 1, "External id": 0}
    call = {
        "ph": "X",
        "cat": "cuda_runtime",
        "pid": puts[0]["pid"],
        "tid": puts[0]["tid"],
        "dur": 1,
    }
    launch = call | {"name": "cudaGraphLaunch", "ts": 1, "args": {"correlation": 1}}
    begin = call | {"name": "cudaStreamBeginCapture", "ts": puts[0]["ts"] - 2, "args": {}}
    stop = call | {"name": "cudaStreamEndCapture", "ts": end(puts[-1]) + 1, "args": {}}
    paths = []
    for name, content in (("replay", [launch, *kernels]), ("capture", [begin, *calls, stop])):
        paths.append(folder / f"{name}.json")
        paths[-1].write_text(json.dumps({"traceEvents": content}, default=float))
    return paths


TRANSFORMER = "kineto/transformer_a100_2024.json.gz"
RESNET18 = "kineto/resnet18_mi300_full.json.gz"
OWLV2 = "kineto/owlv2_h100.json.gz"  # takes 2 s


@pytest.mark.parametrize(
    "path, by_name", [(TRANSFORMER, False), (RESNET18, True), *[(OWLV2, False)] * IS_FULL]
)
def test_a_graph_of_a_real_run_has_what_the_run_has(path, by_name, tmp_path):
    replay, capture = as_graph(events(path), tmp_path)
    eager, graph = profile(path), fastprof.open(replay, graph_capture=capture)
    assert (graph.graph_capture.rate, graph.graph_capture.by_name) == (1.0, by_name)
    for key in ("name", "op", "dir", "params", "flops", "layer", "trace", "seq", "ranges"):
        assert list(graph.kernels[key]) == list(eager.kernels[key]), key


@pytest.mark.parametrize("path", [RESNET18])
def test_one_call_less_shifts_nothing_where_names_are_told(path, tmp_path):
    replay, capture = as_graph(events(path), tmp_path, 1000)
    graph = fastprof.open(replay, graph_capture=capture)
    told = graph.graph_capture
    assert told.matched == told.kernels - 1
    ops = zip(graph.kernels["op"], profile(path).kernels["op"], strict=True)
    differ = [i for i, (one, other) in enumerate(ops) if one != other]
    assert len(differ) == 1


@pytest.mark.parametrize("path", [TRANSFORMER])
def test_one_call_less_is_refused_where_names_are_not_told(path, tmp_path):
    replay, capture = as_graph(events(path), tmp_path, 300)
    with pytest.raises(BadInputError, match="549 kernels in the launch and 548 calls"):
        fastprof.open(replay, graph_capture=capture)


@pytest.mark.parametrize(
    "name",
    ["nccl_params", "owlv2_h100", "recommender_2023", "resnet50_2021_4workers",
     "resnet18_mi300_full", "resnet_checkpoint_mi300", "resnet_v100_2024_fwdbwd",
     "train_v100_2022_control", "transformer_a100_2024", "triton_compile"],
)  # fmt: skip
def test_no_real_operator_contradicts_the_kernels_that_it_launched(name):
    trace = read_trace(real(f"kineto/{name}.json.gz"))
    result = attribute(nest(trace)).attribution
    operators = Operators(result)
    label = operators.label(result.launch_frame_of_kernel)
    kernel = trace.kernels.configs.name[trace.kernels.config]
    assert operators.disagree(label, kernel, trace.strings) == 0
    others = label[np.random.default_rng(1).permutation(len(label))]
    assert operators.disagree(others, kernel, trace.strings) > 0 or len(label) < 20
