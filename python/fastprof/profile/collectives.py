"""The message of every communication kernel, also by NCCL's own ranges in Nsight Systems.

A call outside of a group launches its kernel itself. In a group, `ncclGroupEnd` launches the kernel
of all calls since the last kernel of the thread; their sizes add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _path
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Column, RepeatedInts, Values, unknown
from fastprof.model.markers import Meaning
from fastprof.model.trace import NO_TIME
from fastprof.ops.collectives import messages
from fastprof.ops.collectives.messages import (
    ALL_GATHER,
    ALL_TO_ALL,
    GATHER,
    REDUCE_SCATTER,
    SCATTER,
    SEND_RECEIVE,
    Message,
    kind_of,
)
from fastprof.profile import gpu_work
from fastprof.profile.annotated import notes_of
from fastprof.profile.instances import HostEvents
from fastprof.profile.lookups import Lookups

COMMUNICATION: Final = "communication"  # the class of kernels

Rows: TypeAlias = npt.NDArray[np.intp]

# The sources of a message, the best first: the profiler's record, the operator's arguments.
_SIZED_RECORD, _SIZED_CALL, _RECORD, _CALL = range(4)


class Messages(NamedTuple):
    """The calls of collectives.

    Parameters
    ----------
    message : [kernels] the `ops.collectives.messages.Message` of communication kernels
    call : int32 [kernels], equal for the kernels of one call; -1: no communication
    number : int32 [kernels], of the call in its process group, -1 if not recorded
    """

    message: Values
    call: Int32
    number: Int32

    def column(self, name: str) -> Column:
        """A column of `COLUMNS`."""
        values = self.message.mapped(_PARTS[name])
        if name not in _NUMBERS:
            return values
        return RepeatedInts(values.ids + np.int32(1), np.array([-1, *values.values], np.int64))


_PARTS: Final[dict[str, Callable[[messages.Message], Any]]] = {
    "collective": lambda message: message.kind,
    "process_group": lambda message: message.group,
    "group_size": lambda message: message.ranks,
    "message_bytes": lambda message: message.size,
    "message_type": lambda message: message.dtype,
}
_NUMBERS: Final = ("group_size", "message_bytes")
COLUMNS: Final = tuple(_PARTS)


def messages_of(lookups: Lookups, read_payloads: Callable[[], HostEvents]) -> Messages:
    """The call and message of each communication kernel; linear in kernels and frames.

    The message is that of the profiler's record of the call, of the operator's arguments, or of
    NCCL's ranges, whichever has sizes; without any, that of the kernel's name.

    read_payloads : reads the ranges with payloads; called for exports of Nsight Systems and
        databases of rocprofv3 whose operators lack sizes or groups
    """
    names, _ = lookups.names
    rows = np.flatnonzero(names.fits(lambda name: ops.classify(name).kind == COMMUNICATION))
    n, meanings = len(lookups.frame), lookups.attribution.meanings
    if not len(rows):
        nothing = unknown(n)
        return Messages(nothing, nothing.ids, nothing.ids)
    frame, label = _frames(lookups, rows)
    pair, first = alike([label, names.ids[rows]])
    results = [
        _message(None if i < 0 else meanings[i], names.values[j])
        for i, j in zip(label[first].tolist(), names.ids[rows[first]].tolist(), strict=True)
    ]
    of_rows = Values(pair, results)
    if lookups.trace.kernels.configs.annotation is not None:
        of_rows = _annotated(of_rows, notes_of(lookups.trace).take(rows))
    groups = np.full(len(rows), -1, np.int32)
    if lookups.trace.about.format in _WITH_PAYLOADS and any(
        message.size is None or message.group is None for message in results
    ):
        own = _launched(lookups, rows, read_payloads())
        of_rows, groups = _joined(of_rows, own.message), own.call
    of_rows = of_rows.mapped(lambda message: message)
    ids, call, number = np.full((3, n), -1, np.int32)
    ids[rows], call[rows] = of_rows.ids, _calls(lookups, rows, frame, groups)
    of_range = take(lookups.attribution.frame_range, frame)
    number[rows] = lookups.trace.message_numbers.numbers_of(of_range)
    return Messages(Values(ids, of_rows.values), call, number)


def _annotated(of_rows: Values, notes: Values) -> Values:
    """The messages of kernels of graphs by the annotations of their nodes, and what these lack."""
    pair, first = alike([of_rows.ids, notes.ids])
    results = []
    for row in first.tolist():
        note, message = notes.at(row), of_rows.at(row)
        if note is not None and note.collective is not None:
            message = messages.joined(messages.recorded_message(note.collective), message)
        results.append(message)
    return Values(pair, results)


def _launched(lookups: Lookups, rows: Rows, events: HostEvents) -> LaunchedBy:
    """The NCCL calls of kernels that a call launched, not a graph."""
    trace = lookups.trace
    thread = lookups.thread[rows]
    thread[gpu_work.in_graphs(trace)[0][rows]] = -1
    start = take(trace.launches.start, trace.kernels.launch[rows], NO_TIME)
    return calls_of_launches(events, thread, start)


def _joined(left: Values, right: Values) -> Values:
    """The messages of both, where `left` has priority."""
    pair, first = alike([left.ids, right.ids])
    rows = first.tolist()
    results = [messages.joined(left.values[left.ids[i]], right.at(i)) for i in rows]
    return Values(pair, results)


def _frames(lookups: Lookups, rows: Rows) -> tuple[Int32, Int32]:
    """The range that describes the message best, of those around each launch: frame and label."""
    attribution = lookups.attribution
    ranks = attribution.ranks_around_work(_rank)
    labels = take(attribution.ranges.label, attribution.frame_range)
    best = take(_path.best(attribution.frame_parent, labels, ranks), lookups.frame[rows])
    return best, take(labels, best)


def _calls(lookups: Lookups, rows: Rows, frame: Int32, group: Int32) -> Int32:
    """The number of each kernel's call; kernels without a range are calls of their own.

    group : the NCCL group or call that launched the kernel, -1 if unknown
    """
    replay = lookups.attribution.replay_of_kernel
    launch = np.full(len(rows), -1, np.int32) if replay is None else replay[rows]
    alone = (frame < 0) & (group < 0)
    own = np.where(alone, np.arange(len(rows), dtype=np.int32), np.int32(-1))
    return alike([frame, launch, np.where(frame < 0, group, np.int32(-1)), own])[0]


def _rank(meaning: Meaning) -> int:
    if meaning.collective is not None:
        return (
            _RECORD if messages.recorded_message(meaning.collective).size is None else _SIZED_RECORD
        )
    message = messages.call_message(meaning.call)
    if message is None:
        return _path.NO_RANK
    return _CALL if message.size is None else _SIZED_CALL


def _message(meaning: Meaning | None, kernel: str) -> messages.Message:
    record = None if meaning is None else meaning.collective
    if record is not None:
        message: messages.Message | None = messages.recorded_message(record)
    else:
        message = messages.call_message(None if meaning is None else meaning.call, kernel)
    return messages.kernel_message(kernel, message)


_COMMUNICATOR: Final = "NCCL communicator ID"
_RANKS: Final = "No. of ranks"
_PEER: Final = "Peer rank"
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
_WITH_PAYLOADS: Final = ("nsys", "rocpd")


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
    peer: int


def calls_of_launches(events: HostEvents, thread: Int32, start: Int64) -> LaunchedBy:
    """The NCCL calls that launched kernels.

    thread, start : [launches] index into `events.threads`, and time
    """
    distinct = _nccl_calls(events.name.values)
    is_call = np.array([*(call is not None for call in distinct), False])
    rows = np.flatnonzero(is_call[events.name.ids])
    kinds = list(dict.fromkeys(call.kind for call in distinct if call is not None))
    groups = list(dict.fromkeys((call.group, call.ranks) for call in distinct if call is not None))
    number = {group: i for i, group in enumerate(groups)}
    table = np.array(
        [
            (
                kinds.index(call.kind),
                number[call.group, call.ranks],
                call.given,
                call.got,
                call.peer,
            )
            if call is not None
            else (_NONE,) * 5
            for call in distinct
        ],
        np.int64,
    ).reshape(-1, 5)
    order = np.argsort(events.thread[rows], kind="stable")  # by thread, then by start
    rows = rows[order]
    calls = events.thread[rows], events.start[rows], events.end[rows]
    first, last = _windows(*calls, thread, start)
    known = np.flatnonzero(last > first)
    window = first[known], last[known]
    kind, group, given, got, peer = table[events.name.ids[rows]].T
    numbers = [
        _same(kind, *window),
        _same(group, *window),
        _sum(given, *window),
        _sum(got, *window),
        _same(peer, *window),
    ]
    combination, example = alike(numbers)
    results = [
        _nccl_message(kinds, groups, *(int(number[place]) for number in numbers))
        for place in example.tolist()
    ]
    message, call = np.full((2, len(thread)), _NONE, np.int32)
    message[known], call[known] = combination, alike([window[0]])[0]
    return LaunchedBy(Values(message, results), call)


def _nccl_calls(names: list[str]) -> list[_Call | None]:
    """The call of each payload; None if it is not that of a collective or a message."""
    import json

    payloads: list[dict[str, Any]] = [json.loads(name) for name in names]
    ranks = {
        payload.get(_COMMUNICATOR): payload[_RANKS] for payload in payloads if _RANKS in payload
    }
    return [_call(payload, ranks) for payload in payloads]


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
    peer = payload.get(_PEER, _NONE)
    return _Call(kind, given, got, n, group, peer if isinstance(peer, int) else _NONE)


def _windows(
    thread: Int32, start: Int64, end: Int64, of_launch: Int32, time: Int64
) -> tuple[Int64, Int64]:
    """The calls of each launch: rows from `first` to before `last`; equal if it has none.

    thread, start, end : of calls, ordered by thread and start
    of_launch, time : threads and times of launches
    """
    # One number orders by thread, then by time.
    _, rank = np.unique(np.concatenate([start, time]), return_inverse=True)
    n = len(rank) + 1
    place = thread * np.int64(n) + rank[: len(start)]
    place_of_launch = of_launch * np.int64(n) + rank[len(start) :]
    launches = np.argsort(place_of_launch, kind="stable")
    threads = of_launch[launches]
    begin = np.searchsorted(thread, threads)
    begun = np.searchsorted(place, place_of_launch[launches], "right")
    is_inside = (begun > begin) & (np.append(end, 0)[begun - 1] >= time[launches])
    number = np.arange(len(launches))
    is_first = np.diff(threads, prepend=-2) != 0  # of its thread
    before = np.where(is_first, begin, np.append(0, begun[:-1]))
    own = np.where(is_inside, begun - 1, before)
    # Further kernels of a group are those of its first one.
    leads = np.maximum.accumulate(np.where(is_first | (own < begun), number, 0))
    leads = np.where(is_inside[leads] & ~is_inside, number, leads)
    first, last = np.zeros((2, len(time)), np.int64)
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


def _nccl_message(
    kinds: list[str],
    groups: list[tuple[str | None, int]],
    kind: int,
    group: int,
    given: int,
    got: int,
    peer: int,
) -> Message:
    name, ranks = groups[group] if group >= 0 else (None, 0)
    known = kinds[kind] if kind >= 0 else None
    sizes = [size if known and size >= 0 else None for size in (given, got)]
    message = Message(known, sizes[0], sizes[1], None, ranks or None, name)
    if peer < 0 or known != SEND_RECEIVE:
        return message
    # A rank of the communicator; of the rank itself, no range tells it.
    return replace(message, target=peer) if given else replace(message, source=peer)
