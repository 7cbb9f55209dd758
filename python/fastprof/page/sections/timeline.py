"""Section: what GPUs and threads do during a step, on a common time axis, as arrays of a page.

`assets/timeline_data.js` reads the arrays. Numbers of more than 8 bits are byte planes: all lowest
bytes, then all second bytes, and so on. They compress to half the size of integers, and hold more
than 32 bits.

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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.timeline.build import EVENTS, Choice, Names, StepTimeline, StepTimelines
from fastprof.analysis.timeline.lanes import LANES, LEVELS, Lane
from fastprof.model.arrays import Int32, Int64, UInt8
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Table
from fastprof.page.section import Chart, PageSource, Section
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import recorder_of_calls

_ASSETS: Final = (
    "timeline.css", "timeline_data.js", "timeline_draw.js", "timeline_view.js", "timeline_parts.js",
)  # fmt: skip
_ALL: Final = 70_000  # events of all time lines
_LEAST: Final = 20_000  # of each
_HEADINGS: Final = (
    Heading("lane", "lane", "", "GPU and stream, or thread"),
    Heading("kind", "kind", "", "kind of work or call; of idle time, its cause"),
    Heading("events", "events", "", "events that overlap the time line"),
    Heading("ns", "time", "ns", "their time inside it; events that overlap count twice"),
)


def section(source: PageSource) -> Section:
    """The time line of the median step, of the slowest and of the first."""
    profile = source.profile
    if "start" not in profile.names:
        missing = "Dict lines contain no times: open the trace from which fastprof parse made them."
        return _section(missing=[missing])
    timelines = StepTimelines(profile)
    choices = timelines.choices()
    if not choices:
        return _section(missing=["The capture contains neither GPU work nor ranges nor API calls."])
    lines, n_left = [], _ALL
    for i, each in enumerate(choices):
        most = min(EVENTS, max(_LEAST, n_left // (len(choices) - i) if i else EVENTS))
        lines.append(timelines.between(each.window, most))
        n_left -= len(lines[-1].events.start)
    # The names of threads by process and thread id.
    threads = {pair: name for pair, name in profile.about.threads.items() if name}
    data, arrays = arrays_of(lines)
    data["choices"] = [_choice(*pair) for pair in zip(choices, lines, strict=True)]
    data["threads"] = [[pid, tid, name] for (pid, tid), name in threads.items()]
    chart = Chart(
        "timeline",
        f"GPUs and threads, {choices[0].title}. Drag to move; zoom with Ctrl and the wheel, or a "
        "double click; click an event for its details.",
        data,
        arrays,
        _ASSETS,
    )
    tables = [
        (f"Time of {choice.title} by lane", _table(line, threads))
        for choice, line in zip(choices, lines, strict=True)
    ]
    lead = list(_lead(choices, lines))
    return _section(lead, [chart], tables, list(_missing(profile, timelines)))


def _section(
    lead: list[str] | None = None,
    charts: list[Chart] | None = None,
    tables: list[tuple[str, Table]] | None = None,
    missing: list[str] | None = None,
) -> Section:
    return Section(
        "time-line", "Time line of one step",
        lead=lead or (), charts=charts or (), folded=tables or (), missing=missing or (),
    )  # fmt: skip


def _choice(choice: Choice, line: StepTimeline) -> dict[str, Any]:
    begin = choice.window.start
    return {
        "title": choice.title,
        "isStep": choice.is_step,
        "length": choice.window.end - begin,
        "gpu": [choice.gpu.start - begin, choice.gpu.end - begin],
        "pixel": line.pixel,
        "recorded": line.n_recorded,
    }


def _lead(choices: list[Choice], lines: list[StepTimeline]) -> Iterator[str]:
    if not any(choice.is_step for choice in choices):
        yield (
            f"The capture has no steps: the time line shows the {choices[0].title}. Mark each step "
            "with a range."
        )
    for choice, line in zip(choices, lines, strict=True):
        if line.pixel:
            length = quantity(line.pixel, "ns")
            yield (
                f"{choice.title[:1].upper()}{choice.title[1:]}: {line.n_recorded:,} events. "
                f"Neighbours shorter than {length} are merged; gaps of {length} or more are kept."
            )
    n_deep = max(step_timeline.n_deep for step_timeline in lines)
    if n_deep:
        yield f"{n_deep:,} ranges inside {LEVELS} or more other ranges are omitted."
    n_omitted = max(step_timeline.n_omitted for step_timeline in lines)
    if n_omitted:
        yield (
            f"{n_omitted:,} lanes are omitted: the {LANES} busiest of streams and of threads are "
            "shown."
        )


def _missing(profile: ProfileData, timelines: StepTimelines) -> Iterator[str]:
    omitted = profile.source.host_omitted
    if omitted:
        yield f"{omitted}."
        return
    if not timelines.recorded.has_gpu:
        how = recorder_of_calls(profile.about)
        yield f"No GPU work is recorded. Record with {how}, or ProfilerActivity.CUDA."
    elif not len(profile.api):
        yield (
            "No API calls are recorded: launches and causes of idle time are unknown. Record with "
            f"{recorder_of_calls(profile.about, ranges=True)}, or ProfilerActivity.CPU and "
            "ProfilerActivity.CUDA."
        )
    if not len(profile.ranges):
        how = (
            ": layers and operators are unknown. Record with fastprof.init() and "
            "torch.autograd.profiler.emit_nvtx, or with torch.profiler"
            if profile.contents.program.uses_torch
            else ": open NVTX or roctx ranges around the parts of the program"
        )
        yield f"No ranges are recorded{how}."
    elsewhere = profile.ranges.n_ended_elsewhere
    if elsewhere:
        yield f"{elsewhere:,} ranges end on another thread than they start on; they are not drawn."


def _title(lane: Lane, threads: dict[tuple[int, int], str]) -> str:
    if lane.kind == "idle":
        return f"GPU {lane.device}, idle"
    if lane.kind == "work":
        return f"GPU {lane.device}, stream {lane.stream}, process {lane.pid}"
    name = threads.get((lane.pid, lane.tid))
    thread = f"thread {lane.tid}" + (f" ({name})" if name else "") + f" of process {lane.pid}"
    return f"{thread}, {lane.kind}" + (f", level {lane.level}" if lane.kind == "ranges" else "")


def _table(line: StepTimeline, threads: dict[tuple[int, int], str]) -> Table:
    """Events and time by lane and kind."""
    lanes, kinds, events, ns = [], [], [], []
    for lane, (counts, times) in zip(line.lanes, line.sums, strict=True):
        names = [*line.names[lane.kind]["kind"].values, None]
        for kind in np.flatnonzero(counts).tolist():
            lanes.append(_title(lane, threads))
            kinds.append(names[kind])
            events.append(counts[kind])
            ns.append(times[kind])
    rows = np.arange(len(lanes), dtype=np.int32)
    columns: dict[str, ColumnData] = {
        "lane": Values(rows, lanes),
        "kind": Values(rows, kinds).mapped(lambda name: name),
        "events": Ints(np.array(events, np.int64)),
        "ns": Ints(np.array(ns, np.int64)),
    }
    return Table(columns, _HEADINGS)


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
    for i, step_timeline in enumerate(timelines):
        what = np.empty(len(step_timeline.events.what), np.int32)
        for lane, rows in zip(step_timeline.lanes, step_timeline.rows, strict=True):
            what[rows] = take(places[lane.kind], step_timeline.events.what[rows])
        start, end = step_timeline.events.start, step_timeline.events.end
        delta = np.diff(start, prepend=start[:1])
        for rows in step_timeline.rows:
            delta[rows.start : rows.start + 1] = 0
        columns = {
            "start": delta,
            "length": end - start,
            "what": what,
            "link": step_timeline.link + 1,
            "forward": step_timeline.forward + 1,
        }
        if step_timeline.pixel:
            columns |= {
                "count": step_timeline.events.counts,
                "free": end - start - step_timeline.events.busy,
            }
        arrays |= {f"{i}.{name}": planes(column) for name, column in columns.items()}
        lanes.append(_lanes(step_timeline))
    columns_of = {kind: list(name) for line in timelines for kind, name in line.names.items()}
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
    for step_timeline in timelines:
        names |= step_timeline.names
        for lane, rows in zip(step_timeline.lanes, step_timeline.rows, strict=True):
            used.setdefault(lane.kind, []).append(np.unique(step_timeline.events.what[rows]))
    ids: dict[str, int] = {}
    results, places = {}, {}
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
            results[f"{kind}.{name}"] = text_of[own.ids]
    return results, list(ids), places


def _cut(text: str) -> str:
    """A text of at most LONGEST characters: its beginning and its end."""
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2 - 1
    return f"{text[:half]} … {text[-half:]}"
