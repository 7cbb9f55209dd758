"""When kernels were launched and when they started.

How much GPU work is launched and not yet started, over time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import Floats64, Grouping
from fastprof.analysis.stats.gpu import of_kinds
from fastprof.model.arrays import Bools, Int32, Int64, rows_by
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.instances import ApiCalls

# A kernel that starts this soon after its launch found an empty queue, ns.
STARVED: Final = 10_000


@dataclass(frozen=True, eq=False)
class LaunchTimes:
    """The launches of kernels and graphs.

    Parameters
    ----------
    call : int32 [kernels], row of `Profile.api`; -1 for other work, and if no launch is recorded
    begin, end : int64 [kernels], start and end of the call, ns
    start : int64 [kernels], start on the GPU, ns
    duration : int64 [kernels], on the GPU, ns, 0 if unknown
    n_calls : calls in `Profile.api`
    not_launched : kernels and graphs whose launch is not recorded
    """

    call: Int32
    begin: Int64
    end: Int64
    start: Int64
    duration: Int64
    n_calls: int
    not_launched: int

    def together(self) -> Grouping:
        """All kernels with a recorded launch as one group."""
        return Grouping(np.where(self.known, np.int32(0), np.int32(-1)), 1)

    @cached_property
    def known(self) -> Bools:
        """[kernels] Whether the launch is recorded."""
        return self.call >= 0

    @cached_property
    def is_early(self) -> Bools:
        """[kernels] Starts before its launch: the clocks of host and GPU differ."""
        return self.known & (self.start < self.begin)

    @cached_property
    def latency(self) -> Int64:
        """[kernels] From the start of the call to that of the kernel, ns; -1 unknown."""
        return np.where(self.known & ~self.is_early, self.start - self.begin, -1)

    @cached_property
    def queue(self) -> Int64:
        """[kernels] From the end of the call to the start of the kernel, ns; -1 if not after it."""
        wait = self.start - self.end
        return np.where(self.known & (wait > 0), wait, -1)

    @cached_property
    def is_starved(self) -> Bools:
        """[kernels] Starts less than STARVED after its call ends, or during it."""
        return self.known & ~self.is_early & (self.queue < STARVED)

    @cached_property
    def first(self) -> Int32:
        """[launches] The first kernel of each call, in order of the calls."""
        first = np.full(self.n_calls + 1, -1, np.int32)  # the last for kernels without a call
        first[self.call[::-1]] = np.arange(len(self.call) - 1, -1, -1, dtype=np.int32)
        return first[:-1][first[:-1] >= 0]

    @cached_property
    def host(self) -> Int64:
        """[launches] Host time of each call, ns."""
        return self.end[self.first] - self.begin[self.first]

    @cached_property
    def is_short(self) -> Bools:
        """[launches] Whether all kernels of the call together are shorter than the call."""
        gpu = np.bincount(self.call + 1, self.duration, self.n_calls + 1)[1:]
        return np.asarray(gpu[self.call[self.first]] < self.host)


def launch_times(profile: ProfileData, api: ApiCalls, rows: Bools | None = None) -> LaunchTimes:
    """The launches of some kernels.

    api : those of the profile
    rows : the kernels, bool [kernels]; None for all
    """
    wanted = of_kinds(profile, "kernel", "graph")
    if rows is not None:
        wanted &= rows
    call = np.where(wanted, api.of_kernel, np.int32(-1))
    end = take(api.end, call, NEVER)
    call[end == NEVER] = -1
    n_known = int(np.count_nonzero(call >= 0))
    return LaunchTimes(
        call=call,
        begin=take(api.start, call, NO_TIME),
        end=end,
        start=numbers(profile, "start"),
        duration=np.maximum(numbers(profile, "sil"), 0),
        n_calls=len(api),
        not_launched=int(np.count_nonzero(wanted)) - n_known,
    )


_BINS: Final = 40
_BARS: Final = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class QueueDepth:
    """The queue of a process on a GPU: kernels, graphs, copies and memsets.

    Parameters
    ----------
    pid, device : process and GPU, -1 if not recorded
    start, end : from the first launch to the last start of work, ns
    mean : mean number of waiting work over that time
    most : the largest number
    empty : ns without waiting work
    bins : float64 [bins], the mean number in equal parts of that time
    """

    pid: int
    device: int
    start: int
    end: int
    mean: float
    most: int
    empty: int
    bins: Floats64

    @property
    def empty_share(self) -> float:
        """The share of the time without waiting work."""
        return self.empty / max(self.end - self.start, 1)

    def sparkline(self) -> str:
        """The bins as bars: a blank below half a unit of work, the full height for the largest."""
        height = max(float(self.bins.max()), 1.0)
        levels = np.ceil(self.bins / height * len(_BARS)).astype(int) - 1
        blank = self.bins < 0.5
        return "".join(
            " " if none else _BARS[max(level, 0)]
            for none, level in zip(blank.tolist(), levels.tolist(), strict=True)
        )

    def facts(self) -> dict[str, Any]:
        """The values for JSON."""
        return {
            "pid": self.pid if self.pid >= 0 else None,
            "device": self.device if self.device >= 0 else None,
            "start_ns": self.start,
            "end_ns": self.end,
            "mean": self.mean,
            "max": self.most,
            "empty_share": self.empty_share,
            "depth": [round(each, 3) for each in self.bins.tolist()],
        }


def queue_depths(profile: ProfileData, api: ApiCalls) -> list[QueueDepth]:
    """The queue of each process and GPU with launches, in order of the GPU.

    api : the API calls of the profile
    """
    return sorted(_queues(profile, api), key=lambda queue: (queue.device, queue.pid))


def _queues(profile: ProfileData, api: ApiCalls) -> Iterator[QueueDepth]:
    launched = take(api.end, api.of_kernel, NEVER)
    known = np.flatnonzero(launched != NEVER)
    start, begin = numbers(profile, "start"), take(api.start, api.of_kernel)
    pid, device = (
        np.ascontiguousarray(numbers(profile, name), np.int64) for name in ("pid", "device")
    )
    ids, first = alike([pid, device])
    for queue, places in rows_by(ids[known]):
        rows, row = known[places], first[queue]
        whole = int(begin[rows].min()), int(start[rows].max())
        rows = rows[start[rows] > launched[rows]]
        yield _depth(int(pid[row]), int(device[row]), whole, launched[rows], start[rows])


def _depth(
    pid: int, device: int, window: tuple[int, int], joins: Int64, leaves: Int64
) -> QueueDepth:
    """The queue of work that waits from `joins` to `leaves`, which are ascending.

    window : its time; may end before it begins, if the clocks of host and GPU differ
    """
    begin, end = window[0], max(window)
    span = max(end - begin, 1)
    leaves, in_order = leaves - begin, np.sort(joins) - begin
    depth = np.arange(1, len(joins) + 1) - np.searchsorted(leaves, in_order, "right")
    edges = np.linspace(0, span, _BINS + 1)
    waited = _until(in_order, edges) - _until(leaves, edges)
    return QueueDepth(
        pid=pid,
        device=device,
        start=begin,
        end=end,
        mean=float((leaves.sum() - in_order.sum()) / span),
        most=int(depth.max(initial=0)),
        empty=span - _union(joins - begin, leaves),
        bins=np.maximum(np.diff(waited), 0) * (_BINS / span),
    )


def _union(start: Int64, end: Int64) -> int:
    """The length of the union of intervals, in order of end."""
    later = np.minimum.accumulate(start[::-1])[::-1]  # the first start of this and later intervals
    until = end.copy()
    np.minimum(until[:-1], later[1:], out=until[:-1])
    return int(np.maximum(until - start, 0).sum())


def _until(times: Int64, edges: Floats64) -> Floats64:
    """The time since each of some sorted times, summed, at each edge."""
    n = np.searchsorted(times, edges)
    since: Floats64 = n * edges - np.append(0.0, np.cumsum(times, dtype=np.float64))[n]
    return since
