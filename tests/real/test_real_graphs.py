"""A real replay of a graph and its capture, against plain Python over their JSON."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import fastprof
from real_data import real

PAIR = ("kineto/sglang_graph_decode.json.gz", "kineto/sglang_graph_capture.json.gz")
PRODUCTS = {"aten::mm", "aten::addmm", "aten::bmm"}


def events(path: Path) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]


def end(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]


@pytest.fixture(scope="module")
def replayed():
    """The columns of each kernel of the graph, and the ranges around the call of its place in the
    capture, outermost first."""
    trace, capture = (real(path) for path in PAIR)
    profile = fastprof.open(trace, graph_capture=capture)
    rows = [row for row in profile.rows() if row["launch"] == "hipGraphLaunch"]
    told = events(capture)
    begin, stop = (
        next(each["ts"] for each in told if each["name"] == f"hipStream{what}Capture")
        for what in ("Begin", "End")
    )
    calls = [
        each for each in told if begin < each["ts"] < stop and "kernel" in each.get("args", {})
    ]
    calls.sort(key=lambda each: each["ts"])
    ranges = [each for each in told if each.get("cat") in ("cpu_op", "python_function")]
    ranges.sort(key=lambda each: (each["ts"], -each["dur"]))
    around = [
        [each for each in ranges if each["ts"] <= call["ts"] and end(call) <= end(each)
         and each["tid"] == call["tid"]]
        for call in calls
    ]  # fmt: skip
    return list(zip(rows, calls, around, strict=True))


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
        operators = [each["name"].split("::")[-1] for each in around if each["cat"] == "cpu_op"]
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
