"""Events by thread and by group of threads against plain loops."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core import _grouped
from fastprof.errors import InternalError
from property.intervals import frozen
from support.hypothesis_profiles import examples

N_THREADS = 4
EVENT = st.tuples(st.integers(0, 30), st.integers(-2, 9), st.integers(-1, N_THREADS - 1))


@st.composite
def events(draw):
    """Start, end and thread of events in order of start."""
    return [(a, a + length, thread) for a, length, thread in sorted(draw(st.lists(EVENT)))]


def arrays(rows):
    start, end, thread = np.array(rows, np.int64).reshape(-1, 3).T
    return frozen(thread, np.int32), frozen(start, np.int64), frozen(end, np.int64)


@examples(200)
@given(events())
def test_events_of_a_thread_keep_their_order(rows):
    thread, start, end = arrays(rows)
    starts, until, bounds, order = _grouped.by_thread(thread, start, end, N_THREADS)
    assert starts.tolist() == start[order].tolist()
    for i in range(N_THREADS):
        own = slice(bounds[i], bounds[i + 1])
        assert order[own].tolist() == np.flatnonzero(thread == i).tolist()
        assert until[own].tolist() == list(accumulate(end[order[own]].tolist(), max))
    assert bounds[-1] == len(order) == np.count_nonzero(thread >= 0)
    only_starts = _grouped.by_thread(thread, start, None, N_THREADS)
    assert only_starts[1] is not None and only_starts[1].tolist() == starts.tolist()


def busy(spans):
    """The instants within spans."""
    return {time for start, end in spans for time in range(start, end)}


@examples(200)
@given(events(), st.lists(st.integers(0, 1), min_size=N_THREADS, max_size=N_THREADS), st.data())
def test_a_group_is_busy_as_long_as_its_threads(rows, group, data):
    label = data.draw(st.lists(st.integers(-1, 2), min_size=len(rows), max_size=len(rows)))
    wanted = np.array([True, False, True])
    thread, start, end = arrays(rows)
    groups = np.array(group, np.int32)
    result = _grouped.united(thread, start, end, groups, 2, np.array(label, np.int32), wanted)
    starts, ends, bounds = result
    for i in range(2):
        own = slice(bounds[i], bounds[i + 1])
        members = [
            (a, b) for (a, b, t), name in zip(rows, label, strict=True)
            if t >= 0 and group[t] == i and name in (0, 2)
        ]  # fmt: skip
        united = list(zip(starts[own].tolist(), ends[own].tolist(), strict=True))
        assert busy(united) == busy(members)
        assert sorted(ends[own].tolist()) == ends[own].tolist()
        assert len(set(ends[own].tolist())) == len(united)
    assert bounds[-1] == len(starts)


@st.composite
def windows(draw):
    """Windows in order, which do not overlap."""
    times = sorted(draw(st.lists(st.integers(-3, 40), max_size=12)))
    return list(zip(times[::2], times[1::2], strict=False))


@examples(200)
@given(events(), windows(), st.data())
def test_events_overlap_windows(rows, times, data):
    label = data.draw(st.lists(st.integers(-1, 2), min_size=len(rows), max_size=len(rows)))
    overlap = [
        any(begin < end and start < until for begin, until in times) for start, end, _ in rows
    ]
    _, start, end = arrays(rows)
    columns = tuple(frozen(column, np.int64) for column in zip(*times, strict=True)) or (
        np.zeros((2, 0), np.int64)
    )
    assert _grouped.overlapping(start, end, columns).tolist() == np.flatnonzero(overlap).tolist()
    wanted = np.array([True, False, True])
    result = _grouped.overlapping(start, end, columns, np.array(label, np.int32), wanted)
    chosen = [is_in and name in (0, 2) for is_in, name in zip(overlap, label, strict=True)]
    assert result.tolist() == np.flatnonzero(chosen).tolist()


def test_events_out_of_order_and_labels_out_of_bounds_are_refused():
    times, window = np.array([5, 4]), (np.array([0]), np.array([9]))
    with pytest.raises(InternalError):
        _grouped.overlapping(times, times + 1, window)
    label = np.array([0, 1], np.int32)
    with pytest.raises(InternalError):
        _grouped.overlapping(np.sort(times), times + 9, window, label, np.ones(1, bool))


def test_threads_groups_and_labels_out_of_bounds_are_refused():
    one, times = np.zeros(1, np.int32), np.zeros(1, np.int64)
    none = np.zeros(0, np.int32)
    with pytest.raises(InternalError):
        _grouped.by_thread(one, times, times, 0)
    with pytest.raises(InternalError):
        _grouped.united(one, times, times, none, 0)
    with pytest.raises(InternalError):
        _grouped.united(one, times, times, one + np.int32(1), 1)
    with pytest.raises(InternalError):
        _grouped.united(one, times, times, one, 1, one, np.zeros(0, bool))
