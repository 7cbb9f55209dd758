"""The time line of a step or of any stretch of a capture, as lanes of events; which to offer.

```python
timelines = StepTimelines(profile)
timeline = timelines.between(timelines.choices()[0].window)
for lane, rows in zip(timeline.lanes, timeline.rows):
    start = timeline.events.start[rows] - timeline.window.start
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple, dataclass
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.keys import key_of
from fastprof.analysis.timeline.lanes import (
    EventRuns,
    Lane,
    LaneEvents,
    LaneSources,
    TimeWindow,
    lanes_between,
    merged,
    pixel_for,
    single,
)
from fastprof.model.arrays import Int32, Int64, rows_by
from fastprof.model.columns import Values
from fastprof.model.markers import Kind, Meaning
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.api_classes import class_of
from fastprof.profile.data import ProfileData
from fastprof.profile.range_columns import params_of
from fastprof.profile.steps.kernel_steps import StepsOfKernels

EVENTS: Final = 50_000  # of a time line, before neighbours are merged
Names = Mapping[str, Values]


@dataclass(frozen=True, eq=False)
class StepTimeline:
    """The events of a window, lane by lane.

    Parameters
    ----------
    window : ns on the clock of the trace
    lanes : GPUs first, then threads
    rows : the events of each lane, in order of start
    events : those of all lanes; `what` indexes `names` of the kind of the lane; `row` is a row of
        the kernels (work), of `profile.ranges`, `profile.api` or `profile.os_calls`; of idle time,
        the kernel that ends it
    link : int32 [events]
        Of work, the event that launched it; of idle time, the work that ends it; -1 if not known or
        not included.
    forward : int32 [events]
        Of backward work, the first work of its forward call; -1 if none is included.
    names : by kind of lane and column, values [whats]
    pixel : ns; shorter neighbours are merged into runs. 0: every event is exact
    sums : for each lane, events and ns inside the window by kind, int64 [kinds] each, exact; kinds
        are ids of `names[...]["kind"]`, the last is unknown
    n_recorded : events before merging
    n_deep : ranges below the deepest level, which are omitted
    n_omitted : lanes omitted because there are too many
    """

    window: TimeWindow
    lanes: list[Lane]
    rows: list[slice]
    events: LaneEvents
    link: Int32
    forward: Int32
    names: Mapping[str, Names]
    pixel: int
    sums: list[tuple[Int64, Int64]]
    n_recorded: int
    n_deep: int
    n_omitted: int


class StepTimelines:
    """The time lines of a profile.

    Attributes
    ----------
    recorded : Recorded
        Whether the file has a GPU side and a host side.
    """

    def __init__(self, profile: ProfileData) -> None:
        """Reads the file again on first use of the host side.

        Raises
        ------
        BadInputError
            The file has changed since it was read.
        """
        self.profile, self.recorded = profile, LaneSources(profile)
        self._names: dict[str, Names] = {}

    def choices(self, steps: str | None = None, most: int = EVENTS) -> list[Choice]:
        """Windows worth a look, the best one first; empty if the file has no times.

        steps : see `Profile.find_steps`
        most : windows of more events are preceded by their first stretch

        Raises
        ------
        StepsError
            The source of steps is unknown, or the file has no such steps.
        """
        return choices_of(self.recorded, steps, most)

    def between(self, window: TimeWindow, most: int = EVENTS) -> StepTimeline:
        """The time line of a window.

        most : above this number of events, short neighbours are merged
        """
        selection = lanes_between(self.recorded, window)
        lanes = [lane for lane, _ in selection.lanes]
        events = [events for _, events in selection.lanes]
        pixel = pixel_for(events, window.end - window.start, most)
        names = {kind: self._names_of(kind) for kind in dict.fromkeys(lane.kind for lane in lanes)}
        kinds = {kind: _ids(name["kind"]) for kind, name in names.items()}
        runs = [
            merged(event, pixel, kinds[lane.kind])
            for lane, event in zip(lanes, events, strict=True)
        ]
        ends = np.cumsum([0, *(len(run.events.start) for run in runs)]).tolist()
        places = _Places(lanes, events, runs, ends)
        joined = [
            np.concatenate(members) for members in zip(*(e.events for e in runs), strict=True)
        ]
        together = LaneEvents._make(joined) if runs else _NO_EVENTS
        rows = [slice(first, last) for first, last in pairwise(ends)]
        return StepTimeline(
            window, lanes, rows, together, _links(self.profile, lanes, rows, together, places),
            _forward(self.profile, lanes, rows, together, places), names, pixel,
            [_sums(events, kinds[lane.kind], window) for lane, events in selection.lanes],
            sum(len(part.start) for part in events), selection.n_deep, selection.n_omitted,
        )  # fmt: skip

    def _names_of(self, kind: str) -> Names:
        if kind not in self._names:
            self._names[kind] = _NAMES[kind](self.profile)
        return self._names[kind]


_NO_TIMES: Final = np.empty(0, np.int64)
_NO_EVENTS: Final = single(_NO_TIMES, _NO_TIMES, np.empty(0, np.int32), _NO_TIMES)


def _sums(events: LaneEvents, kinds: Int32, window: TimeWindow) -> tuple[Int64, Int64]:
    """Events and their time inside the window by kind."""
    kind, n = kinds[events.what], int(kinds.max(initial=-1)) + 1
    inside = np.minimum(events.end, window.end) - np.maximum(events.start, window.start)
    ns = np.bincount(kind, np.maximum(inside, 0), n)
    return np.bincount(kind, minlength=n).astype(np.int64), ns.astype(np.int64)


def _ids(column: Values) -> Int32:
    """The ids of the values; unknown ones have the next."""
    return np.where(column.ids < 0, np.int32(len(column.values)), column.ids)


def _of_work(profile: ProfileData) -> Names:
    cells = cells_of(profile)
    keys = ("kind", "kernel", "op", "shape", "dir", "layer", "line")
    return {key: key_of(cells, key) for key in keys}


def _of_ranges(profile: ProfileData) -> Names:
    meanings = profile.ranges.meanings
    labels = Values(np.arange(len(meanings), dtype=np.int32), meanings)
    return {
        "kind": labels.mapped(lambda meaning: _KINDS[meaning.kind]),
        "name": labels.mapped(_name),
        "shape": labels.mapped(params_of),
    }


_KINDS: Final = {
    Kind.USER: "range",
    Kind.ARGUMENT: "operator",
    Kind.MODULE: "layer",
    Kind.TRACE: "source line",
    Kind.LAYER: "layer",
    Kind.TORCH: "operator",
    Kind.FRAME: "Python",
    Kind.HIDDEN: "Python",
}


def _name(meaning: Meaning) -> str:
    if meaning.kind == Kind.ARGUMENT and meaning.call is not None:
        return f"{meaning.call.mod}.{meaning.call.op}"
    if meaning.kind == Kind.TRACE and meaning.frames:
        return meaning.frames[-1]
    return meaning.name


def _of_calls(profile: ProfileData) -> Names:
    values = profile.api.name.values
    names = Values(np.arange(len(values), dtype=np.int32), values)
    return {"kind": names.mapped(class_of), "name": names}


def _of_system(profile: ProfileData) -> Names:
    names = [*profile.os_calls.name.values, "switched out"]
    kinds = np.zeros(len(names), np.int32)
    kinds[-1] = 1
    return {
        "kind": Values(kinds, ["operating system", "switched out"]),
        "name": Values(np.arange(len(names), dtype=np.int32), names),
    }


def _of_idle(_: ProfileData) -> Names:
    causes = Values(np.arange(len(CAUSES), dtype=np.int32), list(CAUSES))
    return {"kind": causes, "name": causes}


_NAMES: Final = {
    "work": _of_work,
    "ranges": _of_ranges,
    "calls": _of_calls,
    "system": _of_system,
    "idle": _of_idle,
}


class _Places:
    """The event that contains each row of a table, after merging."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        events: Sequence[LaneEvents],
        runs: Sequence[EventRuns],
        first: Sequence[int],
    ) -> None:
        self._of: dict[str, tuple[Int64, Int64]] = {}
        for kind in ("work", "calls"):
            own = [i for i, lane in enumerate(lanes) if lane.kind == kind]
            rows = np.concatenate([_NO_EVENTS.row, *(events[i].row for i in own)])
            place = np.concatenate([_NO_EVENTS.row, *(runs[i].place + first[i] for i in own)])
            order = np.argsort(rows, kind="stable")
            self._of[kind] = rows[order], place[order]

    def of(self, kind: str, rows: Int64 | Int32) -> Int32:
        """The event of each row of the table of a kind of lane, -1 for none."""
        known, place = self._of[kind]
        at = np.searchsorted(known, rows)
        result = np.append(known, -2)[at] == rows
        return np.where(result, np.append(place, -1)[at], -1).astype(np.int32)


