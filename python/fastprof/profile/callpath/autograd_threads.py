"""What runs on the threads of the autograd engine: backward work, whether a range says so or not.

`loss.backward()` hands the graph to threads of the engine (`pt_autograd_0`, ...) and waits. What is
launched there outside all ranges belongs to the ranges that the waiting thread has open.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from fastprof._core import _nest
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Int32, Trace

Bools = npt.NDArray[np.bool_]

_NAME = re.compile(r"pt_autograd_\d+")


def find(trace: Trace, meanings: list[Meaning]) -> Bools:
    """[threads] Whether each is a thread of the autograd engine.

    It is one by its name, or if backward nodes run on it and no operator of a forward pass does:
    those have sequence numbers above 0.
    """
    named = np.zeros(len(trace.threads), bool)
    names = trace.about.threads
    pids = trace.processes[trace.process_of_thread].tolist()
    for i, thread in enumerate(zip(pids, trace.threads.tolist(), strict=True)):
        named[i] = _NAME.search(names.get(thread, "")) is not None
    backward = np.array([m.backward for m in meanings], bool)
    if not backward.any():
        return named
    ranges = trace.ranges
    torch = np.array([m.kind == Kind.TORCH and not m.backward for m in meanings], bool)
    forward = torch[ranges.label] & (ranges.seq > 0)
    has_backward = np.bincount(ranges.thread[backward[ranges.label]], minlength=len(named)) > 0
    has_forward = np.bincount(ranges.thread[forward], minlength=len(named)) > 0
    return named | (has_backward & ~has_forward)


Nesting = tuple[Int32, Int32, Int32, Int32]  # what _nest.sweep returns


def borrow(trace: Trace, engine: Bools, nesting: Nesting) -> tuple[Nesting, Bools]:
    """Give launches of the engine's threads that are in no range the waiting thread's frame.

    The waiting thread is the one of the process, none of the engine's, that has a range open at the
    time; of several the one that launched most, of these the one with the smallest number.

    Returns
    -------
    The nesting with those frames, and [launches] which have one.
    """
    launches, ranges = trace.launches, trace.ranges
    alone = np.flatnonzero((nesting[3] < 0) & np.append(engine, False)[launches.thread])
    candidates = _candidates(trace, engine)
    borrowed = np.zeros(len(launches), bool)
    if not len(alone) or not len(candidates):
        return nesting, borrowed
    # Frames may depend on where a sweep is asked: one sweep for the launches and in their places.
    process = trace.process_of_thread
    asked = [
        alone[process[launches.thread[alone]] == process[thread]] for thread in candidates.tolist()
    ]
    row = np.concatenate([np.arange(len(launches)), *asked])
    threads = [
        np.full(len(rows), thread, np.int32) for rows, thread in zip(asked, candidates, strict=True)
    ]
    order = np.argsort(launches.start[row], kind="stable")
    thread = np.concatenate([launches.thread, *threads])
    parent, of_frame, of_range, frames = _nest.sweep(
        ranges.start, ranges.end, ranges.thread,
        launches.start[row[order]], thread[order], len(trace.threads), trace.name,
    )  # fmt: skip
    frame_of_point = np.empty(len(row), np.int32)
    frame_of_point[order] = frames
    found = frame_of_point[: len(launches)].copy()
    at = len(launches)
    for rows in asked:
        there = frame_of_point[at : at + len(rows)]
        at += len(rows)
        first = (found[rows] < 0) & (there >= 0)
        found[rows[first]] = there[first]
        borrowed[rows[first]] = True
    return (parent, of_frame, of_range, found), borrowed


def _candidates(trace: Trace, engine: Bools) -> npt.NDArray[np.intp]:
    """Threads that may wait for the engine, the likeliest first."""
    n = len(trace.threads)
    thread = trace.launches.thread
    launched = np.bincount(thread[thread >= 0], minlength=n)
    has_ranges = np.bincount(trace.ranges.thread, minlength=n) > 0
    candidates = np.flatnonzero(has_ranges & ~engine)
    return candidates[np.lexsort((trace.threads[candidates], -launched[candidates]))]


def roots(trace: Trace, meanings: list[Meaning], engine: Bools, root: Bools) -> Int32:
    """Rows of the ranges on threads of the engine that are inside no other and do not say
    themselves that they run backward: sums of gradients, hooks.

    root : [ranges] whether a range is inside no other
    """
    says = np.array([m.backward or m.recompute for m in meanings], bool)
    ranges = trace.ranges
    rows = np.flatnonzero(engine[ranges.thread] & root & ~says[ranges.label])
    return rows.astype(np.int32)
