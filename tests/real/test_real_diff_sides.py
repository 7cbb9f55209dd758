"""The sides of a comparison of real traces, against plain Python over the columns."""

import itertools
from collections import Counter
from functools import cache
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest

import fastprof
from fastprof.analysis.diff.measure import side_of
from fastprof.analysis.diff.side import Side
from fastprof.analysis.idle.causes import CAUSES
from real.open_traces import kept, profile
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*")
PARTS = {"communication": 1, "memcpy": 2, "memset": 2}
LARGEST = 60_000  # kernels; the oracle takes longer


@kept
def side(path: str) -> Side:
    opened = profile(path, copies=True)
    if not len(opened):
        pytest.skip("no GPU work")
    return side_of(opened)


@cache
def keys(path: str, name: str) -> list[Any]:
    return profile(path, copies=True).kernels[name].tolist()


def own_times(work: list[tuple[int, int, int]], begin: int, end: int) -> Counter[int]:
    """The busy time of a window by work (start, end, part): one piece of work has each moment."""
    result: Counter[int] = Counter()
    ordered = sorted(range(len(work)), key=lambda i: work[i][0])
    times = sorted({min(max(time, begin), end) for each in work for time in each[:2]})
    running: list[tuple[int, int, int]] = []
    next_work = 0
    for time, until in itertools.pairwise(times):
        while next_work < len(ordered) and work[ordered[next_work]][0] <= time:
            i = ordered[next_work]
            heappush(running, (work[i][2], next_work, i))
            next_work += 1
        while running and work[running[0][2]][1] <= time:
            heappop(running)
        if running:
            result[running[0][2]] += until - time
    return result


@pytest.mark.parametrize("path", TRACES)
def test_busy_time_is_divided_among_operators(path: str) -> None:
    """The sums over operators, without steps: a window is the span of a process on a GPU."""
    opened = profile(path, copies=True)
    if not 0 < len(opened) <= LARGEST:
        pytest.skip("no GPU work, or too much of it for the oracle")
    result = side_of(opened, steps="none")
    lanes: dict[tuple[Any, Any], list[int]] = {}
    for row, lane in enumerate(zip(keys(path, "pid"), keys(path, "device"), strict=True)):
        lanes.setdefault(lane, []).append(row)
    starts, ends = keys(path, "start"), keys(path, "end")
    classes, ops, kernels = (keys(path, name) for name in ("class", "op", "kernel"))
    expected: Counter[tuple[Any, Any]] = Counter()
    for rows in lanes.values():
        work = [(starts[i], max(ends[i] or 0, starts[i]), PARTS.get(classes[i], 0)) for i in rows]
        span = min(each[0] for each in work), max(each[1] for each in work)
        for i, ns in own_times(work, *span).items():
            expected[ops[rows[i]], kernels[rows[i]]] += ns
    own: Counter[tuple[Any, Any]] = Counter()
    names = zip(result.texts("op"), result.texts("kernel"), result.own.tolist(), strict=True)
    for op, kernel, ns in names:
        own[op, kernel] += ns
    assert +own == +expected


@pytest.mark.parametrize("path", TRACES)
def test_groups_and_idle_causes_add_up_to_each_step(path: str) -> None:
    result = side(path)
    busy = np.bincount(result.window, result.own_ns, result.n_windows).astype(np.int64)
    assert busy.tolist() == result.windows["busy_ns"].tolist()
    assert (busy + result.idle.sum(axis=1)).tolist() == result.windows["wall_ns"].tolist()
    assert (result.own_ns >= 0).all()
    assert (result.idle >= 0).all()


@pytest.mark.parametrize("path", TRACES)
def test_idle_causes_are_those_of_the_report(path: str) -> None:
    opened = profile(path, copies=True)
    if not len(opened) or len(set(opened.kernels["pid"].tolist())) > 1:
        pytest.skip("no GPU work, or several processes")
    result = side_of(opened, steps="none")
    report: Counter[tuple[Any, str]] = Counter()
    for row in opened.trim(":").idle().rows():
        report[row["device"], row["cause"]] += row["ns"]
    own: Counter[tuple[Any, str]] = Counter()
    span = result.windows["wall_ns"].tolist()
    for device, causes in zip(result.windows["device"].tolist(), result.idle.tolist(), strict=True):
        for cause, ns in zip(CAUSES, causes, strict=True):
            own[device, cause] += ns
    assert len(span) == len(set(result.windows["device"].tolist()))
    assert +own == +report


@pytest.mark.parametrize("path", TRACES)
def test_a_capture_does_not_differ_from_itself(path: str) -> None:
    table = fastprof.diff(side(path), side(path)).table()
    assert {row["why"] for row in table.rows()} <= {"same"}
    assert not any(row["delta_ns"] for row in table.rows())
    assert fastprof.diff(side(path), side(path)).same_work