def _links(
    profile: ProfileData, lanes: list[Lane], rows: list[slice], events: LaneEvents, places: _Places
) -> Int32:
    link = np.full(len(events.start), -1, np.int32)
    for lane, own in zip(lanes, rows, strict=True):
        is_single = events.counts[own] == 1
        if lane.kind == "work" and len(profile.api):
            launch = profile.api.of_kernel[events.row[own]]
            link[own] = np.where(is_single, places.of("calls", launch), -1)
        elif lane.kind == "idle":
            link[own] = np.where(is_single, places.of("work", events.row[own]), -1)
    return link


def _forward(
    profile: ProfileData, lanes: list[Lane], rows: list[slice], events: LaneEvents, places: _Places
) -> Int32:
    """[events] The first work of the forward call of backward work."""
    result = np.full(len(events.start), -1, np.int32)
    of_work = [own for lane, own in zip(lanes, rows, strict=True) if lane.kind == "work"]
    if not of_work or not len(profile.ranges):
        return result
    place = np.concatenate([np.arange(own.start, own.stop) for own in of_work])
    place = place[events.counts[place] == 1]
    row = events.row[place]
    backward = texts(profile, "dir").take(row).fits(lambda name: name == "bprop")
    target = _first_launched(profile, profile.source.forward_ranges[row[backward]], row)
    result[place[backward]] = places.of("work", target)
    return result


