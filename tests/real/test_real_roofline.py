"""`roofline` on real traces: totals under any grouping, flags, and figures of plain Python."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from real import open_traces
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*", "pyprof/*.dict")
SUMS = ("kernels", "gpu_ns", "flops", "bytes", "ideal_ns", "lost_ns")
REASONS = {"no roof", "no cost", "no peak", "partial cost", "cost too high", "too short"}


@pytest.mark.parametrize("path", TRACES)
def test_sums_are_those_of_the_kernels_under_any_grouping(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    kernels, table = profile.kernels, profile.roofline(gpu="H100")
    time, helper = np.maximum(kernels["sil"].filled(0), 0), kernels["helper"].filled(0) == 1
    assert table.total["kernels"] == len(profile)
    assert table.total["gpu_ns"] == time.sum()
    for name in ("flops", "bytes"):
        assert (table.total[name] or 0) == np.where(helper, 0, kernels[name].filled(0)).sum()
    for by in ("op", "layer", "kernel", "phase"):
        other = profile.roofline(by=by, gpu="H100")
        for name in SUMS:
            expected = table.total[name]
            assert (other.total[name] or 0) == pytest.approx(expected or 0, rel=1e-9), (by, name)


@pytest.mark.parametrize("path", TRACES)
def test_what_is_faster_than_the_roof_has_a_flag(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    for by in (("dir", "op", "shape"), ("kernel",), ("layer", "op")):
        table = profile.roofline(by=by)
        above = table["peak_share"] > 1
        assert not (table["lost_ns"] < 0).any()
        assert set(table["flag"][above]) <= {"above roof"}
        assert not (table["flag"][~above] == "above roof").any()
        unknown = np.isnan(table["ideal_ns"])
        assert set(table["flag"][unknown]) <= REASONS


# Operator, shapes: calls per step, and ms per step of their kernels and at the peaks of an H100.
OWL = {
    ("softmax", "[16,5185,5185]bf16"): (24, 52.5, 12.3),
    ("bmm", "B=16,M=5185,N=5185,K=64,bf16,"): (24, 26.0, 6.3),
    ("bmm", "B=16,M=64,N=5185,K=5185,bf16,"): (24, 19.9, 6.3),
    ("linear", "M=1024,N=5185,K=1024,bf16,"): (96, 2.01, 1.06),
    ("linear", "M=4096,N=5185,K=1024,bf16,"): (24, 1.38, 1.06),
    ("mul", "[1,5185,4096]bf16;[1,5185,4096]bf16"): (24, 1.04, 0.91),
}


def test_the_attention_of_owlv2_is_far_from_the_roof() -> None:
    profile = open_traces.profile("kineto/owlv2_h100.json.gz")
    table = profile.roofline(by=("op", "shape"), steps="repetition")
    rows = {(row["op"], row["shape"]): row for row in table.rows()}
    for key, (calls, time, ideal) in OWL.items():
        row = rows[key]
        assert row["calls"] == 5 * calls
        assert row["gpu_ns"] / 5e6 == pytest.approx(time, rel=0.005)
        assert row["ideal_ns"] / 5e6 == pytest.approx(ideal, rel=0.01)
    result = table.facts["utilisation"]
    assert result["mfu"] == pytest.approx(0.025, abs=0.0005)
    assert result["mfu_busy"] == pytest.approx(0.053, abs=0.0005)
    assert result["model_flops"] == pytest.approx(5.83e12, rel=0.001)


def test_owlv2_by_plain_python() -> None:
    """All kernels of this trace are bf16 or do no products: the ideal times in a few lines."""
    profile = open_traces.profile("kineto/owlv2_h100.json.gz")
    groups: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in profile.rows():
        if row["helper"] == 0:
            groups[row["op"], row["params"]].append(row)
    for result in profile.roofline(by=("op", "shape")).rows():
        own = groups[result["op"], result["shape"] or "na=na,"]
        units: dict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for row in own:
            peak = 989.4e12 if row["tc"] == "1" else 66.9e12
            units[peak][0] += (row["flops"] or 0) / peak
            units[peak][1] += (row["bytes"] or 0) / 3352e9
        expected = sum(map(max, units.values())) * 1e9
        assert (result["ideal_ns"] or 0) == pytest.approx(expected), result["op"]


# Share of the roof of operators of the ResNet-50, in per cent (V100, fp32).
RESNET = {
    ("bprop", "conv2d"): 72,
    ("bprop", "batch_norm"): 77,
    ("fprop", "batch_norm"): 83,
    ("bprop", "relu_"): 90,
}


def test_the_operators_of_resnet50_are_near_the_roof() -> None:
    profile = open_traces.profile("kineto/resnet50_2021_stack_memory.json.gz")
    table = profile.roofline(by=("dir", "op"))
    shares = {(row["dir"], row["op"]): row["peak_share"] for row in table.rows()}
    assert {key: round(100 * shares[key]) for key in RESNET} == RESNET
    # Winograd needs fewer operations than the formula.
    by_kernel = {row["kernel"]: row for row in profile.roofline(by="kernel").rows()}
    assert by_kernel["volta_sgemm_64x64_nt"]["peak_share"] == pytest.approx(2.28, abs=0.01)
    assert by_kernel["volta_sgemm_64x64_nt"]["flag"] == "above roof"


def test_recomputed_passes_are_hardware_flops_only() -> None:
    profile = open_traces.profile("kineto/resnet_checkpoint_mi300.json.gz")
    result = profile.roofline().facts["utilisation"]
    assert result["hardware_flops"] > 1.2 * result["model_flops"]
