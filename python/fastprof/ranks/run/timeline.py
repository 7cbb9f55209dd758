"""Profile -> RankRecord: the calls of collectives, and the chain of all other work between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _chain
from fastprof._core._groups import sum_where
from fastprof._core._held import Launched
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import cells_of
from fastprof.analysis.gpu_work import COMMUNICATION, Gaps, GpuWork, owners, work_of_device
from fastprof.analysis.gpu_work import COPY as COPIES
from fastprof.analysis.grouping import group, numbers
from fastprof.analysis.idle.causes import Cause, Host, Parts, Split, split
from fastprof.analysis.idle.gaps import SHORTEST, places
from fastprof.analysis.keys import key_of
from fastprof.analysis.steps.windows import windows_of
from fastprof.model.arrays import Bools, Int32, Int64, UInt8, unique
from fastprof.model.columns import Values
from fastprof.model.trace import NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.ranks.files import TraceFile
from fastprof.ranks.run.host import ChainPieces, host_times, latency
from fastprof.ranks.run.record import (
    ARRIVED,
    BOUNDARY,
    COMPUTE,
    COPY,
    FIRST_CAUSE,
    HOST_KINDS,
    WAITED,
    Calls,
    CallSignature,
    Chain,
    Label,
    RankRecord,
    RankSteps,
    Syncs,
)

_LOCATED: Final = 100_000  # ns; the places of shorter gaps are not told
# Causes of a gap in which the next work is launched in time, or the host waits for the GPU.
_OF_GPU: Final = (
    Cause.DEPENDENCY, Cause.LATENCY, Cause.SYNC, Cause.BLOCKING_COPY, Cause.UNKNOWN,
    Cause.PAGE_FAULT,
)  # fmt: skip
_QUEUED: Final = (Cause.DEPENDENCY, Cause.LATENCY)  # the next work is launched before it begins
_FOLLOWS_NS: Final = 20_000  # from the end of a call to the start of one that waits for it
_PENDING: Final = 8  # calls examined for the one that work waits for


def records_of(
    profile: ProfileData, source: TraceFile, steps: str | None = None
) -> list[RankRecord]:
    """The ranks of a profile: a process with each GPU on which it communicates.

    A process without communication has one rank, on the GPU with most of its work. Reads the file
    again for host events.

    steps : what marks the steps, see `Profile.find_steps`
    """
    if "start" not in profile.names or not len(profile):
        return []
    result = profile.find_steps(steps)
    lanes = _lanes(profile)
    shared = _Shared(profile, result)
    distributed = profile.about.distributed
    return [
        RankRecord(
            source=source,
            format=profile.about.format,
            rank=None if distributed is None else distributed.rank,
            world_size=None if distributed is None else distributed.world_size,
            place=place,
            n_places=len(lanes),
            pid=pid,
            device=device,
            gpu=profile.about.gpus.get(device, ""),
            n_gpus=len(profile.about.gpus),
            warnings=list(profile.warnings) if not place else [],
            **shared.record(pid, device, work),
        )
        for place, (pid, device, work) in enumerate(lanes)
    ]


def _lanes(profile: ProfileData) -> list[tuple[int, int, GpuWork]]:
    """pid, GPU and work of each rank, in order of GPU."""
    pids, result = owners(profile), []
    works = work_of_device(profile)
    for device in works:
        work = works[device]
        own = pids[work.rows]
        for pid in own[:1].tolist() if (own == own[:1]).all() else unique(own).tolist():
            rows = np.flatnonzero(own == pid)
            result.append((pid, device, work if len(rows) == len(own) else work.take(rows)))
    communicates = {
        i for i, (_, _, work) in enumerate(result) if (work.kind == COMMUNICATION).any()
    }
    best: dict[int, int] = {}
    for i, (pid, _, work) in enumerate(result):
        if pid not in best or len(work) > len(result[best[pid]][2]):
            best[pid] = i
    talking = {result[i][0] for i in communicates}
    wanted = communicates | {i for pid, i in best.items() if pid not in talking}
    return [result[i] for i in sorted(wanted)]


class _Shared:
    """What all ranks of a profile use."""

    def __init__(self, profile: ProfileData, steps: StepsOfKernels) -> None:
        self.profile, self.steps = profile, steps
        self.windows = windows_of(profile, steps)
        self.host = Host(profile)
        self.messages = profile.source.messages
        cells = cells_of(profile)
        kernel, op = key_of(cells, "kernel"), key_of(cells, "op")
        names = Values(
            np.where(op.ids >= 0, op.ids, kernel.ids + np.int32(len(op.values))),
            [*op.values, *kernel.values],
        )
        keys = [names, *(key_of(cells, name) for name in ("layer", "shape", "line", "dir"))]
        groups = group(keys, len(cells))
        self.label_of_kernel: Int32 = take(groups.ids, cells.of_kernel)
        self.texts = [
            tuple(str(text) if (text := key.at(int(row))) is not None else "" for key in keys)
            for row in groups.first
        ]

    def record(self, pid: int, device: int, work: GpuWork) -> dict[str, Any]:
        """The columns of a rank."""
        calls, signatures, rows, launch = self._calls(work)
        steps = self._steps(pid, device)
        channel = np.array([one.channel for one in signatures] or [0], np.int32)[calls.signature]
        chain, syncs, labels = _ChainMaker(self, work, calls, rows, launch, channel, steps).chain()
        return {
            "calls": calls, "signatures": signatures, "chain": chain, "syncs": syncs,
            "labels": labels, "steps": steps,
        }  # fmt: skip

    def _steps(self, pid: int, device: int) -> RankSteps:
        windows = self.windows
        lanes = windows.lanes
        own = np.flatnonzero((lanes.device == device) & ((lanes.pid == pid) | (lanes.pid < 0)))
        rows = np.flatnonzero(windows.is_known & np.isin(windows.lane, own))
        rows = rows[np.argsort(windows.start[rows], kind="stable")]
        return RankSteps(
            self.steps.source,
            self.steps.number[windows.step[rows]],
            windows.start[rows],
            windows.end[rows],
            windows.is_counted[rows],
        )

    def _calls(self, work: GpuWork) -> tuple[Calls, list[CallSignature], Int32, Int64]:
        """The calls of a rank, their signatures, first kernels, and when they were launched."""
        profile, is_comm = self.profile, work.kind == COMMUNICATION
        rows, start, end = work.rows[is_comm], work.start[is_comm], work.end[is_comm]
        launch = numbers(profile, "launch_start")[rows]
        stream = numbers(profile, "stream")[rows]
        _, first, call = np.unique(self.messages.call[rows], return_index=True, return_inverse=True)
        n = len(first)
        last = np.zeros(n, np.int64)
        np.maximum.at(last, call, end)
        order = np.argsort(start[first], kind="stable")
        first, last = first[order], last[order]
        channel = np.unique(stream, return_inverse=True)[1][first] if len(rows) else stream[:0]
        ids, signatures = self._signatures(rows[first], channel)
        seq = self.messages.number[rows[first]]
        return Calls(start[first], last, ids, seq), signatures, rows[first], launch[first]

    def _signatures(
        self, rows: Int32, channel: npt.NDArray[Any]
    ) -> tuple[Int32, list[CallSignature]]:
        """The signature of the call of each kernel."""
        profile, message = self.profile, self.messages.message
        distributed = profile.about.distributed
        groups = {} if distributed is None else distributed.groups
        label = self.label_of_kernel[rows]
        ids, first = alike([message.ids[rows], np.ascontiguousarray(channel), label])
        columns = (array[first].tolist() for array in (message.ids[rows], channel, label))
        result = []
        for number, stream, text in zip(*columns, strict=True):
            own = message.values[number]
            op, layer, _, line, _ = self.texts[text]
            name = own.group or ""
            members = own.members or groups.get(name.split(" ")[0], ())
            result.append(
                CallSignature(
                    kind=own.kind or op,
                    size=-1 if own.size is None else own.size,
                    dtype=own.dtype or "",
                    group=name,
                    members=tuple(members),
                    n_ranks=own.ranks or len(members) or -1,
                    channel=stream,
                    source=-1 if own.source is None else own.source,
                    target=-1 if own.target is None else own.target,
                    op=op,
                    layer=layer,
                    line=line,
                )
            )
        return ids, result


class _Pieces(NamedTuple):
    """Pieces of gaps in the chain, cut at the ends and arrivals of calls and at steps.

    Parameters
    ----------
    start, end : int64 [pieces], ns
    before, after : int32 [pieces], kernel rows, -1 for none
    gap_end : int64 [pieces], the end of the gap
    """

    start: Int64
    end: Int64
    before: Int32
    after: Int32
    gap_end: Int64

    def gaps(self, rows: Int64) -> Gaps:
        """Some pieces as gaps."""
        return Gaps(self.start[rows], self.end[rows], self.before[rows], self.after[rows])


class _Examined(NamedTuple):
    """The pieces whose causes are examined.

    Parameters
    ----------
    rows : int64 [gaps], of the pieces, ascending
    split : Split of these gaps
    """

    rows: Int64
    split: Split

    def take(self, rows: Int64) -> Split:
        """The causes of some of these pieces, without their parts."""
        place, split = np.searchsorted(self.rows, rows), self.split
        none = Parts(split.other[:0], split.main[:0], split.ns[:0])
        return Split(split.main[place], split.ns[place], split.other[place], none, split.n_late)


class _ChainMaker:
    """Computes the chain of one rank."""

    def __init__(
        self,
        shared: _Shared,
        work: GpuWork,
        calls: Calls,
        rows: Int32,
        launch: Int64,
        channel: Int32,
        steps: RankSteps,
    ) -> None:
        self._shared, self._calls, self._steps = shared, calls, steps
        self._call_rows = rows
        self._work = work.take(np.flatnonzero(work.kind != COMMUNICATION))
        starts = [array[:1] for array in (self._work.start, calls.start) if len(array)]
        ends = [array.max(keepdims=True) for array in (self._work.end, calls.end) if len(array)]
        starts.append(steps.start[:1])
        self._begin = int(np.concatenate(starts).min())
        self._end = int(np.concatenate(ends).max())
        self._channel, self._launch = channel, launch
        # Work of other streams may end later: when all work so far has ended.
        self._until = np.maximum.accumulate(self._work.end) if len(self._work) else self._work.end
        self._arrival = self._arrivals(launch)

    def _arrivals(self, launch: Int64) -> Int64:
        """When each call could have started: launched, with the work launched before it done.

        Its stream may run it later, after the calls before it.
        """
        work, start = self._work, self._calls.start
        if not len(work):
            return start
        launched, done = self._launched, self._until
        if (launched[1:] < launched[:-1]).any():
            order = np.argsort(launched, kind="stable")
            launched, done = launched[order], np.maximum.accumulate(work.end[order])
        place = np.searchsorted(launched, launch)
        ready = np.where(place > 0, done[np.maximum(place - 1, 0)], self._begin)
        arrival = np.minimum(start, np.maximum(ready, launch))
        arrival = np.where(launch == NO_TIME, start, arrival)
        # Without work between them, a call may follow the end of one that the work waits for.
        follows = self._follows_another(launch) & (start - arrival > _FOLLOWS_NS)
        arrival = np.where(follows, start, arrival)
        # What holds up a call holds up those launched after it.
        order = np.argsort(launch, kind="stable")
        arrival[order] = np.maximum.accumulate(arrival[order])
        return np.maximum(np.minimum(arrival, start), self._begin)

    def _follows_another(self, launch: Int64) -> Bools:
        """Whether a call starts just after one of another stream, launched before it, ends."""
        calls = self._calls
        order = np.argsort(calls.end, kind="stable")
        place = np.searchsorted(calls.end[order], calls.start, "right") - 1
        other = order[np.maximum(place, 0)]
        result: Bools = (
            (place >= 0)
            & (calls.start - calls.end[other] <= _FOLLOWS_NS)
            & (self._channel[other] != self._channel)
            & (launch[other] < launch)
        )
        return result

    def chain(self) -> tuple[Chain, Syncs, list[Label]]:
        """The chain, the waits of the host, and the labels."""
        pieces = self._pieces()
        examined = self._examined(pieces)
        gap, cause, ns, target = self._causes(pieces, examined)
        waited = target >= 0
        blocked = np.zeros(len(self._calls), np.int64)
        np.add.at(blocked, target[waited], ns[waited])
        time, kind, call = self._events(np.flatnonzero(blocked))
        labels, ids = self._idle_labels(pieces, examined, gap[~waited], cause[~waited])
        place = np.searchsorted(time, pieces.end[gap[~waited]], "left")
        blocked = np.where(kind == WAITED, np.append(blocked, 0)[call], 0)
        order = np.argsort(place, kind="stable")
        idle = place[order].astype(np.int32), ids[order], ns[~waited][order]
        work = self._work
        entries = _chain.entries(
            (work.start, work.end, take(self._shared.label_of_kernel, work.rows)),
            idle,
            self._begin,
            time,
            len(labels),
        )
        launched = self._launches(kind, call)
        ends = ChainPieces(
            time, blocked, launched.sums(time), *_idle_time(len(time), *idle, labels)
        )
        held, syncs = host_times(launched, ends, self._shared.host.states, self._latency)
        chain = Chain(
            self._begin,
            time,
            kind,
            call,
            blocked,
            np.where(held.slack >= 0, time - held.launch, 0).astype(np.int32),
            held.slack,
            held.rest,
            *entries,
        )
        return chain, syncs, labels

    def _launches(self, kind: UInt8, call: Int32) -> Launched:
        """The launches of work, and of the calls that arrive at events."""
        work, profile = self._work, self._shared.profile
        events = np.flatnonzero(kind == ARRIVED)
        arrived = call[events]
        launches = numbers(profile, "launch_start"), profile.api.of_kernel
        return Launched(
            (work.start, work.end, work.rows),
            self._begin,
            (events, self._arrival[arrived], self._call_rows[arrived]),
            (*launches, profile.api.thread, profile.api.end),
        )

    def _pieces(self) -> _Pieces:
        """The gaps between work other than communication, in pieces."""
        work, calls, gaps = self._work, self._calls, self._gaps
        start, end = self._before(gaps), work.start[gaps]
        before, after = take(work.rows, _latest(self._until, gaps)), work.rows[gaps]
        done = int(self._until[-1]) if len(work) else self._begin
        if done < self._end:
            latest = _latest(self._until, np.array([len(work)]))
            start, end = np.append(start, done), np.append(end, self._end)
            before = np.append(before, take(work.rows, latest))
            after = np.append(after, np.int32(-1))
        cuts = unique(
            np.concatenate(
                [self._arrival, calls.start, calls.end, self._steps.start, self._steps.end]
            )
        )
        first, last = np.searchsorted(cuts, start, "right"), np.searchsorted(cuts, end, "left")
        n = last - first + 1
        gap = np.repeat(np.arange(len(start)), n)
        number = np.arange(len(gap)) - np.repeat(np.cumsum(n) - n, n)
        cut = np.append(cuts, 0)
        low = np.where(number > 0, cut[first[gap] + number - 1], start[gap])
        high = np.where(number < n[gap] - 1, cut[first[gap] + number], end[gap])
        return _Pieces(low, high, before[gap], after[gap], end[gap])

    def _examined(self, pieces: _Pieces) -> _Examined:
        """The pieces that are long enough, divided among their causes."""
        is_long = (pieces.end - pieces.start >= SHORTEST) & (pieces.after >= 0)
        rows = np.flatnonzero(is_long)
        return _Examined(rows, split(pieces.gaps(rows), self._shared.host))

    def _causes(self, pieces: _Pieces, examined: _Examined) -> tuple[Int64, UInt8, Int64, Int32]:
        """Parts of pieces: piece, cause, ns, and the call that the work waits for, -1 for none."""
        length, parts = pieces.end - pieces.start, examined.split.parts
        is_other = np.ones(len(length), bool)
        is_other[examined.rows] = False
        other = np.flatnonzero(is_other)
        of_others = np.where(pieces.after[other] >= 0, Cause.SHORT, Cause.UNKNOWN)
        piece = np.concatenate([examined.rows[parts.gap], other])
        cause = np.concatenate([parts.cause, of_others.astype(np.uint8)])
        ns = np.concatenate([parts.ns, length[other]])
        pending = self._pending(pieces)
        target = np.where(np.isin(cause, _OF_GPU), pending[piece], np.int32(-1))
        # Work that is launched as the call ends begins when it does because of its launch.
        queued = np.flatnonzero((target >= 0) & np.isin(cause, _QUEUED))
        after = pieces.after[piece[queued]]
        launched = take(numbers(self._shared.profile, "launch_start"), after, NO_TIME)
        late = launched > self._calls.end[target[queued]] - self._latency // 2
        target[queued[late]] = -1
        return piece, cause, ns, target.astype(np.int32)

    @computed_once
    def _launched(self) -> Int64:
        """[work] When each was launched, NO_TIME if unknown."""
        return take(numbers(self._shared.profile, "launch_start"), self._work.rows)

    @computed_once
    def _gaps(self) -> Int64:
        """The rows of work that begins while no other runs."""
        first = self._work.start[:1] > self._begin
        return np.flatnonzero(np.append(first, self._work.start[1:] > self._until[:-1]))

    def _before(self, rows: Int64) -> Int64:
        """When all work before some has ended."""
        return np.where(rows > 0, self._until[rows - 1], self._begin)

    @computed_once
    def _latency(self) -> int:
        """ns, see `latency`."""
        return latency(self._work.start[self._gaps], self._launched[self._gaps])

    def _pending(self, pieces: _Pieces) -> Int32:
        """The call that work waits for in each piece, -1 for none.

        The last one to end in a gap lets the work go on, from its arrival. Before that, it is the
        one that ends last before this arrival: the host waited for it, or its stream.
        """
        calls = self._calls
        result = np.full(len(pieces.start), -1, np.int32)
        if not len(calls):
            return result
        order = np.argsort(calls.end, kind="stable")
        ends, arrival = calls.end[order], self._arrival[order]
        limit = pieces.gap_end
        for _ in range(_PENDING):
            place = np.searchsorted(ends, limit, "right") - 1
            is_pending = (place >= 0) & (np.append(ends, 0)[place] > pieces.start)
            fits = is_pending & (result < 0) & (np.append(arrival, 0)[place] <= pieces.start)
            result[fits] = order[place[fits]]
            limit = np.where(is_pending, np.append(arrival, 0)[place], limit)
        return result

    def _events(self, waited: Int64) -> tuple[Int64, UInt8, Int32]:
        """Time, kind and call of each event, in order."""
        calls, steps = self._calls, self._steps
        bounds = unique(np.concatenate([steps.start, steps.end, [self._end]]))
        bounds = bounds[(bounds > self._begin) & (bounds <= self._end)]
        if not len(bounds) or bounds[-1] < self._end:
            bounds = np.append(bounds, self._end)
        time = np.concatenate([calls.end[waited], bounds, self._arrival])
        kind = np.repeat(
            np.array([WAITED, BOUNDARY, ARRIVED], np.uint8),
            [len(waited), len(bounds), len(calls)],
        )
        call = np.concatenate([waited, np.full(len(bounds), -1), np.arange(len(calls))])
        order = np.lexsort((np.append(self._launch, 0)[call], kind, time))
        return time[order], kind[order], call[order].astype(np.int32)

    def _idle_labels(
        self, pieces: _Pieces, examined: _Examined, piece: Int64, cause: UInt8
    ) -> tuple[list[Label], Int32]:
        """All labels, and that of each part of idle time; long ones have their place."""
        shared = self._shared
        is_copy = np.zeros(len(shared.texts), bool)
        copies = self._work.rows[self._work.kind == COPIES]
        is_copy[shared.label_of_kernel[copies]] = True
        labels = [
            Label(COPY if copy else COMPUTE, *text)
            for copy, text in zip(is_copy.tolist(), shared.texts, strict=True)
        ]
        long = np.flatnonzero((pieces.end - pieces.start >= _LOCATED) & (pieces.after >= 0))
        where = _places(shared.host, pieces.gaps(long), examined.take(long))
        place = np.full(len(pieces.start), -1, np.int32)
        place[long] = where.ids
        at = place[piece]
        ids, first = alike([cause.astype(np.int32), at])
        ids = ids + np.int32(len(labels))
        for row in first.tolist():
            layer, line = ("", "") if at[row] < 0 else where.values[at[row]]
            labels.append(Label(FIRST_CAUSE + int(cause[row]), "", layer, "", line, ""))
        return labels, ids


def _places(host: Host, gaps: Gaps, causes: Split) -> Values:
    """(layer, line) of where the host is in some gaps."""
    columns = places(gaps, causes, host)
    layer, line = columns["layer"], columns["line"]
    keys = list(zip(layer.ids.tolist(), line.ids.tolist(), strict=True))
    result: dict[tuple[int, int], int] = {}
    for key in keys:
        if key != (-1, -1):
            result.setdefault(key, len(result))
    ids = np.array([result.get(key, -1) for key in keys], np.int32)
    texts = [
        (layer.values[i] if i >= 0 else "", line.values[j] if j >= 0 else "") for i, j in result
    ]
    return Values(ids, texts)


def _idle_time(
    n: int, piece: Int32, label: Int32, ns: Int64, labels: Sequence[Label]
) -> tuple[Int64, Int64]:
    """[pieces] Idle time that is not of the host's making, and that which is, ns.

    piece, label, ns : [parts of idle time]
    """
    is_of_host = np.array([one.kind in HOST_KINDS for one in labels] or [False])
    of_host = take(is_of_host, label)
    of_all, late = (sum_where(piece, ns, mask, n) for mask in (None, of_host.view(np.uint8)))
    return of_all - late, late


def _latest(until: Int64, rows: Int64) -> Int32:
    """Which of the work before each row ends last, of several the first; -1 for none.

    until : int64 [work], ns, when all work up to each has ended
    """
    if not len(until):
        return np.full(len(rows), -1, np.int32)
    return np.where(rows > 0, np.searchsorted(until, until[rows - 1]), -1).astype(np.int32)
