"""The sweep against the definition: the innermost is the last that encloses."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastprof import _nest
from fastprof.errors import InternalError
from intervals import INT64_MAX, INT64_MIN, Interval, columns, crosses, encloses, intervals, nested

N_THREADS = 3
RANGES = nested(N_THREADS) | intervals(N_THREADS, max_size=6)


def sweep(ranges, points, n_threads=N_THREADS):
    parent, innermost, crossing = _nest.sweep(*columns(ranges), *columns(points), n_threads)
    return parent.tolist(), innermost.tolist(), crossing.tolist()


def last_around(ranges, inner, before=None):
    """The last of the ranges (of those before index `before`) that encloses, or -1."""
    found = [i for i, outer in enumerate(ranges[:before]) if encloses(outer, inner)]
    return found[-1] if found else -1


def crossing_threads(ranges):
    found = {a.thread for a, b in combinations(ranges, 2) if crosses(a, b)}
    return [int(thread in found) for thread in range(N_THREADS)]


@settings(max_examples=400, deadline=None)
@given(RANGES, intervals(N_THREADS))
@example([Interval(0, 9), Interval(0, 9), Interval(0, 9)], [Interval(0, 9)])
@example([Interval(0, 5), Interval(5, 9), Interval(5, 5)], [Interval(5, 5), Interval(5, 9)])
@example([Interval(INT64_MIN, INT64_MAX)], [Interval(INT64_MAX, INT64_MAX)])
@example([Interval(INT64_MAX, INT64_MAX)], [Interval(INT64_MIN, INT64_MAX)])
def test_parent_and_innermost_are_the_last_around(ranges, points):
    parent, innermost, _ = sweep(ranges, points)
    crossing = crossing_threads(ranges)
    for i, row in enumerate(ranges):
        if not crossing[row.thread]:
            assert parent[i] == last_around(ranges, row, before=i)
    for i, point in enumerate(points):
        if not crossing[point.thread]:
            assert innermost[i] == last_around(ranges, point)


@settings(max_examples=400, deadline=None)
@given(RANGES)
@example([Interval(0, 5), Interval(5, 9)])
@example([Interval(0, 5), Interval(0, 9, 1), Interval(4, 9, 1)])
@example([Interval(0, 5), Interval(4, 6), Interval(4, 4), Interval(5, 6)])
@example([Interval(INT64_MIN, 0), Interval(-1, INT64_MAX)])
def test_a_thread_is_crossing_exactly_when_two_of_its_ranges_cross(ranges):
    assert sweep(ranges, [])[2] == crossing_threads(ranges)


@settings(max_examples=100, deadline=None)
@given(intervals(1), st.integers(0, N_THREADS - 1))
def test_parents_come_before_children_even_where_ranges_cross(ranges, thread):
    ranges = [row._replace(thread=thread) for row in ranges]
    parent, innermost, _ = sweep(ranges, ranges)
    assert all(-1 <= p < i for i, p in enumerate(parent))
    assert all(-1 <= p < len(ranges) for p in innermost)


def test_nothing_is_around_nothing():
    assert sweep([], []) == ([], [], [0] * N_THREADS)
    assert sweep([], [], n_threads=0) == ([], [], [])
    assert sweep([], [Interval(1, 2)]) == ([], [-1], [0] * N_THREADS)
    assert sweep([Interval(1, 2)], []) == ([-1], [], [0] * N_THREADS)


def test_a_call_longer_than_the_inner_range_is_in_the_outer_one():
    assert sweep([Interval(0, 10), Interval(2, 4)], [Interval(3, 6)])[1] == [0]


def test_deep_nesting_is_swept():
    depth = 20_000
    ranges = [Interval(i, 10 * depth - i) for i in range(depth)]
    parent, innermost, _ = sweep(ranges, [Interval(depth, depth)])
    assert parent == list(range(-1, depth - 1))
    assert innermost == [depth - 1]


@pytest.mark.parametrize("thread", [-1, N_THREADS])
def test_a_thread_that_is_not_there_is_an_internal_error(thread):
    for ranges, points in ([Interval(0, 1, thread)], []), ([], [Interval(0, 1, thread)]):
        with pytest.raises(InternalError, match="nesting ranges"):
            sweep(ranges, points)


def test_input_out_of_order_is_an_internal_error():
    backwards = [Interval(5, 6), Interval(1, 2)]
    for ranges, points in (backwards, []), ([], backwards):
        with pytest.raises(InternalError, match="not sorted"):
            sweep(ranges, points)


def test_columns_of_different_length_are_refused():
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="lengths differ"):
        _nest.sweep(two, one, np.zeros(2, np.int32), one, one, np.zeros(1, np.int32), 1)
