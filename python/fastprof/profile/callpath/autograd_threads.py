"""Threads of the autograd engine: their work is backward, even outside of any range.

`loss.backward()` passes the graph to threads of the engine (`pt_autograd_0`, ...) and waits. Work
that these launch outside all ranges belongs to the ranges that the waiting thread has open.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from fastprof._core import _nest
from fastprof.model.arrays import Bools, Int32
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Recording

_NAME = re.compile(r"pt_autograd_\d+")


def find(recording: Recording, meanings: list[Meaning]) -> Bools:
    """[threads] Whether each thread belongs to the autograd engine.

    It does if its name says so, or if it runs backward nodes and no forward operators, which have
    sequence numbers above 0.
    """
    named = np.zeros(len(recording.threads), bool)
    names = recording.about.threads
    pids = recording.processes[recording.process_of_thread].tolist()
    for i, thread in enumerate(zip(pids, recording.threads.tolist(), strict=True)):
        named[i] = _NAME.search(names.get(thread, "")) is not None
    backward = np.array([m.backward for m in meanings], bool)
    if not backward.any():
        return named
    ranges = recording.ranges
    torch = np.array([m.kind == Kind.TORCH and not m.backward for m in meanings], bool)
    forward = torch[ranges.label] & (ranges.seq > 0)
    has_backward = np.bincount(ranges.thread[backward[ranges.label]], minlength=len(named)) > 0
    has_forward = np.bincount(ranges.thread[forward], minlength=len(named)) > 0
    return named | (has_backward & ~has_forward)


Frames = tuple[Int32, Int32, Int32, Int32]  # result of _nest.sweep


def inherit_frames(recording: Recording, is_engine: Bools, frames: Frames) -> tuple[Frames, Bools]:
    """Give launches of engine threads outside all ranges the frame of the waiting thread.

    The waiting thread is a thread of the same process, not of the engine, with an open range at
    that time. Of several, it is the one with the most launches, then the one with the smallest id.

    Returns
    -------
    The frames, and [launches] whether each inherited one.
    """
    launches, ranges = recording.launches, recording.ranges
    alone = np.flatnonzero((frames[3] < 0) & np.append(is_engine, False)[launches.thread])
    candidates = _candidates(recording, is_engine)
    inherits = np.zeros(len(launches), bool)
    if not len(alone) or not len(candidates):
        return frames, inherits
    # Crossing ranges get frames where calls are. So one sweep must include all calls.
    process = recording.process_of_thread
    queries = [
        alone[process[launches.thread[alone]] == process[thread]] for thread in candidates.tolist()
    ]
    row = np.concatenate([np.arange(len(launches)), *queries])
    threads = [
        np.full(len(rows), thread, np.int32)
        for rows, thread in zip(queries, candidates, strict=True)
    ]
    order = np.argsort(launches.start[row], kind="stable")
    thread = np.concatenate([launches.thread, *threads])
    parent, of_frame, of_range, frame_of_query = _nest.sweep(
        ranges.start, ranges.end, ranges.thread,
        launches.start[row[order]], thread[order], len(recording.threads), recording.name,
    )  # fmt: skip
    frame_of_point = np.empty(len(row), np.int32)
    frame_of_point[order] = frame_of_query
    found = frame_of_point[: len(launches)].copy()
    at = len(launches)
    for rows in queries:
        there = frame_of_point[at : at + len(rows)]
        at += len(rows)
        first = (found[rows] < 0) & (there >= 0)
        found[rows[first]] = there[first]
        inherits[rows[first]] = True
    return (parent, of_frame, of_range, found), inherits


def _candidates(recording: Recording, is_engine: Bools) -> npt.NDArray[np.intp]:
    """Threads that may wait for the engine, the likeliest first."""
    n = len(recording.threads)
    thread = recording.launches.thread
    launched = np.bincount(thread[thread >= 0], minlength=n)
    has_ranges = np.bincount(recording.ranges.thread, minlength=n) > 0
    candidates = np.flatnonzero(has_ranges & ~is_engine)
    return candidates[np.lexsort((recording.threads[candidates], -launched[candidates]))]
