"""Steps of real traces, against the same by plain json and SQL."""

import bisect
import gzip
import json
import re
from collections import Counter
from decimal import Decimal
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np
import pytest

from real import open_traces
from support.real_data import open_read_only, real

R50 = "kineto/resnet50_2021_stack_memory.json.gz"
BLOCKS = "nsys/emit_nvtx_2gpu_nsys2026.sqlite"
BLOCKS_AFTER = "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite"
KERNELS = ("kernel", "Kernel")
LAUNCHES = ("cuda_runtime", "cuda_driver", "Runtime", "hip_runtime")

by_profiler = pytest.mark.parametrize(
    ("path", "numbers"),
    [
        (R50, range(5, 11)),
        ("kineto/resnet50_2021_4workers.json.gz", range(5, 11)),
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", range(101, 106)),
        ("kineto/nccl_params.json.gz", range(4, 7)),
        ("kineto/recommender_2023.json.gz", range(551, 553)),
        ("kineto/resnet_checkpoint_mi300.json.gz", range(15, 18)),
        ("kineto/train_v100_2022.json.gz", range(1009, 1015)),
        ("kineto/train_v100_2022_control.json.gz", range(1009, 1015)),
    ],
)


@lru_cache(maxsize=1)
def events(path: str) -> list[dict[str, Any]]:
    text = gzip.decompress(real(path).read_bytes())
    result = json.loads(text, strict=False, parse_float=Decimal)["traceEvents"]
    return [event for event in result if event.get("ph") == "X"]


def launched(path: str) -> list[tuple[Decimal, Decimal, str]]:
    """Launch time, duration and name of every kernel with a recorded launch, by launch time."""
    calls = {
        event["args"]["correlation"]: Decimal(event["ts"])
        for event in events(path)
        if event.get("cat") in LAUNCHES and "correlation" in event.get("args", {})
    }
    return sorted(
        (calls[correlation], Decimal(event["dur"]), event["name"])
        for event in events(path)
        if event.get("cat") in KERNELS and (correlation := event["args"]["correlation"]) in calls
    )


@by_profiler
def test_kernels_belong_to_the_profiler_step_of_their_launch(path: str, numbers: range) -> None:
    spans = {
        int(match[1]): (Decimal(event["ts"]), Decimal(event["ts"]) + Decimal(event["dur"]))
        for event in events(path)
        if (match := re.fullmatch(r"ProfilerStep#(\d+)", event["name"]))
        and event.get("cat") in ("user_annotation", "Operator", "cpu_op")
    }
    assert sorted(spans) == list(numbers)
    expected: Counter[int] = Counter()
    for start, _, _ in launched(path):
        inside = [step for step, (begin, end) in spans.items() if begin <= start < end]
        expected.update(inside)
        assert len(inside) < 2
    profile = open_traces.profile(path)
    steps = profile.find_steps()
    assert (steps.source, steps.number.tolist()) == ("ProfilerStep", list(numbers))
    step = profile.column("step").values
    assert Counter(step[step >= 0].tolist()) == expected


@pytest.mark.parametrize(
    ("path", "n"),
    [
        ("kineto/resnet18_mi300_full.json.gz", 5),
        ("kineto/owlv2_h100.json.gz", 5),
        (R50, 6),
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", 5),
        ("kineto/nccl_params.json.gz", 3),
        ("kineto/resnet_checkpoint_mi300.json.gz", 3),
    ],
)
def test_repetition_finds_steps_of_equal_kernels(path: str, n: int) -> None:
    steps = open_traces.profile(path).find_steps("repetition")
    assert (len(steps), steps.confidence) == (n, 1)
    kernels = launched(path)
    starts = [float(start * 1000) for start, _, _ in kernels]
    cuts = [bisect.bisect_left(starts, start - 0.5) for start in steps.start.tolist()]
    parts = [kernels[a:b] for a, b in zip(cuts, [*cuts[1:], len(kernels)], strict=True)]
    assert cuts[0] == 0
    names = [Counter(name for _, _, name in part) for part in parts]
    assert names.count(names[0]) == n


@pytest.mark.parametrize(
    ("path", "description"),
    [
        ("kineto/resnet18_mi300_full.json.gz", "5 steps, each to the end of an Optimizer.step"),
        ("kineto/owlv2_h100.json.gz", "5 steps, each from a fetch of the DataLoader"),
    ],
)
def test_without_two_profiler_steps_marks_precede_repetition(path: str, description: str) -> None:
    profile = open_traces.profile(path)
    assert profile.find_steps().description == description
    by_repetition = "5 steps found by repetition: 100 % of the GPU time repeats"
    assert profile.find_steps("repetition").description == by_repetition


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (BLOCKS, "51 % of the GPU time repeats"),
        (BLOCKS_AFTER, "85.9 % of the GPU time repeats"),
        ("kineto/dlrm_rank0.json.gz", "2.6 % of the GPU time repeats"),
        (
            "nsys/ranges_rtx3070_nsys2025.sqlite",
            "'range Warm-up Step *' repeats but launches 62.8 %",
        ),
        ("pyprof/vsr_a100_nsys2024.sqlite", "31.5 % of the GPU time repeats"),
    ],
)
def test_captures_without_equal_steps_are_one_step(path: str, reason: str) -> None:
    steps = open_traces.profile(path).trim(":").find_steps()
    assert (steps.source, len(steps)) == ("none", 1)
    assert reason in steps.description
    assert not steps.of_kernel.any()


