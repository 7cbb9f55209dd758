"""What runs on the threads of the autograd engine: backward work, whether a range says so or not.

`loss.backward()` hands the graph to threads of the engine (`pt_autograd_0`, ...) and waits. What is
launched there outside all ranges belongs to the ranges that the waiting thread has open.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from fastprof import _nest
from fastprof.markers import Kind, Meaning
from fastprof.trace import Int32, Trace

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


def waiting_frames(trace: Trace, engine: Bools, frame_of_launch: Int32) -> Int32:
    """[launches] The frame that the waiting thread has open, for launches of the engine's threads
    that have no frame; -1 for all others.

    The waiting thread is the one of the process, none of the engine's, that has a range open at the
    time; of several the one that launched most, of these the one with the smallest number.
    """
    launches, ranges = trace.launches, trace.ranges
    found = np.full(len(launches), -1, np.int32)
    alone = np.flatnonzero((frame_of_launch < 0) & np.append(engine, False)[launches.thread])
    if not len(alone) or not len(ranges):
        return found
    n = len(trace.threads)
    process = trace.process_of_thread
    launched = np.bincount(launches.thread[launches.thread >= 0], minlength=n)
    has_ranges = np.bincount(ranges.thread, minlength=n) > 0
    candidates = np.flatnonzero(has_ranges & ~engine)
    order = np.lexsort((trace.threads[candidates], -launched[candidates]))
    for thread in candidates[order].tolist():
        open_ = alone[(found[alone] < 0) & (process[launches.thread[alone]] == process[thread])]
        if not len(open_):
            continue
        there = np.full(len(open_), thread, np.int32)
        *_, frames = _nest.sweep(
            ranges.start, ranges.end, ranges.thread, launches.start[open_], there, n, trace.name
        )
        found[open_] = frames
    return found


def roots(trace: Trace, meanings: list[Meaning], engine: Bools, root: Bools) -> Int32:
    """Rows of the ranges on threads of the engine that are inside no other and do not say
    themselves that they run backward: sums of gradients, hooks.

    root : [ranges] whether a range is inside no other
    """
    says = np.array([m.backward or m.recompute for m in meanings], bool)
    ranges = trace.ranges
    rows = np.flatnonzero(engine[ranges.thread] & root & ~says[ranges.label])
    return rows.astype(np.int32)
