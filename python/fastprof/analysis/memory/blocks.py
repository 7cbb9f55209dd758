"""Blocks of memory: each allocation with its free, and the live bytes after each event."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastprof._core._pools import alike
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64

BEFORE = -1  # Blocks.begin of a block that was allocated before the first event
UNKNOWN_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class MemoryEvents:
    """Allocations and frees in order of time.

    Parameters
    ----------
    names : the memories: `GPU 0`, `CPU`, ...
    memory : int32 [events], index into `names`
    time : int64 [events], ns
    size : int64 [events], bytes, negative for a free
    address : int64 [events], equal for the events of one address in one process; -1 if unknown
    allocated, reserved : int64 [events], bytes of the memory after the event, -1 if unknown
    row : int64 [events], the event's row in its source
    is_complete : whether every block that is live after the last event has an event
    """

    names: list[str]
    memory: Int32
    time: Int64
    size: Int64
    address: Int64
    allocated: Int64
    reserved: Int64
    row: Int64
    is_complete: bool = False

    def __len__(self) -> int:
        return len(self.size)

    @property
    def is_allocation(self) -> Bools:
        """bool [events]"""
        return np.asarray(self.size > 0)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks with the events that allocate and free them.

    Blocks from before the first event that no event frees are unknown.

    Parameters
    ----------
    events : the events
    memory : int32 [blocks], index into `events.names`
    size : int64 [blocks], bytes
    begin : int64 [blocks], the event that allocates it, BEFORE if none does
    end : int64 [blocks], the event that frees it, `len(events)` if none does
    is_by_size : whether events have no addresses: a free matches an allocation of its size
    lost_frees : how many blocks end with the next allocation at their address
    """

    events: MemoryEvents
    memory: Int32
    size: Int64
    begin: Int64
    end: Int64
    is_by_size: bool
    lost_frees: int

    def __len__(self) -> int:
        return len(self.size)

    @property
    def is_recorded(self) -> Bools:
        """bool [blocks], whether an event allocates the block."""
        return np.asarray(self.begin != BEFORE)

    @property
    def is_live_at_end(self) -> Bools:
        """bool [blocks]"""
        return np.asarray(self.end == len(self.events))

    def is_live(self, after: Int64) -> Bools:
        """Whether each block is live after an event of its own; BEFORE: before the first event.

        after : int64 [blocks]
        """
        return np.asarray((self.begin <= after) & (after < self.end))

    @computed_once
    def uses(self) -> list[Use]:
        """The use of each memory, in the order of `events.names`."""
        n = len(self.events)
        change = np.zeros(n + 2, np.int64)
        np.add.at(change, self.begin[self.is_recorded], self.size[self.is_recorded])
        np.subtract.at(change, self.end, self.size)
        return [self._use(number, change[:n]) for number in range(len(self.events.names))]

    def _use(self, number: int, change: Int64) -> Use:
        rows = np.flatnonzero(self.events.memory == number)
        above = np.cumsum(change[rows])
        allocated, reserved = self.events.allocated[rows], self.events.reserved[rows]
        known = np.flatnonzero(allocated >= 0)
        start = int(allocated[known[0]] - above[known[0]]) if len(known) else None
        if self.events.is_complete:
            start = int(self.size[~self.is_recorded & (self.memory == number)].sum())
        off = 0 if start is None else int((allocated[known] != start + above[known]).sum())
        return Use(
            name=self.events.names[number],
            rows=rows,
            time=self.events.time[rows],
            above=above,
            start=start,
            reserved=reserved if reserved.max(initial=0) > 0 else None,
            misfits=off,
        )