def _first_launched(profile: ProfileData, ranges: Int32, work: Int64) -> Int64:
    """The first forward work launched in each range on its thread, a kernel row; -1 for none.

    work : the kernel rows to choose from
    """
    instances, launch = profile.ranges, numbers(profile, "launch_start")
    is_forward = texts(profile, "dir").take(work).fits(lambda name: name == "fprop")
    work = work[is_forward & (launch[work] != NO_TIME)]
    thread = take(profile.api.thread, profile.api.of_kernel[work])
    result = np.full(len(ranges), -1, np.int64)
    of_thread = take(instances.thread, ranges)
    work_of = dict(rows_by(thread))
    for number, some in rows_by(of_thread):
        if number < 0 or number not in work_of:
            continue
        own = work[work_of[number]]
        own = own[np.argsort(launch[own], kind="stable")]
        start, end = instances.start[ranges[some]], instances.end[ranges[some]]
        at = np.searchsorted(launch[own], start)
        first = np.append(own, -1)[at]
        inside = (first >= 0) & (launch[np.maximum(first, 0)] < end)
        result[some] = np.where(inside, first, -1)
    return result


class Choice(NamedTuple):
    """A stretch to show.

    Parameters
    ----------
    title : such as "step 12 (median)"
    window : from its first to its last event of host or GPU, ns
    gpu : the step on the GPU, as in the report `steps`, ns; the window if not known
    is_step : whether it is a step
    """

    title: str
    window: TimeWindow
    gpu: TimeWindow
    is_step: bool