@pytest.mark.parametrize(
    ("path", "counted", "wall"), [(BLOCKS, 15, 16.8), (BLOCKS_AFTER, 14, 19.0)]
)
def test_an_anchor_divides_a_window_into_blocks(path: str, counted: int, wall: float) -> None:
    profile = open_traces.profile(path)
    steps = profile.find_steps("anchor:flash_fwd_kernel>5ms")
    with open_read_only(real(path)) as export:
        rows = export.execute(
            "SELECT k.globalPid, r.start, s.value LIKE '%flash_fwd_kernel%'"
            " AND k.end - k.start > 5000000"
            " FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName"
            " JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId"
            " AND r.globalTid / 16777216 = k.globalPid / 16777216"
        ).fetchall()
    expected: Counter[tuple[int, int]] = Counter()
    for process in {row[0] for row in rows}:
        block = -1
        for _, start, begins in sorted(row for row in rows if row[0] == process):
            block = start if begins else block
            expected[process >> 24 & 0xFFFFFF, block] += 1
    rows_inside = steps.of_kernel[steps.of_kernel >= 0]
    keys = list(zip(steps.pid.tolist(), steps.start.tolist(), strict=True))
    inside = Counter(keys[row] for row in rows_inside.tolist())
    assert inside == {key: n for key, n in expected.items() if key[1] >= 0}
    for pid in np.unique(steps.pid):
        own = (steps.pid == pid) & steps.is_counted
        assert np.count_nonzero(own) == counted
        assert median(steps.length[own].tolist()) / 1e6 == pytest.approx(wall, abs=0.25)


def test_the_time_per_step_is_that_of_the_tensorboard_plugin() -> None:
    """Kernels 98 589 us, copies 1915, memsets 89 a step; the ranges take 174.8 ms +- 5.7."""
    profile = open_traces.profile(R50, copies=True)
    result, kernels = profile.find_steps(), profile.kernels
    inside = result.of_kernel >= 0
    per_step = {
        kind: kernels["sil"][inside & (kernels["kind"] == kind)].sum() / len(result) / 1e3
        for kind in ("kernel", "memcpy", "memset")
    }
    assert {kind: round(time) for kind, time in per_step.items()} == {
        "kernel": 98589,
        "memcpy": 1915,
        "memset": 89,
    }
    ranges = (result.end - result.start) / 1e6
    assert round(ranges.mean(), 1) == 174.8
    assert round(np.median(ranges), 1) == 176.3
    assert round(ranges.std(ddof=1), 1) == 5.7
    # On the GPU; no work before the first step is recorded.
    assert result.is_counted.tolist() == [False, True, True, True, True, True]
    assert result.mean / 1e6 == pytest.approx(175.52, abs=0.01)


def test_lengths_on_the_gpu_do_not_depend_on_how_far_the_host_runs_ahead() -> None:
    """The host launches the first two steps in 35 and 72 ms; the GPU needs 96 ms for each."""
    steps = open_traces.profile("kineto/resnet_v100_2024_fwdbwd.json.gz").find_steps()
    host = (steps.end - steps.start).tolist()
    assert [round(each / 1e6) for each in host] == [35, 72, 96, 96, 96]
    assert [round(each / 1e6) for each in steps.gpu_length.tolist()] == [101, 96, 96, 96, 95]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (R50, "DataLoader"),
        (R50, "Optimizer.step"),
        ("kineto/train_v100_2022_control.json.gz", "DataLoader"),
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", "Optimizer.step"),
        ("kineto/nccl_params.json.gz", "Optimizer.step"),
        ("kineto/resnet_checkpoint_mi300.json.gz", "Optimizer.step"),
    ],
)
def test_marks_of_torch_give_the_steps_of_the_profiler(path: str, source: str) -> None:
    profile = open_traces.profile(path)
    expected, result = profile.find_steps("ProfilerStep"), profile.find_steps(source)
    assert result.of_kernel.tolist() == expected.of_kernel.tolist()
    assert result.gpu_length[1:].tolist() == expected.gpu_length[1:].tolist()


def test_a_data_loader_marks_all_iterations_of_an_inference() -> None:
    """Repetition begins a step with its first kernel: the last step lacks its data loading."""
    profile = open_traces.profile("kineto/owlv2_h100.json.gz", copies=True)
    by_loader, repeated = profile.find_steps("DataLoader"), profile.find_steps("repetition")
    assert np.bincount(by_loader.of_kernel).tolist() == [1033] * 5
    assert [round(each / 1e6) for each in by_loader.gpu_length.tolist()] == [
        244, 237, 242, 242, 242,
    ]  # fmt: skip
    assert [round(each / 1e6) for each in repeated.gpu_length.tolist()] == [
        238, 237, 242, 245, 115,
    ]  # fmt: skip


def test_launches_of_an_unexpanded_graph_are_steps_on_request() -> None:
    profile = open_traces.profile("nsys/cudagraph_a100_nsys2024.sqlite")
    steps = profile.find_steps("graph")
    assert steps.description == "10 steps, each from a launch of the same CUDA graph"
    graphs = profile.kernels["kind"] == "graph"
    assert steps.of_kernel[graphs].tolist() == list(range(10))
