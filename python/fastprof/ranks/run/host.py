"""When the host launches the work of a rank: what holds up the GPU once it waits for others less.

The pieces of a chain end for two reasons: the work before has ended, or the host launched late. The
first is in the entries of the chain; here is the second: the latest launch up to each event, how
much later the piece ends than this launch allows, and when the host itself waited for the GPU.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core._held import Launched
from fastprof._system.classes import NamedTuple
from fastprof.analysis.host.states import HostStates, State
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NO_TIME
from fastprof.ranks.run.record import NO_SYNCS, Syncs

Floats = npt.NDArray[np.float64]

_LONGEST_LATENCY: Final = 30_000  # ns; work that begins later waits for something else
_MOST_SLACK: Final = np.iinfo(np.int32).max
# As in csrc/replay/fp_replay_calls.c: the shortest launch that waits for room in the queue, ns, and
# the length of a full queue, launches.
_BLOCKED_CALL: Final = 20_000
_FULL_QUEUE: Final = 500
_WAITS: Final = (State.SYNC, State.BLOCKING_COPY)


class ChainPieces(NamedTuple):
    """The pieces of a chain.

    Parameters
    ----------
    time : int64 [pieces], ns, the end
    blocked : int64 [pieces], ns, how long the piece waits for a call before its end
    work : int64 [pieces], ns: kernels and copies
    idle : int64 [pieces], ns: idle time not of the host's making
    of_host : int64 [pieces], ns: idle time of the host's making
    """

    time: Int64
    blocked: Int64
    work: Int64
    idle: Int64
    of_host: Int64

    @property
    def end(self) -> Int64:
        """int64 [pieces], ns, without the time in which the piece waits for a call."""
        return self.time - self.blocked

    @property
    def stretched(self) -> Floats:
        """float64 [pieces] What work is multiplied by, so that idle time that the host cannot
        shorten is spread over it."""
        share = np.ones(len(self.work))
        some = self.work > 0
        share[some] += self.idle[some] / self.work[some]
        return share


class Held(NamedTuple):
    """What holds up pieces: `launch`, `slack` and `rest` of `Chain`."""

    launch: Int64
    slack: Int32
    rest: Int32


def host_times(
    launched: Launched, pieces: ChainPieces, states: HostStates, ns: int
) -> tuple[Held, Syncs]:
    """What holds up each piece, and the waits of the host.

    ns : see `latency`
    """
    launch, thread, allowed, rest, *slow = launched.find(
        pieces.time, pieces.work, pieces.stretched, ns, _BLOCKED_CALL
    )
    # A step or a call ends a piece of idle time: the host is on its way to the next launch.
    lacks = (pieces.of_host > 0) & (launch == NO_TIME)
    launch = np.where(lacks, pieces.end, launch)
    # Launched longer ago than 2 s: by captured graphs, or while a debugger runs.
    has = (launch != NO_TIME) & (pieces.end - launch <= _MOST_SLACK // 2)
    allowed = np.where(has & (pieces.of_host == 0), allowed, pieces.end)
    slack = np.where(has, np.clip(pieces.end - allowed, 0, _MOST_SLACK), -1).astype(np.int32)
    events = np.flatnonzero(has)
    launch[events], thread[events] = _so_far(launch[events], thread[events])
    syncs = _syncs(launch[events], thread[events], _blocked(launched, *slow), states)
    held = Held(launch, slack, np.minimum(rest, _MOST_SLACK).astype(np.int32))
    return held, Syncs(events[syncs.event], syncs.ns, syncs.after)


def latency(start: Int64, launch: Int64) -> int:
    """ns from a launch to the begin of its work on a GPU that has nothing else to do.

    The median of work that begins soon after its launch.

    start, launch : int64 [work], ns, of work that begins while no other runs
    """
    late = (start - launch)[launch != NO_TIME]
    late = late[(late >= 0) & (late <= _LONGEST_LATENCY)]
    return int(np.median(late)) if len(late) else 0


def _so_far(launch: Int64, thread: Int32) -> tuple[Int64, Int32]:
    """The latest launch up to each event, and the thread that made it."""
    latest = np.maximum.accumulate(launch) if len(launch) else launch
    is_new = launch == latest
    place = np.maximum.accumulate(np.where(is_new & (thread >= 0), np.arange(len(launch)), 0))
    return latest, thread[place] if len(place) else thread


class _Blocked(NamedTuple):
    """Launches that wait for room in the queue of launches, in order.

    Parameters
    ----------
    launch, done : int64 [launches], ns
    """

    launch: Int64
    done: Int64


def _blocked(launched: Launched, launch: Int64, done: Int64) -> _Blocked:
    """Those that take long while the work of many launches has not begun.

    launch, done : int64 [slow launches], ns
    """
    order = np.argsort(launch, kind="stable")
    launch, done = launch[order], done[order]
    if len(launch):
        rows = np.flatnonzero(launched.waiting(launch) >= _FULL_QUEUE)
        launch, done = launch[rows], done[rows]
    return _Blocked(launch, done)


def _syncs(launch: Int64, thread: Int32, blocked: _Blocked, states: HostStates) -> Syncs:
    """The waits of the host for the GPU between launches; `event` is a row of these."""
    if len(launch) < 2:
        return NO_SYNCS
    begin, end = launch[:-1], launch[1:]
    ns, last = np.zeros(len(end), np.int64), np.full(len(end), NO_TIME)
    for number, threads in enumerate((thread[1:], thread[:-1])):
        own = threads if not number else np.where(threads == thread[1:], np.int32(-1), threads)
        inside = states.covered(own, begin, end)[:, list(_WAITS)].sum(axis=1)
        rows = np.flatnonzero(inside)
        ns += inside
        for state in _WAITS:
            _, until = states.events[state].last(own[rows], end[rows])
            last[rows] = np.maximum(last[rows], np.minimum(until, end[rows]))
    # Of launches in [begin, end).
    bounds = np.searchsorted(blocked.launch, launch)
    total = np.concatenate([[0], np.cumsum(blocked.done - blocked.launch)])
    full = np.flatnonzero(np.diff(bounds))
    ns[full] += np.diff(total[bounds])[full]
    until = np.minimum(blocked.done[bounds[full + 1] - 1], end[full])
    last[full] = np.maximum(last[full], until)
    rows = np.flatnonzero((ns > 0) & (last > begin))
    return Syncs(rows + 1, np.minimum(ns, end - begin)[rows], end[rows] - last[rows])
