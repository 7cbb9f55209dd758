"""The sweep against the definition: ranges begun and not ended, outermost first."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from fastprof._core import _nest
from fastprof.errors import BadInputError, InternalError
from property.intervals import (
    INT64_MAX,
    INT64_MIN,
    Interval,
    chain,
    columns,
    crosses,
    in_order,
    intervals,
    is_open,
    nested,
)
from support.hypothesis_profiles import examples

N_THREADS = 3
RANGES = nested(N_THREADS) | intervals(N_THREADS)


def sweep(ranges, points, n_threads=N_THREADS):
    begin, _, thread = columns(points)
    return _nest.sweep(*columns(ranges), begin, thread, n_threads)


def chains(ranges, points):
    """The ranges around each range, ending with itself, and around each point."""
    parent, frame_range, of_range, of_point = sweep(ranges, points)
    assert all(-1 <= p < i for i, p in enumerate(parent))
    return [
        [[int(frame_range[frame]) for frame in chain(parent, at)] for at in frames]
        for frames in (of_range, of_point)
    ]


def open_at(ranges, t, thread):
    return [i for i, row in enumerate(ranges) if is_open(row, t, thread)]


@examples(500)
@given(RANGES, intervals(N_THREADS))
@example([Interval(0, 9), Interval(0, 9), Interval(0, 9)], [Interval(0, 9), Interval(9, 9)])
@example([Interval(0, 5), Interval(5, 9), Interval(5, 5)], [Interval(5, 5), Interval(5, 9)])
@example([Interval(0, 5), Interval(1, 6), Interval(2, 7)], [Interval(5, 5), Interval(6, 9)])
@example([Interval(INT64_MIN, INT64_MAX)], [Interval(INT64_MAX, INT64_MAX)])
@example([Interval(INT64_MAX, INT64_MAX)], [Interval(INT64_MIN, INT64_MAX)])
def test_a_chain_is_all_that_was_open_outermost_first(ranges, points):
    of_range, of_point = chains(ranges, points)
    assert of_point == [open_at(ranges, point.start, point.thread) for point in points]
    assert of_range == [
        [*open_at(ranges[:i], row.start, row.thread), i] for i, row in enumerate(ranges)
    ]


@examples(300)
@given(nested(N_THREADS), intervals(N_THREADS))
@example([Interval(0, 5), Interval(5, 9), Interval(5, 5)], [])
@example([Interval(0, 5, 0), Interval(0, 9, 1), Interval(4, 9, 2)], [])
@example([Interval(INT64_MIN, 0), Interval(0, INT64_MAX)], [])
def test_where_ranges_nest_frame_i_is_range_i(ranges, points):
    parent, frame_range, of_range, _ = sweep(ranges, points)
    assert frame_range.tolist() == of_range.tolist() == list(range(len(ranges)))
    for i, row in enumerate(ranges):
        assert parent[i] == [-1, *open_at(ranges[:i], row.start, row.thread)][-1]


@examples(300)
@given(intervals(N_THREADS, st.integers(0, 30)), intervals(N_THREADS, st.integers(0, 30)))
def test_a_frame_more_is_made_only_for_a_range_above_one_that_ends(ranges, points):
    n_frames = len(sweep(ranges, points)[0])
    n_crossing = sum(crosses(a, b) for a, b in combinations(ranges, 2))
    assert len(ranges) <= n_frames <= len(ranges) + n_crossing


@examples(100)
@given(intervals(N_THREADS), st.permutations(range(N_THREADS)))
def test_threads_do_not_see_each_other(ranges, other_names):
    alone = []
    for thread in range(N_THREADS):
        rows = [row for row in ranges if row.thread == thread]
        alone += [tuple(rows[at] for at in found) for found in chains(rows, [])[0]]
    renamed = [row._replace(thread=other_names[row.thread]) for row in ranges]
    together = [tuple(ranges[at] for at in found) for found in chains(renamed, [])[0]]
    assert sorted(together) == sorted(alone)


def test_nothing_is_around_nothing():
    def lists(*arguments):
        return [column.tolist() for column in sweep(*arguments)]

    assert lists([], []) == lists([], [], 0) == [[], [], [], []]
    assert lists([], [Interval(1, 2)]) == [[], [], [], [-1]]
    assert lists([Interval(1, 2)], []) == [[-1], [0], [0], []]


def test_a_call_that_outlives_the_range_it_began_in_is_in_that_range():
    assert chains([Interval(0, 10), Interval(2, 4)], [Interval(3, 6)])[1] == [[0, 1]]


def test_deep_nesting_is_swept():
    depth = 20_000
    ranges = [Interval(i, 10 * depth - i) for i in range(depth)]
    parent, _, _, of_point = sweep(ranges, [Interval(depth, depth)])
    assert parent.tolist() == list(range(-1, depth - 1))
    assert of_point.tolist() == [depth - 1]


def test_many_crossings_now_and_then_are_followed():
    ranges = [Interval(i, i + 15) for i in range(0, 30_000, 2)]
    parent, _, of_range, _ = sweep(ranges, [])
    assert len(parent) > 4 * len(ranges)
    assert len(chain(parent, of_range[-1])) == 8


def test_crossing_without_bound_is_refused_before_memory_is_full():
    n = 3000
    ranges = [Interval(i, n + i) for i in range(n)]
    points = [Interval(n + i, n + i) for i in range(n)]
    with pytest.raises(BadInputError, match=r"cross each other .* in reverse order"):
        sweep(ranges, points)
    in_reverse = [Interval(i, 3 * n - i) for i in range(n)]
    assert len(sweep(in_reverse, points)[0]) == n


@pytest.mark.parametrize(
    ("ranges", "points"),
    [
        ([Interval(0, 1, -1)], []),
        ([Interval(0, 1, N_THREADS)], []),
        ([], [Interval(0, 1, N_THREADS)]),
    ],
)
def test_a_thread_that_is_not_there_is_an_internal_error(ranges, points):
    with pytest.raises(InternalError, match="nesting ranges"):
        sweep(ranges, points)


def test_a_point_whose_thread_is_not_known_is_in_no_range():
    ranges = [Interval(0, 9, thread) for thread in range(N_THREADS)]
    points = [Interval(1, 1, 0), Interval(2, 2, -1), Interval(3, 3, 2)]
    assert chains(ranges, points)[1] == [[0], [], [2]]


@examples(100)
@given(st.permutations([Interval(i, 20) for i in range(5)]))
def test_input_out_of_order_is_an_internal_error(rows):
    assume(rows != in_order(rows))
    for ranges, points in (rows, []), ([], rows):
        with pytest.raises(InternalError, match="not sorted"):
            sweep(ranges, points)


def test_columns_of_different_length_are_refused():
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="lengths differ"):
        _nest.sweep(two, one, np.zeros(2, np.int32), one, np.zeros(1, np.int32), 1)
