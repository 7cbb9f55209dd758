"""Sums over time by the kinds of work that run, and gaps, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._sweep import Sweep
from fastprof.analysis.gpu_work import GpuWork, PartsOfWork, ns_with
from fastprof.errors import InternalError
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples

TIME = st.integers(0, 25)
WORK = st.lists(st.tuples(TIME, TIME, st.sampled_from([1, 2, 4])), max_size=12).map(sorted)
WINDOWS = st.lists(st.tuples(TIME, TIME), max_size=5)


def work_of(rows):
    start, end, kind = zip(*rows, strict=True) if rows else ((), (), ())
    return GpuWork(
        frozen(range(100, 100 + len(rows)), np.int32),
        frozen(start, np.int64),
        frozen(end, np.int64),
        frozen(kind, np.uint8),
    )


def parts_of(*parts):
    """The work of several GPUs, whose rows are numbered from 100 on."""
    work = work_of([each for part in parts for each in part])
    key = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    result = PartsOfWork(work, key)
    result.keys = np.arange(len(parts))
    result.bounds = np.searchsorted(key, np.arange(len(parts) + 1))  # of parts without work too
    return result


def sweep(rows, windows):
    return parts_of(rows).ns_by_kinds(np.zeros(len(windows[0]), np.int32), windows)


def windows_of(rows):
    array = np.array(rows, np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


def mask_at(rows, time):
    """The kinds that run in [time, time + 1)."""
    return sum({kind for start, end, kind in rows if start <= time < end})


@examples(400)
@given(WORK, WINDOWS)
def test_each_moment_of_a_window_counts_to_the_kinds_that_run(rows, windows):
    result = sweep(rows, windows_of(windows))
    assert result.shape == (len(windows), 8)
    for of_window, (begin, end) in zip(result.tolist(), windows, strict=True):
        expected = [0] * 8
        for time in range(begin, end):
            expected[mask_at(rows, time)] += 1
        assert of_window == expected


@examples(400)
@given(WORK)
def test_gaps_are_the_times_without_work(rows):
    gaps = parts_of(rows).gaps()
    last = max((max(start, end) for start, end, _ in rows), default=0)
    in_gaps = [t for a, b in zip(gaps.start, gaps.end, strict=True) for t in range(a, b)]
    first = rows[0][0] if rows else 0
    assert in_gaps == [t for t in range(first, last) if not mask_at(rows, t)]
    for begin, end, before, after in zip(*gaps, strict=True):
        assert max(*rows[before - 100][:2]) == begin
        assert rows[after - 100][0] == end
        assert all(start != end for start, *_ in rows[: after - 100])


@examples(400)
@given(WORK)
def test_each_moment_with_work_belongs_to_one_work(rows):
    expected = [0] * len(rows)
    for time in range(25):
        running = [i for i, (start, end, _) in enumerate(rows) if start <= time < end]
        if running:
            lowest = min(rows[i][2] for i in running)
            expected[next(i for i in running if rows[i][2] == lowest)] += 1
    assert parts_of(rows).own_ns().tolist() == expected


def disjoint(rows):
    """Windows that ascend and do not overlap."""
    times = sorted(time for row in rows for time in row)
    return windows_of(list(zip(times[::2], times[1::2], strict=True)))


@examples(400)
@given(WORK, WINDOWS)
def test_each_moment_with_work_in_a_window_belongs_to_one_work(rows, bounds):
    work, (begin, finish) = work_of(rows), disjoint(bounds)
    windows = list(zip(begin.tolist(), finish.tolist(), strict=True))
    expected = {
        (i, w): 0
        for i, (start, end, _) in enumerate(rows)
        for w, (first, last) in enumerate(windows)
        if last > start and (first < end or first <= start)
    }
    for w, (first, last) in enumerate(windows):
        for time in range(first, last):
            running = [i for i, (start, end, _) in enumerate(rows) if start <= time < end]
            if running:
                lowest = min(rows[i][2] for i in running)
                expected[next(i for i in running if rows[i][2] == lowest), w] += 1
    result = Sweep(work.start, work.end, work.kind).own_in(begin, finish)
    interval, window, ns = (each.tolist() for each in result)
    assert dict(zip(zip(interval, window, strict=True), ns, strict=True)) == expected
    assert list(zip(interval, window, strict=True)) == list(expected)


def test_many_works_cross_a_bound():
    rows = [(0, 25, 1)] * 40
    work, (begin, finish) = work_of(rows), windows_of([(0, 10), (10, 25)])
    interval, window, ns = Sweep(work.start, work.end, work.kind).own_in(begin, finish)
    assert len(interval) == 80 and ns[:2].tolist() == [10, 15] and not ns[2:].any()
    assert window.tolist() == [0, 1] * 40


@examples(400)
@given(WORK, WINDOWS.filter(bool), st.integers(0, 4))
def test_the_parts_of_gaps_within_windows(rows, bounds, short_ns):
    work, (begin, finish) = work_of(rows), disjoint(bounds)
    windows = list(zip(begin.tolist(), finish.tolist(), strict=True))
    every = [
        (a, b, before, after) for a, b, before, after in zip(*parts_of(rows).gaps(), strict=True)
    ]
    if rows and begin[0] < work.start[0]:
        every.insert(0, (begin[0], work.start[0], 100, 100))
    parts = [
        (max(a, first), min(b, last), before, after, w)
        for a, b, before, after in every
        for w, (first, last) in enumerate(windows)
        if last > a and first < b
    ]
    bounds = np.array([0, len(begin)])
    of_gaps, window, short = parts_of(rows).idle((begin, finish), bounds, short_ns)
    long = [part for part in parts if part[1] - part[0] >= short_ns]
    assert list(zip(*of_gaps, window, strict=True)) == long
    for w, total in enumerate(short.tolist()):
        of_window = [part for part in parts if part[4] == w and part not in long]
        assert total == sum(b - a for a, b, *_ in of_window)


@examples(200)
@given(st.lists(st.tuples(WORK, WINDOWS), min_size=1, max_size=4), st.integers(0, 4))
def test_several_gpus_are_as_each_of_them(gpus, short_ns):
    work = parts_of(*[rows for rows, _ in gpus])
    alone = [parts_of(rows) for rows, _ in gpus]
    assert work.own_ns().tolist() == [ns for each in alone for ns in each.own_ns().tolist()]
    assert list(zip(*work.spans, strict=True)) == [
        (b[0], e[0]) for b, e in (a.spans for a in alone)
    ]
    first = np.cumsum([0, *(len(rows) for rows, _ in gpus)])
    expected = [
        (start, end, before + add, after + add)
        for each, add in zip(alone, first.tolist(), strict=False)
        for start, end, before, after in zip(*each.gaps(), strict=True)
    ]
    assert list(zip(*work.gaps(), strict=True)) == expected
    times = [windows_of(rows) for _, rows in gpus]
    part = np.repeat(np.arange(len(gpus), dtype=np.int32), [len(begin) for begin, _ in times])
    both = tuple(map(np.concatenate, zip(*times, strict=True)))
    own = [sweep(rows, each) for (rows, _), each in zip(gpus, times, strict=True)]
    order = np.random.default_rng(0).permutation(len(part))
    swept = work.ns_by_kinds(part[order], (both[0][order], both[1][order]))
    assert np.array_equal(swept, np.concatenate(own)[order])
    apart = [disjoint(rows) for _, rows in gpus]
    bounds = np.cumsum([0, *(len(begin) for begin, _ in apart)])
    gaps, window, short = work.idle(
        tuple(map(np.concatenate, zip(*apart, strict=True))), bounds, short_ns
    )
    parts, sums = [], []
    for i, (each, windows) in enumerate(zip(alone, apart, strict=True)):
        result = each.idle(windows, np.array([0, len(windows[0])]), short_ns)
        for start, end, before, after, place in zip(*result[0], result[1], strict=True):
            parts.append((start, end, before + first[i], after + first[i], place + bounds[i]))
        sums += result[2].tolist()
    assert list(zip(*gaps, window, strict=True)) == parts
    assert short.tolist() == sums


def test_bounds_that_do_not_fit_are_refused():
    work = work_of([(0, 5, 1), (1, 6, 1)])
    for bounds in ([0, 1], [1, 2], [0, 2, 1, 2], [], [[0, 2]]):
        with pytest.raises(ValueError, match="no bounds of parts of 2 rows"):
            Sweep(work.start, work.end, work.kind, np.array(bounds, np.int64))
    several = Sweep(work.start, work.end, work.kind, np.array([0, 1, 2]))
    time = np.array([0, 5])
    with pytest.raises(ValueError, match="no bounds of parts"):
        several.until(time)
    with pytest.raises(ValueError, match="several parts"):
        several.own_in(time[:1], time[1:])


def test_unions_of_kinds():
    rows = [(0, 10, 1), (5, 20, 2), (8, 30, 4)]
    result = sweep(rows, windows_of([(0, 40)]))
    assert ns_with(result, 1).tolist() == [10]
    assert ns_with(result, 2, without=1).tolist() == [10]
    assert ns_with(result, 4, without=1 | 2).tolist() == [10]
    assert result[0, 0] == 10


def test_times_at_the_limits():
    rows = [(INT64_MIN, INT64_MIN + 5, 1), (INT64_MAX - 3, INT64_MAX, 2)]
    windows = windows_of([(INT64_MIN, 0), (1, INT64_MAX)])
    result = sweep(rows, windows)
    assert result[0].tolist() == [INT64_MAX - 4, 5, 0, 0, 0, 0, 0, 0]
    assert result[1].tolist() == [INT64_MAX - 4, 0, 3, 0, 0, 0, 0, 0]


def test_input_out_of_order_is_rejected():
    start, kind = frozen([2, 1], np.int64), frozen([1, 1], np.uint8)
    times = frozen([0, 5], np.int64)
    unsorted = Sweep(start, start, kind)
    with pytest.raises(InternalError):
        unsorted.until(times)
    with pytest.raises(InternalError):
        unsorted.gaps()
    with pytest.raises(InternalError):
        Sweep(times, times, kind).until(start)
    with pytest.raises(InternalError):
        Sweep(times, times, frozen([1, 8], np.uint8)).until(times)
    with pytest.raises(ValueError, match="lengths differ"):
        Sweep(times, times, kind[:1])
    for wrong in ((start, start, times, times), (times, times, start, start)):
        with pytest.raises(InternalError):
            Sweep(*wrong[:2], kind).own_in(*wrong[2:])
        with pytest.raises(InternalError):
            Sweep(*wrong[:2], kind).idle(0, *wrong[2:], 1)
    with pytest.raises(ValueError, match="lengths differ"):
        Sweep(times, times, kind).own_in(times, times[:1])
    with pytest.raises(ValueError, match="lengths differ"):
        Sweep(times, times, kind).idle(0, times, times[:1], 1)
