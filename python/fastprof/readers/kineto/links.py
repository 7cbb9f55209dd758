"""Links recorded in a PyTorch-profiler trace: kernel to operator, backward to forward range."""

from __future__ import annotations

import numpy as np

from fastprof._core import _join
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import Kernels, Ranges
from fastprof.readers.kineto.event_columns import KinetoFile
from fastprof.readers.kineto.threads import Threads

_MAX_STEPS = 64  # ranges of other threads that may start in the same nanosecond


def ranges_of_kernels(file: KinetoFile, kernels: Kernels, row_of_event: Int32) -> Int32 | None:
    """The range with each kernel's `External id`, -1 for none; None if the file has no such ids.

    Traces of 2022 repeat the correlation id there, which identifies no range.
    """
    own = kernels.external_id
    if own is None or np.array_equal(own, kernels.correlation):
        return None
    of_event = file.tables["ranges"]["external_id"]
    rows = np.flatnonzero((of_event >= 0) & (row_of_event >= 0))
    nowhere = np.zeros(len(own), np.int32)
    join = _join.Join(nowhere, own)
    join.offer(np.zeros(len(rows), np.int32), of_event[rows])
    found = join.rows(nowhere, own)
    return np.append(row_of_event[rows], np.int32(-1))[found]


def forward_ranges(file: KinetoFile, threads: Threads, ranges: Ranges) -> Int32 | None:
    """The forward range of each backward range, from flow events of category fwdbwd.

    A flow starts with a forward range that has a sequence number and ends with a backward range; of
    several ranges that start at that time, the innermost. None if there are no flows.
    """
    flows = file.tables["flows"]
    if not len(flows["id"]):
        return None
    thread = threads.find(flows["pid"], flows["tid"])
    rows = _starting(ranges, thread, flows["time"])
    leaves, ends = (np.flatnonzero((flows["phase"] == ord(p)) & (rows >= 0)) for p in "sf")
    leaves = leaves[np.argsort(flows["id"][leaves], kind="stable")]
    ids = flows["id"][leaves]
    at = np.searchsorted(ids, flows["id"][ends])
    paired = at < len(ids)
    paired[paired] = ids[at[paired]] == flows["id"][ends[paired]]
    forward = np.full(len(ranges), -1, np.int32)
    forward[rows[ends[paired]]] = rows[leaves[at[paired]]]
    return forward


def _starting(ranges: Ranges, thread: Int32, time: Int64) -> Int32:
    """The innermost range with a sequence number that starts at a thread and time, -1 for none."""
    numbered = np.flatnonzero(ranges.seq >= 0).astype(np.int32)
    start, of_thread = ranges.start[numbered], ranges.thread[numbered]
    at = np.searchsorted(start, time, side="right") - 1
    found = np.full(len(time), -1, np.int32)
    for _ in range(_MAX_STEPS):
        open_ = np.flatnonzero((at >= 0) & (found < 0))
        open_ = open_[start[at[open_]] == time[open_]]
        if not len(open_):
            break
        fits = of_thread[at[open_]] == thread[open_]
        found[open_[fits]] = numbered[at[open_[fits]]]
        at[open_[~fits]] -= 1
        at[open_[fits]] = -1
    return found
