"""`launches` on real traces, compared with plain Python over the file, and with `stats`."""

from collections import defaultdict
from statistics import median
from typing import Any, NamedTuple

import pytest

from real import open_traces
from real.raw_work import COPY, calls_of, work_of
from support.real_data import traces

every_trace = pytest.mark.parametrize(
    "path",
    traces("nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.sqlite", "kineto/*.json.gz"),
)


class Launch(NamedTuple):
    """A kernel with its launch, ns."""

    call: Any
    begin: int
    end: int
    start: int
    duration: int


def launched(path: str) -> list[Launch]:
    """The kernels whose launch is in the file."""
    calls = calls_of(path)
    return [
        Launch(call, *calls[call][1:], each.start, each.end - each.start)
        for each in work_of(path)
        if each.kind != COPY and (call := (each.process, each.correlation)) in calls
    ]


@every_trace
def test_the_totals_are_those_of_the_file(path: str) -> None:
    result = launched(path)
    table = open_traces.profile(path, copies=True).launches()
    if not result:
        assert table.n_rows == 0
        assert table.notes
        return
    calls = {each.call: each.end - each.begin for each in result}
    gpu: dict[Any, int] = defaultdict(int)
    for each in result:
        gpu[each.call] += each.duration
    queues = [each.start - each.end for each in result if each.start > each.end]
    assert all(each.start >= each.begin for each in result)  # the clocks agree
    expected = {
        "launches": len(calls),
        "kernels": len(result),
        "host_ns": sum(calls.values()),
        "call_mean_ns": sum(calls.values()) / len(calls),
        "call_median_ns": median(calls.values()),
        "call_min_ns": min(calls.values()),
        "call_max_ns": max(calls.values()),
        "latency_ns": median(each.start - each.begin for each in result),
        "queue_ns": median(queues),
        "queued": len(queues),
        "gpu_ns": sum(gpu.values()),
        "short_share": sum(gpu[call] < host for call, host in calls.items()) / len(calls),
        "starved_share": sum(each.start - each.end < 10_000 for each in result) / len(result),
    }
    assert table.total == pytest.approx(expected, rel=1e-12)
    for name in ("launches", "kernels", "host_ns", "queued", "gpu_ns"):
        assert int(table[name].sum()) == table.total[name]


@every_trace
def test_the_queues_have_the_work_that_waits(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    table = profile.launches()
    api = profile.api
    waits = defaultdict(list)
    columns = [profile.column(name) for name in ("pid", "device", "start")]
    for row, call in enumerate(api.of_kernel.tolist()):
        if call >= 0:
            pid, device, start = (column.at(row) for column in columns)
            waits[pid, device].append((int(api.start[call]), int(api.end[call]), start))
    if not table.n_rows:
        return
    assert {(each["pid"], each["device"]) for each in table.facts["queue_depth"]} == set(waits)
    for queue in table.facts["queue_depth"]:
        own = waits[queue["pid"], queue["device"]]
        events = sorted(
            pair for _, end, start in own if start > end for pair in ((end, 1), (start, -1))
        )
        depth = most = empty = total = 0
        before = queue["start_ns"]
        for time, change in events:
            empty += (time - before) * (depth == 0)
            total += (time - before) * depth
            depth += change
            most, before = max(most, depth), time
        span = max(start for *_, start in own) - min(begin for begin, *_ in own)
        empty += queue["end_ns"] - before
        assert queue["end_ns"] - queue["start_ns"] == span
        assert queue["mean"] == pytest.approx(total / span)
        assert queue["empty_share"] == pytest.approx(empty / span)
        assert queue["max"] == most


@pytest.mark.parametrize(
    "path",
    [
        "nsys/emit_nvtx_2gpu_nsys2026.sqlite",
        "nsys/ranges_rtx3070_nsys2025.sqlite",
        "kineto/resnet50_2021_stack_memory.json.gz",
        "kineto/owlv2_h100.json.gz",
    ],
)
def test_the_figures_agree_with_those_of_nsys_stats(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    table = profile.launches(by=["process", "thread", "device", "launch", "name"])
    of_group = {
        (
            row["process"],
            row["thread"],
            row["device"],
            row["launch"].split("_v7")[0],
            row["name"],
        ): row
        for row in table.rows()
    }
    stats = profile.report("stats", names=["cuda_kern_exec_sum"])
    assert stats.n_rows == len(of_group)
    for row in stats.rows():
        mine = of_group[row["PID"], row["TID"], row["DevId"], row["API Name"], row["Kernel Name"]]
        assert (mine["kernels"], mine["queued"]) == (row["Count"], row["QCount"])
        assert mine["call_mean_ns"] == pytest.approx(row["AAvg (ns)"], abs=0.051)
        assert mine["call_median_ns"] == row["AMed (ns)"]
        assert (mine["call_min_ns"], mine["call_max_ns"]) == (row["AMin (ns)"], row["AMax (ns)"])
        assert mine["queue_ns"] == row["QMed (ns)"]


def test_known_figures() -> None:
    """Two captures of one program before and after a change, and one of torch.profiler."""
    for path, starved, call, queue in (
        ("nsys/emit_nvtx_2gpu_nsys2026.sqlite", 0.088, 7.8, 254),
        ("nsys/emit_nvtx_2gpu_after_nsys2026.sqlite", 0.328, 11.0, 78),
        # 2 of 8772 kernels start exactly 10 us after their launch; the share with them is 0.176.
        ("kineto/resnet50_2021_stack_memory.json.gz", 0.175, 9.6, 9754),
    ):
        total = open_traces.profile(path, copies=True).launches().total
        assert total["starved_share"] == pytest.approx(starved, abs=0.0005)
        assert total["call_mean_ns"] / 1000 == pytest.approx(call, abs=0.05)
        # The published queues are medians over all kernels, also those that start at once.
        every_queue = total["latency_ns"] - total["call_median_ns"]
        assert every_queue / 1000 == pytest.approx(queue, rel=0.02)
