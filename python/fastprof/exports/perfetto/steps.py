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
from fastprof.model.columns import Values
from fastprof.model.trace import NO_TIME
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels


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
    slices = steps.start[rows], steps.end[rows], which.astype(np.int32)
    _write(output, names, slices, Values(np.arange(len(rows), dtype=np.int32), texts), "step")


def write_ended_elsewhere(profile: Profile, work: GpuWork, output: Output) -> None:
    """Add a track of the ranges that end on another thread; none if only some work is selected."""
    ranges = profile.ranges.ended_elsewhere
    if not len(ranges.start) or work.rows is not None:
        return
    which = np.zeros(len(ranges.start), np.int32)
    names = [("ranges across threads", 0)]
    _write(output, names, (ranges.start, ranges.end, which), ranges.text, "range")


def _write(
    output: Output,
    names: list[tuple[str, int]],
    slices: tuple[Int64, Int64, Int32],
    texts: Values,
    category: str,
) -> None:
    """Add tracks of slices that do not nest.

    names : name and parent of each track
    slices : start, end, and index into `names`
    texts : [slices]
    """
    start, end, which = slices
    ids, order = texts.ids, _nest.order(start, end)
    if order is not None:
        start, end = take(start, order), take(end, order)
        which, ids = take(which, order), take(ids, order)
    of_category = proto.number(3, output.texts.category(category))
    fields = Fields(len(start))
    fields.add_texts(
        ids,
        [proto.number(10, output.texts.event(str(each))) + of_category for each in texts.values],
    )
    track = tracks_of_lanes(
        output.tracks, names, [0] * len(names), (start, end, which), may_nest=False
    )
    Slices(start, end, track, fields).write_to(output)
