"""Every kernel and call of every real trace equals the oracle: plain Python over JSON and SQL."""

from dataclasses import replace

import pytest

from oracle.links import direction
from oracle.work import call_of
from real.open_traces import capture, kept, rows
from real.oracle_comparison import Comparison
from real.oracle_exceptions import EXCEPTIONS
from support.real_data import real, traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*", "rocpd/*.db")


@kept
def comparison(path: str) -> Comparison:
    return Comparison(capture(path), rows(path))


@pytest.mark.parametrize("path", TRACES)
def test_calls_directions_and_flops_are_what_the_oracle_says(path):
    result = {(each.check, each.what): n for each, n in comparison(path).differences().items()}
    excepted = EXCEPTIONS.get(path, {})
    assert {what: n for what, n in result.items() if what not in excepted} == {}
    assert [what for what in excepted if what not in result] == [], "delete what no longer occurs"


def test_exceptions_are_of_traces_that_are_there():
    real(TRACES[0])
    assert set(EXCEPTIONS) <= set(TRACES)


# Kernels that the oracle checks; a smaller number means that it no longer does.
EXPECTED = {
    # path: (backward kernels, those with a forward call, calls with FLOPs)
    "kineto/resnet18_mi300_full.json.gz": (1310, 1310, 215),
    "kineto/train_v100_2022_control.json.gz": (5550, 3990, 1776),
    "nsys/emit_nvtx_2gpu_nsys2026.sqlite": (0, 0, 335),
    "pyprof/lm_v100_nvprof.sql": (66, 42, 7),
}


@pytest.mark.parametrize("path", EXPECTED)
def test_the_oracle_has_an_opinion(path):
    each = comparison(path)
    backward = [k for k, _ in each.pairs if direction(each.capture, k) == "bprop"]
    nodes = [each.links.node(k.range.chain()) if k.range else None for k in backward]
    linked = [node for node in nodes if node and each.links.forwards(node)]
    calls = {id(call) for k, _ in each.pairs if (call := call_of(k.range))}
    assert (len(backward), len(linked), len(calls)) == EXPECTED[path]


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        ({"direction": "fprop"}, "direction"),
        ({"meaning": (0, "aten::zero_")}, "forward call"),
        ({"op": "zero_"}, "op"),
        ({"flops": 1}, "FLOPs"),
        ({"params": "M=1,N=2,K=3,fp32,"}, "M, N, K"),
        ({"launched": 1}, "launch"),
        ({"operators": ((0, "aten::zero_"),)}, "chain"),
    ],
)
@pytest.mark.parametrize("path", ["kineto/resnet18_mi300_full.json.gz"])
def test_a_row_that_is_wrong_is_found(wrong, check, path, monkeypatch):
    each = comparison(path)
    monkeypatch.setattr(each, "pairs", [*each.pairs])
    rows = [i for i, (_, row) in enumerate(each.pairs) if row.params.startswith("M=") and
            row.direction == "bprop" and row.flops > 0]  # fmt: skip
    kernel, row = each.pairs[rows[0]]
    each.pairs[rows[0]] = kernel, replace(row, **wrong)
    assert {found.check for found in each.differences()} == {check}
