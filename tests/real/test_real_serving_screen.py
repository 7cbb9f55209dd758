"""The first screen and `serving` of real traces of engines, against the events of the files."""

import gzip
import json
import re
from collections import defaultdict
from functools import cache
from typing import Any

import pytest

from real.open_traces import profile
from support.real_data import real

DECODE = "kineto/sglang_graph_decode.json.gz"
PREFILL = "kineto/moe_b200_eager.json.gz"
CAPTURE = "kineto/sglang_graph_capture.json.gz"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
BATCH = re.compile(
    r"execute_(?:\d+_)?context_(\d+)\((?:sq)?(\d+).*\)_generation_(\d+)\((?:sq)?(\d+)"
)


@cache
def root(path: str) -> dict[str, Any]:
    with gzip.open(real(path)) as file:
        return json.load(file)


def events(path: str, *categories: str) -> list[dict[str, Any]]:
    every = root(path)["traceEvents"]
    chosen = [event for event in every if event.get("ph") == "X" and event.get("cat") in categories]
    return sorted(chosen, key=lambda each: each["ts"])


def ends(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]


def gaps(path: str) -> list[tuple[float, dict[str, Any]]]:
    """The times without GPU work, us, each with the work after it."""
    result, until = [], None
    for event in events(path, *WORK):
        if until is not None and event["ts"] > until:
            result.append((event["ts"] - until, event))
        until = max(until or 0.0, ends(event))
    return result


def iteration(path: str) -> dict[str, Any]:
    """The only iteration: its range, requests, tokens, and times in us."""
    (range_,) = (event for event in events(path, "user_annotation") if BATCH.match(event["name"]))
    prompts, prompt_tokens, generating, tokens = map(int, BATCH.match(range_["name"]).groups())
    work = events(path, *WORK)
    last = max(map(ends, work))
    idle = sum(time for time, _ in gaps(path))
    busy = last - work[0]["ts"] - idle
    wall = last - range_["ts"]
    return {"requests": prompts + generating, "tokens": prompt_tokens + tokens, "wall": wall,
            "busy": busy, "idle": wall - busy, "work": len(work)}  # fmt: skip


def ms(us: float) -> str:
    return f"{us / 1000:.4g} ms"


@pytest.mark.parametrize(("path", "stage"), [(DECODE, "decode"), (PREFILL, "prefill")])
def test_the_lines_of_the_iteration(path, stage):
    text = profile(path, copies=True).overview().text()
    told = iteration(path)
    share = told["busy"] / told["wall"]
    rate, per_token = told["tokens"] / told["wall"] * 1e6, told["wall"] / told["tokens"]
    gpu = root(path)["deviceProperties"][0]["name"]
    assert f"{gpu}, 1 iteration of the engine (1 {stage})\n" in text
    requests = f"{told['requests']} request{'s' * (told['requests'] > 1)}"
    rate_text = f"{rate:,.0f}" if rate >= 1000 else f"{rate:.4g}"
    per = f"{per_token / 1000:.4g} ms" if per_token >= 1000 else f"{per_token:.4g} us"
    assert (
        f"{stage}: 1 iteration of {ms(told['wall'])} for {requests}, {told['tokens']} tokens: "
        f"{rate_text} tokens/s, {per} per token\n"
    ) in text
    assert (
        f"iteration {ms(told['wall'])}, {told['work']} kernels and copies; GPU busy "
        f"{ms(told['busy'])}, {share:.1%}, idle {ms(told['idle'])}\n"
    ) in text
    assert root(path)["with_stack"] == 1
    assert "recorded with call stacks (with_stack)" in text


def test_the_answer_of_the_decode():
    result = profile(DECODE, copies=True).overview()
    told = iteration(DECODE)
    longest, after = max(gaps(DECODE), key=lambda gap: gap[0])
    assert result.text().startswith(
        f"The GPU is idle for {longest / 1000:.0f} of {told['wall'] / 1000:.0f} ms an iteration "
        "with work queued"
    )
    (call,) = (event for event in events(DECODE, "cuda_runtime")
               if event["args"].get("correlation") == after["args"]["correlation"])  # fmt: skip
    assert ends(call) < after["ts"] - longest + 100  # it was launched before the gap began


def test_the_answer_of_the_prefill():
    text = profile(PREFILL, copies=True).overview().text()
    told = iteration(PREFILL)
    match = re.match(r"The GPU waits ([\d.]+) of ([\d.]+) ms an iteration for launches", text)
    assert match is not None
    assert match[2] == f"{told['wall'] / 1000:.1f}"
    # It begins next to all work soon after its launch: the host is late, and so are its launches.
    launch = {event["args"].get("correlation"): event["ts"]
              for event in events(PREFILL, "cuda_runtime", "cuda_driver")}  # fmt: skip
    waits = [
        time
        for time, after in gaps(PREFILL)
        if after["ts"] - launch[after["args"]["correlation"]] < time + 30
    ]
    assert float(match[1]) * 1000 < sum(waits) <= told["idle"]


