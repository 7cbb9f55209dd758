"""`idle` of real traces against plain Python over the file, and against published figures."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from real import open_traces, raw_work
from real.open_traces import json_of
from real.raw_work import calls_of, times
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*")
KINETO = traces("kineto/*.json.gz")
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
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
    for event in json_of(path)["traceEvents"]:
        if event.get("ph") == "X" and str(event.get("cat", "")).lower() in categories:
            yield event


def work_of(path: str) -> dict[Any, list[Work]]:
    calls = calls_of(path) if ".json" in path else {}
    result = defaultdict(list)
    for each in raw_work.work_of(path):
        launch = calls.get((0, each.correlation), NO_CALL)
        result[each.device].append(Work(each.start, each.end, each.device, *launch))
    return result


def gaps_of(work: list[Work]) -> Iterator[tuple[int, Work]]:
    """The end of the work before each gap, and the work after it."""
    until = min(each.start for each in work)
    for each in sorted(work, key=lambda each: each.start):
        if each.start > until:
            yield until, each
        until = max(until, each.end)


@pytest.mark.parametrize("path", TRACES)
def test_causes_add_up_to_the_idle_time(path):
    expected = {
        device: [after.start - begin for begin, after in gaps_of(work)]
        for device, work in work_of(path).items()
    }
    profile = open_traces.profile(path, copies=True).trim(":")
    for by in ("cause", "step", "range"):
        result: dict[Any, int] = defaultdict(int)
        for row in profile.idle(by=by).rows():
            assert row["ns"] > 0
            assert row["longest_ns"] is None or row["longest_ns"] > 0
            result[row["device"]] += row["ns"]
        assert result == {device: sum(each) for device, each in expected.items() if each}
    lengths = sorted((length for each in expected.values() for length in each), reverse=True)
    table = profile.idle(gaps=len(lengths) or 1, min=0)
    assert list(table["ns"]) == lengths
    assert profile.idle().total.get("gaps", 0) == len(lengths)


def is_loader(name: str) -> bool:
    of_torch = "dataloader" in name.lower() and name.endswith("__next__")
    return of_torch or name.strip("# ") in ("data_load", "load_batch")


@pytest.mark.parametrize("path", KINETO)
def test_causes_that_need_no_host_threads(path):
    """Unknown launches, queued work, and the union of data loaders on the launching thread."""
    loaders = [
        ((event["pid"], event["tid"]), *times(event))
        for event in events(path, {"user_annotation", "cpu_op", "operator", "python_function"})
        if is_loader(event["name"])
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
    result: dict[str, int] = defaultdict(int)
    for row in open_traces.profile(path, copies=True).idle().rows():
        result[row["cause"]] += row["ns"]
    assert {cause: result[cause] for cause in expected} == expected


R50 = "kineto/resnet50_2021_stack_memory.json.gz"
R18 = "kineto/resnet18_mi300_full.json.gz"
LANGUAGE_MODEL = "nsys/ranges_lm_a100_nsys2024.sqlite"
BLOCKS = "nsys/emit_nvtx_2gpu_nsys2026.sqlite"
BLOCKS_AFTER = "nsys/emit_nvtx_2gpu_after_nsys2026.sqlite"
PARTICLES = "kineto/particle_first_calls_a100.json.gz"
LOADER = "kineto/resnet_intermittent_loader.json.gz"
FIGURES = [
    (R50, "data loading", 283.7),
    # Of the 29.7 ms from the launch on, the host spends 0.8 in copies from pageable memory.
    (R50, "launch latency", 29.0),
    (R50, "launch-bound", 25.8),
    # 51.2 without waits before the gap, of which each takes up to 50 us.
    (R50, "host-bound", 52.9),
    (R50, "blocking copy", 1.5),
    ("kineto/owlv2_h100.json.gz", "data loading", 491.4),
    # 62.2 ms within copies and synchronisations in gaps, and up to 50 us after each of 293.
    (LANGUAGE_MODEL, "blocking copy", 75.1),
    (LANGUAGE_MODEL, "host-bound", 988.7),
    (BLOCKS_AFTER, "host-bound", 23.2 + 17.3),
    (PARTICLES, "code loading", 1337.1),
]


@pytest.mark.parametrize(("path", "cause", "ms"), FIGURES)
def test_figures(path, cause, ms):
    rows = open_traces.profile(path, copies=True).trim(":").idle().rows()
    result = sum(row["ns"] for row in rows if row["cause"] == cause)
    assert result / 1e6 == pytest.approx(ms, abs=0.06)


@pytest.mark.parametrize(
    ("path", "cause", "calls", "least_us"),
    [
        (R18, "deallocation", {"hipFree"}, 0),
        (LOADER, "deallocation", {"cudaFree"}, 0),
        (LOADER, "creation", {"cudaStreamCreateWithFlags"}, 20),
        (LOADER, "code loading", {"cudaLaunchKernel"}, 100),
        (PARTICLES, "code loading", {"cudaLaunchKernel"}, 100),
    ],
)
def test_calls_take_their_part_of_the_gaps(path, cause, calls, least_us):
    spans = [times(event) for event in events(path, CALLS) if event["name"] in calls]
    spans = [span for span in spans if span[1] - span[0] >= 1000 * least_us]
    expected = 0
    for work in work_of(path).values():
        for begin, after in gaps_of(work):
            if after.start - begin >= 1000:
                until = begin
                for start, end in sorted(spans):
                    last = min(end, after.start)
                    expected += max(last - max(start, until), 0)
                    until = max(until, last)
    rows = {row["cause"]: row for row in open_traces.profile(path, copies=True).idle().rows()}
    assert rows[cause]["ns"] == pytest.approx(expected, rel=0.003)
    assert rows[cause]["call"] in calls


def test_an_operator_of_a_short_part_of_a_gap_is_not_its_place():
    """`sub` is open for 119 us of 366 ms; no operator, range or line covers the rest."""
    profile = open_traces.profile(PARTICLES, copies=True)
    first, second = profile.idle(gaps=2).rows()
    assert (first["cause"], first["call"]) == ("code loading", "cudaLaunchKernel")
    assert (first["op"], round(first["ns"] / 1e6)) == ("cudnn_convolution", 1344)
    assert (second["cause"], round(second["ns"] / 1e6)) == ("host-bound", 366)
    assert second["op"] is second["range"] is second["line"] is None
    rows = {row["cause"]: row for row in profile.idle().rows()}
    assert rows["host-bound"]["op"] is None


@pytest.mark.parametrize("path", KINETO)
def test_places_are_open_for_most_of_long_gaps(path):
    """The operators of gaps in which the host runs Python."""
    opened: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for event in events(path, {"cpu_op", "operator"}):
        for name in {event["name"].removeprefix("aten::"), event["name"].rpartition("::")[2]}:
            opened[name].append(times(event))
    for row in open_traces.profile(path, copies=True).idle(gaps=20).rows():
        if row["cause"] != "host-bound" or row["op"] is None:
            continue
        begin, end = row["start_ns"], row["start_ns"] + row["ns"]
        most = max(min(last, end) - max(first, begin) for first, last in opened[row["op"]])
        assert most > 0.4 * row["ns"]  # of the time until the launch returns


@pytest.mark.parametrize(("path", "share"), [(R50, 17.5), (BLOCKS, 8.8), (BLOCKS_AFTER, 32.8)])
def test_starved_kernels(path, share):
    facts = open_traces.profile(path, copies=True).idle().facts
    assert round(100 * facts["starved"], 1) == share


def test_hta_waits_for_the_host_on_a_gpu_with_one_stream():
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
        (R18, "deallocation", "call", "hipFree"),
        (
            R50,
            "data loading",
            "range",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        ),
        (R50, "launch-bound", "line", "resnet50_profiler_api.py:49"),
        (R50, "blocking copy", "op", "copy_"),
        (LANGUAGE_MODEL, "blocking copy", "range", "init_model"),
        (LANGUAGE_MODEL, "code loading", "call", "cudaLaunchKernel"),
        ("kineto/sglang_graph_decode.json.gz", "dependency", "call", "hipStreamWaitEvent"),
    ],
)
def test_where_to_look(path, cause, place, value):
    rows = open_traces.profile(path, copies=True).trim(":").idle().rows()
    assert next(row[place] for row in rows if row["cause"] == cause) == value
