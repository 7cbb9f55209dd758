"""Tracks of steps, and of ranges that end on another thread than they started on."""

from __future__ import annotations

import numpy as np

from fastprof._core import _nest
from fastprof._core._packets import Fields
from fastprof._core._take import take
from fastprof.exports.events import GpuWork
from fastprof.exports.perfetto import proto
from fastprof.exports.perfetto.slices import Output, Slices, tracks_of_lanes
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NO_TIME
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["write_ended_elsewhere", "write_steps"]


def write_steps(
    steps: StepsOfKernels, work: GpuWork, output: Output, processes: dict[int, int]
) -> None:
    """Add a track of steps to each process; none if the capture is one step."""
    if steps.source == "none":
        return
    rows = np.flatnonzero(steps.start != NO_TIME)
    if work.rows is not None:
        rows = np.intersect1d(rows, work.of(steps.of_kernel))
    pids, which = np.unique(steps.pid[rows], return_inverse=True)
    names = [("steps", processes.get(pid, 0)) for pid in pids.tolist()]
    texts = [f"step {number}" for number in steps.number[rows].tolist()]
    _write(output, names, which.astype(np.int32), steps.start[rows], steps.end[rows], texts, "step")


def write_ended_elsewhere(profile: Profile, work: GpuWork, output: Output) -> None:
    """Add a track of the ranges that end on another thread; none if only some work is selected."""
    ranges = profile.ranges.ended_elsewhere
    if not len(ranges.start) or work.rows is not None:
        return
    which = np.zeros(len(ranges.start), np.int32)
    names = [("ranges across threads", 0)]
    texts = ["" if each is None else str(each) for each in ranges.text.array()]
    _write(output, names, which, ranges.start, ranges.end, texts, "range")


def _write(
    output: Output,
    names: list[tuple[str, int]],
    which: Int32,
    start: Int64,
    end: Int64,
    texts: list[str],
    category: str,
) -> None:
    order = _nest.order(start, end)
    if order is not None:
        start, end, which = start[order], end[order], take(which, order)
        texts = [texts[i] for i in order.tolist()]
    fields = Fields(len(start))
    fields.add_texts(
        np.arange(len(start), dtype=np.int32),
        [
            proto.number(10, output.texts.event(each))
            + proto.number(3, output.texts.category(category))
            for each in texts
        ],
    )
    slices = start, end, which
    track = tracks_of_lanes(output.tracks, names, [0] * len(names), slices, may_nest=False)
    Slices(start, end, track, fields).write_to(output)
