"""Level of detail of a time line: neighbouring short events of a lane as one run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Bools, Int32, Int64


class LaneEvents(NamedTuple):
    """Events of a lane in order of start.

    An event with `counts` above 1 is a run of short neighbours. Its `what` and `row` are those of
    the longest event of the kind that takes most of its time.

    Parameters
    ----------
    start, end : int64 [events], ns on the clock of the trace
    busy : int64 [events], ns, the union of what was merged; `end - start` for single events
    counts : int32 [events], the events of each run, 1 for single ones
    what : int32 [events], row of the names of its kind of lane
    row : int64 [events], row of the table that it comes from, -1 for none
    """

    start: Int64
    end: Int64
    busy: Int64
    counts: Int32
    what: Int32
    row: Int64


class EventRuns(NamedTuple):
    """Merged events, and the place in them of each original event, int32 [originals]."""

    events: LaneEvents
    place: Int32


def single(start: Int64, end: Int64, what: Int32, row: Int64) -> LaneEvents:
    """Events that are not merged."""
    return LaneEvents(start, end, end - start, np.ones(len(start), np.int32), what, row)


def pixel_for(lanes: Sequence[LaneEvents], span: int, most: int) -> int:
    """The power of two of ns that leaves about `most` events after merging; 0: all fit unmerged.

    span : ns, the length of the time line
    """
    if sum(len(each.start) for each in lanes) <= most:
        return 0
    # A lane has at most span / pixel pixels that begin a run.
    pixel = 1 << max(span * len(lanes) // most, 1).bit_length()
    for bits in (2, 1):
        while pixel >> bits:
            if sum(int(np.count_nonzero(_begins(e, pixel >> bits))) for e in lanes) > most:
                break
            pixel >>= bits
    return pixel


def _begins(events: LaneEvents, pixel: int) -> Bools:
    """[events] Whether a run begins: a pixel, a gap as long as one, or a long event.

    pixel : a power of two of ns
    """
    start, end, bits = events.start, events.end, pixel.bit_length() - 1
    begins = np.ones(len(start), bool)
    if len(start) > 1:
        is_long = end - start >= pixel
        until = np.maximum.accumulate(end)
        begins[1:] = start[1:] >> bits != start[:-1] >> bits
        begins[1:] |= start[1:] - until[:-1] >= pixel
        begins[1:] |= is_long[1:] | is_long[:-1]
    return begins


def merged(events: LaneEvents, pixel: int, kinds: Int32) -> EventRuns:
    """Merge neighbouring events that start in the same pixel and are shorter than one.

    Runs contain no gap as long as a pixel. With pixel 0, nothing is merged.

    kinds : int32 [whats], the kind of each `what`, from 0
    """
    n = len(events.start)
    if not pixel or n < 2:
        return EventRuns(events, np.arange(n, dtype=np.int32))
    begins = _begins(events, pixel)
    first = np.flatnonzero(begins)
    place = (np.cumsum(begins) - 1).astype(np.int32)
    until = np.maximum.accumulate(events.end)
    before = np.concatenate([events.start[:1], until[:-1]])
    before[first] = events.start[first]  # an event of another run may still be open
    own = np.maximum(events.end - np.maximum(events.start, before), 0)
    main = _longest_of_main_kind(events, place, len(first), kinds)
    return EventRuns(
        LaneEvents(
            events.start[first],
            np.maximum.reduceat(events.end, first),
            np.add.reduceat(own, first),
            np.diff(np.append(first, n)).astype(np.int32),
            events.what[main],
            events.row[main],
        ),
        place,
    )


def _longest_of_main_kind(events: LaneEvents, place: Int32, n: int, kinds: Int32) -> Int64:
    """[runs] The longest event of the kind that takes most of the time of each run."""
    length = events.end - events.start
    kind = kinds[events.what]
    n_kinds = int(kinds.max(initial=0)) + 1
    ns = np.bincount(place * np.int64(n_kinds) + kind, length + 1, n * n_kinds)
    main = ns.reshape(n, n_kinds).argmax(axis=1)
    key = np.where(kind == main[place], length, -1)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    rows = np.flatnonzero(key == np.maximum.reduceat(key, first)[place])[::-1]
    found = np.empty(n, np.int64)
    found[place[rows]] = rows  # the first one of each run stays
    return found
