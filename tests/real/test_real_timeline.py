"""Times of ranges and API calls of real traces, compared with SQL and json alone."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastprof.model.markers import Kind
from fastprof.model.trace import NEVER
from fastprof.readers.nvprof.call_names import CALL_NAMES
from oracle.kineto import nanoseconds
from real import open_traces
from support.real_data import open_read_only, real, traces

Sums = dict[str, list[int]]  # name: [number, ns]
NUMBERS = re.compile(r", (?:seq|op_id) = \d+")
RANGE_CATEGORIES = {"cpu_op", "operator", "user_annotation", "python_function"}
API_CATEGORIES = re.compile(r"(?i)(?:cuda_|hip_)?(?:runtime|driver)")

every_trace = pytest.mark.parametrize(
    "path",
    traces("nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.sqlite", "kineto/*.json.gz"),
)


def added(rows: Any) -> Sums:
    sums: Sums = defaultdict(lambda: [0, 0])
    for name, duration in rows:
        sums[name][0] += 1
        sums[name][1] += duration
    return dict(sums)


def sums_of(names: Any, start: Any, end: Any) -> Sums:
    duration = np.where(end == NEVER, 0, end - start)
    return added(zip(names.tolist(), duration.tolist(), strict=True))


def api_by_sql(path: Path) -> Sums:
    sums: Sums = {}
    with open_read_only(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        runtime, driver = ("CUPTI_ACTIVITY_KIND_" + kind for kind in ("RUNTIME", "DRIVER"))
        if "StringTable" in tables:
            for table, names in zip((runtime, driver), CALL_NAMES, strict=True):
                rows = connection.execute(f'SELECT cbid, "end" - start FROM {table}')
                for name, (n, time) in added(
                    (names.get(cbid, f"cbid {cbid}"), duration) for cbid, duration in rows
                ).items():
                    before = sums.get(name, [0, 0])
                    sums[name] = [before[0] + n, before[1] + time]
        elif runtime in tables:
            rows = connection.execute(
                f'SELECT value, count(*), sum("end" - start) FROM {runtime} '
                "LEFT JOIN StringIds ON id = nameId GROUP BY value"
            )
            sums = {name: [n, time] for name, n, time in rows}
    return sums


@every_trace
def test_api_calls_have_the_count_and_time_of_the_file(path: str) -> None:
    api = open_traces.profile(path).api
    if path.endswith(".gz"):
        expected = added(
            (event["name"], nanoseconds(event["dur"]))
            for event in open_traces.events(path)
            if event.get("ph") == "X" and API_CATEGORIES.fullmatch(event.get("cat", ""))
        )
    else:
        expected = api_by_sql(real(path))
    assert sums_of(api.name.array(), api.start, api.end) == expected


def ranges_by_sql(path: Path) -> Sums:
    with open_read_only(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        if "StringTable" in tables:
            rows = connection.execute(
                "SELECT s.value, closed.timestamp - opened.timestamp "
                "FROM CUPTI_ACTIVITY_KIND_MARKER opened JOIN StringTable s ON s._id_ = opened.name "
                "LEFT JOIN CUPTI_ACTIVITY_KIND_MARKER closed "
                "ON closed.id = opened.id AND closed.flags & 4 WHERE opened.flags & 2"
            ).fetchall()
        elif "NVTX_EVENTS" in tables:
            rows = connection.execute(
                'SELECT coalesce(text, value), "end" - start FROM NVTX_EVENTS '
                "LEFT JOIN StringIds ON id = textId WHERE eventType IN (59, 60) "
                "AND coalesce(endGlobalTid, globalTid) = globalTid"
            ).fetchall()
        else:
            rows = []
    return added((NUMBERS.sub("", name), duration or 0) for name, duration in rows)


@every_trace
def test_ranges_have_the_count_and_time_of_the_file(path: str) -> None:
    ranges = open_traces.profile(path).ranges
    names = ranges.text.array()
    if path.endswith(".gz"):
        kinds = np.array([meaning.kind for meaning in ranges.meanings], np.int32)[ranges.label]
        is_python = np.isin(kinds, (Kind.FRAME, Kind.HIDDEN, Kind.LAYER))
        names = np.where(is_python, "python", ranges.name.array())
        expected = added(
            (
                "python" if event["cat"] == "python_function" else event["name"],
                nanoseconds(event["dur"]),
            )
            for event in open_traces.events(path)
            if event.get("ph") == "X" and event.get("cat", "").lower() in RANGE_CATEGORIES
        )
    else:
        expected = ranges_by_sql(real(path))
    assert sums_of(names, ranges.start, ranges.end) == expected


@every_trace
def test_the_parent_of_a_range_is_the_innermost_open_one(path: str) -> None:
    ranges = open_traces.profile(path).ranges
    open_on: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (end, row) by thread
    rows = zip(*(getattr(ranges, key).tolist() for key in ("start", "end", "thread")), strict=True)
    for row, (start, end, thread) in enumerate(rows):
        around = open_on[thread] = [each for each in open_on[thread] if each[0] > start]
        assert ranges.level[row] == len(around)
        assert ranges.parent[row] == (around[-1][1] if around else -1)
        around.append((end, row))


@every_trace
def test_launches_end_where_their_api_calls_end(path: str) -> None:
    profile = open_traces.profile(path)
    api = profile.api
    calls = defaultdict(set)
    for start, end, tid, name in zip(
        api.start.tolist(), api.end.tolist(), api.tid.tolist(), api.name.array(), strict=True
    ):
        calls[start, tid, name].add(end)
    columns = [profile.column(key) for key in ("launch_start", "launch_end", "tid", "launch")]
    for start, end, tid, name in zip(*(next(c.chunks(10**7), []) for c in columns), strict=True):
        assert (end is None) == (start is None)
        assert end is None or end in calls[start, tid, name]


def test_the_classes_of_calls() -> None:
    """The shares of calls that block the host, in traces of which they are known."""
    for path, n_calls, blocking in (
        ("kineto/resnet50_2021_stack_memory.json.gz", 11_923, 13),
        ("nsys/ranges_rtx3070_nsys2025.sqlite", 20_436, 316),
        ("nsys/ranges_lm_a100_nsys2024.sqlite", 9_493, 785),
    ):
        classes = open_traces.profile(path).api.call_class.array().tolist()
        assert len(classes) == n_calls
        assert sum(class_ in ("sync", "alloc", "load") for class_ in classes) == blocking
