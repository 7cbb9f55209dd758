"""The graph of a run: what each event of each rank follows.

Each rank is its chain and its host. A piece of a chain follows the piece before it, and the launch
of its work; a launch follows the one before it by the own time of the host, and what the host waits
for. An arrival follows the chain, and the call before it on its stream; the end of an instance
follows the last of its arrivals by the transfer; work that waits follows that end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof._core import _replay
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.model.arrays import Bools, Int32, Int64, UInt8, unique
from fastprof.ranks.run.record import ARRIVED, WAITED, RankRecord
from fastprof.ranks.run.waits import Waits, earlier_calls, on_calls

_NO_EDGE: Final = np.iinfo(np.int32).min
_MOST_LAG: Final = np.iinfo(np.int32).max
_PASSES: Final = 64
CHAIN, ARRIVAL, MEMBER, WAIT, HOST, BEGIN = range(6)  # kinds of nodes
# What the time before a node of each kind is.
_KIND_BEFORE: Final = np.array([WAIT, ARRIVAL, ARRIVAL, WAIT, ARRIVAL, BEGIN], np.uint8)


class Selection(NamedTuple):
    """The events of a rank that are replayed.

    Parameters
    ----------
    first, last : events, `last` exclusive
    """

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class RunChange:
    """What a replay assumes.

    Parameters
    ----------
    text : as the user writes it
    work : [ranks] int64 [events], ns, the time of each piece of a chain but for waits and
        `RankRecord.late_time`; None: as recorded
    transfer : factor of all transfers
    host : [ranks] int64 [events], ns, the own time of the host, see `RankRecord.host_time`;
        None: as recorded, also in place of the list
    """

    text: str
    work: Sequence[Int64 | None]
    transfer: float = 1.0
    host: Sequence[Int64 | None] | None = None


class PathParts(NamedTuple):
    """The parts of a critical path, the last one first.

    Parameters
    ----------
    kind : uint8 [parts]
        CHAIN, ARRIVAL (a call queues on its stream), MEMBER (a transfer), WAIT, HOST (up to a
        launch) or BEGIN (the time before the chain begins).
    rank : int32 [parts], index of the rank
    event : int64 [parts], of its chain
    ns : int64 [parts], the length
    """

    kind: UInt8
    rank: Int32
    event: Int64
    ns: Int64

    def take(self, rows: Bools) -> PathParts:
        """Some of the parts."""
        return PathParts._make(column[rows] for column in self)


class RunGraph:
    """Nodes and edges, see csrc/replay/fp_replay.h.

    Attributes
    ----------
    duration : int64 [nodes], ns, as recorded
    """

    def __init__(
        self, records: Sequence[RankRecord], waits: Waits, selected: Sequence[Selection]
    ) -> None:
        self._records, self._waits, self._selected = records, waits, selected
        events = _Events(records, waits, selected)
        self._bounds, self._rank, self._base = events.bounds, events.rank, events.base
        self._first = np.array([one.first for one in selected], np.int64)
        n = len(events.of.time)
        self.origin = int(events.base.min()) if len(events.base) else 0
        arrived, waited = (np.flatnonzero(events.of.kind == kind) for kind in (ARRIVED, WAITED))
        hosts = np.flatnonzero(events.of.slack >= 0)
        instance = waits.instances.of_call[events.of.call[arrived]]
        groups = _places(events, arrived, waited, hosts, instance)
        self._chain, arrival, member, waits_at, self._host, begins = groups
        self._hosts = hosts
        self._begins = np.zeros(len(records), np.int64)
        self._begins[events.rank[events.first]] = begins
        size = 1 + sum(map(len, groups))
        self.kind: UInt8 = np.zeros(size, np.uint8)
        self.event: Int32 = np.full(size, -1, np.int32)
        rows = (np.arange(n), arrived, arrived, waited, hosts, events.first)
        for kind, (nodes, own) in enumerate(zip(groups, rows, strict=True)):
            self.kind[nodes], self.event[nodes] = kind, own
        self.before = np.zeros(size, np.int64)
        self.duration = np.zeros(size, np.int64)
        self._source = np.zeros((3, size), np.int32)
        self._lag = np.full((3, size), _NO_EDGE, np.int32)
        # After an event, the chain goes on from its node: of waits, that of the wait.
        self._after = self._chain.copy()
        self._after[waited] = waits_at
        self._connect_chain(events)
        self._connect_calls(events, arrived, arrival, member, waited, waits_at)
        self._connect_hosts(events)
        # Of clocks that do not fit, edges against the order are left out.
        nodes = np.arange(size)
        self._lag[(self._source // 2 >= nodes) & (nodes > 0)] = _NO_EDGE
        self._source[self._lag == _NO_EDGE] = 0

    def _edge(
        self, slot: int, nodes: Int64, source: Int64, at_end: bool, lag: Int64 | int = 0
    ) -> None:
        self._source[slot, nodes] = 2 * source + at_end
        self._lag[slot, nodes] = np.clip(lag, -_MOST_LAG, _MOST_LAG)

    def _connect_chain(self, events: _Events) -> None:
        first = events.first
        others = np.ones(len(events.of.time), bool)
        others[first] = False
        rows = np.flatnonzero(others)
        self.duration[self._chain] = events.of.work
        self._edge(0, self._chain[rows], self._after[rows - 1], True)
        ranks = events.rank[first]
        begins = self._begins[ranks]
        self._edge(0, begins, np.zeros(len(first), np.int64), True)
        self._edge(0, self._chain[first], begins, True)
        self.before[begins] = events.base[ranks] - self.origin

    def _connect_calls(
        self,
        events: _Events,
        arrived: Int64,
        arrival: Int64,
        member: Int64,
        waited: Int64,
        waits_at: Int64,
    ) -> None:
        waits = self._waits
        node_of_call = np.zeros(len(waits.instances.calls) + 1, np.int32)
        node_of_call[events.of.call[arrived]] = arrival
        call = events.of.call[arrived]
        instance = waits.instances.of_call[call]
        # Members in order of arrival: each follows the one before; the last one transfers.
        order = np.lexsort((member, instance))
        order = order[instance[order] >= 0]
        same = instance[order[1:]] == instance[order[:-1]]
        self._edge(0, member, arrival, False)
        later, earlier = order[1:][same], order[:-1][same]
        self._edge(1, member[later], member[earlier], False)
        last = order[np.append(~same, True)[: len(order)]]
        last_of = np.zeros(len(waits.instances) + 1, np.int64)
        last_of[instance[last]] = member[last]
        self.duration[member[last]] = waits.transfer[instance[last]]
        alone = np.flatnonzero(instance < 0)
        self.duration[arrival[alone]] = waits.end[call[alone]] - waits.arrival[call[alone]]
        before = events.of.earlier_call[arrived]
        source, skew = self._ends(before, node_of_call, last_of)
        has = (before >= 0) & (source > 0)
        rows = np.flatnonzero(has)
        self._edge(0, arrival, self._chain[arrived], True)
        self._edge(1, arrival[rows], source[rows], True, skew[rows])
        free = np.where(has, waits.end[before], np.iinfo(np.int64).min)
        chain = events.of.time[arrived]
        self.before[arrival] = waits.arrival[call] - np.maximum(chain, free)
        own = events.of.call[waited]
        source, skew = self._ends(own, node_of_call, last_of)
        known = source > 0
        rows = np.flatnonzero(known)
        self._edge(0, waits_at, self._chain[waited], True)
        self._edge(1, waits_at[rows], source[rows], True, skew[rows])
        # Of calls before the replayed part, the wait is as long as recorded.
        self.before[waits_at[~known]] = events.of.blocked[waited[~known]]

    def _connect_hosts(self, events: _Events) -> None:
        """Launches follow one another, and what the host waits for; pieces follow launches."""
        rows, nodes = self._hosts, self._host
        follows = np.append(False, events.rank[rows[1:]] == events.rank[rows[:-1]])[: len(rows)]
        own = events.of.host_time[rows]
        later, first = np.flatnonzero(follows), np.flatnonzero(~follows)
        ranks = events.rank[rows[first]]
        since = events.of.launch[rows[first]] - events.base[ranks]
        own[first] = np.clip(own[first], 0, np.maximum(since, 0))
        self.duration[nodes] = own
        self._edge(0, nodes[later], nodes[later - 1], True)
        self._edge(0, nodes[first], self._begins[ranks], True, since - own[first])
        # The host goes on after the last event before the end of its wait.
        waits = np.flatnonzero(follows & (events.of.after_wait[rows] >= 0))
        at = events.of.launch[rows[waits]] - events.of.after_wait[rows[waits]]
        event = events.last_before(rows[waits], at)
        known = event >= 0
        waits, event = waits[known], event[known]
        lag = events.of.launch[rows[waits]] - events.of.time[event] - own[waits]
        self._edge(1, nodes[waits], self._after[event], True, lag)
        lag = (
            events.of.time[rows]
            - events.of.blocked[rows]
            - events.of.slack[rows]
            - events.of.launch[rows]
        )
        self._rest, self._host_time = events.of.rest[rows], events.of.host_time[rows]
        self._edge(1, self._chain[rows], nodes, True, lag - events.of.work[rows])

    def _ends(self, call: Int32, node: Int32, last: Int64) -> tuple[Int64, Int64]:
        """The nodes at whose ends calls end, 0 for none, and ns from these ends to those recorded.

        It is that of the instance, or its own.

        call : rows of RunCalls; node : [calls + 1], of arrivals; last : [instances + 1], of members
        """
        waits = self._waits
        instance = waits.instances.of_call[call]
        shared = instance >= 0
        source = np.where(shared, last[instance], node[call])
        end = on_calls(waits.last_arrival, instance, 0)
        end += on_calls(waits.transfer, instance, 0)
        own = waits.end[call]
        return source, np.where(shared, own - end, 0)

    def run(self, duration: Int64) -> Int64:
        """[2 * nodes] When each node starts and ends, ns since the origin."""
        nowhere = np.full(len(duration), -1, np.int32)
        time: Int64 = self._replay(duration).run(nowhere, 0)[0]
        return time

    def _replay(self, duration: Int64) -> _replay.Replay:
        lag = self._lag
        nodes = self._chain[self._hosts]
        apart = duration[nodes] - self.duration[nodes]
        if apart.any():
            # Of work that takes another time, so does the part after the launch that holds it up.
            part = np.clip(self._rest / np.maximum(self.duration[nodes], 1), 0, 1)
            lag = lag.copy()
            has = lag[1, nodes] != _NO_EDGE
            moved = lag[1, nodes] - np.rint(apart * (1 - part)).astype(np.int64)
            lag[1, nodes[has]] = np.clip(moved[has], -_MOST_LAG, _MOST_LAG)
        return _replay.Replay(tuple(self._source), tuple(lag), self.before, duration)

    def changed(self, change: RunChange) -> Int64:
        """The durations with a change."""
        result: Int64 = self.duration.copy()
        for rank, (work, selected) in enumerate(zip(change.work, self._selected, strict=True)):
            if work is not None:
                nodes = self._chain[self._bounds[rank] : self._bounds[rank + 1]]
                result[nodes] = work[selected.first : selected.last]
        for rank, host in enumerate(change.host or ()):
            if host is not None:
                own = np.flatnonzero(self._rank[self._hosts] == rank)
                rows = self._hosts[own]
                local = rows - self._bounds[rank] + self._selected[rank].first
                nodes = self._host[own]
                more = host[local] - self._host_time[own]
                result[nodes] = np.maximum(result[nodes] + more, 0)
        if change.transfer != 1.0:
            nodes = np.flatnonzero(self.kind == MEMBER)
            result[nodes] = np.rint(result[nodes] * change.transfer).astype(np.int64)
        return result

    def at(self, time: Int64, rank: Int64, event: Int64) -> Int64:
        """When events of ranks happen; event -1 or before the selected ones: when the chain of the
        rank begins."""
        place = event - self._first[rank]
        row = np.minimum(self._bounds[rank] + np.maximum(place, 0), len(self._after) - 1)
        at_begin = self._base[rank] - self.origin
        if not len(self._after):
            return at_begin
        return np.where(place < 0, at_begin, time[2 * self._after[row] + 1])

    def path(self, duration: Int64, time: Int64, rank: int, event: int, begin: int) -> PathParts:
        """The critical path to an event."""
        place = self._bounds[rank] + event - self._first[rank]
        parts = self._replay(duration).path(time, int(self._after[place]), begin)
        parts = parts[self.event[parts["node"]] >= 0]
        row, kind = self.event[parts["node"]], self.kind[parts["node"]]
        own = self._rank[row]
        length, lag = parts["own"], parts["lag"]
        # A wait of the host; the end of the work, after its launch.
        joined = (kind == HOST) | ((kind == CHAIN) & (lag < 0))
        length, lag = np.where(joined, length + lag, length), np.where(joined, 0, lag)
        ns = np.column_stack([length, parts["before"] + lag]).ravel()
        some = np.flatnonzero(ns)
        return PathParts(
            np.column_stack([kind, _KIND_BEFORE[kind]]).ravel()[some],
            own[some // 2],
            (row - self._bounds[own] + self._first[own])[some // 2],
            ns[some],
        )


def _places(
    events: _Events, arrived: Int64, waited: Int64, hosts: Int64, instance: Int32
) -> list[Int64]:
    """The nodes of events, arrivals, members, waits, launches and begins of ranks, from 1.

    Each follows those that it waits for. instance : int32 [arrived]
    """
    keys = _Keys(events, arrived, waited)
    keys.solve(instance)
    groups = [
        keys.chain, keys.arrival, keys.member, keys.waited, keys.launch_times(hosts),
        keys.chain[events.first] - 2,
    ]  # fmt: skip
    order = np.argsort(np.concatenate(groups), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(1, len(order) + 1)
    return np.split(place, np.cumsum(list(map(len, groups)))[:-1])


class _Columns(NamedTuple):
    """The selected events of ranks.

    Parameters
    ----------
    kind : uint8 [events]
    time : int64 [events], ns on the clock of the run
    work, blocked : int64 [events], ns, the piece before it
    call : int32 [events], row of RunCalls, -1 for none
    earlier_call : int32 [events], of arrivals, the call before it on its stream, -1 for none
    launch : int64 [events], ns on the clock of the run, see `Chain`
    slack, rest : int32 [events], ns, see `Chain`
    host_time : int64 [events], ns, see `RankRecord.host_time`
    after_wait : int64 [events], ns from the end of a wait of the host to the launch; -1 for none
    """

    kind: UInt8
    time: Int64
    work: Int64
    blocked: Int64
    call: Int32
    earlier_call: Int32
    launch: Int64
    slack: Int32
    rest: Int32
    host_time: Int64
    after_wait: Int64


class _Events:
    """The selected events of all ranks, rank by rank.

    Attributes
    ----------
    bounds : int64 [ranks + 1]
    rank : int32 [events]
    first : int64 [ranks with events], the first event of each
    base : int64 [ranks], when the first selected piece begins
    of : the columns
    """

    def __init__(
        self, records: Sequence[RankRecord], waits: Waits, selected: Sequence[Selection]
    ) -> None:
        counts = [one.last - one.first for one in selected]
        self.bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.rank: Int32 = np.repeat(np.arange(len(records), dtype=np.int32), counts)
        self.first = self.bounds[:-1][np.diff(self.bounds) > 0]
        before = earlier_calls(records, waits)
        self.base = np.zeros(len(records), np.int64)
        columns = [_NO_EVENTS]
        for rank, (record, one) in enumerate(zip(records, selected, strict=True)):
            chain = record.chain
            times = np.concatenate([[chain.begin], chain.time])
            moved = waits.clocks.moved(times, np.full(len(times), rank, np.int32))
            self.base[rank] = moved[one.first]
            columns.append(self._of_rank(rank, record, waits, one, moved, before))
        self.of = _Columns._make(map(np.concatenate, zip(*columns, strict=True)))

    def _of_rank(
        self,
        rank: int,
        record: RankRecord,
        waits: Waits,
        selected: Selection,
        time: Int64,
        before: Int64,
    ) -> _Columns:
        """time : int64 [events + 1], ns; before : see `earlier_calls`"""
        chain, rows = record.chain, slice(selected.first, selected.last)
        first = int(waits.instances.calls.bounds[rank])
        call = np.where(chain.call >= 0, chain.call + first, -1)[rows].astype(np.int32)
        arrived = chain.kind[rows] == ARRIVED
        earlier = np.full(len(call), -1, np.int32)
        earlier[arrived] = before[call[arrived]]
        launch = chain.launch[rows]
        after = np.full(len(chain), -1, np.int64)
        after[record.syncs.event] = record.syncs.after
        own = np.diff(time) - chain.blocked - record.late_time()
        return _Columns(
            kind=chain.kind[rows],
            time=time[1:][rows],
            work=np.maximum(own, 0)[rows],
            blocked=chain.blocked[rows],
            call=call,
            earlier_call=earlier,
            launch=waits.clocks.moved(launch, np.full(len(launch), rank, np.int32)),
            slack=chain.slack[rows],
            rest=chain.rest[rows],
            host_time=record.host_time()[rows],
            after_wait=after[rows],
        )

    def last_before(self, events: Int64, time: Int64) -> Int64:
        """The last event of the same rank up to some times and before some events, -1 for none."""
        result = np.full(len(events), -1, np.int64)
        ranks = self.rank[events]
        bounds = np.searchsorted(ranks, np.arange(len(self.bounds)))
        for rank in unique(ranks).tolist():
            first, last = self.bounds[rank], self.bounds[rank + 1]
            own = slice(int(bounds[rank]), int(bounds[rank + 1]))
            place = np.searchsorted(self.of.time[first:last], time[own], "right") - 1
            place = np.minimum(place + first, events[own] - 1)
            result[own] = np.where(place >= first, place, -1)
        return result


_LONG, _SHORT = np.empty(0, np.int64), np.empty(0, np.int32)
_NO_EVENTS: Final = _Columns(
    np.empty(0, np.uint8), _LONG, _LONG, _LONG, _SHORT, _SHORT, _LONG, _SHORT, _SHORT, _LONG, _LONG
)
NO_PATH: Final = PathParts(np.empty(0, np.uint8), _SHORT, _LONG, _LONG)


class _Keys:
    """Numbers in whose order every node follows those that it waits for.

    They are recorded times where clocks allow, and later where an estimated clock would have work
    go on before the last rank arrives.
    """

    def __init__(self, events: _Events, arrived: Int64, waited: Int64) -> None:
        self._events = events
        n_calls = (
            int(max(events.of.call.max(initial=-1), events.of.earlier_call.max(initial=-1))) + 1
        )
        self._n_calls = n_calls
        base = int(events.of.time.min(initial=0))
        time = (events.of.time - base) * 8
        self.chain, self.waited = time, time[waited] + 4
        self.arrival = self.member = time[arrived] + 1
        self._arrived, self._waited = arrived, waited

    def launch_times(self, hosts: Int64) -> Int64:
        """Those of launches, between the events of the chain around them; after `solve`."""
        events = self._events
        after = self.chain.copy()
        after[self._waited] = self.waited
        event = events.last_before(hosts, events.of.launch[hosts])
        next_one = np.where(event >= 0, event + 1, events.bounds[events.rank[hosts]])
        limit: Int64 = self.chain[next_one] - 1
        since = events.of.launch[hosts] - events.of.time[event]
        return np.where(event >= 0, np.minimum(after[event] + 8 * since + 6, limit), limit)

    def solve(self, instance: Int32) -> None:
        """Raise keys until all edges are in order. instance : [arrived], -1 for none"""
        events, arrived, waited = self._events, self._arrived, self._waited
        own = np.full(self._n_calls + 1, -1, np.int64)
        own[events.of.call[arrived]] = np.arange(len(arrived))
        before, of_wait = own[events.of.earlier_call[arrived]], own[events.of.call[waited]]
        n = int(instance.max(initial=-1)) + 1
        for _ in range(_PASSES):
            old = self.chain.copy()
            self.arrival = np.maximum(self.arrival, self.chain[arrived] + 1)
            for _ in range(2):
                end = self._ends(instance, n)
                follows = before >= 0
                self.arrival = np.where(
                    follows, np.maximum(self.arrival, end[before] + 1), self.arrival
                )
            end = self._ends(instance, n)
            self.waited = np.maximum(self.chain[waited] + 1, self.waited)
            self.waited = np.where(
                of_wait >= 0, np.maximum(self.waited, end[of_wait] + 1), self.waited
            )
            self._raise_chain()
            if (old == self.chain).all():
                return

    def _ends(self, instance: Int32, n: int) -> Int64:
        """[arrived] The key of the last member of the instance of each call."""
        self.member = self.arrival + 1
        last = np.full(n + 1, np.iinfo(np.int64).min)
        shared = instance >= 0
        np.maximum.at(last, instance[shared], self.member[shared])
        return np.where(shared, last[instance], self.arrival)

    def _raise_chain(self) -> None:
        """Each event of a chain after the one before it."""
        events = self._events
        key = self.chain.copy()
        key[self._waited] = self.waited
        after = np.full(len(key), np.iinfo(np.int64).min)
        for rank in np.unique(events.rank).tolist():
            rows = slice(int(events.bounds[rank]), int(events.bounds[rank + 1]))
            own = np.arange(rows.stop - rows.start) * 2
            highest = np.maximum.accumulate(key[rows] - own) + own
            after[rows] = highest
        previous = np.concatenate([[np.iinfo(np.int64).min], after[:-1]])
        previous[events.first] = np.iinfo(np.int64).min
        self.chain = np.maximum(self.chain, previous + (previous > np.iinfo(np.int64).min))
        self.waited = np.maximum(self.waited, self.chain[self._waited] + 1)
