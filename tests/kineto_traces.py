"""Builds small traces of torch.profiler for tests: events in, a file as PyTorch writes it out.

trace = KinetoTrace(schemaVersion=1)
trace.op(0, 100, "aten::mm", **{"Input Dims": [[2, 3], [3, 4]]})
trace.launch(10, 5, corr=7).kernel(30, 10, corr=7)
path = trace.write(tmp_path / "net.json")

Times are microseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PID, TID = 100, 101


class KinetoTrace:
    """The events of one run; `root` is what stands beside them."""

    def __init__(self, **root: Any) -> None:
        self._root = root
        self._events: list[dict[str, Any]] = []

    def event(self, ph: str, name: str, pid: Any, tid: Any, **others: Any) -> KinetoTrace:
        self._events.append({"ph": ph, "name": name, "pid": pid, "tid": tid, **others})
        return self

    def op(
        self, start: float, length: float, name: str, *, cat: str = "cpu_op", tid: int = TID,
        **args: Any,
    ) -> KinetoTrace:  # fmt: skip
        """An operator, or with `cat` an annotation or a Python function."""
        return self.event("X", name, PID, tid, cat=cat, ts=start, dur=length, args=args)

    def launch(self, start: float, length: float, corr: int, *, tid: int = TID) -> KinetoTrace:
        return self.event("X", "cudaLaunchKernel", PID, tid, cat="cuda_runtime", ts=start,
                          dur=length, args={"correlation": corr})  # fmt: skip

    def kernel(
        self, start: float, length: float, corr: int, name: str = "sgemm", *, device: int = 0,
        cat: str = "kernel", **args: Any,
    ) -> KinetoTrace:  # fmt: skip
        args = {"correlation": corr, "device": device, "stream": 7, **args}
        return self.event("X", name, device, 7, cat=cat, ts=start, dur=length, args=args)

    def named(self, what: str, name: str, pid: int = PID, tid: int = 0) -> KinetoTrace:
        """A metadata event: `what` is process_name or thread_name."""
        return self.event("M", what, pid, tid, ts=0, args={"name": name})

    def memory(self, at: float, n_bytes: int, **args: Any) -> KinetoTrace:
        return self.event("i", "[memory]", PID, TID, cat="cpu_instant_event", s="t", ts=at,
                          args={"Bytes": n_bytes, **args})  # fmt: skip

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps({**self._root, "traceEvents": self._events}))
        return path
