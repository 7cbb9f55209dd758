"""The time line of steps of real traces against their columns and the report `idle`."""

from collections import defaultdict

import numpy as np
import pytest

from fastprof.analysis.timeline.build import StepTimeline, StepTimelines
from fastprof.analysis.timeline.lanes import LEVELS, TimeWindow
from fastprof.api.profile import Profile
from fastprof.model.trace import NEVER, NO_TIME
from real.open_traces import profile
from support.real_data import traces
from support.step_timelines import check_merged, rows

TRACES = traces("kineto/*.json.gz", "nsys/*.sqlite", "nvprof/*", "pyprof/*.sql*")
ALL = 1 << 40  # events: none are merged


def opened(path: str) -> tuple[Profile, StepTimelines, TimeWindow]:
    """The trace, and the window from its first to its last event."""
    p = profile(path, copies=True)
    starts = [each.start for each in (p.api, p.ranges) if len(each)]
    starts += [p.column("start").values] if len(p) else []
    if not starts:
        pytest.skip("no events")
    ends = [np.where(e.end == NEVER, e.start, e.end) for e in (p.api, p.ranges)]
    ends += [StepTimelines(p).recorded.end] if len(p) else []
    first, last = (
        min(int(start.min()) for start in starts),
        max(int(e.max(initial=0)) for e in ends),
    )
    return p, StepTimelines(p), TimeWindow(first - 1, last + 1)


def by_lane(timeline: StepTimeline, kind: str) -> dict[tuple[int, ...], list[tuple[int, int]]]:
    """(start, end) of the events by the numbers of their lane, sorted."""
    result: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for lane, own in zip(timeline.lanes, timeline.rows, strict=True):
        if lane.kind == kind:
            start, end = timeline.events.start[own], timeline.events.end[own]
            assert (np.diff(start) >= 0).all()
            result[lane[1:]] = sorted(zip(start.tolist(), end.tolist(), strict=True))
    return result


@pytest.mark.parametrize("path", TRACES)
def test_work_is_that_of_the_kernels(path: str) -> None:
    p, timelines, window = opened(path)
    timeline = timelines.between(window, ALL)
    wanted = defaultdict(list)
    if len(p):
        columns = [p.column(name).values.tolist() for name in ("pid", "device", "stream")]
        start, ns = p.column("start").values.tolist(), p.column("sil").values.tolist()
        for pid, device, stream, begin, length in zip(*columns, start, ns, strict=True):
            wanted[pid, device, stream, -1, 0].append((begin, begin + max(length, 0)))
    assert by_lane(timeline, "work") == {key: sorted(each) for key, each in wanted.items()}
    work = [
        own for lane, own in zip(timeline.lanes, timeline.rows, strict=True) if lane.kind == "work"
    ]
    for own in work:
        names = p.column("kernel").take(timeline.events.row[own]).array()
        lane_names = timeline.names["work"]["kernel"].take(timeline.events.what[own]).array()
        assert (names == lane_names).all()


@pytest.mark.parametrize("path", TRACES)
def test_calls_and_ranges_are_those_of_the_profile(path: str) -> None:
    p, timelines, window = opened(path)
    timeline = timelines.between(window, ALL)
    api, ranges = p.api, p.ranges
    calls, spans, n_deep = defaultdict(list), defaultdict(list), 0
    end = np.where(api.end == NEVER, api.start, api.end)
    for pid, tid, begin, until in zip(
        api.pid.tolist(), api.tid.tolist(), api.start.tolist(), end.tolist(), strict=True
    ):
        calls[pid, -1, -1, tid, 0].append((begin, until))
    end = np.where(ranges.end == NEVER, window.end, np.maximum(ranges.end, ranges.start))
    columns = ranges.pid, ranges.tid, ranges.level, ranges.start, end
    for row, (pid, tid, level, begin, until) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if row < ranges.n_own and level < LEVELS:
            spans[pid, -1, -1, tid, level].append((begin, until))
        n_deep += row < ranges.n_own and level >= LEVELS
    assert by_lane(timeline, "calls") == {key: sorted(each) for key, each in calls.items()}
    assert by_lane(timeline, "ranges") == {key: sorted(each) for key, each in spans.items()}
    assert timeline.n_deep == n_deep


