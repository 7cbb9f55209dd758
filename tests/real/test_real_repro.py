"""Scripts of `fastprof repro` run what real traces recorded, on the meta device."""

import bisect
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fastprof
from fastprof.analysis.repro.script import script
from support.real_data import real
from support.written_scripts import as_module

pytest.importorskip("torch", reason="torch is not installed: make test TORCH=2.13.0")

# Trace: share of the GPU time that a script accepts, calls that run in a torch without further
# libraries, those whose result the trace tells, and operators of other libraries.
TRACES = [
    ("dlrm_rank0", 0.08, 91, 5, "fbgemm"),
    ("dtensor_tp2_rank0", 0.15, 20, 0, ""),
    ("graph_replay_2024", 0.10, 87, 4, "fbgemm"),
    ("moe_b200_eager", 0.95, 10, 0, "_C|_C_cache_ops|vllm|_vllm.*"),
    ("owlv2_h100", 0.97, 79, 0, ""),
    ("owlv2_mi300", 0.98, 79, 0, ""),
    ("particle_first_calls_a100", 0.96, 108, 0, ""),
    ("qwen_h100_unlaunched", 0.69, 34, 0, ""),
    ("recommender_2023", 0.13, 190, 5, "fbgemm"),
    ("resnet18_mi300_full", 0.99, 35, 30, ""),
    ("resnet50_2021_01_loader0", 0.15, 71, 0, ""),
    ("resnet50_2021_4workers", 0.93, 200, 30, ""),
    ("resnet50_2021_stack_memory", 0.94, 200, 30, ""),
    ("resnet_checkpoint_mi300", 0.20, 75, 30, ""),
    ("sd35_compile_mi300", 0.90, 152, 0, "aiter"),
    ("sglang_graph_capture", 0.99, 2, 0, ""),
    ("sglang_graph_decode", 0.009, 8, 0, ""),
    ("toy_mi250", 0.74, 7, 0, ""),
    ("train_v100_2022", 0.17, 180, 5, "fbgemm|fb"),
    ("train_v100_2022_control", 0.33, 175, 5, "fbgemm|fb"),
    ("transformer_a100_2024", 0.96, 108, 0, ""),
    ("triton_compile", 0.93, 4, 0, ""),
]
# Traces of markers, which record functions of torch as Python calls them.
MARKED = [("lm_v100_nvprof.sql", 0.94, 44), ("vsr_a100_nsys2024.sqlite", 0.50, 16)]
# Results of a size that depends on values, which the meta device has not.
VALUES = {"aten::nonzero", "torch::equal"}
# Operators with products of other sizes inside: they fold batches into rows.
FOLDS = {"aten::linear", "aten::matmul"}


def repeated(module: ModuleType) -> tuple[dict[int, list[tuple[int, ...]]], dict[str, str]]:
    """The sizes of results by call, and the errors by operator."""
    results, errors = {}, {}
    for number, call in enumerate(module.CALLS):
        try:
            outputs = module.tensors(module.Repeated(call, "meta").forward())
            results[number] = [tuple(t.shape) for t in outputs]
        except Exception as error:
            errors[call["name"]] = str(error)
    return results, errors


@pytest.mark.parametrize(("name", "share", "n_run", "n_told", "libraries"), TRACES)
def test_calls_of_a_real_trace_run_with_the_recorded_sizes(
    tmp_path: Path, name: str, share: float, n_run: int, n_told: int, libraries: str
) -> None:
    path = real(f"kineto/{name}.json.gz")
    result = script(fastprof.open(path), top=200)
    assert result.share >= share
    module = as_module(result.text, tmp_path)
    results, errors = repeated(module)
    for operator, error in errors.items():
        is_foreign = re.fullmatch(libraries, operator.partition("::")[0])
        assert operator in VALUES or (is_foreign and "--import" in error), (operator, error)
    assert len(results) >= n_run
    recorded, told = recorded_results(path), 0
    for number, shapes in results.items():
        call = module.CALLS[number]
        wanted = recorded.get((call["name"], sizes(call["args"], module.T)))
        if wanted:
            told += 1
            assert shapes[0] in wanted, call
        assert call["result"] is None or call["result"] == shapes[0], call
    assert told >= n_told


@pytest.mark.parametrize(("name", "share", "n_run"), MARKED)
@pytest.mark.filterwarnings("ignore:This overload of add_ is deprecated")
def test_functions_that_markers_record_run(
    tmp_path: Path, name: str, share: float, n_run: int
) -> None:
    result = script(fastprof.open(real(f"pyprof/{name}")), top=200)
    assert result.share >= share
    results, errors = repeated(as_module(result.text, tmp_path))
    assert set(errors) <= VALUES
    assert len(results) >= n_run


def sizes(values: list[Any], tensor: type) -> str:
    """The sizes of arguments as a trace has them: [] for all but tensors."""
    return json.dumps(
        [
            [list(item.shape) for item in value]
            if isinstance(value, list) and value and isinstance(value[0], tensor)
            else list(value.shape)
            if isinstance(value, tensor)
            else []
            for value in values
        ]
    )


def recorded_results(path: Any) -> dict[tuple[str, str], set[tuple[int, ...]]]:
    """The sizes of results by operator and sizes of arguments, from the backward pass.

    The node that an operator creates gets the gradient of the operator's result: `AddmmBackward0`
    has the sequence number of `aten::addmm`. An outer operator (`aten::linear`) has the result of
    such an operator inside it, if nothing runs after that.
    """
    with gzip.open(path) as file:
        trace = json.load(file)
        events = [
            event
            for event in (trace if isinstance(trace, list) else trace["traceEvents"])
            if event.get("ph") == "X" and "Input Dims" in event.get("args", {})
        ]
    gradients = {
        (event["args"]["Sequence number"], plain(event["name"])): event["args"]["Input Dims"]
        for event in events
        if re.fullmatch(r"\w+Backward\d*", event["name"]) and "Sequence number" in event["args"]
    }
    threads = defaultdict(list)
    for event in events:
        if event["name"].startswith("aten::"):
            threads[event["pid"], event["tid"]].append(event)
    results = defaultdict(set)
    for thread in threads.values():
        for event, dims in with_results(thread, gradients):
            if len(dims) == 1:
                arguments = json.dumps(event["args"]["Input Dims"])
                results[event["name"], arguments].add(tuple(dims[0]))
    return results


def plain(name: str) -> str:
    """The name of an operator or of its node, in one form: `maxpool2dwithindices`."""
    name = re.sub(r"Backward\d*$", "", name.removeprefix("aten::"))
    return name.replace("_", "").lower()


def with_results(
    events: list[dict[str, Any]], gradients: dict[tuple[int, str], list[list[int]]]
) -> Iterator[tuple[dict[str, Any], list[list[int]]]]:
    """Operators of a thread, and the gradients of their results."""
    events = sorted(events, key=lambda event: (float(event["ts"]), -float(event["dur"])))
    starts = [float(event["ts"]) for event in events]
    told = []
    for place, event in enumerate(events):
        key = event["args"].get("Sequence number"), plain(event["name"])
        if key in gradients:
            told.append((place, starts[place] + float(event["dur"]), gradients[key]))
    places = [place for place, _, _ in told]
    for place, event in enumerate(events):
        past = bisect.bisect_right(starts, starts[place] + float(event["dur"]))  # the next outside
        inner = bisect.bisect_left(places, past) - 1
        if inner >= 0 and places[inner] >= place:
            _, end, dims = told[inner]
            if bisect.bisect_left(starts, end) >= past and event["name"] not in FOLDS:
                yield event, dims