def test_the_capture_is_no_iteration():
    result = profile(CAPTURE, copies=True).overview()
    calls = events(CAPTURE, "cuda_runtime")
    busy = sum(event["dur"] for event in events(CAPTURE, *WORK))
    length = calls[-1]["ts"] - calls[0]["ts"]
    assert f"here it works {busy:.1f} us in {ms(length)}" in " ".join(result.text().split())
    assert result.facts["steps"]["source"] == "none"
    assert "no iterations of a serving engine" in profile(CAPTURE).serving().text()


@pytest.mark.parametrize("path", [DECODE, PREFILL])
def test_gpu_times_of_the_rows(path):
    table = profile(path, copies=True).overview()["ops"]
    own = sum(event["dur"] for event in events(path, *WORK)) * 1000
    assert table.total["step_ns"] == pytest.approx(own, rel=1e-3)


def test_the_largest_operator_of_the_prefill():
    first = next(profile(PREFILL, copies=True).overview()["ops"].rows())
    calls = [event for event in events(PREFILL, "cpu_op") if event["name"] == "vllm::moe_forward"]
    launches = {}
    for event in events(PREFILL, "cuda_runtime", "cuda_driver"):
        if any(call["ts"] <= event["ts"] <= ends(call) for call in calls):
            launches[event["args"].get("correlation")] = event
    time = sum(event["dur"] for event in events(PREFILL, *WORK)
               if event["args"].get("correlation") in launches)  # fmt: skip
    assert first["op"] == "moe_forward"
    assert first["step_ns"] == pytest.approx(time * 1000, rel=1e-3)


@pytest.mark.parametrize("path", [DECODE, PREFILL])
def test_the_report_adds_up_to_the_file(path):
    trace, told = profile(path, copies=True), iteration(path)
    (row,) = trace.serving().rows()
    assert row["wall_ns"] == pytest.approx(told["wall"] * 1000, rel=1e-6)
    assert row["busy_ns"] == pytest.approx(told["busy"] * 1000, rel=1e-3)
    parts = ("attention", "weights", "communication", "sampling", "other")
    by_token = sum(row[f"{part}_ns"] for part in parts)
    time = sum(event["dur"] for event in events(path, *WORK))
    assert by_token * told["tokens"] == pytest.approx(time * 1000, rel=1e-3)
    assert trace.serving(idle=True).total["ns"] == pytest.approx(told["idle"] * 1000, rel=1e-3)


def test_the_attention_of_the_decode_by_kernel():
    by_kind = defaultdict(float)
    for event in events(DECODE, "kernel"):
        if "paged_attention" in event["name"]:
            by_kind["attention"] += event["dur"]
        elif event["name"].startswith("Cijk_"):
            by_kind["weights"] += event["dur"]
    (row,) = profile(DECODE, copies=True).serving().rows()
    for part, time in by_kind.items():
        assert row[f"{part}_ns"] * 32 == pytest.approx(time * 1000, rel=1e-3)


def test_work_of_the_sampler_is_sampling():
    table = profile(DECODE, copies=True).summary(by=["stage", "layer"])
    stages = {row["stage"] for row in table.rows() if row["layer"] == "Sampler_0"}
    assert stages == {"sampling"}


def test_experts_of_the_prefill():
    table = profile(PREFILL, copies=True).experts()
    routed = [event for event in events(PREFILL, "cpu_op") if event["name"] == "vllm::moe_forward"]
    rows = list(table.rows())
    assert len(rows) == len(routed)  # a layer each
    x, scores = routed[0]["args"]["Input Dims"][:2]
    assert {(row["tokens"], row["experts"], row["calls"]) for row in rows} == {(x[0], scores[1], 1)}
    named = {"products_ns": r"bmm_", "routing_ns": r".*moe::dev::(?:routing|finalize)"}
    for part, pattern in named.items():
        time = sum(event["dur"] for event in events(PREFILL, "kernel")
                   if re.match(pattern, event["name"]))  # fmt: skip
        assert table.total[part] == pytest.approx(time * 1000, rel=1e-3)
    # Neither tensors' values nor split sizes are recorded.
    assert all(row["imbalance"] is None for row in rows)
    assert "cannot be told from this capture" in table.text()


@pytest.mark.parametrize("path", ["kineto/dlrm_rank0.json.gz", "kineto/graph_replay_2024.json.gz"])
def test_training_has_neither_iterations_nor_experts(path):
    trace = profile(path)
    assert trace.experts().n_rows == 0
    assert trace.serving().n_rows == 0
    assert not any(trace.column("stage").ids >= 0)
