"""A small host and GPU that run a program: its capture, and the exact length of its steps.

A program is a list of steps, each a list of operations. Whoever predicts a changed run can be
compared with the run of the changed program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from support.exports import Export

BEGIN = 1_000_000
CALL, LATENCY, GAP, WAKE, EVENT = 4_000, 6_000, 1_000, 8_000, 2_000  # ns
STAGING = 60_000  # ns, from the end of all queued work to a copy from pageable memory


@dataclass(frozen=True)
class Op:
    """An operation of a thread.

    Parameters
    ----------
    what : launch, graph, sync, copy, upload, wait, load or thread
    host : the host's own time before it, ns
    ns : GPU time of launch and copy, host time of load
    name : of the kernel
    stream : of the kernel; of wait, the stream that waits
    after : of wait, the stream waited for
    kernels : GPU times of a graph
    ops : what another thread does meanwhile
    late : part of `ns` that a collective waits for other ranks
    call : ns of the API call
    label : of a range around it, "" for none
    """

    what: str
    host: int = 0
    ns: int = 0
    name: str = "gemm"
    stream: int = 7
    after: int = 7
    kernels: tuple[int, ...] = ()
    ops: tuple[Op, ...] = ()
    late: int = 0
    call: int = CALL
    label: str = ""


Program = Sequence[Sequence[Op]]


def changed(program: Program, change: Callable[[Op], Op | None]) -> list[list[Op]]:
    """The program with other operations; None removes one."""

    def of(op: Op) -> Op | None:
        new = change(op)
        if new is None or not new.ops:
            return new
        return replace(new, ops=tuple(filter(None, map(of, new.ops))))

    return [[op for op in map(of, step) if op is not None] for step in program]


@dataclass
class Run:
    """A run of a program."""

    export: Export = field(default_factory=Export)
    time: dict[int, int] = field(default_factory=lambda: {1: BEGIN})
    free: dict[int, int] = field(default_factory=dict)  # by stream: the end of its work
    held: dict[int, int] = field(default_factory=dict)  # by stream: when an event lets it go on
    correlation: int = 0
    ends: list[int] = field(default_factory=list)
    room: int = 0  # launches that a queue holds, 0: any number
    starts: list[int] = field(default_factory=list)

    def lengths(self) -> list[int]:
        """The length of each step: from the end of the GPU work of the one before."""
        result, before = [], BEGIN
        for end in self.ends:
            result.append(max(end, before) - before)
            before = max(end, before)
        return result

    def write(self, path: Path) -> Path:
        """The capture."""
        return self.export.gpu().write(path)

    def warm_up(self) -> None:
        """Work before the first step, which then begins with its range."""
        begin = BEGIN - 4 * CALL
        self.export.launch(begin, begin + CALL, 0, 1, "cudaLaunchKernel_v7000")
        start = begin + CALL + LATENCY
        self.export.kernel(start, start + CALL, 0, name="warm_up")

    def step(self, number: int, ops: Sequence[Op]) -> None:
        """Run a step under a range."""
        begin, end = self.time[1], 0
        for op in ops:
            end = max(end, self.run(op, 1))
        self.export.push_pop(begin, self.time[1], f"step {number}", 1)
        self.ends.append(end)

    def run(self, op: Op, tid: int) -> int:
        """Run an operation; returns the end of its GPU work."""
        begin, self.time[tid] = self.time[tid], self.time[tid] + op.host
        end = int(getattr(self, f"_{op.what}")(op, tid) or 0)
        if op.label:
            self.export.push_pop(begin, self.time[tid], op.label, tid)
        return end

    def _called(self, tid: int, ns: int, name: str) -> int:
        self.correlation += 1
        start = self.time[tid]
        self.time[tid] += ns
        self.export.launch(start, start + ns, self.correlation, tid, name)
        return self.correlation

    def _work(self, ready: int, stream: int, ns: int, name: str, correlation: int) -> int:
        start = max(ready, self.held.pop(stream, 0))
        if stream in self.free:
            start = max(start, self.free[stream] + GAP)
        self.free[stream] = start + ns
        self.starts.append(start)
        self.export.kernel(start, start + ns, correlation, name=name, stream=stream)
        return start + ns

    def _launch(self, op: Op, tid: int) -> int:
        ns = op.call
        if self.room and len(self.starts) >= self.room:  # until the queue has room
            ns = max(self.starts[-self.room] - self.time[tid], 0) + op.call
        correlation = self._called(tid, ns, "cudaLaunchKernel_v7000")
        return self._work(self.time[tid] + LATENCY, op.stream, op.ns, op.name, correlation)

    def _graph(self, op: Op, tid: int) -> int:
        correlation, end = self._called(tid, op.call, "cudaGraphLaunch_v10000"), 0
        for ns in op.kernels:
            end = self._work(self.time[tid] + LATENCY, op.stream, ns, op.name, correlation)
        return end

    def _sync(self, op: Op, tid: int) -> None:
        if op.call == 0:  # returns at once
            self._called(tid, 0, "cudaDeviceSynchronize_v3020")
            return
        ready = max(self.time[tid], *self.free.values())
        self._called(tid, ready + WAKE - self.time[tid], "cudaDeviceSynchronize_v3020")

    def _copy(self, op: Op, tid: int) -> int:
        """To the host, which waits in the call."""
        start = max(self.time[tid] + CALL, self.free[op.stream] + GAP)
        self.free[op.stream] = start + op.ns
        call = start + op.ns + WAKE - self.time[tid]
        correlation = self._called(tid, call, "cudaMemcpyAsync_v3020")
        self.export.copy(start, start + op.ns, correlation, 2, 4096, stream=op.stream)
        return start + op.ns

    def _upload(self, op: Op, tid: int) -> int:
        """From pageable memory: the host waits for all work, prepares, and waits for the copy."""
        start = max(self.time[tid] + CALL, self.free.get(op.stream, 0)) + STAGING
        self.free[op.stream] = start + op.ns
        call = start + op.ns + WAKE - self.time[tid]
        correlation = self._called(tid, call, "cudaMemcpyAsync_v3020")
        self.export.copy(start, start + op.ns, correlation, 1, 1 << 20, stream=op.stream)
        return start + op.ns

    def _wait(self, op: Op, tid: int) -> None:
        self._called(tid, op.call, "cudaStreamWaitEvent_v3020")
        self.held[op.stream] = self.free[op.after] + EVENT

    def _load(self, op: Op, tid: int) -> None:
        start = self.time[tid]
        self.time[tid] += op.ns
        self.export.push_pop(start, self.time[tid], "data loading", tid)

    def _thread(self, op: Op, tid: int) -> int:
        self.time[2] = self.time[tid]
        end = max((self.run(each, 2) for each in op.ops), default=0)
        self.time[tid] = self.time[2]
        return end


def run(program: Program, room: int = 0, is_warm: bool = True) -> Run:
    """Run a program.

    room : launches that a queue holds, 0 for any number
    is_warm : whether work precedes the first step, which counts only then
    """
    result = Run(room=room)
    if is_warm:
        result.warm_up()
    for number, ops in enumerate(program):
        result.step(number, ops)
    return result


def mean_ns(found: Run, steps: list[dict[str, Any]]) -> int:
    """The mean length of the counted steps, given the `steps` of a replay."""
    own = [ns for ns, each in zip(found.lengths(), steps, strict=True) if each["is_counted"]]
    return round(sum(own) / len(own))
