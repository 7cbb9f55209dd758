"""The columns call, range, helper and compute_type on real traces, against the oracle's ranges."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from fastprof.api.profile import Profile
from fastprof.readers.detect import read_trace
from oracle.capture import Kernel
from oracle.flops import bare
from real import open_traces
from real.oracle_comparison import pairs
from support.real_data import real, traces

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
every_trace = pytest.mark.parametrize("path", TRACES)


@dataclass(eq=False)
class Row:
    """A row of the profile; `key` and `duration` identify its kernel."""

    number: int
    key: tuple[int, int]
    duration: int


@lru_cache(maxsize=1)
def opened(path: str) -> tuple[Profile, list[tuple[Kernel, int]]]:
    """The profile, and the oracle's kernels with their rows."""
    profile = open_traces.profile(path)
    columns = (profile.column(name).values.tolist() for name in ("start", "correlation", "sil"))
    rows = [Row(i, (s, c), d) for i, (s, c, d) in enumerate(zip(*columns, strict=True))]
    kernels = open_traces.capture(path).kernels
    return profile, [(kernel, row.number) for kernel, row in pairs(kernels, rows)]


@every_trace
def test_each_operator_that_launched_kernels_is_one_call(path: str) -> None:
    profile, kernels = opened(path)
    op, direction, call = (profile.kernels[name].tolist() for name in ("op", "dir", "call"))
    calls: dict[object, set[object]] = defaultdict(set)
    operators: Counter[object] = Counter()
    for kernel, row in kernels:
        assert (call[row] is None) == (op[row] is None)
        chain = kernel.range.chain() if kernel.range else []
        named = [each for each in chain if each.kind == "op" and bare(each.name) == op[row]]
        if direction[row] == "fprop" and named:
            operators[op[row]] += named[-1] not in calls
            calls[named[-1]].add(call[row])
    assert {op: len(numbers) for op, numbers in calls.items() if len(numbers) != 1} == {}
    assert len({number for numbers in calls.values() for number in numbers}) == len(calls)
    assert sum(operators.values()) == len(calls)


@every_trace
def test_a_range_is_the_last_of_that_name_around_the_launch(path: str) -> None:
    profile, kernels = opened(path)
    start = read_trace(real(path), None, False).ranges.start
    row_of_range, chains = (profile.kernels[name].tolist() for name in ("range", "launch_ranges"))
    for kernel, row in kernels:
        around = kernel.range.chain() if kernel.range else []
        if row_of_range[row] is not None and kernel.thread is not None:
            around += kernel.waiting.chain() if kernel.waiting else []
            named = [each.start for each in around if each.name == chains[row][-1]]
            assert named[:1] == [start[row_of_range[row]]]


@every_trace
def test_ranges_end_in_the_range_whose_row_is_given(path: str) -> None:
    profile, _ = opened(path)
    attribution = profile.source._lookups.attribution
    for rows, chains in (("range", "launch_ranges"), ("home_range", "ranges")):
        for row, chain in zip(
            profile.kernels[rows].tolist(), profile.kernels[chains].tolist(), strict=True
        ):
            label = None if row is None else attribution.ranges.label[row]
            name = None if label is None else attribution.meanings[label].label
            assert name == (chain[-1] if chain else None)


@every_trace
def test_helpers_have_no_flops_and_calls_more_than_helpers(path: str) -> None:
    profile, _ = opened(path)
    helper, flops = profile.kernels["helper"], profile.kernels["flops"]
    assert not np.any(np.ma.filled(flops[helper.filled(0) == 1], 0))
    assert (helper.mask == profile.kernels["call"].mask).all()


# GPU time by compute type in per mille of the kernels' time, na for unknown.
TYPES = {
    "kineto/owlv2_h100.json.gz": {"bf16": 999},
    "kineto/resnet50_2021_stack_memory.json.gz": {"fp32": 999},
    "kineto/resnet18_mi300_full.json.gz": {"bf16": 999},
    "kineto/train_v100_2022_control.json.gz": {"fp32": 732, "tf32": 149, "fp64": 2, None: 115},
    "nsys/ranges_rtx3070_nsys2025.sqlite": {"fp32": 995, None: 4},
    "pyprof/lm_v100_nvprof.sql": {"fp32": 999},
}


@pytest.mark.parametrize("path", TYPES)
def test_the_time_of_each_compute_type(path: str) -> None:
    profile, _ = opened(path)
    time: Counter[str | None] = Counter()
    for name, each in zip(
        profile.kernels["compute_type"], profile.kernels["sil"].tolist(), strict=True
    ):
        time[name] += each
    total = sum(time.values())
    result = {name: 1000 * each // total for name, each in time.items()}
    assert {name: share for name, share in result.items() if share > 1} == TYPES[path]
