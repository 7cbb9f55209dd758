"""Captures of a small training program with known work, for tests of comparisons."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.exports import Export
from support.kineto_files import KinetoFile

HOST_NS = 10_000  # of a call
LATENCY_NS = 5_000  # from the launch to the start on a GPU that waits


@dataclass(frozen=True)
class Work:
    """A call: its layer, operator, shapes, and kernels as (name, ns).

    Without an operator, the layer is a range of the user.
    """

    layer: str | None
    op: str | None
    dims: tuple[tuple[int, ...], ...]
    kernels: tuple[tuple[str, int], ...]
    stream: int = 7
    host_ns: int = HOST_NS
    line: int | None = None  # of net.py, in traces of torch.profiler


def call(
    layer: str | None,
    op: str | None,
    ns: int,
    kernel: str = "",
    dims: Any = ((8, 16),),
    **others: Any,
) -> Work:
    """A call with one kernel."""
    return Work(layer, op, dims, ((kernel or f"{op}_kernel", ns),), **others)


def simulated(steps: Sequence[Sequence[Work]]) -> list[dict[str, Any]]:
    """The events of a run: the host launches in order, each stream works in order."""
    events: list[dict[str, Any]] = []
    time, free, correlation = 1_000_000, dict[int, int](), 0
    for number, calls in enumerate(steps):
        begin = time
        for each in calls:
            first, time = time, time + each.host_ns
            events.append({"what": "op", "start": first, "end": time, "work": each})
            for i, (name, ns) in enumerate(each.kernels):
                correlation += 1
                launched = first + 100 * (i + 1)
                start = max(launched + LATENCY_NS, free.get(each.stream, 0))
                free[each.stream] = start + ns
                events.append({"what": "launch", "start": launched, "end": launched + 50,
                               "correlation": correlation})  # fmt: skip
                events.append({"what": "kernel", "start": start, "end": start + ns, "name": name,
                               "correlation": correlation, "stream": each.stream})  # fmt: skip
        # The step ends with its last work, so steps do not overlap.
        time = max([time, *free.values()]) + 1_000
        events.append({"what": "step", "start": begin, "end": time - 500, "number": number})
    return events


def nsys(path: Path, steps: Sequence[Sequence[Work]]) -> Path:
    """Write the run as an Nsight Systems export."""
    export = Export()
    for each in simulated(steps):
        start, end = each["start"], each["end"]
        if each["what"] == "step":
            export.push_pop(start, end, f"step {each['number']}", tid=1)
        elif each["what"] == "op":
            work = each["work"]
            if work.op is None:
                export.push_pop(start, end, work.layer, tid=1)
                continue
            if work.layer is not None:
                export.push_pop(start, end, f"layer:{work.layer}", tid=1)
            sizes = json.dumps([list(shape) for shape in work.dims])
            export.push_pop(start + 1, end - 1, f"aten::{work.op}, seq = 1, sizes = {sizes}", tid=1)
        elif each["what"] == "launch":
            export.launch(start, end, each["correlation"], 1)
        else:
            export.kernel(start, end, each["correlation"], name=each["name"], stream=each["stream"])
    return export.write(path)


def kineto(path: Path, steps: Sequence[Sequence[Work]]) -> Path:
    """Write the run as a trace of torch.profiler."""
    trace = KinetoFile()
    for each in simulated(steps):
        start, end = each["start"], each["end"]
        if each["what"] == "step":
            trace.annotation(start, end, f"ProfilerStep#{each['number']}")
        elif each["what"] == "op":
            work = each["work"]
            if work.layer is not None:
                trace.annotation(start, end, f"layer:{work.layer}")
            if work.line is not None:
                trace.python(start, end, f"/home/user/net.py({work.line}): forward")
            dims = [list(shape) for shape in work.dims]
            types = ["float"] * len(dims)
            trace.op(start + 1, end - 1, f"aten::{work.op}", dims=dims, types=types)
        elif each["what"] == "launch":
            trace.launch(start, end, each["correlation"])
        else:
            trace.kernel(start, end, each["correlation"], each["name"], stream=each["stream"])
    return trace.write(path)
