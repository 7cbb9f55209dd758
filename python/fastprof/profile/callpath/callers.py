"""The ranges of a thread that waits, around the work of the thread that it waits for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof._core import _nest
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import Recording
from fastprof.profile.callpath.autograd_threads import Launchers, Waited

Frames = tuple[Int32, Int32, Int32, Int32]  # result of _nest.sweep


class Inherited(NamedTuple):
    """Frames with those that threads inherit.

    Parameters
    ----------
    frames : those of `_nest.sweep`; a launch outside all ranges of a thread that another waits for
        has the frame of the waiting one
    in_engine : [launches] whether a thread of the engine made it outside all ranges of its own
    caller : [frames] of an outermost range on a thread that another waits for, the frame of the
        user's range that the waiting one had open; -1 for others. None if none has one
    """

    frames: Frames
    in_engine: Bools
    caller: Int32 | None


def inherit(
    recording: Recording,
    meanings: list[Meaning],
    waited: Waited,
    launchers: Launchers | None,
    frames: Frames,
) -> Inherited:
    """Give work of threads that others wait for the ranges of the waiting thread.

    If several threads may wait, it is the one that launched nothing for longest around that time,
    twice as long as each other; otherwise none.
    """
    launches = recording.launches
    is_alone = frames[3] < 0
    in_engine = is_alone & np.append(waited.is_engine, False)[launches.thread]
    if launchers is None or not waited.callers:
        return Inherited(frames, in_engine, None)
    rows, caller = [], []
    for own, others in waited.callers.items():
        mine = launchers.rows(own)
        mine = mine[is_alone[mine]]
        rows.append(mine)
        caller.append(_silent(launchers, others, launches.start[mine]))
    row, of = np.concatenate(rows), np.concatenate(caller)
    if (of >= 0).any():
        frames = _swept_again(recording, row[of >= 0], of[of >= 0], frames)
    return Inherited(
        frames, in_engine, _callers_of_roots(recording, meanings, waited, launchers, frames)
    )


def _swept_again(recording: Recording, row: Int64, caller: Int32, frames: Frames) -> Frames:
    """The frames, with the frame of another thread for some launches.

    Crossing ranges get frames where calls are. So one sweep must include all calls.
    """
    launches, ranges = recording.launches, recording.ranges
    n = len(launches)
    rows = np.concatenate([np.arange(n), row])
    order = np.argsort(launches.start[rows], kind="stable")
    thread = np.concatenate([launches.thread, caller])[order]
    parent, of_frame, of_range, frame_of_query = _nest.sweep(
        ranges.start, ranges.end, ranges.thread,
        launches.start[rows[order]], thread, len(recording.threads), recording.name,
    )  # fmt: skip
    frame_of_point = np.empty(len(rows), np.int32)
    frame_of_point[order] = frame_of_query
    of_launch = frame_of_point[:n].copy()
    of_launch[row] = frame_of_point[n:]
    return parent, of_frame, of_range, of_launch


def _callers_of_roots(
    recording: Recording,
    meanings: list[Meaning],
    waited: Waited,
    launchers: Launchers,
    frames: Frames,
) -> Int32 | None:
    """`Inherited.caller`."""
    parent, range_of_frame, frame_of_range, _ = frames
    ranges = recording.ranges
    n_own = len(ranges) - recording.appended.ranges
    is_user = np.array([m.kind == Kind.USER for m in meanings], bool)
    is_waited = np.zeros(len(recording.threads), bool)
    is_waited[list(waited.callers)] = True
    users = np.flatnonzero(is_user[ranges.label[:n_own]] & ~is_waited[ranges.thread[:n_own]])
    roots = np.flatnonzero(parent < 0)
    roots = roots[is_waited[ranges.thread[range_of_frame[roots]]]]
    if not len(users) or not len(roots):
        return None
    time, of = ranges.start[range_of_frame[roots]], ranges.thread[range_of_frame[roots]]
    caller = np.full(len(roots), -1, np.int32)
    for own, others in waited.callers.items():
        mine = np.flatnonzero(of == own)
        caller[mine] = _silent(launchers, others, time[mine])
    order = np.argsort(time, kind="stable")
    _, range_of_user, _, user = _nest.sweep(
        ranges.start[users], ranges.end[users], ranges.thread[users],
        time[order], caller[order], len(recording.threads), recording.name,
    )  # fmt: skip
    inside = np.flatnonzero(user >= 0)
    frame = frame_of_range[users[range_of_user[user[inside]]]]
    roots = roots[order[inside]]
    precedes = frame < roots  # parents precede their children
    found = np.full(len(parent), -1, np.int32)
    found[roots[precedes]] = frame[precedes]
    return found if precedes.any() else None


def _silent(launchers: Launchers, threads: list[int], time: Int64) -> Int32:
    """The thread that waits at each time, -1 if unknown."""
    if len(threads) == 1:
        return np.full(len(time), threads[0], np.int32)
    all_of = launchers.recording.launches.start
    ends = all_of[[0, -1]] if len(all_of) else np.zeros(2, np.int64)
    gaps = np.stack([_gap(launchers.start(thread), time, ends) for thread in threads])
    order = np.argsort(gaps, axis=0, kind="stable")
    longest, second = (np.take_along_axis(gaps, order[[k]], 0)[0] for k in (-1, -2))
    which = np.array(threads, np.int32)[order[-1]]
    silent: Int32 = np.where(longest >= 2 * second, which, np.int32(-1))
    return silent


def _gap(start: Int64, time: Int64, ends: Int64) -> Int64:
    """The time from the launch before each time to the one after it.

    ends : the first and last launch of the trace, which count too
    """
    place = np.searchsorted(start, time)
    known = np.concatenate([ends[:1], start, ends[1:]])
    gap: Int64 = known[place + 1] - known[place]
    return gap
