"""`steps` of real traces against the intervals of their files in plain Python."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fastprof.model.trace import NO_TIME
from real.open_traces import events, profile
from real.raw_work import COMMUNICATION, COMPUTE, COPY, Work, covered, work_of
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
LAUNCHES = {"cuda_runtime", "cuda_driver", "runtime", "hip_runtime"}
ALL = (COMPUTE, COMMUNICATION, COPY)


def rows_of(path: str, **options: Any) -> list[dict[str, Any]]:
    return list(profile(path, copies=True).steps(**options).rows())


def parts(work: list[Work], begin: int, end: int) -> dict[str, int]:
    """The columns of a row, each by a union of its own."""
    window = work, begin, end
    compute, communication = covered(*window, COMPUTE), covered(*window, COMMUNICATION)
    kernels, busy = covered(*window, COMPUTE, COMMUNICATION), covered(*window, *ALL)
    return {
        "wall_ns": end - begin,
        "busy_ns": busy,
        "compute_ns": compute,
        "communication_ns": communication,
        "exposed_communication_ns": kernels - compute,
        "hidden_communication_ns": communication - (kernels - compute),
        "copy_ns": covered(*window, COPY),
        "exposed_copy_ns": busy - kernels,
        "idle_ns": end - begin - busy,
    }


def windows(path: str, work: list[Work]) -> Iterator[tuple[int, int] | None]:
    """Start and end of each step by profile.find_steps(), which has its own tests.

    None without GPU work.
    """
    steps = profile(path, copies=True).find_steps()
    if steps.source == "none":
        yield work[0].start, max(each.end for each in work)
        return
    end = steps.gpu_end.tolist()
    for i, length in enumerate(steps.gpu_length.tolist()):
        if end[i] == NO_TIME:
            yield None
            continue
        end[i] = max(end[: i + 1])
        yield (end[i] - length if length >= 0 else int(steps.gpu_start[i])), end[i]


@pytest.mark.parametrize("path", TRACES)
def test_rows_are_the_unions_of_the_file(path):
    everything = work_of(path)
    devices = sorted({each.device for each in everything})
    of_device = {device: [e for e in everything if e.device == device] for device in devices}
    expected = sorted(
        (i, device, {"wall_ns": None} if window is None else parts(work, *window))
        for device, work in of_device.items()
        for i, window in enumerate(windows(path, work))
    )
    result = rows_of(path)
    assert len(result) == len(expected)
    for row, (_, _, want) in zip(result, expected, strict=True):
        assert {key: row[key] for key in want} == want
    assert [row["device"] for row in result] == [device for _, device, _ in expected]
    for row in (row for row in result if row["wall_ns"] is not None):
        assert row["busy_ns"] + row["idle_ns"] == row["wall_ns"]
        exposed = row["exposed_communication_ns"] + row["exposed_copy_ns"]
        assert row["compute_ns"] + exposed + row["idle_ns"] == row["wall_ns"]


MARKED = (
    "kineto/resnet50_2021_stack_memory.json.gz",
    "kineto/resnet50_2021_4workers.json.gz",
    "kineto/resnet_v100_2024_fwdbwd.json.gz",
    "kineto/train_v100_2022.json.gz",
    "kineto/train_v100_2022_control.json.gz",
)


@pytest.mark.parametrize("path", MARKED)
def test_a_step_reaches_from_the_end_of_the_work_before_to_the_end_of_its_own(path):
    spans, launched = {}, {}
    for each in events(path):
        if match := re.fullmatch(r"ProfilerStep#(\d+)", each.get("name", "")):
            start = int(each["ts"] * 1000)
            spans[int(match[1])] = start, start + int(each["dur"] * 1000)
        elif str(each.get("cat")).lower() in LAUNCHES:
            launched[each["args"].get("correlation")] = int(each["ts"] * 1000)
    work, expected = work_of(path), []
    times = [launched.get(each.correlation, 0) for each in work]
    before = min(start for start, _ in spans.values())
    first: dict[int, int] = {}  # of each stream; -1: of all
    for each, time in zip(work, times, strict=True):
        if time >= before:
            first.setdefault(each.stream, each.start)
            first.setdefault(-1, each.start)
    ends = [
        each.end
        for each, time in zip(work, times, strict=True)
        if time < before and each.start < first.get(each.stream, first[-1])
    ]
    before = max([before, *ends])
    for number, (start, end) in sorted(spans.items()):
        own = [e.end for e, time in zip(work, times, strict=True) if start <= time < end]
        expected.append((number, max(own) - before, len(own)))
        before = max(own)
    assert [(r["step"], r["wall_ns"], r["kernels"]) for r in rows_of(path)] == expected


@pytest.mark.parametrize(
    ("where", "figures"),
    [
        # Only work launched in the steps, as in REPORTS 2; 614 kernels and copies without a
        # recorded launch precede the first step on its streams: it begins where they end.
        ("step!=na", (705_997_000, 513_922_000, 70_838_000, 94_499_000, 26_738_000, 158_196_000)),
        (None, (705_997_000, 513_922_000, 70_838_000, 94_499_000, 26_738_000, 158_196_000)),
    ],
)
def test_six_steps_of_a_recommender(where, figures):
    columns = (
        "wall_ns", "compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns",
        "hidden_communication_ns",
    )  # fmt: skip
    rows = rows_of("kineto/train_v100_2022.json.gz", where=where)
    assert tuple(sum(row[name] for row in rows) for name in columns) == figures


def test_the_plugin_of_tensorboard_agrees_on_the_work_of_a_step():
    """Kernels 98 589 us, copies 1915 and memsets 89 us; on one stream, so sums are unions."""
    rows = rows_of("kineto/resnet50_2021_stack_memory.json.gz")
    for name, microseconds in (("compute_ns", 98_589), ("copy_ns", 1915 + 89)):
        assert round(sum(row[name] for row in rows) / 6000) == microseconds


def test_steps_with_loader_workers_have_an_outlier():
    table = profile("kineto/resnet50_2021_4workers.json.gz", copies=True).steps()
    assert table["flag"].tolist() == ["cut", "", "", "", "outlier", ""]
    (second,) = table.facts["outliers"]
    assert second["step"] == 9
    assert second["over_ns"] == pytest.approx(38.35e6, rel=1e-3)
    assert second["changes"]["idle_ns"] == pytest.approx(37.97e6, rel=1e-3)
    assert table.lead[3] == (
        "outlier: step 9 takes 163.5 ms, 38.35 ms over the mean of the others: idle +37.97 ms "
        "(host-bound +30.44 ms, launch latency +4.524 ms)"
    )
    assert sum(second["causes"].values()) == pytest.approx(second["changes"]["idle_ns"])


@pytest.mark.parametrize("path", TRACES)
def test_host_times_fit_the_step(path):
    trace = profile(path, copies=True)
    threads = len(np.unique(trace.api.thread)) if len(trace.api) else 0
    for row in trace.steps().rows():
        for name in ("sync_ns", "data_loading_ns", "alloc_ns"):
            if row[name] is not None and row["host_ns"] is not None:
                assert 0 <= row[name] <= threads * row["host_ns"]


@pytest.mark.parametrize(
    ("name", "where", "idle", "compute", "other", "before"),
    [
        ("resnet50_2021_stack_memory", None, 392_919, 591_532, 12_026, 0),
        ("train_v100_2022_control", None, 76_007, 281_336, 107_251, 0),
        # HTA leaves out work without a recorded launch, which starts 725 us earlier.
        ("train_v100_2022", "step!=na", 51_692, 514_576, 178_246, 725),
    ],
)
def test_a_capture_has_the_temporal_breakdown_of_hta(name, where, idle, compute, other, before):
    """get_temporal_breakdown() of HTA 0.5.0 with include_last_profiler_step, us."""
    (row,) = rows_of(f"kineto/{name}.json.gz", steps="none", where=where)
    assert row["idle_ns"] == 1000 * (idle + before)
    assert row["compute_ns"] == 1000 * compute
    assert row["exposed_communication_ns"] + row["exposed_copy_ns"] == 1000 * other
