"""`idle` of real traces against plain Python over the file, and against published figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import open_traces
from open_traces import json_of
from oracle.kineto import nanoseconds
from real_data import open_read_only, real, traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*")
KINETO = traces("kineto/*.json.gz")
WORK = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
TABLES = ("KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMCPY2", "MEMSET", "GRAPH_TRACE")
NO_CALL = (None, None, None)


class Work(NamedTuple):
    """Work of a GPU, and thread, start and end of its launch."""

    start: int
    end: int
    device: Any
    thread: Any
    launched: int | None
    returned: int | None


def events(path: str, categories: set[str]) -> Iterator[dict[str, Any]]:
    for each in json_of(path)["traceEvents"]:
        if each.get("ph") == "X" and str(each.get("cat", "")).lower() in categories:
            yield each


def times(event: dict[str, Any]) -> tuple[int, int]:
    start = nanoseconds(event["ts"])
    return start, start + nanoseconds(event["dur"])


def of_kineto(path: str) -> list[Work]:
    calls = {}
    for each in events(path, CALLS):
        calls.setdefault(each["args"].get("correlation"), each)
    found = []
    for each in events(path, WORK):
        call = calls.get(each["args"]["correlation"])
        launch = NO_CALL if call is None else ((call["pid"], call["tid"]), *times(call))
        found.append(Work(*times(each), each["args"]["device"], *launch))
    return found


def of_database(path: Path) -> list[Work]:
    found = []
    with open_read_only(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for table in TABLES:
            if f"CUPTI_ACTIVITY_KIND_{table}" in tables:
                query = f"SELECT start, end, deviceId FROM CUPTI_ACTIVITY_KIND_{table}"
                found += [Work(*row, *NO_CALL) for row in connection.execute(query)]
    return found


def work_of(path: str) -> dict[Any, list[Work]]:
    found = defaultdict(list)
    for each in of_kineto(path) if ".json" in path else of_database(real(path)):
        found[each.device].append(each)
    return found


def gaps_of(work: list[Work]) -> Iterator[tuple[int, Work]]:
    """The end of the work before each gap, and the work after it."""
    until = min(each.start for each in work)
    for each in sorted(work, key=lambda each: each.start):
        if each.start > until:
            yield until, each
        until = max(until, each.end)


@pytest.mark.parametrize("path", TRACES)
def test_causes_add_up_to_the_idle_time(path: str) -> None:
    expected = {
        device: [after.start - begin for begin, after in gaps_of(work)]
        for device, work in work_of(path).items()
    }
    profile = open_traces.profile(path, copies=True)
    for by in ("cause", "step", "range"):
        found: dict[Any, int] = defaultdict(int)
        for row in profile.idle(by=by).rows():
            assert row["ns"] > 0
            assert row["longest_ns"] is None or row["longest_ns"] > 0
            found[row["device"]] += row["ns"]
        assert found == {device: sum(each) for device, each in expected.items() if each}
    lengths = sorted((length for each in expected.values() for length in each), reverse=True)
    table = profile.idle(gaps=len(lengths) or 1, min=0)
    assert list(table["ns"]) == lengths
    assert profile.idle().total.get("gaps", 0) == len(lengths)


def is_loader(name: str) -> bool:
    of_torch = "dataloader" in name.lower() and name.endswith("__next__")
    return of_torch or name.strip("# ") in ("data_load", "load_batch")


@pytest.mark.parametrize("path", KINETO)
def test_causes_that_need_no_host_threads(path: str) -> None:
    """Unknown launches, queued work, and the union of data loaders on the launching thread."""
    loaders = [
        ((each["pid"], each["tid"]), *times(each))
        for each in events(path, {"user_annotation", "cpu_op", "operator", "python_function"})
        if is_loader(each["name"])
    ]
    expected = dict.fromkeys(("unknown", "dependency", "data loading"), 0)
    for work in work_of(path).values():
        for begin, after in gaps_of(work):
            length = after.start - begin
            if length < 1000:
                continue
            if after.launched is None or after.returned is None:
                expected["unknown"] += length
                continue
            if after.start - after.returned >= 30_000 and length >= 5000:
                expected["dependency"] += after.start - max(begin, after.returned)
            last = max(begin, min(after.start, after.returned))
            until = begin
            for thread, first, end in sorted(loaders, key=lambda each: each[1]):
                if thread == after.thread and end > until and first < last:
                    expected["data loading"] += min(end, last) - max(first, until)
                    until = max(until, min(end, last))
    found: dict[str, int] = defaultdict(int)
    for row in open_traces.profile(path, copies=True).idle().rows():
        found[row["cause"]] += row["ns"]
    assert {cause: found[cause] for cause in expected} == expected


R50 = "kineto/resnet50_2021_stack_memory.json.gz"
R18 = "kineto/resnet18_mi300_full.json.gz"
LANGUAGE_MODEL = "nsys/ranges_lm_a100_nsys2024.sqlite"
BLOCKS = "nsys/emit_nvtx_2gpu_nsys2026.sqlite"
BLOCKS_AFTER = "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite"
FIGURES = [
    (R50, "data loading", 283.7),
    # Of the 29.7 ms from the launch on, the host spends 0.8 in copies from pageable memory.
    (R50, "launch latency", 29.0),
    (R50, "launch-bound", 25.8),
    (R50, "host-bound", 51.2),
    (R50, "blocking copy", 3.3),
    ("kineto/owlv2_h100.json.gz", "data loading", 491.4),
    # hipFree takes 2858.3 ms on the launching thread, and 147.5 of the autograd engine before it.
    (R18, "alloc/load", 3005.8),
    # 651 ms after copies that wait, and 59 within such copies.
    (LANGUAGE_MODEL, "blocking copy", 709.9),
    (BLOCKS_AFTER, "host-bound", 22.9 + 15.8),
]


@pytest.mark.parametrize(("path", "cause", "ms"), FIGURES)
def test_figures(path: str, cause: str, ms: float) -> None:
    rows = open_traces.profile(path, copies=True).idle().rows()
    found = sum(row["ns"] for row in rows if row["cause"] == cause)
    assert found / 1e6 == pytest.approx(ms, abs=0.06)


@pytest.mark.parametrize(("path", "share"), [(R50, 17.5), (BLOCKS, 8.8), (BLOCKS_AFTER, 32.8)])
def test_starved_kernels(path: str, share: float) -> None:
    facts = open_traces.profile(path, copies=True).idle().facts
    assert round(100 * facts["starved"], 1) == share


def test_hta_waits_for_the_host_on_a_gpu_with_one_stream() -> None:
    """HTA counts gaps whose launch begins in them: 97 % of r50's."""
    late, total = 0, 0
    for work in work_of(R50).values():
        for begin, after in gaps_of(work):
            total += after.start - begin
            late += after.start - begin if after.launched and after.launched > begin else 0
    assert round(100 * late / total) == 97
    table = open_traces.profile(R50, copies=True).idle()
    of_gpu = sum(row["ns"] for row in table.rows() if row["cause"] == "dependency")
    assert of_gpu / table.total["ns"] < 0.01


@pytest.mark.parametrize(
    ("path", "cause", "place", "value"),
    [
        (R18, "alloc/load", "call", "hipFree"),
        (R50, "data loading", "line", "resnet50_profiler_api.py:44"),
        (R50, "launch-bound", "line", "resnet50_profiler_api.py:49"),
        (R50, "blocking copy", "op", "copy_"),
        (LANGUAGE_MODEL, "blocking copy", "range", "init_model"),
        ("kineto/sglang_graph_decode.json.gz", "dependency", "call", "hipStreamWaitEvent"),
    ],
)
def test_where_to_look(path: str, cause: str, place: str, value: str) -> None:
    rows = open_traces.profile(path, copies=True).idle().rows()
    assert next(row[place] for row in rows if row["cause"] == cause) == value
