"""Time lines of steps for tests: events lane by lane as plain rows, and the arrays of a page read
back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof.analysis.step_timeline import StepTimeline
from fastprof.analysis.timeline_lanes import Lane

Numbers = npt.NDArray[np.int64]


class Row(NamedTuple):
    """An event: start and length in ns, and its name and kind."""

    start: int
    length: int
    name: str | None
    kind: str | None


def name_of(timeline: StepTimeline, lane: Lane, what: int) -> str | None:
    names = timeline.names[lane.kind]
    return (names.get("kernel") or names["name"]).at(what)


def rows(timeline: StepTimeline, kind: str, **fields: int) -> list[Row]:
    """The events of the lanes of a kind, with start relative to the window."""
    found = []
    for lane, own in zip(timeline.lanes, timeline.rows, strict=True):
        if lane.kind == kind and fields.items() <= lane._asdict().items():
            events = [each[own].tolist() for each in timeline.events]
            for start, end, _, _, what, _ in zip(*events, strict=True):
                named = name_of(timeline, lane, what)
                kinds = timeline.names[kind]["kind"]
                found.append(Row(start - timeline.window.start, end - start, named, kinds.at(what)))
    return found


def numbers(planes: npt.NDArray[np.uint8], n: int) -> Numbers:
    """Numbers of byte planes, as assets/timeline_data.js reads them."""
    found = np.zeros(n, np.int64)
    for i, plane in enumerate(planes.reshape(-1, n)) if n else ():
        found += plane.astype(np.int64) << (8 * i)
    return found


def read_back(data: dict[str, Any], arrays: dict[str, Any], i: int) -> dict[str, Any]:
    """The events of time line `i` of a chart: start, end, link, forward, count, free, titles."""
    lanes = data["lanes"][i]
    n = sum(lane["events"] for lane in lanes)
    columns = {
        name: numbers(arrays[f"{i}.{name}"], n)
        for name in ("start", "length", "what", "link", "forward", "count", "free")
        if f"{i}.{name}" in arrays
    }
    start, titles, first = np.empty(n, np.int64), [], 0
    for lane in lanes:
        own = slice(first, first + lane["events"])
        start[own] = np.cumsum(columns["start"][own]) + lane["origin"]
        column = arrays[f"{lane['kind']}.{'kernel' if lane['kind'] == 'work' else 'name'}"]
        places = column[columns["what"][own]]
        titles += [data["texts"][place] if place >= 0 else None for place in places]
        first = own.stop
    return {
        **columns,
        "start": start,
        "end": start + columns["length"],
        "link": columns["link"] - 1,
        "forward": columns["forward"] - 1,
        "title": titles,
    }