@pytest.mark.parametrize("path", TRACES)
def test_idle_time_is_that_of_the_report(path: str) -> None:
    p, timelines, window = opened(path)
    if not len(p) or not timelines.recorded.has_host:
        pytest.skip("no GPU or no host side")
    timeline = timelines.between(window, ALL)
    result = {
        (device, cause): ns
        for device in p.devices
        for cause, ns in sums(timeline, "idle", device=device).items()
    }
    wanted = {(row["device"], row["cause"]): row["ns"] for row in p.trim(":").idle().rows()}
    assert result == {key: ns for key, ns in wanted.items() if ns}


def sums(timeline: StepTimeline, kind: str, **fields: int) -> dict[str | None, int]:
    result: dict[str | None, int] = defaultdict(int)
    for row in rows(timeline, kind, **fields):
        result[row.kind] += row.length
    return result


@pytest.mark.parametrize("path", TRACES)
def test_links_are_launches_and_calls(path: str) -> None:
    p, timelines, window = opened(path)
    if not len(p):
        pytest.skip("no GPU side")
    timeline = timelines.between(window, ALL)
    events = timeline.events
    launched, direction = p.column("launch_start").values, p.column("dir")
    for lane, own in zip(timeline.lanes, timeline.rows, strict=True):
        row, link, forward = events.row[own], timeline.link[own], timeline.forward[own]
        if lane.kind == "idle":
            assert (events.start[link] >= events.end[own]).all()
            assert (events.row[link] == row).all()
        if lane.kind != "work":
            continue
        known = p.api.of_kernel[row] >= 0
        assert ((link >= 0) == known).all()
        start = events.start[link[known]]
        assert (start == launched[row[known]]).all()
        assert (launched[row[known]] != NO_TIME).all()
        linked = np.flatnonzero(forward >= 0)
        assert all(direction.at(each) == "bprop" for each in row[linked].tolist())
        target = events.row[forward[linked]]
        assert all(direction.at(each) == "fprop" for each in target.tolist())
        of_call = p.source.forward_ranges[row[linked]]
        for call in np.unique(of_call)[:50].tolist():
            assert set(target[of_call == call].tolist()) == {first_launched(p, call)}


def first_launched(p: Profile, call: int) -> int:
    """The forward kernel that a range launched first on its thread."""
    ranges, begin, direction = p.ranges, p.column("launch_start").values, p.column("dir")
    inside = (begin >= ranges.start[call]) & (begin < ranges.end[call])
    result = [
        (int(begin[row]), row)
        for row in np.flatnonzero(inside).tolist()
        if direction.at(row) == "fprop"
        and p.api.thread[p.api.of_kernel[row]] == ranges.thread[call]
    ]
    return min(result)[1]


@pytest.mark.parametrize("path", TRACES)
def test_choices_contain_what_overlaps_them(path: str) -> None:
    p, timelines, _ = opened(path)
    choices = timelines.choices()
    titles = [choice.title for choice in choices]
    assert len(set(titles)) == len(titles)
    if not len(p):
        return
    start, end = p.column("start").values, timelines.recorded.end
    for choice in choices:
        begin, finish = choice.window
        assert choice.gpu.start >= begin and choice.gpu.end <= finish
        inside = ((start < finish) & (end > begin)) | ((start >= begin) & (start < finish))
        timeline = timelines.between(choice.window, ALL)
        shown = sum(map(len, by_lane(timeline, "work").values()))
        assert shown == np.count_nonzero(inside)
    steps = p.find_steps()
    if steps.source != "none":
        lengths = np.sort(steps.gpu_length[steps.is_counted & (steps.gpu_length >= 0)])
        slowest = next(choice for choice in choices if "slowest" in choice.title and choice.is_step)
        median = next(choice for choice in choices if "median" in choice.title and choice.is_step)
        assert slowest.gpu.end - slowest.gpu.start == lengths[-1]
        assert median.gpu.end - median.gpu.start == lengths[(len(lengths) - 1) // 2]


@pytest.mark.parametrize("path", TRACES)
@pytest.mark.parametrize("most", [200, 2000])
def test_merged_events_keep_time_and_gaps(path: str, most: int) -> None:
    _, timelines, window = opened(path)
    exact, merged = timelines.between(window, ALL), timelines.between(window, most)
    check_merged(merged, exact, most)
