"""The replays of all ranks, joined at their collectives.

Each rank is its chain; an arrival follows the chain, and the call before it on its stream; the end
of an instance follows the last of its arrivals by the transfer; work that waits follows that end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from fastprof._core import _replay
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.idle.causes import Cause
from fastprof.model.arrays import Int32, Int64, UInt8
from fastprof.model.trace import NO_TIME
from fastprof.ranks.run.record import (
    ARRIVED,
    FIRST_CAUSE,
    WAITED,
    RankRecord,
)
from fastprof.ranks.run.waits import Waits, earlier_calls, of_instances

_NO_EDGE: Final = np.iinfo(np.int32).min
_MOST_LAG: Final = np.iinfo(np.int32).max
_MOST_EVENTS: Final = 2_000_000
_PASSES: Final = 64
CHAIN, ARRIVAL, MEMBER, WAIT = range(4)  # kinds of nodes
BEGIN: Final = 4


class Selection(NamedTuple):
    """The events of a rank that are replayed.

    Parameters
    ----------
    first, last : events, `last` exclusive
    """

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Change:
    """What a replay assumes.

    Parameters
    ----------
    text : as the user writes it
    work : [ranks] int64 [events], ns, the time of each piece of a chain; None: as recorded
    transfer : factor of all transfers
    """

    text: str
    work: Sequence[Int64 | None]
    transfer: float = 1.0


class RunReplay:
    """The graph of a run.

    Attributes
    ----------
    n_steps : the steps that are replayed
    """

    def __init__(
        self,
        records: Sequence[RankRecord],
        waits: Waits,
        steps: Sequence[Int64],
        most: int = _MOST_EVENTS,
    ) -> None:
        """steps : [ranks], the numbers of the steps of each in the run

        most : replay about so many events: steps from the middle of the run
        """
        self._records, self._waits, self._steps = records, waits, steps
        self.numbers = self._chosen_steps(most)
        self._has_all = len(self.numbers) == len(np.unique(_joined(steps)))
        self._selected = [self._selection(rank) for rank in range(len(records))]
        self._graph = _Graph(records, waits, self._selected)
        self.recorded = self._lengths(self._graph.run(self._graph.duration))

    @property
    def n_steps(self) -> int:
        """The steps of the run that are replayed."""
        return len(self.numbers)

    def _chosen_steps(self, most: int) -> Int64:
        """The numbers of the steps of the run that count, those in the middle if there are many."""
        records, steps = self._records, self._steps
        counted = [own[record.steps.is_counted] for own, record in zip(steps, records, strict=True)]
        numbers, ranks = np.unique(_joined(counted), return_counts=True)
        numbers = numbers[ranks == ranks.max()] if len(numbers) else numbers
        n = sum(len(record.chain) for record in records)
        total = max((len(own) for own in steps), default=1)
        fits = max(int(most / max(n, 1) * total), 1)
        if len(numbers) > fits:
            middle = (len(numbers) - fits) // 2
            numbers = numbers[middle : middle + fits]
        return numbers

    def _selection(self, rank: int) -> Selection:
        """The events from the beginning of the first chosen step to the end of the last."""
        record, own = self._records[rank], self._steps[rank]
        rows = np.flatnonzero(np.isin(own, self.numbers))
        n = len(record.chain)
        if not len(rows):
            return Selection(0, 0)
        if self._has_all:
            return Selection(0, n)
        time = record.chain.time
        first = int(np.searchsorted(time, record.steps.start[rows[0]], "right"))
        if record.steps.start[rows[0]] <= record.chain.begin:
            first = 0
        return Selection(first, int(np.searchsorted(time, record.steps.end[rows[-1]], "right")))

    def run(self, change: Change) -> Int64:
        """The lengths of the chosen steps with a change, [ranks, steps], ns; -1 for none."""
        return self._lengths(self._graph.run(self._graph.changed(change)))

    def _lengths(self, time: Int64) -> Int64:
        result = np.full((len(self._records), len(self.numbers)), -1, np.int64)
        rank, start, end, step = self._windows
        at = self._graph.at
        result[rank, step] = at(time, rank, end) - at(time, rank, start)
        return result

    @computed_once
    def _windows(self) -> tuple[Int64, Int64, Int64, Int64]:
        """Rank, events at the start and the end (-1: the begin of the chain), and place in
        `numbers` of the chosen steps, rank by rank."""
        place = {number: i for i, number in enumerate(self.numbers.tolist())}
        rows = []
        for rank, (record, own, selected) in enumerate(
            zip(self._records, self._steps, self._selected, strict=True)
        ):
            time = record.chain.time
            start = np.searchsorted(time, record.steps.start, "right") - 1
            end = np.searchsorted(time, record.steps.end, "right") - 1
            inside = (start >= selected.first - 1) & (end < selected.last)
            for i in np.flatnonzero(inside).tolist():
                if (number := int(own[i])) in place:
                    rows.append((rank, int(start[i]), int(end[i]), place[number]))
        ranks, starts, ends, steps = np.array(rows, np.int64).reshape(-1, 4).T
        return ranks, starts, ends, steps

    def mean(self, lengths: Int64) -> float:
        """The mean length of a step over ranks, ns; NaN without steps."""
        known = lengths[lengths >= 0]
        return float(known.mean()) if len(known) else float("nan")

    def path(self, change: Change | None = None) -> Iterator[PathPart]:
        """The critical path of the chosen steps, from the last end of a step back."""
        graph = self._graph
        duration = graph.duration if change is None else graph.changed(change)
        time = graph.run(duration)
        ranks, start, end, _ = self._windows
        if not len(ranks):
            return
        edge = np.flatnonzero(np.diff(ranks))  # the last window of each rank but the last
        last, first = np.append(edge, len(ranks) - 1), np.append(0, edge + 1)
        begin = int(graph.at(time, ranks[first], start[first]).min())
        at = graph.at(time, ranks[last], end[last])
        row = last[np.lexsort((end[last], ranks[last], at))[-1]]
        yield from graph.path(duration, time, int(ranks[row]), int(end[row]), begin)


def _joined(arrays: Sequence[Int64]) -> Int64:
    return np.concatenate([np.empty(0, np.int64), *arrays])


class PathPart(NamedTuple):
    """A part of the critical path.

    Parameters
    ----------
    kind : CHAIN, ARRIVAL (a call queues on its stream), MEMBER (a transfer), WAIT or BEGIN (the
        time before the chain begins)
    rank : index of the rank
    event : event of its chain
    ns : its length
    """

    kind: int
    rank: int
    event: int
    ns: int


class _Graph:
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
        self._events = events
        self._first = np.array([one.first for one in selected], np.int64)
        n = len(events.time)
        self.origin = int(events.base.min()) if len(events.base) else 0
        arrived, waited = (np.flatnonzero(events.kind == kind) for kind in (ARRIVED, WAITED))
        keys = _Keys(events, arrived, waited)
        keys.solve(waits.instances.of_call[events.call[arrived]])
        size = n + 2 * len(arrived) + len(waited) + 1
        # Nodes: chain, arrivals, members, waits; sorted by key.
        key = np.concatenate([keys.chain, keys.arrival, keys.member, keys.waited])
        order = np.argsort(key, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(1, size)
        self._chain = place[:n]
        arrival, member = place[n : n + len(arrived)], place[n + len(arrived) :][: len(arrived)]
        waits_at = place[n + 2 * len(arrived) :]
        self.kind: UInt8 = np.zeros(size, np.uint8)
        self.event = np.full(size, -1, np.int64)
        for kind, nodes, own in (
            (CHAIN, self._chain, np.arange(n)),
            (ARRIVAL, arrival, arrived),
            (MEMBER, member, arrived),
            (WAIT, waits_at, waited),
        ):
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
        others = np.ones(len(events.time), bool)
        others[first] = False
        rows = np.flatnonzero(others)
        self.duration[self._chain] = events.work
        self._edge(0, self._chain[rows], self._after[rows - 1], True)
        self._edge(0, self._chain[first], np.zeros(len(first), np.int64), True)
        self.before[self._chain[first]] = events.base[events.rank[first]] - self.origin

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
        node_of_call[events.call[arrived]] = arrival
        call = events.call[arrived]
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
        before = events.earlier_call[arrived]
        source, skew = self._ends(before, node_of_call, last_of)
        has = (before >= 0) & (source > 0)
        rows = np.flatnonzero(has)
        self._edge(0, arrival, self._chain[arrived], True)
        self._edge(1, arrival[rows], source[rows], True, skew[rows])
        free = np.where(has, waits.end[before], np.iinfo(np.int64).min)
        chain = events.time[arrived]
        self.before[arrival] = waits.arrival[call] - np.maximum(chain, free)
        own = events.call[waited]
        source, skew = self._ends(own, node_of_call, last_of)
        known = source > 0
        rows = np.flatnonzero(known)
        self._edge(0, waits_at, self._chain[waited], True)
        self._edge(1, waits_at[rows], source[rows], True, skew[rows])
        # The host launches the work that waits, in its own time since the work last waited for it.
        rows = np.flatnonzero(events.host_lag[waited] != NO_TIME)
        own = waited[rows]
        anchor = self._chain[events.host_event[own]]
        self._edge(2, waits_at[rows], anchor, True, events.host_lag[own])
        # Of calls before the replayed part, the wait is as long as recorded.
        self.before[waits_at[~known]] = events.blocked[waited[~known]]

    def _ends(self, call: Int64, node: Int32, last: Int64) -> tuple[Int64, Int64]:
        """The nodes at whose ends calls end, 0 for none, and ns from these ends to those recorded.

        It is that of the instance, or its own.

        call : rows of RunCalls; node : [calls + 1], of arrivals; last : [instances + 1], of members
        """
        waits = self._waits
        instance = waits.instances.of_call[call]
        shared = instance >= 0
        source = np.where(shared, last[instance], node[call])
        end = of_instances(waits.last_arrival, instance, 0)
        end += of_instances(waits.transfer, instance, 0)
        own = waits.end[call]
        return source, np.where(shared, own - end, 0)

    def run(self, duration: Int64) -> Int64:
        """[2 * nodes] When each node starts and ends, ns since the origin."""
        nowhere = np.full(len(duration), -1, np.int32)
        time: Int64 = self._replay(duration).run(nowhere, 0)[0]
        return time

    def _replay(self, duration: Int64) -> _replay.Replay:
        return _replay.Replay(tuple(self._source), tuple(self._lag), self.before, duration)

    def changed(self, change: Change) -> Int64:
        """The durations with a change."""
        events = self._events
        result: Int64 = self.duration.copy()
        for rank, (work, selected) in enumerate(zip(change.work, self._selected, strict=True)):
            if work is not None:
                nodes = self._chain[events.bounds[rank] : events.bounds[rank + 1]]
                result[nodes] = work[selected.first : selected.last]
        if change.transfer != 1.0:
            nodes = np.flatnonzero(self.kind == MEMBER)
            result[nodes] = np.rint(result[nodes] * change.transfer).astype(np.int64)
        return result

    def at(self, time: Int64, rank: Int64, event: Int64) -> Int64:
        """When events of ranks happen; event -1 or before the selected ones: when the chain of the
        rank begins."""
        events = self._events
        place = event - self._first[rank]
        row = np.minimum(events.bounds[rank] + np.maximum(place, 0), len(self._after) - 1)
        at_begin = events.base[rank] - self.origin
        if not len(self._after):
            return at_begin
        return np.where(place < 0, at_begin, time[2 * self._after[row] + 1])

    def path(
        self, duration: Int64, time: Int64, rank: int, event: int, begin: int
    ) -> Iterator[PathPart]:
        """The critical path to an event, the last part first."""
        events = self._events
        place = events.bounds[rank] + event - self._selected[rank].first
        parts = self._replay(duration).path(time, int(self._after[place]), begin)
        for part in parts:
            node = int(part["node"])
            row = int(self.event[node])
            if row < 0:
                continue
            own = int(events.rank[row])
            local = row - int(events.bounds[own]) + self._selected[own].first
            waits = {WAIT: WAIT, CHAIN: BEGIN}.get(int(self.kind[node]), ARRIVAL)
            for kind, ns in (
                (int(self.kind[node]), int(part["own"])),
                (waits, int(part["before"] + part["lag"])),
            ):
                if ns:
                    yield PathPart(kind, own, local, ns)


class _Events:
    """The selected events of all ranks, rank by rank.

    Attributes
    ----------
    bounds : int64 [ranks + 1]
    rank : int32 [events]
    first : int64 [ranks with events], the first event of each
    kind : uint8 [events]
    time : int64 [events], ns on the clock of the run
    work, blocked : int64 [events], ns, the piece before it
    call : int64 [events], row of RunCalls, -1 for none
    base : int64 [ranks], when the first selected piece begins
    earlier_call : int64 [events], of arrivals, the call before it on its stream, -1 for none
    host_event, host_lag : int64 [events], of waits, the last event before which the host was
        behind, and ns from it to the launch of the work that waits; NO_TIME: no bound
    """

    def __init__(
        self, records: Sequence[RankRecord], waits: Waits, selected: Sequence[Selection]
    ) -> None:
        counts = [one.last - one.first for one in selected]
        self.bounds = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.rank: Int32 = np.repeat(np.arange(len(records), dtype=np.int32), counts)
        self.first = self.bounds[:-1][np.diff(self.bounds) > 0]
        empty = np.empty(0, np.int64)
        kinds, times, works, blocked, calls, earlier = ([empty] for _ in range(6))
        hosts, lags = [empty], [empty]
        before_it = earlier_calls(records, waits)
        base = []
        for rank, (record, one) in enumerate(zip(records, selected, strict=True)):
            chain, rows = record.chain, slice(one.first, one.last)
            own = np.full(len(chain), rank, np.int32)
            before = np.concatenate([[chain.begin], chain.time])
            moved = waits.clocks.moved(before, np.append(own, np.int32(rank)))
            base.append(int(moved[one.first]))
            times.append(moved[1:][rows])
            length = np.diff(moved)
            blocked.append(chain.blocked[rows])
            works.append((length - chain.blocked)[rows])
            kinds.append(chain.kind[rows].astype(np.int64))
            row = np.where(chain.call >= 0, chain.call + waits.instances.calls.bounds[rank], -1)
            calls.append(row[rows])
            earlier.append(_earlier(before_it, chain.kind[rows], row[rows]))
            host, lag = _host_bounds(record, one)
            hosts.append(host + self.bounds[rank])
            lags.append(lag)
        self.host_event, self.host_lag = np.concatenate(hosts), np.concatenate(lags)
        self.kind = np.concatenate(kinds).astype(np.uint8)
        self.time, self.work = np.concatenate(times), np.concatenate(works)
        self.blocked = np.concatenate(blocked)
        self.call, self.earlier_call = np.concatenate(calls), np.concatenate(earlier)
        self.base = np.array(base, np.int64)


def _earlier(before: Int64, kind: UInt8, call: Int64) -> Int64:
    """[events] See `_Events.earlier_call`; before : [calls], see `earlier_calls`."""
    result = np.full(len(call), -1, np.int64)
    arrived = kind == ARRIVED
    result[arrived] = before[call[arrived]]
    return result


def _host_bounds(record: RankRecord, selected: Selection) -> tuple[Int64, Int64]:
    """See `_Events.host_event` and `host_lag`, of the selected events, from the first of them."""
    chain = record.chain
    of_host = np.array([label.kind in _HOST_KINDS for label in record.labels] or [False])
    piece = np.repeat(np.arange(len(chain)), np.diff(chain.offsets))
    is_behind = np.zeros(len(chain), bool)
    is_behind[piece[of_host[chain.label]]] = True
    rows = slice(selected.first, selected.last)
    place = np.arange(selected.last - selected.first)
    anchor = np.maximum.accumulate(np.where(is_behind[rows], place, 0)) if len(place) else place
    launch, time = chain.launch[rows], chain.time[rows]
    # The wait itself is no work of its piece: the host was behind before it.
    known = (chain.kind[rows] == WAITED) & (launch != NO_TIME) & (launch <= time) & (anchor < place)
    lag = np.where(known, launch - time[anchor], 0)
    known &= np.abs(lag) < _MOST_LAG
    return anchor, np.where(known, lag, NO_TIME)


# Idle time of the host's making.
_HOST_KINDS: Final = frozenset(
    FIRST_CAUSE + cause
    for cause in Cause
    if cause not in (Cause.LATENCY, Cause.DEPENDENCY, Cause.UNKNOWN, Cause.SHORT)
)


class _Keys:
    """Numbers in whose order every node follows those that it waits for.

    They are recorded times where clocks allow, and later where an estimated clock would have work
    go on before the last rank arrives.
    """

    def __init__(self, events: _Events, arrived: Int64, waited: Int64) -> None:
        self._events = events
        n_calls = int(max(events.call.max(initial=-1), events.earlier_call.max(initial=-1))) + 1
        self._n_calls = n_calls
        base = int(events.time.min(initial=0))
        time = (events.time - base) * 8
        self.chain, self.waited = time, time[waited] + 4
        self.arrival = self.member = time[arrived] + 1
        self._arrived, self._waited = arrived, waited

    def solve(self, instance: Int32) -> None:
        """Raise keys until all edges are in order. instance : [arrived], -1 for none"""
        events, arrived, waited = self._events, self._arrived, self._waited
        own = np.full(self._n_calls + 1, -1, np.int64)
        own[events.call[arrived]] = np.arange(len(arrived))
        before, of_wait = own[events.earlier_call[arrived]], own[events.call[waited]]
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
