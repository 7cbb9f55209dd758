"""Record the ranges, API calls and GPU work of one training step on a simulated clock.

Times are relative to the start of the step; sequence numbers, op ids and correlation ids to their
first values in the step. `process` repeats the record at any time of a run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from bench.kernel_catalog import KERNELS, Kernel

PUSH_POP, START_END, MARK = 59, 60, 34
STILL_OPEN = -1
TO_GPU, FROM_GPU = 1, 2
GPU_COPY_STREAM = 7


class Thread(IntEnum):
    """The threads of a training process."""

    MAIN = 0
    BACKWARD = 1
    LOADER = 2


class Counter(IntEnum):
    """The counters of a run that appear in range texts."""

    STEP = 0
    SEQ = 1
    OP_ID = 2


@dataclass(frozen=True)
class Text:
    """A range's text. Each `%d` in `form` stands for a counter plus an offset.

    A registered text is stored once, in the string table, has no numbers and is used unchanged.
    In other texts, `%` is written `%%`.
    """

    form: str
    numbers: tuple[tuple[Counter, int], ...] = ()
    registered: bool = False


@dataclass
class Range:
    """An NVTX range or mark; `end` is STILL_OPEN until it ends (a mark never does)."""

    start: int
    text: Text
    thread: Thread
    event_type: int = PUSH_POP
    end: int = STILL_OPEN
    end_thread: Thread | None = None
    domain: int = 0


@dataclass(frozen=True)
class ApiCall:
    """A call of the CUDA runtime or driver; `correlation` counts from 1 in each step."""

    start: int
    end: int
    thread: Thread
    name: str
    correlation: int


@dataclass(frozen=True)
class GpuWork:
    """A kernel or, with `kernel` None, a copy of `n_bytes` in the direction `copy_kind`."""

    launched: int
    correlation: int
    kernel: Kernel | None
    duration: int
    stream: int
    n_bytes: int = 0
    copy_kind: int = 0


@dataclass
class Recorder:
    """The record of a process. Times are int ns, strictly increasing on each thread."""

    random: random.Random
    ranges: list[Range] = field(default_factory=list)
    calls: list[ApiCall] = field(default_factory=list)
    gpu_work: list[GpuWork] = field(default_factory=list)
    n_seq: int = 0
    n_op_ids: int = 0
    thread: Thread = Thread.MAIN
    clocks: dict[Thread, int] = field(default_factory=lambda: dict.fromkeys(Thread, 0))
    waited_until: int = 0

    def pass_time(self, at_least: int, at_most: int) -> int:
        """Advance the clock of the current thread by a random time; return the new time, ns."""
        self.clocks[self.thread] += self.random.randint(at_least, at_most)
        return self.clocks[self.thread]

    @contextmanager
    def on(self, thread: Thread, at_once: bool = False) -> Iterator[None]:
        """Run on another thread while this one waits; `at_once`: while this one continues."""
        caller, self.thread = self.thread, thread
        if not at_once:
            self.clocks[thread] = max(self.clocks[thread], self.clocks[caller])
        yield
        self.thread = caller
        if not at_once:
            self.clocks[caller] = max(self.clocks[caller], self.clocks[thread])

    @contextmanager
    def push_range(self, text: Text, domain: int = 0) -> Iterator[None]:
        """A push/pop range around the `with` block."""
        start = self.pass_time(250, 700)
        record = Range(start, text, self.thread, domain=domain)
        self.ranges.append(record)
        yield
        record.end = self.pass_time(150, 500)

    def begin(self, text: Text) -> Range:
        """Start a start/end range; `finish` ends it, on any thread."""
        record = Range(self.pass_time(250, 700), text, self.thread, START_END)
        self.ranges.append(record)
        return record

    def finish(self, record: Range) -> None:
        record.end = self.pass_time(150, 500)
        record.end_thread = self.thread if self.thread != record.thread else None

    def mark(self, text: Text) -> None:
        self.ranges.append(Range(self.pass_time(250, 700), text, self.thread, MARK))

    def call(self, name: str, at_least: int, at_most: int) -> ApiCall:
        """An API call that takes between `at_least` and `at_most` ns."""
        start = self.pass_time(80, 400)
        end = self.pass_time(at_least, at_most)
        call = ApiCall(start, end, self.thread, name, len(self.calls) + 1)
        self.calls.append(call)
        return call

    def launch(self, key: str) -> None:
        """Launch a kernel of the catalogue, with the API calls that surround a launch."""
        kernel = KERNELS[key]
        if kernel.api.startswith("cu") and not kernel.api.startswith("cuda"):
            self.call("cuKernelGetAttribute", 250, 500)
        self.call("cudaStreamIsCapturing_v10000", 400, 1_200)
        launch = self.call(kernel.api, 3_200, 8_500)
        self.call("cudaGetLastError_v3020", 120, 260)
        self.gpu_work.append(
            GpuWork(launch.start, launch.correlation, kernel, kernel.duration, kernel.stream)
        )

    def copy(self, n_bytes: int, copy_kind: int) -> None:
        """Copy between host and GPU (kind 1 to the GPU, 2 from it), on the compute stream."""
        launch = self.call("cudaMemcpyAsync_v3020", 4_500, 12_000)
        duration = 1_100 + n_bytes // 24
        self.gpu_work.append(
            GpuWork(
                launch.start,
                launch.correlation,
                None,
                duration,
                GPU_COPY_STREAM,
                n_bytes,
                copy_kind,
            )
        )

    def wait_for_gpu(self) -> None:
        """Block until the GPU is idle; later times of the step move with that time."""
        self.waited_until = self.call("cudaStreamSynchronize_v3020", 2_000, 5_000).end
