"""The message of every communication kernel: collective, sizes, type and group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastprof import ops
from fastprof._core import _path
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.model.arrays import Int32
from fastprof.model.columns import Column, RepeatedInts, Values, unknown
from fastprof.model.markers import Meaning
from fastprof.model.trace import NO_TIME
from fastprof.ops.collectives import messages
from fastprof.profile import gpu_work
from fastprof.profile.host_events import HostEvents
from fastprof.profile.lookups import Lookups
from fastprof.profile.nccl_ranges import LaunchedBy, calls_of_launches

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
    """

    message: Values
    call: Int32

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

    read_payloads : reads the ranges with payloads; called for exports of Nsight Systems whose
        operators record no sizes
    """
    names, _ = lookups.names
    rows = np.flatnonzero(names.fits(lambda name: ops.classify(name).kind == COMMUNICATION))
    n, meanings = len(lookups.frame), lookups.attribution.meanings
    if not len(rows):
        nothing = unknown(n)
        return Messages(nothing, nothing.ids)
    frame, label = _frames(lookups, rows)
    pair, first = alike([label, names.ids[rows]])
    found = [
        _message(None if i < 0 else meanings[i], names.values[j])
        for i, j in zip(label[first].tolist(), names.ids[rows[first]].tolist(), strict=True)
    ]
    of_rows = Values(pair, found)
    groups = np.full(len(rows), -1, np.int32)
    if lookups.trace.about.format == "nsys" and any(each.size is None for each in found):
        own = _launched(lookups, rows, read_payloads())
        of_rows, groups = _joined(of_rows, own.message), own.call
    of_rows = of_rows.mapped(lambda message: message)
    ids, call = np.full((2, n), -1, np.int32)
    ids[rows], call[rows] = of_rows.ids, _calls(lookups, rows, frame, groups)
    return Messages(Values(ids, of_rows.values), call)


def _launched(lookups: Lookups, rows: Rows, events: HostEvents) -> LaunchedBy:
    """The NCCL calls of kernels that a call launched, not a graph."""
    trace = lookups.trace
    thread = lookups.thread[rows]
    thread[gpu_work.of_graphs(trace)[0][rows]] = -1
    start = take(trace.launches.start, trace.kernels.launch[rows], NO_TIME)
    return calls_of_launches(events, thread, start)


def _joined(left: Values, right: Values) -> Values:
    """The messages of both, where `left` has priority."""
    pair, first = alike([left.ids, right.ids])
    rows = first.tolist()
    found = [messages.joined(left.values[left.ids[i]], right.at(i)) for i in rows]
    return Values(pair, found)


def _frames(lookups: Lookups, rows: Rows) -> tuple[Int32, Int32]:
    """The range that describes the message best, of those around each launch: frame and label."""
    attribution = lookups.attribution
    ranks = np.array([_rank(meaning) for meaning in attribution.meanings], np.uint8)
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
    found = messages.call_message(meaning.call)
    if found is None:
        return _path.NO_RANK
    return _CALL if found.size is None else _SIZED_CALL


def _message(meaning: Meaning | None, kernel: str) -> messages.Message:
    record = None if meaning is None else meaning.collective
    if record is not None:
        found: messages.Message | None = messages.recorded_message(record)
    else:
        found = messages.call_message(None if meaning is None else meaning.call, kernel)
    return messages.kernel_message(kernel, found)