def choices_of(recorded: LaneSources, steps: str | None, most: int) -> list[Choice]:
    """The median, the slowest and the first step, without repetition; else the capture.

    A stretch of more than `most` events is preceded by its first `most` ones.
    """
    if not (recorded.has_gpu or recorded.has_host):
        return []
    kernels = recorded.profile.find_steps(steps) if recorded.has_gpu else None
    starts = _starts(recorded)
    chosen = (
        _of_capture(recorded) if kernels is None or kernels.source == "none" else _of_steps(kernels)
    )
    if not chosen:
        chosen = _of_capture(recorded)
    first = chosen[0]
    end = _end_of_first(starts, first.window, most)
    if end < first.window.end:
        window = TimeWindow(first.window.start, end)
        name = "start of the capture" if not first.is_step else f"start of {first.title}"
        chosen.insert(0, Choice(name, window, window, False))
    return chosen


def _of_capture(recorded: LaneSources) -> list[Choice]:
    """From the first to the last event; with a GPU side, of its work and their launches."""
    profile = recorded.profile
    if recorded.has_gpu:
        start, launch = numbers(profile, "start"), numbers(profile, "launch_start")
        launched = launch[launch != NO_TIME]
        first = min(int(start.min()), int(launched.min(initial=NEVER)))
        window = TimeWindow(first, int(recorded.end.max()))
    else:
        tables = [each for each in (profile.ranges, profile.api) if len(each)]
        ends = np.concatenate([np.where(t.end == NEVER, t.start, t.end) for t in tables])
        window = TimeWindow(min(int(t.start[0]) for t in tables), int(ends.max()))
    return [Choice("entire capture", window, window, False)]


def _of_steps(steps: StepsOfKernels) -> list[Choice]:
    length = np.where(steps.gpu_length >= 0, steps.gpu_length, steps.length)
    known = np.flatnonzero((length >= 0) & (steps.gpu_end != NO_TIME))
    counted = known[steps.is_counted[known]]
    counted = counted if len(counted) else known
    if not len(counted):
        return []
    order = counted[np.argsort(length[counted], kind="stable")]
    names: dict[int, list[str]] = {}
    for row, name in (
        (int(order[(len(order) - 1) // 2]), "median"),
        (int(order[-1]), "slowest"),
        (int(known[0]), "first"),
    ):
        names.setdefault(row, []).append(name)
    several = len(np.unique(steps.pid)) > 1
    return [
        Choice(
            f"step {int(steps.number[row])}"
            + (f" of process {int(steps.pid[row])}" if several else "")
            + f" ({', '.join(name)})",
            *_windows(steps, row, int(length[row])),
            True,
        )
        for row, name in names.items()
    ]


def _windows(steps: StepsOfKernels, row: int, length: int) -> tuple[TimeWindow, TimeWindow]:
    """The window of a step, and its part on the GPU."""
    end = int(steps.gpu_end[row])
    begin = end - length if steps.gpu_length[row] >= 0 else int(steps.gpu_start[row])
    host = int(steps.start[row])
    start = min(begin, host) if host != NO_TIME else begin
    return TimeWindow(start, max(end, int(steps.end[row]))), TimeWindow(begin, end)


def _starts(recorded: LaneSources) -> list[Int64]:
    """The starts of all events, in order, by table."""
    profile, starts = recorded.profile, []
    if recorded.has_gpu:
        # Work, and about two parts of idle time before it.
        starts += [numbers(profile, "start")] * _PARTS
    if recorded.has_host:
        starts += [profile.api.start, profile.ranges.start]
    return starts


_PARTS: Final = 3


def _end_of_first(starts: list[Int64], window: TimeWindow, most: int) -> int:
    """The end of the part of a window with its first `most` events."""
    inside = [array[slice(*np.searchsorted(array, window))] for array in starts]
    if sum(map(len, inside)) <= most:
        return window.end
    return int(np.partition(np.concatenate(inside), most)[most])
