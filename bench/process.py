"""One process of a generated run: a step is recorded once, then repeated."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random

import numpy as np

from bench.call_template import CallTemplate
from bench.gpu_template import GpuTemplate, Row
from bench.identity import Identity
from bench.placement import Placement
from bench.range_template import RangeTemplate
from bench.recorder import Counter, Recorder
from bench.strings import StringTable
from bench.training import TrainingStep

FIRST_SEQ = 45_328
FIRST_OP_ID = 990_346
FIRST_CORRELATION = 100_000
SLOWEST_STEP = 1.1
WAKE_UP = 3_000
BEFORE_CAPTURE = -1


@dataclass(frozen=True)
class StepRows:
    """Rows of one step, ordered by start, with the *_COLUMNS of their tables; `end` in ns."""

    kernels: list[Row]
    copies: list[Row]
    calls: list[Row]
    ranges: list[Row]
    end: int


class Process:
    """A process that repeats one training step.

    Processes differ in their times. Their op ids, sequence numbers and correlation ids start at the
    same numbers, as in real runs.
    """

    def __init__(
        self, rank: int, n_processes: int, n_blocks: int, seed: int, strings: StringTable
    ) -> None:
        self.identity = Identity(rank)
        self.strings = strings
        self.random = np.random.default_rng([seed, rank])
        self.recorder = Recorder(Random(f"{seed}/{rank}"))
        TrainingStep(self.recorder, n_blocks, n_processes).run()
        self.length = max(self.recorder.clocks.values())
        self.launches = [work.launched for work in self.recorder.gpu_work if work.kernel]
        self.cut_after(len(self.launches))

    @property
    def n_kernels(self) -> int:
        """Number of kernels in a step."""
        return self.gpu.n_kernels

    def cut_after(self, n_kernels: int) -> None:
        """End the capture in the middle of a step, before the launch of kernel `n_kernels`."""
        recorder = self.recorder
        end = self.launches[n_kernels] if n_kernels < len(self.launches) else math.inf
        work = [item for item in recorder.gpu_work if item.launched < end]
        calls = [call for call in recorder.calls if call.start < end]
        ranges = [record for record in recorder.ranges if record.start < end]
        self.gpu = GpuTemplate(work, self.identity, self.strings)
        self.calls = CallTemplate(calls, self.identity, self.strings)
        self.ranges = RangeTemplate(ranges, self.identity, self.strings, end)

    def play(self, step: int, begin: int) -> StepRows:
        """The rows of a step that begins at `begin` ns; the host waits for the GPU at its end."""
        slowness = float(self.random.uniform(1, SLOWEST_STEP))
        first_correlation = FIRST_CORRELATION + step * (len(self.recorder.calls) + 1)
        placement = Placement(begin, slowness, self.recorder.waited_until)
        gpu = self.gpu.play(placement, first_correlation, self.random)
        waiting_from = begin + int(self.recorder.waited_until * slowness)
        placement = replace(placement, delay=max(0, gpu.end + WAKE_UP - waiting_from))
        counts = {
            Counter.STEP: step,
            Counter.SEQ: FIRST_SEQ + step * self.recorder.n_seq,
            Counter.OP_ID: FIRST_OP_ID + step * self.recorder.n_op_ids,
        }
        return StepRows(
            kernels=gpu.kernels,
            copies=gpu.copies,
            calls=self.calls.play(placement, first_correlation),
            ranges=self.ranges.play(placement, step, counts),
            end=begin + int(self.length * slowness) + placement.delay,
        )

    def play_before_capture(self, begin: int, n_kernels: int) -> StepRows:
        """The last kernels of the step before the capture, which begins after their launches."""
        rows = self.play(BEFORE_CAPTURE, begin)
        last = rows.kernels[len(rows.kernels) - n_kernels :]
        return StepRows(kernels=last, copies=[], calls=[], ranges=[], end=rows.end)
