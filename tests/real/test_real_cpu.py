"""CPU time and memory of real traces, against the JSON and the rules of torch's own tables."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pytest

from fastprof.model.numbers import without_numbers
from oracle.kineto import nanoseconds
from real import open_traces
from support.real_data import traces

CATEGORIES = {"cpu_op", "operator", "user_annotation", "cuda_runtime", "cuda_driver", "runtime"}
API = {"cuda_runtime", "cuda_driver", "runtime"}
NOT_COUNTED = {"aten::is_leaf", "aten::output_nr", "aten::_version"}


@dataclass(eq=False)
class Event:
    name: str
    start: int
    end: int
    thread: tuple[Any, Any]
    parent: Event | None = None
    children: list[Event] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.end - self.start


def read(path: str) -> tuple[list[Event], list[dict[str, Any]]]:
    trace = open_traces.events(path)
    result = []
    for is_api in (False, True):
        for event in trace:
            category = str(event.get("cat", "")).lower()
            if event.get("ph") != "X" or category not in CATEGORIES or "dur" not in event:
                continue
            if (category in API) != is_api or event["name"] in NOT_COUNTED:
                continue
            if event["name"].startswith("profiler::_record_function_e"):
                continue
            start = nanoseconds(event["ts"])
            end = start + nanoseconds(event["dur"])
            result.append(Event(event["name"], start, end, (event["pid"], event["tid"])))
    return result, [each for each in trace if each.get("name") == "[memory]"]


def nest(events: list[Event]) -> list[Event]:
    """Find parents; return the events without those that repeat the event around."""
    events = sorted(events, key=lambda each: (each.start, -each.end))
    stacks: dict[Any, list[Event]] = defaultdict(list)
    for event in events:
        stack = stacks[event.thread]
        while stack and (event.start >= stack[-1].end or event.end > stack[-1].end):
            stack.pop()
        if stack:
            event.parent = stack[-1]
            event.parent.children.append(event)
        stack.append(event)
    kept = []
    for event in events:
        parent = event.parent
        if parent and spelled(parent.name) == spelled(event.name) and len(parent.children) == 1:
            parent.children = event.children
            for child in event.children:
                child.parent = parent
        else:
            kept.append(event)
    return kept


def spelled(name: str) -> str:
    return name.removeprefix("aten::")


def op(name: str) -> str:
    """The operator of the column `op`, numbers folded."""
    if re.fullmatch(r"\w[\w.]*(::[\w.]+)+", name) and not re.search("backward|autograd", name):
        name = name.rpartition("::")[2]
    return without_numbers(spelled(name))


@pytest.mark.parametrize("path", traces("kineto/*.json.gz"))
def test_operators_have_the_times_of_torchs_rules(path: str) -> None:
    events, records = read(path)
    events = nest(events)
    memory = sorted((nanoseconds(record["ts"]), int(record["args"]["Bytes"])) for record in records)
    times, before = [time for time, _ in memory], [0, *accumulate(size for _, size in memory)]

    def net(event: Event) -> int:
        return before[bisect_right(times, event.end)] - before[bisect_left(times, event.start)]

    expected: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    for each in events:
        row = expected[op(each.name)]
        row[0] += 1
        row[1] += each.total - sum(child.total for child in each.children)
        row[2] += each.total
        row[3] += net(each)
        row[4] += net(each) - sum(map(net, each.children))
    result: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    table = open_traces.profile(path, copies=True).summary("op", cpu=True)
    for each in table.rows():
        if not each["cpu_calls"] or each["op"] == "[memory]":
            continue
        row = result[op(each["op"])]
        row[0] += each["cpu_calls"]
        row[1] += each["cpu_self_ns"]
        row[2] += each["cpu_ns"]
        for place in ("cpu", "gpu"):
            row[3] += each.get(f"{place}_memory", 0)
            row[4] += each.get(f"{place}_self_memory", 0)
    differ = {
        name: (result.get(name), expected.get(name))
        for name in result.keys() | expected.keys()
        if result.get(name) != expected.get(name)
    }
    assert differ == {}
