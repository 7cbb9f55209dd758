"""`ranges` of real traces against the oracle: plain Python over JSON and SQL."""

from collections import defaultdict
from typing import Any

import pytest

from fastprof.model.numbers import without_numbers
from oracle.capture import Capture, Kernel, Range
from oracle.links import BACKWARD, Links, direction
from real import open_traces
from support.real_data import traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
MEASURES = ("count", "wall_ns", "gpu_ns", "kernels", "projected_ns", "idle_ns", "own_ns")
# With the calls of backward nodes that are certain, and with all candidates.
LEAST, MOST = "least with_backward_ns", "most with_backward_ns"
Sums = dict[str, dict[str, int]]  # by name of the range, numbers folded, and measure


def is_user(each: Range) -> bool:
    return each.kind == "user" and not each.name.startswith("nccl:")  # torch's own


def around(each: Range | None, time: int | None) -> list[Range]:
    """The user's ranges that are open at a time, innermost first."""
    return [
        found
        for found in (each.chain() if each else ())
        if is_user(found) and (time is None or found.start <= time < found.end)
    ]


def around_launch(kernel: Kernel) -> list[Range]:
    """The same around the launch of a kernel, also on the thread that waits for autograd's."""
    inside = around(kernel.range, kernel.launched)
    waiting = [each for each in around(kernel.waiting, kernel.launched) if each not in inside]
    return inside + waiting


def paths(ranges: list[Range]) -> set[tuple[str, ...]]:
    names = [without_numbers(range_.name) for range_ in reversed(ranges)]
    return {tuple(names[: i + 1]) for i in range(len(names))}


def busy_until(kernels: list[Kernel]) -> Any:
    """A function of a time: for how long a GPU ran kernels before."""
    union: list[list[int]] = []
    for kernel in sorted(kernels, key=lambda each: each.start):
        end = kernel.start + kernel.duration
        if union and kernel.start <= union[-1][1]:
            union[-1][1] = max(union[-1][1], end)
        else:
            union.append([kernel.start, end])
    return lambda time: sum(min(b, time) - a for a, b in union if a < time)


def expected(capture: Capture) -> Sums:
    result: Sums = defaultdict(lambda: dict.fromkeys((*MEASURES, LEAST, MOST), 0))
    for each in capture.ranges:
        if is_user(each):
            row = result[without_numbers(each.name)]
            row["count"] += 1
            row["wall_ns"] += each.end - each.start
    links, work = Links(capture), defaultdict(list)
    for kernel in capture.kernels:
        inside = around_launch(kernel)
        for i, each in enumerate(inside):
            row = result[without_numbers(each.name)]
            row["gpu_ns"] += kernel.duration
            row["kernels"] += 1
            row["own_ns"] += kernel.duration if i == 0 else 0
            work[each, kernel.device].append(kernel)
        own, homes = paths(inside), []
        if kernel.range and direction(capture, kernel) == BACKWARD:
            node = links.node(kernel.range.chain())
            forwards = links.forwards(node) if node else []
            homes = [paths(around(forward, forward.start)) for forward in forwards]
        for path in own | (homes[0] if len(homes) == 1 else set()):
            result[path[-1]][LEAST] += kernel.duration
        for path in own.union(*homes):
            result[path[-1]][MOST] += kernel.duration
    busy = {
        gpu: busy_until([kernel for kernel in capture.kernels if kernel.device == gpu])
        for gpu in {kernel.device for kernel in capture.kernels}
    }
    for (each, gpu), kernels in work.items():
        begin = min(kernel.start for kernel in kernels)
        end = max(kernel.start + kernel.duration for kernel in kernels)
        row = result[without_numbers(each.name)]
        row["projected_ns"] += end - begin
        row["idle_ns"] += end - begin - (busy[gpu](end) - busy[gpu](begin))
    return dict(result)


@pytest.mark.parametrize("path", TRACES)
def test_ranges_are_what_the_oracle_says(path: str) -> None:
    wanted = expected(open_traces.capture(path))
    result: Sums = defaultdict(lambda: defaultdict(int))
    for row in open_traces.profile(path).ranges_table().rows():
        for name in (*MEASURES, "with_backward_ns"):
            result[row["name"]][name] += row[name] or 0
    # Annotations among torch's operators, which the oracle does not count, are nested in others.
    others = result.keys() - wanted.keys() - {"(no range)"}
    compared = MEASURES[:-1] if others else MEASURES
    differ = {
        (name, key): (result[name][key], row[key])
        for name, row in wanted.items()
        for key in compared
        if result[name][key] != row[key]
    }
    assert differ == {}
    for name, row in wanted.items():
        assert row[LEAST] <= result[name]["with_backward_ns"] <= row[MOST], name


@pytest.mark.parametrize(
    ("path", "name", "measure", "ms"),
    [
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", "## forward ##", "gpu_ns", 149.31),
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", "## forward ##", "with_backward_ns", 459.91),
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", "## backward ##", "gpu_ns", 313.31),
        ("kineto/resnet_v100_2024_fwdbwd.json.gz", "## backward ##", "with_backward_ns", 313.31),
        ("nsys/ranges_rtx3070_nsys2025.sqlite", "Backward", "gpu_ns", 760.8),
    ],
)
def test_known_ranges(path: str, name: str, measure: str, ms: float) -> None:
    rows = open_traces.profile(path).ranges_table().rows()
    result = sum(row[measure] for row in rows if row["name"] == name)
    assert round(result / 1e6, 2 if ms < 700 else 1) == ms