@dataclass(frozen=True, eq=False)
class Use:
    """The live bytes of one memory over time.

    Parameters
    ----------
    name : the memory
    rows : int64 [own], its events
    time : int64 [own], ns
    above : int64 [own], live bytes after each event, less those before the first
    start : live bytes before the first event, None if unknown
    reserved : int64 [own], bytes that the allocator holds after each event; None if unknown
    misfits : how many recorded totals differ from `start + above`
    """

    name: str
    rows: Int64
    time: Int64
    above: Int64
    start: int | None
    reserved: Int64 | None
    misfits: int

    @computed_once
    def peak(self) -> int:
        """The place of the first peak in `rows`, -1 if it is before the first event."""
        place = int(np.argmax(self.above))
        return place if self.above[place] >= 0 else -1

    @property
    def peak_event(self) -> int:
        """The event after which the peak is reached, or BEFORE."""
        return BEFORE if self.peak < 0 else int(self.rows[self.peak])

    @property
    def peak_above(self) -> int:
        """The peak less the live bytes before the first event."""
        return 0 if self.peak < 0 else int(self.above[self.peak])

    @property
    def base(self) -> int:
        """The live bytes before the first event, 0 if unknown."""
        return self.start or 0

    @property
    def span(self) -> int:
        """From the first to the last event, ns."""
        return int(self.time[-1]) - int(self.time[0])

    def after(self, time: Int64) -> Int64:
        """The live bytes above the start after all events before each time."""
        place = np.searchsorted(self.time, time, "left")
        return np.append(np.int64(0), self.above)[place]

    def line(self, n: int) -> tuple[Int64, Int64]:
        """Start and largest live bytes above the start of at most n equal intervals."""
        first = self.time[0] + np.linspace(0, self.span, n, endpoint=False).astype(np.int64)
        place = np.searchsorted(self.time, first, "left")
        return first, self.most(place, np.append(place[1:], len(self.time)))

    def most(self, first: Int64, last: Int64) -> Int64:
        """The most live bytes above the start before and after the events from `first` to `last`.

        first, last : int64 [n], places in `rows`, the last exclusive
        """
        held = np.append(np.int64(0), self.above)[first]
        both = np.column_stack([first, last]).ravel()
        inside = np.maximum.reduceat(np.append(self.above, self.above[-1:]), both)[::2]
        return np.where(first < last, np.maximum(held, inside), held)


def blocks_of(events: MemoryEvents, newest_first: bool) -> Blocks:
    """Match frees with allocations: by address, or without addresses by size.

    newest_first : without addresses, a free matches the newest live allocation of its size, as in
        training; otherwise the oldest
    """
    is_by_size = bool((events.address == -1).any())
    key = _by_size(events, newest_first) if is_by_size else events.address
    ids, _ = alike([events.memory, key])
    n = len(events)
    order = np.argsort(ids, kind="stable")
    is_same = ids[order][1:] == ids[order][:-1]
    allocates = events.is_allocation[order]
    after = np.append(np.where(is_same, order[1:], n), n)[: len(order)]
    follows = np.append(False, is_same & allocates[:-1])[: len(order)]
    own, before = order[allocates], order[~allocates & ~follows]
    own_end = after[allocates]
    lost = events.is_allocation[own_end[own_end < n]]
    rows = np.concatenate([own, before])
    return Blocks(
        events=events,
        memory=events.memory[rows],
        size=np.abs(events.size[rows]),
        begin=np.concatenate([own, np.full(len(before), BEFORE)]),
        end=np.concatenate([own_end, before]),
        is_by_size=is_by_size,
        lost_frees=int(lost.sum()),
    )


def _by_size(events: MemoryEvents, newest_first: bool) -> Int64:
    """[events] A key that a free shares with its allocation, which has the same size."""
    ids, _ = alike([events.memory, np.abs(events.size)])
    key, is_allocation = np.empty(len(events), np.int64), events.is_allocation
    for rows in _groups(ids):
        allocates = is_allocation[rows]
        count = np.cumsum(np.where(allocates, 1, -1))
        # Frees that take the count below its least value so far are of earlier blocks.
        floor = np.minimum.accumulate(np.minimum(count, 0))
        is_early = ~allocates & (count < np.append(0, floor[:-1]))
        if newest_first:
            key[rows] = np.where(allocates, count, count + 1) - floor
        else:
            own = np.where(allocates, np.cumsum(allocates), np.cumsum(~allocates & ~is_early))
            key[rows] = own
        key[rows[is_early]] = -1
    key *= int(ids.max(initial=0)) + 1
    return key + ids


def _groups(ids: Int32) -> Iterator[Int64]:
    """The rows of each id, ascending."""
    order = np.argsort(ids, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(ids[order])) + 1)
