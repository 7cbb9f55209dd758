"""When the host launches the work of a rank: what holds up the GPU once it waits for others less.

The pieces of a chain end for two reasons: the work before has ended, or the host launched late. The
first is in the entries of the chain; here is the second: the latest launch up to each event, how
much later the piece ends than this launch allows, and when the host itself waited for the GPU.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.host.states import HostStates, State
from fastprof.model.arrays import Int32, Int64
from fastprof.model.trace import NO_TIME
from fastprof.ranks.run.record import NO_SYNCS, Syncs

_LONGEST_LATENCY: Final = 30_000  # ns; work that begins later waits for something else
_MOST_SLACK: Final = np.iinfo(np.int32).max
# As in csrc/replay/fp_replay_calls.c: the shortest launch that waits for room in the queue, ns, and
# the length of a full queue, launches.
_BLOCKED_CALL: Final = 20_000
_FULL_QUEUE: Final = 500
_WAITS: Final = (State.SYNC, State.BLOCKING_COPY)


class Launches(NamedTuple):
    """The launches of work and calls, in order of piece.

    Parameters
    ----------
    piece : int64 [launches], that in which the work begins
    launch, start : int64 [launches], ns; NO_TIME for an unknown launch
    rest : int64 [launches], ns of work from the begin of this one to the end of the piece
    thread : int32 [launches], that launches, -1 if unknown
    done : int64 [launches], ns, when the call that launches returns, NO_TIME if unknown
    """

    piece: Int64
    launch: Int64
    start: Int64
    rest: Int64
    thread: Int32
    done: Int64


class Pieces(NamedTuple):
    """The pieces of a chain.

    Parameters
    ----------
    end : int64 [pieces], ns, without the time in which the piece waits for a call
    work, idle : int64 [pieces], ns: of kernels and copies; of idle time not of the host's making
    of_host : int64 [pieces], ns: idle time of the host's making
    """

    end: Int64
    work: Int64
    idle: Int64
    of_host: Int64


class Held(NamedTuple):
    """What holds up pieces: `launch`, `slack` and `rest` of `Chain`."""

    launch: Int64
    slack: Int32
    rest: Int32


def host_times(
    launches: Launches, pieces: Pieces, states: HostStates, ns: int
) -> tuple[Held, Syncs]:
    """What holds up each piece, and the waits of the host.

    ns : see `latency`
    """
    n = len(pieces.end)
    known = launches.launch != NO_TIME
    launches = Launches._make(column[known] for column in launches)
    lacks = np.flatnonzero(pieces.of_host > 0)
    lacks = lacks[np.isin(lacks, launches.piece, invert=True)]
    # A step or a call ends a piece of idle time: the host is on its way to the next launch.
    launch, thread = np.full(n, NO_TIME), np.full(n, -1, np.int32)
    launch[lacks] = pieces.end[lacks]
    allowed, rest = np.full(n, NO_TIME), np.zeros(n, np.int64)
    if len(launches.piece):
        first = np.flatnonzero(np.append(True, launches.piece[1:] != launches.piece[:-1]))
        piece = launches.piece[first]
        launch[piece] = np.maximum.reduceat(launches.launch, first)
        is_latest = launches.launch == launch[launches.piece]
        thread[launches.piece[is_latest]] = launches.thread[is_latest]
        begin, after = _allowed(launches, pieces, ns)
        allowed[piece] = np.maximum.reduceat(begin + after, first)
        is_last = begin + after == allowed[launches.piece]
        rest[launches.piece[is_last]] = after[is_last]
    # Launched longer ago than 2 s: by captured graphs, or while a debugger runs.
    has = (launch != NO_TIME) & (pieces.end - launch <= _MOST_SLACK // 2)
    allowed = np.where(has & (pieces.of_host == 0), allowed, pieces.end)
    slack = np.where(has, np.clip(pieces.end - allowed, 0, _MOST_SLACK), -1).astype(np.int32)
    events = np.flatnonzero(has)
    launch[events], thread[events] = _so_far(launch[events], thread[events])
    syncs = _syncs(launch[events], thread[events], _blocked(launches), states)
    held = Held(launch, slack, np.minimum(rest, _MOST_SLACK).astype(np.int32))
    return held, Syncs(events[syncs.event], syncs.ns, syncs.after)


def _allowed(launches: Launches, pieces: Pieces, ns: int) -> tuple[Int64, Int64]:
    """When work could begin, did it only follow its launch, and the rest of its piece, ns.

    ns : see `latency`
    """
    piece = launches.piece
    begin = np.minimum(launches.launch + ns, launches.start)
    # Idle time that the host cannot shorten is spread over the work of the piece.
    share = np.ones(len(pieces.work))
    some = pieces.work > 0
    share[some] += pieces.idle[some] / pieces.work[some]
    return begin, np.rint(launches.rest * share[piece]).astype(np.int64)


def latency(start: Int64, launch: Int64, before: Int64) -> int:
    """ns from a launch to the begin of its work on a GPU that has nothing else to do.

    The median of work that begins soon after its launch, while no other runs.

    Parameters
    ----------
    start, launch : int64 [work], ns
    before : int64 [work], ns, when all work before it has ended
    """
    late = (start - launch)[(launch != NO_TIME) & (start > before)]
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


def _blocked(launches: Launches) -> _Blocked:
    """Those that take long while the work of many launches has not begun."""
    rows = np.flatnonzero(launches.done - launches.launch >= _BLOCKED_CALL)
    if len(rows):
        launched, begun = (
            np.searchsorted(np.sort(times), launches.launch[rows])
            for times in (launches.launch, launches.start)
        )
        rows = rows[launched - begun >= _FULL_QUEUE]
    rows = rows[np.argsort(launches.launch[rows], kind="stable")]
    return _Blocked(launches.launch[rows], launches.done[rows])


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
