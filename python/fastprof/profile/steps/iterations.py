"""Steps that a serving engine marks: its iterations."""

from __future__ import annotations

from collections import Counter

import numpy as np

from fastprof._core._take import distinct, take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int64, rows_by
from fastprof.model.markers import Meaning
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.trace import NEVER, Trace
from fastprof.profile.serving.names import is_iteration, iteration_of
from fastprof.profile.steps.ranges import is_outermost, launching_threads


class MarkedIterations(NamedTuple):
    """Iterations with work, in order of start, and what the name of each tells.

    A step lasts from the start of its range to that of the next: engines sample and copy tokens
    after the range. `closed` has the end of each range, NEVER if it was not closed.
    """

    steps: ProfilerSteps
    labels: list[str]
    closed: Int64

    @property
    def stages(self) -> list[str]:
        """The stage of each."""
        return [told.stage for label in self.labels if (told := iteration_of(label)) is not None]

    @property
    def description(self) -> str:
        """In a line: `12 iterations of the engine (1 prefill, 11 decode)`."""
        counts = Counter(self.stages)
        stages = ", ".join(f"{count} {stage}" for stage, count in counts.items())
        n, pids = len(self.labels), len(set(self.steps.pid.tolist()))
        where = f" in {pids} processes" if pids > 1 else ""
        return f"{n} iteration{'s' if n > 1 else ''}{where} of the engine ({stages})"


def find_iterations(trace: Trace, meanings: list[Meaning]) -> MarkedIterations | None:
    """The outermost ranges of iterations on threads that launch work; None without any."""
    ranges = trace.user_ranges
    used, place = distinct(ranges.label, len(meanings))
    fits = np.array([number >= 0 and is_iteration(meanings[number]) for number in used], bool)
    rows = np.flatnonzero(fits[place] & launching_threads(trace)[ranges.thread])
    if not len(rows):
        return None
    pid = take(trace.processes, take(trace.process_of_thread, ranges.thread[rows])).astype(np.int64)
    keep = is_outermost(ranges.start[rows], ranges.end[rows], pid)
    rows, pid = rows[keep], pid[keep]
    start, closed = ranges.start[rows], ranges.end[rows]
    end, number = np.full(len(rows), NEVER, np.int64), np.ones(len(rows), np.int64)
    for _, own in rows_by(pid):
        end[own[:-1]] = start[own[1:]]
        number[own] = np.arange(1, len(own) + 1)
    labels = [meanings[label].name for label in ranges.label[rows].tolist()]
    return MarkedIterations(ProfilerSteps(number, start, end, pid), labels, closed)
