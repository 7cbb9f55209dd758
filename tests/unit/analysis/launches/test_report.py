"""`launches`: host time of launch calls, latency, starved kernels, the queue."""

import json

import numpy as np
import pytest

from fastprof.analysis.launches.report import queue_depths
from support.exports import Export
from support.kineto_files import KinetoFile

US = 1000


def trace():
    """Two queued kernels, one starved, and one that starts during its call."""
    export = Export().push_pop(0, 900 * US, "aten::mm, seq = 1, op_id = 1", tid=1)
    for corr, begin, end, start, finish in (
        (1, 10, 14, 100, 150),
        (2, 20, 30, 150, 155),
        (3, 200, 210, 215, 300),
        (4, 400, 440, 430, 445),
    ):
        export.launch(begin * US, end * US, corr=corr, tid=1)
        export.kernel(start * US, finish * US, corr=corr)
    return export


def rows(table, *names):
    return [tuple(row[name] for name in names) for row in table.rows()]


def test_launches_have_host_time_latency_and_queue(opened):
    table = opened(trace()).launches()
    assert next(table.rows()) == {
        "op": "mm",
        "launches": 4,
        "kernels": 4,
        "host_ns": 64 * US,
        "call_mean_ns": 16 * US,
        "call_median_ns": 10 * US,
        "call_min_ns": 4 * US,
        "call_max_ns": 40 * US,
        "latency_ns": 60 * US,  # of 90, 130, 15 and 30
        "queue_ns": 86 * US,  # of 86, 120 and 5
        "queued": 3,
        "gpu_ns": 155 * US,
        "short_share": 0.5,
        "starved_share": 0.5,
    }
    assert table.total == {
        name: value for name, value in next(table.rows()).items() if name != "op"
    }


def test_the_answer_comes_first(opened):
    export = trace().gpu(name="NVIDIA A100-SXM4-80GB")
    table = opened(export).launches()
    assert table.lead == (
        "NVIDIA A100-SXM4-80GB",
        "4 kernels, 4 launches, which take 64 us of host time",
        "launch-bound: 50.0% of the kernels start within 10 us of their launch (starved); 50.0% of "
        "the launches take longer than their GPU work",
        "medians: launch call 10 us, from call to start 60 us, queue 86 us",
        "queue of GPU 0: 0.502 kernels and copies on average, at most 2; empty for 66.4% of the "
        "time",
        f"|{table.lead[5][1:-1]}|",
        "",
    )
    assert table.notes == ()


def test_figures_are_per_step(opened):
    export = Export()
    for step in range(3):
        begin = step * 1000 * US
        export.push_pop(begin, begin + 900 * US, f"step {step}", tid=1)
        for i in range(2):
            corr, at = 2 * step + i + 1, begin + (100 + 100 * i) * US
            export.launch(at, at + 10 * US, corr=corr, tid=1)
            export.kernel(at + 20 * US, at + 90 * US, corr=corr)
    table = opened(export).launches()
    assert "step 1 ms: 2 kernels, 2 launches, which take 20 us of host time (2.0% of the step)" in (
        table.lead
    )
    facts = {name: table.facts[name] for name in ("step_kernels", "step_launches", "step_host_ns")}
    assert facts == {"step_kernels": 2, "step_launches": 2, "step_host_ns": 20 * US}


def test_a_graph_is_one_launch(opened):
    file = KinetoFile().launch(0, 50 * US, corr=1, name="cudaGraphLaunch")
    file.kernel(60 * US, 70 * US, corr=1).kernel(70 * US, 100 * US, corr=1, name="other")
    file.launch(80 * US, 85 * US, corr=2).kernel(120 * US, 140 * US, corr=2, name="last")
    table = opened(file).launches(by="kernel")
    names = ("kernel", "launches", "kernels", "host_ns", "short_share")
    assert rows(table, *names) == [
        ("sgemm", 1, 1, 50 * US, 1.0),  # 40 us of GPU time
        ("last", 1, 1, 5 * US, 0.0),
        ("other", 0, 1, 0, None),
    ]
    assert table.total["launches"] == 2
    assert "launches by function: 1 cudaGraphLaunch, 1 cudaLaunchKernel" in table.lead


