"""Builds traces of torch.profiler for tests: events in, JSON out, times in ns.

trace = KinetoFile()
trace.op(0, 100, "aten::mm", tid=1, dims=[[2, 3], [3, 4]], types=["float", "float"], seq=4)
trace.launch(10, 20, corr=7, tid=1)
trace.kernel(30, 40, corr=7, name="sgemm")
path = trace.write(tmp_path / "one.json.gz")
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

PID, TID = 100, 1


class KinetoFile:
    """The events of one capture; `root` has the other keys of the file."""

    def __init__(self, **root: Any) -> None:
        self.root = {"schemaVersion": 1, **root}
        self.events: list[dict[str, Any]] = []

    def event(self, ph: str, cat: str, name: str, start: int, **fields: Any) -> KinetoFile:
        self.events.append({"ph": ph, "cat": cat, "name": name, "ts": start / 1000, **fields})
        return self

    def _span(self, cat: str, start: int, end: int, name: str, tid: Any, pid: Any,
              args: dict[str, Any]) -> KinetoFile:  # fmt: skip
        told = {key: value for key, value in args.items() if value is not None}
        return self.event("X", cat, name, start, pid=pid, tid=tid, dur=(end - start) / 1000,
                          args=told)  # fmt: skip

    def op(
        self, start: int, end: int, name: str, tid: Any = TID, *, pid: Any = PID,
        seq: int | None = None,
        dims: Any = None, types: Any = None, strides: Any = None, values: Any = None,
        external: int | None = None, cat: str = "cpu_op", **others: Any,
    ) -> KinetoFile:  # fmt: skip
        args = {"Sequence number": seq, "Input Dims": dims, "Input type": types}
        args |= {"Input Strides": strides, "Concrete Inputs": values, "External id": external}
        return self._span(cat, start, end, name, tid, pid, args | others)

    def annotation(self, start: int, end: int, name: str, tid: Any = TID) -> KinetoFile:
        return self._span("user_annotation", start, end, name, tid, PID, {})

    def python(
        self, start: int, end: int, name: str, tid: Any = TID,
        *, number: int = 1, parent: int | None = None,
    ) -> KinetoFile:  # fmt: skip
        args = {"Python id": number} | ({} if parent is None else {"Python parent id": parent})
        return self._span("python_function", start, end, name, tid, PID, args)

    def launch(
        self, start: int, end: int, corr: int, tid: Any = TID, name: str = "cudaLaunchKernel",
        *, pid: Any = PID, cat: str = "cuda_runtime", **others: Any,
    ) -> KinetoFile:  # fmt: skip
        """A call of the runtime; `others` are arguments, such as ROCm's kernel."""
        args = {"cbid": 211, "correlation": corr, **others}
        return self._span(cat, start, end, name, tid, pid, args)

    def kernel(
        self, start: int, end: int, corr: int, name: str = "sgemm", *, cat: str = "kernel",
        device: int = 0, stream: int = 7, external: int | None = None, **others: Any,
    ) -> KinetoFile:  # fmt: skip
        args = {"correlation": corr, "External id": external, "device": device, "context": 1,
                "stream": stream, "grid": [2, 3, 4], "block": [128, 1, 1],
                "registers per thread": 32, "shared memory": 64}  # fmt: skip
        return self._span(cat, start, end, name, stream, device, args | others)

    def copy(self, start: int, end: int, corr: int, name: str, n_bytes: int) -> KinetoFile:
        cat = "gpu_memset" if name.startswith("Memset") else "gpu_memcpy"
        return self.kernel(start, end, corr, name, cat=cat, bytes=n_bytes, grid=None, block=None)

    def memory(self, time: int, n_bytes: int, tid: Any = TID, **args: Any) -> KinetoFile:
        """An allocation, or a free where the number is negative."""
        return self.event("i", "cpu_instant_event", "[memory]", time, pid=PID, tid=tid, s="t",
                          args={"Bytes": n_bytes, **args})  # fmt: skip

    def named(self, what: str, name: str, pid: Any = PID, tid: Any = 0) -> KinetoFile:
        """Metadata: `what` is process_name or thread_name."""
        return self.event("M", "", what, 0, pid=pid, tid=tid, args={"name": name})

    def arrow(self, number: int, leaves: tuple[int, int], ends: tuple[int, int]) -> KinetoFile:
        """From (time, thread) to (time, thread)."""
        for ph, (time, tid) in zip("sf", (leaves, ends), strict=True):
            self.event(ph, "fwdbwd", "fwdbwd", time, id=number, pid=PID, tid=tid)
        return self

    def text(self) -> str:
        return json.dumps({**self.root, "traceEvents": self.events})

    def write(self, path: Path) -> Path:
        """Write the file, compressed if its name ends in .gz."""
        data = self.text().encode()
        path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
        return path
