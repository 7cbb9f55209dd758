"""Time lines as arrays of a page; `assets/timeline_data.js` reads them.

Numbers of more than 8 bits are byte planes: all lowest bytes, then all second bytes, and so on.
They compress to half the size of integers, and hold more than 32 bits.

For each time line I, of all events, lane by lane:

- `I.start` (planes): ns after the start of the event before in the lane; 0 for the first
- `I.length` (planes): ns
- `I.what` (planes): row of the names of the kind of lane
- `I.link`, `I.forward` (planes): 1 + event, 0 for none; see `StepTimeline`
- `I.count`, `I.free` (planes), if short neighbours are merged: events, and ns of the gaps inside

For each kind of lane and column of its names, `KIND.COLUMN` (int32): place in the texts, -1 if
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.step_timeline import Names, StepTimeline
from fastprof.model.arrays import Int32, Int64, UInt8

LONGEST: Final = 300  # characters of a text
Arrays = dict[str, Any]


def planes(numbers: Int64 | Int32) -> UInt8:
    """Byte planes of numbers from 0."""
    raw = np.ascontiguousarray(numbers, "<i8").view(np.uint8).reshape(-1, 8)
    n_bytes = max(1, (int(numbers.max(initial=0)).bit_length() + 7) // 8)
    return np.ascontiguousarray(raw[:, :n_bytes].T).ravel()


def arrays_of(timelines: Sequence[StepTimeline]) -> tuple[Arrays, Arrays]:
    """The data (names, texts, lanes of each time line) and arrays of a chart."""
    names, texts, places = _names(timelines)
    arrays: Arrays = dict(names)
    lanes = []
    for i, each in enumerate(timelines):
        what = np.empty(len(each.events.what), np.int32)
        for lane, rows in zip(each.lanes, each.rows, strict=True):
            what[rows] = take(places[lane.kind], each.events.what[rows])
        start, end = each.events.start, each.events.end
        delta = np.diff(start, prepend=start[:1])
        for rows in each.rows:
            delta[rows.start : rows.start + 1] = 0
        columns = {
            "start": delta,
            "length": end - start,
            "what": what,
            "link": each.link + 1,
            "forward": each.forward + 1,
        }
        if each.pixel:
            columns |= {"count": each.events.counts, "free": end - start - each.events.busy}
        arrays |= {f"{i}.{name}": planes(column) for name, column in columns.items()}
        lanes.append(_lanes(each))
    columns_of = {kind: list(each) for line in timelines for kind, each in line.names.items()}
    return {"columns": columns_of, "texts": texts, "lanes": lanes}, arrays


def _lanes(timeline: StepTimeline) -> list[dict[str, Any]]:
    start = timeline.events.start
    return [
        {
            **lane._asdict(),
            "events": rows.stop - rows.start,
            "origin": int(start[rows.start] - timeline.window.start)
            if rows.stop > rows.start
            else 0,
        }
        for lane, rows in zip(timeline.lanes, timeline.rows, strict=True)
    ]


def _names(
    timelines: Sequence[StepTimeline],
) -> tuple[dict[str, Int32], list[str], Mapping[str, Int32]]:
    """The names in use, as places in texts; the texts; the new row of each row of names."""
    used: dict[str, list[Int32]] = {}
    names: dict[str, Names] = {}
    for each in timelines:
        names |= each.names
        for lane, rows in zip(each.lanes, each.rows, strict=True):
            used.setdefault(lane.kind, []).append(np.unique(each.events.what[rows]))
    ids: dict[str, int] = {}
    found, places = {}, {}
    for kind, parts in used.items():
        some = np.unique(np.concatenate(parts))
        n_rows = len(next(iter(names[kind].values())))
        places[kind] = np.full(n_rows, -1, np.int32)
        places[kind][some] = np.arange(len(some), dtype=np.int32)
        for name, column in names[kind].items():
            own = column.take(some)
            text_of = np.full(len(own.values) + 1, -1, np.int32)
            for value in np.unique(own.ids[own.ids >= 0]).tolist():
                text_of[value] = ids.setdefault(_cut(str(own.values[value])), len(ids))
            found[f"{kind}.{name}"] = text_of[own.ids]
    return found, list(ids), places


def _cut(text: str) -> str:
    """A text of at most LONGEST characters: its beginning and its end."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2 - 1
    return f"{text[:half]} … {text[-half:]}"
