"""FLOPs and bytes of each operator: those of fastprof's models beside what the GPU counted."""

from __future__ import annotations

import bisect
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import fastprof
from bench.gpu import counters

# Kernels that write this much without reading flush the L2 cache before the next operator.
_FLUSHED = 2e8


class Operator(NamedTuple):
    """Sums over the kernels of one operator; None where a model or a counter has no figure."""

    name: str
    ns: int
    flops: float | None
    counted: float  # tensor cores and others
    tensor: float
    bytes: float | None
    dram: float


def _begins(events: list[dict]) -> tuple[list[float], list[str]]:
    """Begin of each range `op:NAME` in us, with NAME, in the order of time."""
    ranges = sorted(
        (event["ts"], event["name"][3:])
        for event in events
        if event.get("cat") == "user_annotation" and event["name"].startswith("op:")
    )
    return [begin for begin, _ in ranges], [name for _, name in ranges]


def _sum(values: Iterable[float | None]) -> float | None:
    """Sum of what is known; None if a value is not."""
    known = list(values)
    return None if None in known else float(sum(value for value in known if value is not None))


def _counted(path: Path) -> dict[str, list[dict]]:
    """Kernels of the counters' table by operator, without those that flush the cache."""
    kernels: dict[str, list[dict]] = {}
    with gzip.open(path, "rt") as lines:
        for kernel in counters.read(lines):
            if "FillFunctor" not in kernel["kernel"] or kernel["written"] < _FLUSHED:
                kernels.setdefault(kernel["op"], []).append(kernel)
    return kernels


def compare(trace: Path, table: Path) -> list[Operator]:
    """The operators that both have, in the order of the trace.

    Parameters
    ----------
    trace : of `programs/operators.py` by torch.profiler, gzipped
    table : of the same program by ncu, gzipped
    """
    with gzip.open(trace) as file:
        events = json.load(file)["traceEvents"]
    begins, names = _begins(events)
    rows = list(fastprof.open(trace).rows())
    # Times of rows are ns from an origin of their own: that of the first range's launch.
    flush = next(row for row in rows if row["op"] == "zero_")
    by_operator: dict[str, list] = {name: [] for name in names}
    counted = _counted(table)
    origin = flush["launch_start"] - _first_launch(events) * 1e3
    for row in rows:
        index = bisect.bisect(begins, (row["launch_start"] - origin) / 1e3) - 1
        is_flush = row["op"] == "zero_" and "67108864" in row["params"]
        if index >= 0 and not is_flush:
            by_operator[names[index]].append(row)
    operators = []
    for name, own in by_operator.items():
        kernels = counted.get(name)
        if not kernels or not own:
            continue
        tensor = sum(sum(kernel["tensor"].values()) for kernel in kernels)
        scalar = sum(sum(kernel["scalar"].values()) for kernel in kernels)
        operators.append(
            Operator(
                name, sum(row["sil"] for row in own), _sum(row["flops"] for row in own),
                tensor + scalar, tensor, _sum(row["bytes"] for row in own),
                sum(kernel["read"] + kernel["written"] for kernel in kernels),
            )
        )  # fmt: skip
    return operators


def _first_launch(events: list[dict]) -> float:
    """Begin of the first launch of a kernel, in us."""
    return min(
        event["ts"] for event in events if event.get("name", "").startswith("cudaLaunchKernel")
    )
