"""`copies` on real traces, compared with plain Python over the file."""

from collections import defaultdict
from typing import Any

import pytest

from real import open_traces
from real.raw_work import Work, union, work_of
from support.real_data import traces

every_trace = pytest.mark.parametrize(
    "path",
    traces("nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.sqlite", "kineto/*.json.gz"),
)


@every_trace
def test_rows_are_those_of_the_file(path: str) -> None:
    expected: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for work in work_of(path):
        if work.direction is not None and work.memory is not None:
            others = [part for part in work.memory.split(" -> ") if part != "device"]
            memory = None if "unknown" in others else " -> ".join(others) or "device"
            sums = expected[work.direction, memory, work.n_bytes]
            sums[0] += 1
            sums[1] += work.end - work.start
            sums[2] += work.n_bytes or 0
    table = open_traces.profile(path, copies=True).copies(by=["direction", "memory", "size"])
    result = {
        (row["direction"], row["memory"], row["size"]): [
            row["copies"], row["time_ns"], row["bytes"] or 0
        ]
        for row in table.rows()
    }  # fmt: skip
    assert result == dict(expected)
    assert bool(table.n_rows) or table.notes


def exposed(works: list[Work]) -> int:
    """The time of copies and memsets during which no kernel runs."""
    kernels = [(work.start, work.end) for work in works if work.direction is None]
    return union((work.start, work.end) for work in works) - union(kernels)


@every_trace
def test_exposed_time_is_that_without_kernels(path: str) -> None:
    """The union of all work less that of kernels, on each GPU, to the nanosecond."""
    on_device = defaultdict(list)
    for work in work_of(path):
        on_device[work.device].append(work)
    expected = {
        device: exposed(works)
        for device, works in on_device.items()
        if any(work.direction is not None for work in works)
    }
    table = open_traces.profile(path, copies=True).copies(by="device")
    assert (
        dict(zip(table["device"].tolist(), table["exposed_ns"].tolist(), strict=True)) == expected
    )


@every_trace
def test_the_host_waits_no_longer_than_the_capture(path: str) -> None:
    profile = open_traces.profile(path, copies=True)
    table = profile.copies()
    if not table.n_rows:
        return
    api = profile.api
    span = int(api.end[api.end < 2**62].max(initial=0) - api.start.min(initial=2**62))
    threads = len(set(api.thread.tolist()))
    assert 0 <= table.total["blocked_ns"] <= max(span, 0) * threads
    assert 0 <= table.total["exposed_ns"] <= table.total["time_ns"]
    share = [each for each in table["peak_share"].tolist() if each == each]
    assert all(each >= 0 for each in share)


def test_known_figures() -> None:
    """The exposed copies of the six steps are 107.4 ms; work before them hides some of it."""
    profile = open_traces.profile("kineto/train_v100_2022.json.gz", copies=True)
    inside = profile.kernels["step"].filled(-1) >= 0
    works = [
        Work(0, start, start + max(duration, 0), "", 0, direction=kind if "mem" in kind else None)
        for start, duration, kind, keeps in zip(
            *(profile.kernels[name].tolist() for name in ("start", "sil", "kind")),
            inside.tolist(),
            strict=True,
        )
        if keeps
    ]
    assert exposed(works) == 107_408_000
    assert profile.copies().total["exposed_ns"] == 96_497_000
