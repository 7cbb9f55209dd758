"""Messages of NCCL's own ranges in an export of Nsight Systems, by the kernels that they launch.

A call outside of a group launches its kernel itself. In a group, `ncclGroupEnd` launches the kernel
of all calls since the last kernel of the thread; their sizes add up.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import numpy as np

from fastprof._core._pools import alike
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values
from fastprof.ops.collectives.bandwidth import (
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    REDUCE_SCATTER,
    SCATTER,
    SEND_RECEIVE,
    kind_of,
)
from fastprof.ops.collectives.messages import Message
from fastprof.profile.host_events import HostEvents

_COMMUNICATOR: Final = "NCCL communicator ID"
_RANKS: Final = "No. of ranks"
_SIZES: Final = ("Message size [bytes]", "Bytes")  # since NCCL 2.13; before
# Sides whose size is that of the message times the number of ranks: NCCL counts elements per rank.
_TIMES_RANKS: Final = {
    ALL_GATHER: (False, True),
    GATHER: (False, True),
    REDUCE_SCATTER: (True, False),
    SCATTER: (True, False),
    ALL_TO_ALL: (True, True),
}
_NONE: Final = -1


class LaunchedBy(NamedTuple):
    """The calls of launches.

    Parameters
    ----------
    message : [launches] the `Message`; unknown without a call
    call : int32 [launches], equal for launches of one call or group; -1 without
    """

    message: Values
    call: Int32


class _Call(NamedTuple):
    """A call by its payload."""

    kind: str
    given: int
    got: int
    ranks: int
    group: str | None


def calls_of_launches(events: HostEvents, thread: Int32, start: Int64) -> LaunchedBy:
    """The NCCL calls that launched kernels.

    thread, start : [launches] index into `events.threads`, and time
    """
    distinct = _calls(events.name.values)
    is_call = np.array([*(each is not None for each in distinct), False])
    rows = np.flatnonzero(is_call[events.name.ids])
    kinds = list(dict.fromkeys(each.kind for each in distinct if each is not None))
    groups = list(dict.fromkeys((each.group, each.ranks) for each in distinct if each is not None))
    number = {each: i for i, each in enumerate(groups)}
    table = np.array(
        [
            (kinds.index(each.kind), number[each.group, each.ranks], each.given, each.got)
            if each is not None
            else (_NONE,) * 4
            for each in distinct
        ],
        np.int64,
    ).reshape(-1, 4)
    order = np.argsort(events.thread[rows], kind="stable")  # by thread, then by start
    rows = rows[order]
    calls = events.thread[rows], events.start[rows], events.end[rows]
    first, last = _windows(*calls, thread, start)
    known = np.flatnonzero(last > first)
    window = first[known], last[known]
    kind, group, given, got = table[events.name.ids[rows]].T
    numbers = [
        _same(kind, *window),
        _same(group, *window),
        _sum(given, *window),
        _sum(got, *window),
    ]
    combination, example = alike(numbers)
    found = [
        _message(kinds, groups, *(int(each[place]) for each in numbers))
        for place in example.tolist()
    ]
    message, call = np.full((2, len(thread)), _NONE, np.int32)
    message[known], call[known] = combination, alike([window[0]])[0]
    return LaunchedBy(Values(message, found), call)


def _calls(names: list[str]) -> list[_Call | None]:
    """The call of each payload; None if it is not that of a collective or a message."""
    payloads: list[dict[str, Any]] = [json.loads(name) for name in names]
    ranks = {each.get(_COMMUNICATOR): each[_RANKS] for each in payloads if _RANKS in each}
    return [_call(each, ranks) for each in payloads]


def _call(payload: dict[str, Any], ranks: dict[Any, int]) -> _Call | None:
    size = next((payload[key] for key in _SIZES if key in payload), None)
    kind = kind_of(payload["name"] or "")
    if kind is None or size is None:
        return None
    communicator = payload.get(_COMMUNICATOR)
    n = ranks.get(communicator, 0)
    group = None if communicator is None else f"{communicator:#x}"
    given, got = (
        size if not times else size * n if n else _NONE
        for times in _TIMES_RANKS.get(kind, (False, False))
    )
    if kind == SEND_RECEIVE:
        given, got = (size, 0) if "Send" in payload["name"] else (0, size)
    return _Call(kind, given, got, n, group)


def _windows(
    thread: Int32, start: Int64, end: Int64, of_launch: Int32, time: Int64
) -> tuple[Int64, Int64]:
    """The calls of each launch: rows from `first` to before `last`; equal if it has none.

    thread, start, end : of calls, ordered by thread and start
    of_launch, time : threads and times of launches
    """
    first, last = np.zeros((2, len(time)), np.int64)
    for each in np.unique(of_launch).tolist():
        begin, stop = np.searchsorted(thread, [each, each + 1])
        launches = np.flatnonzero(of_launch == each)
        launches = launches[np.argsort(time[launches], kind="stable")]
        begun = begin + np.searchsorted(start[begin:stop], time[launches], "right")
        is_inside = (begun > begin) & (np.append(end, 0)[begun - 1] >= time[launches])
        own = np.where(is_inside, begun - 1, np.append(begin, begun[:-1]))
        # Further kernels of a group are those of its first one.
        leads = np.maximum.accumulate(np.where(own < begun, np.arange(len(own)), 0))
        leads = np.where(is_inside[leads] & ~is_inside, np.arange(len(own)), leads)
        first[launches], last[launches] = own[leads], begun[leads]
    return first, last


def _same(values: Int64, first: Int64, last: Int64) -> Int64:
    """The value that all rows of each window share; -1 if they differ."""
    changes = np.cumsum(np.append(0, values[1:] != values[:-1]))
    return np.where(changes[first] == changes[last - 1], values[first], _NONE)


def _sum(values: Int64, first: Int64, last: Int64) -> Int64:
    """The sum over each window; -1 if a value is unknown."""
    total = np.append(0, np.cumsum(np.maximum(values, 0)))
    unknown = np.append(0, np.cumsum(values < 0))
    return np.where(unknown[last] == unknown[first], total[last] - total[first], _NONE)


def _message(
    kinds: list[str],
    groups: list[tuple[str | None, int]],
    kind: int,
    group: int,
    *sizes: int,
) -> Message:
    name, ranks = groups[group] if group >= 0 else (None, 0)
    known = kinds[kind] if kind >= 0 else None
    given, got = (size if known and size >= 0 else None for size in sizes)
    return Message(known, given, got, None, ranks or None, name)
