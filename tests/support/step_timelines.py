"""Time lines of steps for tests: events lane by lane as plain rows, and the arrays of a page read
back."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastprof.analysis.timeline.build import StepTimeline
from fastprof.analysis.timeline.lanes import Lane, LaneEvents

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
    result = []
    for lane, own in zip(timeline.lanes, timeline.rows, strict=True):
        if lane.kind == kind and fields.items() <= lane._asdict().items():
            events = [event[own].tolist() for event in timeline.events]
            for start, end, _, _, what, _ in zip(*events, strict=True):
                named = name_of(timeline, lane, what)
                kinds = timeline.names[kind]["kind"]
                result.append(
                    Row(start - timeline.window.start, end - start, named, kinds.at(what))
                )
    return result


def numbers(planes: npt.NDArray[np.uint8], n: int) -> Numbers:
    """Numbers of byte planes, as assets/timeline_data.js reads them."""
    zeros = np.zeros(n, np.int64)
    for i, plane in enumerate(planes.reshape(-1, n)) if n else ():
        zeros += plane.astype(np.int64) << (8 * i)
    return zeros


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


def check_merged(merged: StepTimeline, exact: StepTimeline, most: int) -> None:
    """Merged events keep the number and time of events, and all gaps as long as a pixel."""
    assert merged.lanes == exact.lanes
    assert merged.n_recorded == len(exact.events.start)
    assert (merged.pixel == 0) == (len(exact.events.start) <= most)
    for of_runs, of_events in zip(merged.rows, exact.rows, strict=True):
        runs = LaneEvents._make(event[of_runs] for event in merged.events)
        events = LaneEvents._make(event[of_events] for event in exact.events)
        first = np.cumsum(runs.counts) - runs.counts
        assert runs.counts.sum() == len(events.start)
        assert (runs.start == events.start[first]).all()
        assert (runs.end == np.maximum.reduceat(events.end, first)).all()
        assert (runs.busy <= runs.end - runs.start).all()
        assert ((runs.end - runs.start)[runs.counts > 1] <= 2 * merged.pixel).all()
        gap = events.start[1:] - np.maximum.accumulate(events.end)[:-1]
        begins = np.isin(np.arange(1, len(events.start)), first)
        assert begins[gap >= max(merged.pixel, 1)].all() or not merged.pixel
        if not (gap < 0).any():
            assert runs.busy.sum() == (events.end - events.start).sum()
    for result, wanted in zip(merged.sums, exact.sums, strict=True):
        assert all(map(np.array_equal, result, wanted))