def test_clocks_that_differ_are_reported(opened):
    export = trace().launch(700 * US, 710 * US, corr=5, tid=1).kernel(650 * US, 660 * US, corr=5)
    table = opened(export).launches()
    assert table.total["kernels"] == 5
    assert table.total["starved_share"] == 0.5
    assert table.total["latency_ns"] == 60 * US
    assert table.notes == (
        "1 kernels start before their launch, by up to 50 us: the clocks of host and GPU differ; "
        "these count neither in to start and queue nor as starved",
    )


def test_kernels_without_a_launch_are_reported(opened):
    export = trace().kernel(500 * US, 501 * US, corr=99)
    table = opened(export).launches()
    assert table.notes == ("1 kernels without a recorded launch are left out",)
    table = opened(Export().kernel(0, 5, corr=1)).launches()
    assert table.n_rows == 0
    assert table.notes == (
        "the file has 1 kernels and the launch of none: record with nsys profile -t cuda,nvtx",
    )


def test_a_call_that_never_ends_is_no_launch(opened):
    file = KinetoFile().launch(0, 50, corr=1).kernel(60, 70, corr=1)
    file.event("X", "cuda_runtime", "cudaLaunchKernel", 80, pid=100, tid=1, args={"correlation": 2})
    table = opened(file.kernel(90, 95, corr=2)).launches()
    assert table.total["launches"] == 1
    assert table.notes == ("1 kernels without a recorded launch are left out",)


def test_copies_and_other_work_are_left_out(opened):
    export = trace().launch(500 * US, 600 * US, corr=6, tid=1, name="cudaMemcpyAsync_v3020")
    export.copy(550 * US, 560 * US, corr=6, kind=1, n_bytes=10)
    profile = opened(export)
    assert profile.launches().total["launches"] == 4
    assert profile.launches(where=["kernel=sgemm"]).total["host_ns"] == 64 * US
    assert profile.launches(where=["kernel=other"]).n_rows == 0


def depth_at(joins, leaves, time):
    return sum(begin <= time < end for begin, end in zip(joins, leaves, strict=True))


@pytest.mark.parametrize("seed", range(5))
def test_the_queue_is_what_waits_at_each_moment(opened, seed):
    random = np.random.default_rng(seed)
    export, works = Export(), []
    for corr in range(30):
        begin = int(random.integers(0, 1000))
        end, start = begin + int(random.integers(0, 60)), begin + int(random.integers(0, 200))
        device = int(random.integers(0, 2))
        export.launch(begin, end, corr=corr, tid=corr % 3)
        export.kernel(start, start + 10, corr=corr, device=device)
        works.append((device, begin, end, start))
    profile = opened(export)
    queues, _ = queue_depths(profile, profile.api)
    for queue in queues:
        own = [work for work in works if work[0] == queue.device]
        waits = [(end, start) for _, _, end, start in own if start > end]
        first, last = min(work[1] for work in own), max(work[3] for work in own)
        depth = [depth_at(*zip(*waits, strict=True), time) for time in range(first, last)]
        assert (queue.start, queue.end) == (first, last)
        assert queue.most == max(depth)
        assert queue.empty == depth.count(0)
        assert queue.mean == pytest.approx(np.mean(depth))
        assert queue.bins.sum() / len(queue.bins) == pytest.approx(queue.mean)
        assert len(queue.sparkline()) == len(queue.bins)
    assert [queue.device for queue in queues] == [0, 1]


def test_of_many_queues_those_with_the_most_work_are_kept(opened, monkeypatch):
    monkeypatch.setattr("fastprof.analysis.launches.report.MOST_QUEUES", 2)
    export = Export()
    for i, device in enumerate([0, 1, 1, 2, 2, 2]):
        export.launch(i * US, i * US + 10, corr=i, tid=1)
        export.kernel(i * US + 20, i * US + 30, corr=i, device=device)
    table = opened(export).launches()
    assert [queue["device"] for queue in table.facts["queue_depth"]] == [1, 2]
    assert "1 of 3 queues left out: those with the least work" in table.notes


def test_queues_are_in_json(opened):
    result = json.loads(opened(trace()).launches().to_json())
    (queue,) = result["queue_depth"]
    assert (queue["pid"], queue["device"], queue["max"]) == (100, 0, 2)
    assert len(queue["depth"]) == 40
