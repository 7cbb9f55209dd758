"""`copies` on real traces, compared with plain Python over the file."""

import re
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from real import open_traces
from support.real_data import open_read_only, real, traces

every_trace = pytest.mark.parametrize(
    "path",
    traces("nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.sqlite", "kineto/*.json.gz"),
)
NSYS = ("pageable", "pinned", "device", "array", "managed", "device static", "managed static")
DIRECTIONS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}


class Work(NamedTuple):
    """GPU work; direction, memory and bytes of copies and memsets, None for kernels."""

    device: int
    start: int
    duration: int
    direction: str | None
    memory: str | None
    n_bytes: int | None


def by_sql(path: Path) -> list[Work]:
    found = []
    with open_read_only(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        is_nsys = "StringTable" not in tables
        kinds = NSYS if is_nsys else ("", *NSYS)
        what = 'deviceId, start, "end" - start'
        for kind in ("KERNEL", "CONCURRENT_KERNEL", "GRAPH_TRACE"):
            table = f"CUPTI_ACTIVITY_KIND_{kind}"
            sql = f"SELECT {what} FROM {table}"
            found += [
                Work(*row, None, None, None)
                for row in (connection.execute(sql) if table in tables else ())
            ]
        table = "CUPTI_ACTIVITY_KIND_MEMCPY"
        sql = f"SELECT {what}, copyKind, srcKind, dstKind, bytes FROM {table}"
        for *row, kind, source, target, n_bytes in (
            connection.execute(sql) if table in tables else ()
        ):
            memory = f"{kinds[source]} -> {kinds[target]}"
            found.append(Work(*row, DIRECTIONS[kind], memory, n_bytes))
        table = "CUPTI_ACTIVITY_KIND_MEMSET"
        sql = f"SELECT {what}, {'memKind' if is_nsys else 'memoryKind'}, bytes FROM {table}"
        for *row, kind, n_bytes in connection.execute(sql) if table in tables else ():
            found.append(Work(*row, "memset", kinds[kind], n_bytes))
    return found


def ns(microseconds: Any) -> int:
    return int((Decimal(microseconds) * 1000).to_integral_value(ROUND_HALF_UP))


def by_json(path: str) -> list[Work]:
    found = []
    for each in open_traces.events(path):
        category = str(each.get("cat")).lower().removeprefix("gpu_")
        if each.get("ph") != "X" or category not in ("kernel", "memcpy", "memset"):
            continue
        direction = memory = n_bytes = None
        if category != "kernel":
            name = re.fullmatch(r"Mem(?:cpy (\w+)|set) \((.*)\)", each["name"])
            assert name is not None
            direction, memory = name[1] or "memset", name[2].lower()
            n_bytes = each["args"].get("bytes")
        args = each["args"]
        found.append(
            Work(args["device"], ns(each["ts"]), ns(each["dur"]), direction, memory, n_bytes)
        )
    return found


def read(path: str) -> list[Work]:
    return by_json(path) if path.endswith(".gz") else by_sql(real(path))


@every_trace
def test_rows_are_those_of_the_file(path: str) -> None:
    expected: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
    for work in read(path):
        if work.direction is not None and work.memory is not None:
            others = [each for each in work.memory.split(" -> ") if each != "device"]
            memory = None if "unknown" in others else " -> ".join(others) or "device"
            sums = expected[work.direction, memory, work.n_bytes]
            sums[0] += 1
            sums[1] += work.duration
            sums[2] += work.n_bytes or 0
    table = open_traces.profile(path, copies=True).copies(by=["direction", "memory", "size"])
    found = {
        (row["direction"], row["memory"], row["size"]): [
            row["copies"], row["time_ns"], row["bytes"] or 0
        ]
        for row in table.rows()
    }  # fmt: skip
    assert found == dict(expected)
    assert bool(table.n_rows) or table.notes


def united(works: list[Work]) -> int:
    """The length of the union of some work."""
    length = until = 0
    for start, end in sorted((each.start, each.start + each.duration) for each in works):
        length += max(0, end - max(start, until))
        until = max(until, end)
    return length


@every_trace
def test_exposed_time_is_that_without_kernels(path: str) -> None:
    """The union of all work less that of kernels, on each GPU, to the nanosecond."""
    on_device = defaultdict(list)
    for work in read(path):
        on_device[work.device].append(work)
    expected = {
        device: united(works) - united([each for each in works if each.direction is None])
        for device, works in on_device.items()
        if any(each.direction is not None for each in works)
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
        Work(0, start, max(duration, 0), kind if kind.startswith("mem") else None, None, None)
        for start, duration, kind, keeps in zip(
            *(profile.kernels[name].tolist() for name in ("start", "sil", "kind")),
            inside.tolist(),
            strict=True,
        )
        if keeps
    ]
    exposed = united(works) - united([each for each in works if each.direction is None])
    assert exposed == 107_408_000
    assert profile.copies().total["exposed_ns"] == 96_497_000
