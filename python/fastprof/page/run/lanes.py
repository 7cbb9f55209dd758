"""Section: the ranks on one time line: the chain of each, and the calls of its streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Int64
from fastprof.model.numbers import quantity
from fastprof.page.run.lane_arrays import Instance, RunEvents, lane_arrays
from fastprof.page.section import Chart, Section
from fastprof.ranks.run.pictures import (
    ChainSlices,
    StepWaits,
    chain_slices,
    chosen_ranks,
    slowest_step,
)
from fastprof.ranks.run.record import CallSignature, Label
from fastprof.ranks.run.result import RunData

_MOST_RANKS: Final = 64
_FEWEST_RANKS: Final = 4
_MOST_EVENTS: Final = 300_000  # slices and calls: some 5 MB of a page
_ASSETS: Final = (
    "timeline.css", "run.css", "timeline_data.js", "timeline_draw.js", "timeline_view.js",
    "lanes_data.js", "lanes_draw.js",
)  # fmt: skip


class _Range(NamedTuple):
    """Steps from `first` to `last`, inclusive; their time on the clock of the run."""

    first: int
    last: int
    start: int
    end: int


def section(run: RunData, waits: StepWaits) -> Section:
    """A lane for each rank; a click opens it to its streams."""
    title = "Ranks on one clock"
    if not len(waits.steps):
        return Section("time-line", title, missing=["no steps are known"])
    ranks = chosen_ranks(run, waits, _MOST_RANKS)
    slices = {rank: chain_slices(run, rank) for rank in ranks}
    slowest = slowest_step(waits)
    chosen = _Range(slowest, slowest, int(waits.start[slowest]), int(waits.end[slowest]))
    while _n_events(run, slices, chosen) > _MOST_EVENTS and len(ranks) > _FEWEST_RANKS:
        ranks = chosen_ranks(run, waits, len(ranks) // 2)
        slices = {rank: slices.get(rank) or chain_slices(run, rank) for rank in ranks}
    chosen = _widened(run, waits, slices, chosen)
    lead = [*_lead(run, waits, chosen, len(ranks))]
    return Section("time-line", title, lead, charts=[_chart(run, waits, slices, chosen)])


def _n_events(run: RunData, slices: dict[int, ChainSlices], chosen: _Range) -> int:
    return sum(
        int(_inside(own.start, own.end, chosen).sum()) + len(_calls(run, rank, chosen))
        for rank, own in slices.items()
    )


def _inside(start: Int64, end: Int64, chosen: _Range) -> Any:
    return (end > chosen.start) & (start < chosen.end)


def _calls(run: RunData, rank: int, chosen: _Range) -> Int64:
    """The rows of RunCalls of a rank in a range."""
    waits, bounds = run.waits, run.waits.instances.calls.bounds
    first, last = int(bounds[rank]), int(bounds[rank + 1])
    own = _inside(waits.arrival[first:last], waits.end[first:last], chosen)
    return first + np.flatnonzero(own)


def _widened(
    run: RunData, waits: StepWaits, slices: dict[int, ChainSlices], chosen: _Range
) -> _Range:
    """The slowest step with as many neighbours on both sides as fit."""
    grows = True
    while grows:
        grows = False
        for first, last in ((chosen.first, chosen.last + 1), (chosen.first - 1, chosen.last)):
            if first < 0 or last >= len(waits.steps):
                continue
            start, end = waits.start[first : last + 1].min(), waits.end[first : last + 1].max()
            wider = _Range(first, last, int(start), int(end))
            if _n_events(run, slices, wider) <= _MOST_EVENTS:
                chosen, grows = wider, True
    return chosen


def _lead(run: RunData, waits: StepWaits, chosen: _Range, n_ranks: int) -> Iterator[str]:
    yield (
        "The lane of a rank shows its work other than communication, and what it waits for. Click "
        "its name to see the calls of its communication streams: red until the last rank arrives, "
        "green while data move. Point at a call or a wait to see it on all ranks."
    )
    if n_ranks < len(run):
        yield (
            f"The time line has {n_ranks} of {len(run):,} ranks: those of causes, those waited for "
            "longest, the median one, those that wait longest."
        )
    n_steps = chosen.last - chosen.first + 1
    if n_steps < len(waits.steps):
        yield (
            f"The time line has {n_steps:,} of {len(waits.steps):,} steps: the slowest and its "
            "neighbours."
        )
    yield (
        "Times are on the clock of the run. Between two events of a rank (a step, the arrival or "
        "end of a call) idle time is drawn first, then copies, then kernels."
    )


def _chart(run: RunData, waits: StepWaits, slices: dict[int, ChainSlices], chosen: _Range) -> Chart:
    pieces = {rank: own.take(_inside(own.start, own.end, chosen)) for rank, own in slices.items()}
    calls = {rank: _calls(run, rank, chosen) for rank in slices}
    events = RunEvents(run, pieces, calls, _label_text, _instance)
    data, arrays = lane_arrays(events)
    slowest = slowest_step(waits)
    places = range(chosen.first, chosen.last + 1)
    data["steps"] = [
        {
            "number": int(waits.steps[place]),
            "start": int(waits.start[place]) - events.origin,
            "end": int(waits.end[place]) - events.origin,
            "isSlowest": place == slowest,
        }
        for place in places
    ]
    number = int(waits.steps[slowest])
    length = quantity(float(waits.length[:, slowest].max()), "ns")
    return Chart(
        "lanes",
        f"Ranks on one clock; step {number} is the slowest, {length}. Drag to move; zoom with Ctrl "
        "and the wheel, or a double click.",
        data,
        arrays,
        _ASSETS,
    )


def _label_text(label: Label) -> str:
    """Operator, shapes, layer and line of a label; "" without any."""
    parts = (" ".join(filter(None, (label.op, label.shape.rstrip(",")))), label.layer, label.line)
    return " · ".join(filter(None, parts))


def _instance(signature: CallSignature) -> Instance:
    size = "" if signature.size < 0 else quantity(float(signature.size), "bytes")
    what = " ".join(filter(None, (signature.kind, size, signature.dtype)))
    group = f"group {signature.group}" if signature.group else ""
    place = (group, signature.layer, signature.line)
    return Instance(what, " · ".join(filter(None, place)))
