"""When kernels were launched and when they started."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import Grouping
from fastprof.analysis.stats.gpu import of_kinds
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.instances import ApiCalls
from fastprof.profile.profile import Profile

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


def launch_times(profile: Profile, api: ApiCalls, rows: Bools | None = None) -> LaunchTimes:
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
