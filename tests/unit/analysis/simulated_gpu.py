"""Adds a GPU to a CPU recording of torch.profiler: calls of CUDA, kernels, and waits of the host.

Each innermost operator launches a kernel. `.item()` copies to the host and waits: all host events
after it move by the time of the wait. Kernels run in order, on one stream.
"""

import bisect
import json
from pathlib import Path
from typing import Any

CALL_US = 3.0
LATENCY_US = 6.0
WAITS = "aten::_local_scalar_dense"
CATEGORIES = ("cpu_op", "user_annotation", "python_function")
Event = dict[str, Any]


def with_gpu(recorded: Path, out: Path, kernel_us: float) -> Path:
    """Write the recording as if each operator took `kernel_us` of GPU time."""
    trace = json.loads(recorded.read_text(encoding="utf-8"))
    host = [event for event in trace["traceEvents"] if event.get("cat") in CATEGORIES]
    operators = sorted(
        (event for event in host if event["cat"] == "cpu_op"), key=lambda each: each["ts"]
    )
    inner = [
        each
        for each, after in zip(operators, [*operators[1:], None], strict=True)
        if after is None or after["ts"] >= each["ts"] + each["dur"]
    ]
    gpu = _Gpu(kernel_us)
    for each in inner:
        gpu.run(each)
    for event in host:
        end = gpu.moved(event["ts"] + event["dur"])
        event["ts"] = gpu.moved(event["ts"])
        event["dur"] = end - event["ts"]
    trace["traceEvents"] += gpu.events
    out.write_text(json.dumps(trace), encoding="utf-8")
    return out


class _Gpu:
    def __init__(self, kernel_us: float) -> None:
        self.events: list[Event] = []
        self._kernel_us, self._free = kernel_us, 0.0
        self._waits: list[tuple[float, float]] = []  # when, and the sum of the waits until then

    def moved(self, time: float) -> float:
        """A time of the recording with all waits before it."""
        place = bisect.bisect_left(self._waits, (time, 0.0))
        return time + (self._waits[place - 1][1] if place else 0.0)

    def run(self, operator: Event) -> None:
        """Launch the work of an operator in the middle of it."""
        middle = operator["ts"] + operator["dur"] / 2
        launch = self.moved(middle)
        waits = operator["name"] == WAITS
        start = max(launch + LATENCY_US, self._free)
        self._free = start + (1.0 if waits else self._kernel_us)
        name = "cudaMemcpyAsync" if waits else "cudaLaunchKernel"
        self._add("cuda_runtime", name, launch, launch + CALL_US, operator, operator["tid"])
        category = "gpu_memcpy" if waits else "kernel"
        work = "Memcpy DtoH (Device -> Pageable)" if waits else operator["name"]
        self._add(category, work, start, self._free, {"pid": 0}, 7)
        if waits:
            done = self._free + 4.0
            self._add(
                "cuda_runtime", "cudaStreamSynchronize", launch + CALL_US + 1, done, operator,
                operator["tid"], linked=False,
            )  # fmt: skip
            before = self._waits[-1][1] if self._waits else 0.0
            self._waits.append((middle, before + done - launch))

    def _add(
        self, category: str, name: str, start: float, end: float, owner: Event, tid: Any,
        linked: bool = True,
    ) -> None:  # fmt: skip
        numbers = [event["args"]["correlation"] for event in self.events[-1:]]
        number = (numbers or [0])[0] + (category == "cuda_runtime" or not linked)
        self.events.append(
            {
                "ph": "X", "cat": category, "name": name, "pid": owner["pid"], "tid": tid,
                "ts": start, "dur": end - start,
                "args": {"correlation": number, "device": 0, "stream": 7, "context": 1},
            }
        )  # fmt: skip
