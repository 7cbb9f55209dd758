"""The tables of `fastprof stats` equal those of SQL over the exports of nsys."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import pytest

from real import open_traces
from support.real_data import open_read_only, real, traces

Rows = dict[tuple[Any, ...], list[Any]]
PLACES = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 9: "Host-to-Host",
          10: "Peer-to-Peer"}  # fmt: skip
CUPTI = "CUPTI_ACTIVITY_KIND_"

every_export = pytest.mark.parametrize(
    "path", traces("nsys/*.sqlite", "pyprof/vsr_a100_nsys2024.sqlite")
)


def table(path: str, name: str, keys: Iterable[str]) -> Rows:
    """The rows of a table by the values of some columns: the values of the others."""
    result = {}
    for row in open_traces.profile(path, copies=True).report("stats", names=[name]).rows():
        key = tuple(row.pop(key) for key in keys)
        assert key not in result
        result[key] = list(row.values())
    return result


def query(path: str, sql: str, *needed: str) -> list[tuple[Any, ...]]:
    """The rows of a statement; none if the export lacks a table."""
    with open_read_only(real(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        return connection.execute(sql).fetchall() if tables >= set(needed) else []


def groups(rows: Iterable[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[int]]:
    """The last values of rows by the others."""
    result = defaultdict(list)
    for *key, value in rows:
        result[tuple(key)].append(value)
    return result


def spread(values: list[int], size: float = 1, decimals: int = 1) -> list[Any]:
    """Mean, median, least, largest, standard deviation of a sample."""
    numbers = [value / size for value in values] if size > 1 else values
    deviation = statistics.stdev(numbers) if len(values) > 1 else 0.0
    result = [statistics.fmean(numbers), statistics.median(numbers), min(numbers), max(numbers)]
    return [pytest.approx(each, abs=0.51 * 10**-decimals) for each in (*result, deviation)]


def times(rows: Iterable[tuple[Any, ...]]) -> Rows:
    by_key = groups(rows)
    total = sum(map(sum, by_key.values())) or 1
    result = {}
    for key, each in by_key.items():
        share = pytest.approx(100 * sum(each) / total, abs=0.051)
        result[key] = [share, sum(each), len(each), *spread(each)]
    return result


@every_export
def test_kernels(path: str) -> None:
    rows = query(
        path,
        f'SELECT value, "end" - start FROM {CUPTI}KERNEL JOIN StringIds ON id = demangledName',
        CUPTI + "KERNEL",
    )
    assert table(path, "cuda_gpu_kern_sum", ["Name"]) == times(rows)


def copies(path: str, value: str) -> list[tuple[Any, ...]]:
    rows = query(path, f"SELECT copyKind, {value} FROM {CUPTI}MEMCPY", CUPTI + "MEMCPY")
    named = [(f"[CUDA memcpy {PLACES[kind]}]", number) for kind, number in rows]
    sets = query(path, f"SELECT '[CUDA memset]', {value} FROM {CUPTI}MEMSET", CUPTI + "MEMSET")
    return named + sets


@every_export
def test_copies(path: str) -> None:
    rows = copies(path, '"end" - start')
    assert table(path, "cuda_gpu_mem_time_sum", ["Operation"]) == times(rows)
    assert table(path, "cuda_gpu_mem_size_sum", ["Operation"]) == {
        key: [pytest.approx(sum(each) / 1e6, abs=6e-4), len(each), *spread(each, 1e6, 3)]
        for key, each in groups(copies(path, "bytes")).items()
    }


@every_export
def test_api_calls(path: str) -> None:
    rows = query(
        path,
        f'SELECT value, "end" - start FROM {CUPTI}RUNTIME JOIN StringIds ON id = nameId',
        CUPTI + "RUNTIME",
    )
    named = [(re.sub(r"_v\d{4}$", "", name), duration) for name, duration in rows]
    assert table(path, "cuda_api_sum", ["Name"]) == times(named)


RANGES = """
WITH domains AS (
  SELECT globalTid >> 24 process, domainId, coalesce(text, value) name
  FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE eventType = 75)
SELECT coalesce(d.name, '') || ':' || coalesce(n.text, s.value),
       CASE WHEN eventType IN (59, 70) THEN 'PushPop' ELSE 'StartEnd' END style,
       n.globalTid, n.start, n."end", coalesce(n.endGlobalTid, n.globalTid) = n.globalTid
FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId
LEFT JOIN domains d ON d.process = n.globalTid >> 24 AND d.domainId = n.domainId
WHERE eventType IN (59, 60, 70, 71)
"""


@every_export
def test_ranges(path: str) -> None:
    rows = query(path, RANGES, "NVTX_EVENTS")
    closed = [
        (name, style, end - start) for name, style, _, start, end, _ in rows if end is not None
    ]
    assert table(path, "nvtx_sum", ["Range", "Style"]) == times(closed)


@every_export
def test_launches(path: str) -> None:
    rows = query(
        path,
        f"""SELECT (r.globalTid >> 24) & 0xffffff, r.globalTid & 0xffffff, deviceId, a.value,
        k.value, r.start, r."end", kernel.start, kernel."end"
        FROM {CUPTI}KERNEL kernel JOIN {CUPTI}RUNTIME r
        ON r.correlationId = kernel.correlationId
           AND r.globalTid >> 24 = kernel.globalPid >> 24
        JOIN StringIds a ON a.id = r.nameId JOIN StringIds k ON k.id = demangledName""",
        CUPTI + "KERNEL",
        CUPTI + "RUNTIME",
    )
    phases = defaultdict(list)
    for pid, tid, device, call, name, begin, returned, start, end in rows:
        phases[pid, tid, device, re.sub(r"_v\d{4}$", "", call), name].append(
            (max(end, returned) - begin, returned - begin, start - returned, end - start)
        )
    expected = {}
    for key, each in phases.items():
        total, api, queue, kernel = (list(values) for values in zip(*each, strict=True))
        queued = [value for value in queue if value >= 0]
        expected[key] = [len(total), len(queued), *spread(total), *spread(api)]
        expected[key] += spread(queued) if queued else [*[None] * 4, 0.0]
        expected[key] += spread(kernel)
    keys = ["PID", "TID", "DevId", "API Name", "Kernel Name"]
    assert table(path, "cuda_kern_exec_sum", keys) == expected


def contained(path: str, table: str, name: str) -> list[tuple[Any, ...]]:
    """Range (name, style, thread, start, end) and work (name, start, end, id) launched inside."""
    if not query(path, "SELECT 1", "NVTX_EVENTS", CUPTI + table):
        return []
    with open_read_only(real(path)) as connection:
        connection.execute(
            f"""CREATE TEMP TABLE work AS
            SELECT {name} name, w.start, w."end", r.globalTid, r.start launch, w.rowid id
            FROM {CUPTI}{table} w JOIN {CUPTI}RUNTIME r ON r.correlationId = w.correlationId
            AND r.globalTid >> 24 = w.globalPid >> 24"""
        )
        connection.execute("CREATE INDEX by_launch ON work (globalTid, launch)")
        return connection.execute(
            f"""SELECT g.*, work.name, work.start, work."end", id FROM ({RANGES}) g JOIN work
            ON work.globalTid = g.globalTid AND launch >= g.start
            AND launch < coalesce(g."end", 1 << 62)"""
        ).fetchall()


@every_export
def test_kernels_of_ranges(path: str) -> None:
    names = "(SELECT value FROM StringIds WHERE id = w.demangledName)"
    instances, kernels, duration = defaultdict(set), defaultdict(set), defaultdict(list)
    for name, style, thread, begin, until, _, kernel, start, end, number in contained(
        path, "KERNEL", names
    ):
        key = name, style, thread >> 24 & 0xFFFFFF, thread & 0xFFFFFF, kernel
        instances[key].add((begin, until))
        kernels[key].add(number)
        duration[key].append(end - start)
    expected = {
        key: [len(instances[key]), len(kernels[key]), sum(each), *spread(each)]
        for key, each in duration.items()
    }
    keys = ["NVTX Range", "Style", "PID", "TID", "Kernel Name"]
    assert table(path, "nvtx_kern_sum", keys) == expected


@every_export
def test_projections(path: str) -> None:
    work = [row for kind in ("KERNEL", "MEMCPY", "MEMSET") for row in contained(path, kind, "NULL")]
    inside = defaultdict(list)
    for name, style, thread, begin, until, same, _, start, end, _ in work:
        assert same
        inside[name, style, thread, begin, until].append((start, end))
    trace, summary = {}, defaultdict(list)
    for (name, style, thread, begin, until), each in inside.items():
        first, last = min(each)[0], max(end for _, end in each)
        key = name, style, thread >> 24 & 0xFFFFFF, thread & 0xFFFFFF, begin, until - begin
        assert key not in trace
        trace[key] = [first, last - first, len(each)]
        summary[name, style].append((last - first, until - begin, len(each)))
    keys = ["Name", "Style", "PID", "TID", "Orig Start (ns)", "Orig Duration (ns)"]
    result = table(path, "nvtx_gpu_proj_trace", keys)
    assert {key: row[:3] for key, row in result.items()} == trace
    stacks = {row[5]: row[7] for row in result.values()}
    children = Counter(row[6] for row in result.values())
    for _, _, _, level, n_children, number, parent, stack in result.values():
        assert stack == f"{stacks.get(parent, '')}:{number}"
        assert (level, n_children) == (stack.count(":") - 1, children[number])
    expected = {}
    for group, each in summary.items():
        projected, original, n_work = (list(values) for values in zip(*each, strict=True))
        mean_work = pytest.approx(statistics.fmean(n_work), abs=0.051)
        expected[group] = [sum(projected), sum(original), len(each), *spread(projected)]
        expected[group] += [sum(n_work), mean_work]
    result = table(path, "nvtx_gpu_proj_sum", ["Range", "Style"])
    assert {key: row[:10] for key, row in result.items()} == expected
