"""All operators of SGLang and aiter that launch kernels in a real decode step have a cost."""

import gzip
import json
from typing import Any

import pytest

from fastprof.model.call import UNKNOWN, Arg, Call, Tensor
from fastprof.ops import why_unknown, work
from support.real_data import real

LENGTHS = "the lengths of the sequences are not in the capture"
BATCH = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"


@pytest.fixture(scope="module")
def launching() -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """The names of the operators around each launch, outermost first."""
    with gzip.open(real("kineto/sglang_graph_capture.json.gz")) as file:
        events = [event for event in json.load(file)["traceEvents"] if "dur" in event]
    operators = sorted(
        (event for event in events if event.get("cat") == "cpu_op"),
        key=lambda each: (each["ts"], -each["dur"]),
    )
    result = {}
    for launch in events:
        if launch.get("cat") != "cuda_runtime" or "Launch" not in launch["name"]:
            continue
        around = [
            operator
            for operator in operators
            if operator["tid"] == launch["tid"]
            and operator["ts"] <= launch["ts"] <= operator["ts"] + operator["dur"]
        ]
        result[tuple(each["name"] for each in around)] = around
    return result


def call_of(event: dict[str, Any]) -> Call:
    told = event["args"]
    columns = (told.get(key, []) for key in ("Input Dims", "Input type", "Concrete Inputs"))
    space, _, name = event["name"].rpartition("::")
    return Call(space, name, tuple(Arg("", _value(*each)) for each in zip(*columns, strict=True)))


def _value(dims: Any, dtype: str, text: str) -> Any:
    if dims and all(isinstance(dim, int) for dim in dims):
        return Tensor(tuple(dims), dtype)
    if text.lstrip("-").isdigit():
        return int(text)
    return {"True": True, "False": False, "": UNKNOWN if dtype == "Scalar" else None}.get(text)


def test_the_capture_has_these_operators(launching):
    names = {name for path in launching for name in path if not name.startswith("aten::")}
    assert len(names) == 12


def test_each_launch_has_an_operator_of_known_cost(launching):
    for around in launching.values():
        calls = [call_of(each) for each in around]
        if not any(work(call, "fprop") for call in calls):
            assert {why_unknown(call, "fprop") for call in calls} == {LENGTHS}


def test_the_batch_of_the_replay_tells_its_attention(launching):
    (around,) = (each for path, each in launching.items() if "attention" in path[0])
    call = call_of(around[0])
    told = work(Call(call.mod, call.op, (*call.args, Arg("batch", BATCH))), "fprop")
    # 32 heads of 128 over 32785 keys; 8 heads of keys and of values; queries and output of bf16.
    assert told.cost.flops == 2 * 2 * 32 * 128 * 32785
    assert told.cost.bytes == 2 * (2 * 32785 * 8 * 128 + 2 * 32 * 32 * 128)
    assert told.cost.exact
