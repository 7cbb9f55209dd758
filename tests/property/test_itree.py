"""The interval tree against a walk over all ranges, and against the sweep where ranges nest."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastprof import _nest, _path
from fastprof._pools import Keys
from intervals import INT32_MAX, TIME, Interval, chain, columns, encloses, frozen, intervals, nested

NAMES = st.permutations([0, 1, 2, 3, 5, 8, 13, 21, 1 << 20, 1 << 30, INT32_MAX - 1, INT32_MAX])


def tree_chains(ranges, points, names):
    """The names around each range and each point, outermost first, and the pool of frames."""
    frames = Keys()
    (start, end, _), (point_start, point_end, _) = columns(ranges), columns(points)
    of_range, of_point = _nest.tree_frames(
        start, end, frozen(names[: len(ranges)], np.int32), point_start, point_end, frames
    )
    parent, name = _path.split_keys(frames)

    def chains(of):
        return [[int(name[frame]) for frame in chain(parent, at)] for at in of]

    return chains(of_range), chains(of_point), frames


def around(ranges, inner, last=None):
    return [i for i, outer in enumerate(ranges[:last]) if encloses(outer, inner)]


@settings(max_examples=300, deadline=None)
@given(intervals(max_size=20), st.tuples(TIME, TIME))
@example([Interval(0, 9), Interval(0, 9)], (9, 0))
def test_enclosing_finds_all_and_in_order(ranges, place):
    start, end, _ = columns(ranges)
    a, b = place
    expected = [i for i, row in enumerate(ranges) if row.start <= a and row.end >= b]
    assert _nest.enclosing(start, end, a, b).tolist() == expected


@settings(max_examples=300, deadline=None)
@given(intervals(), intervals(), NAMES)
def test_a_chain_is_all_ranges_around_from_the_outside_in(ranges, points, names):
    of_range, of_point, frames = tree_chains(ranges, points, names)
    expected_of_range = [around(ranges, row, last=i + 1) for i, row in enumerate(ranges)]
    expected_of_point = [around(ranges, point) for point in points]
    assert of_range == [[names[i] for i in found] for found in expected_of_range]
    assert of_point == [[names[i] for i in found] for found in expected_of_point]
    chains = expected_of_range + expected_of_point
    distinct = {tuple(found[:n]) for found in chains for n in range(1, len(found) + 1)}
    assert len(frames) == len(distinct)


@settings(max_examples=300, deadline=None)
@given(nested(distance=1), intervals())
def test_sweep_and_tree_say_the_same_of_nested_ranges(ranges, points):
    parent, innermost, crossing = _nest.sweep(*columns(ranges), *columns(points), 1)
    of_range, of_point, frames = tree_chains(ranges, points, list(range(len(ranges))))
    assert not crossing.any()
    assert [chain(parent, i) for i in range(len(ranges))] == of_range
    assert [chain(parent, i) for i in innermost] == of_point
    assert len(frames) == len(ranges)


def test_frames_of_several_threads_share_one_pool():
    frames, one = Keys(), [Interval(0, 9), Interval(5, 12)]
    start, end, _ = columns(one)
    first = _nest.tree_frames(start, end, frozen([0, 1], np.int32), start, end, frames)
    second = _nest.tree_frames(start, end, frozen([2, 3], np.int32), start, end, frames)
    assert [x.tolist() for x in first] == [[0, 1], [0, 1]]
    assert [x.tolist() for x in second] == [[2, 3], [2, 3]]


def test_nothing_encloses_in_an_empty_tree():
    start, end, _ = columns([])
    assert _nest.enclosing(start, end, 0, 0).tolist() == []
    assert tree_chains([], [Interval(0, 0)], [])[:2] == ([], [[]])
    assert tree_chains([Interval(0, 0)], [], [7])[:2] == ([[7]], [])


def test_one_range_around_everything_is_found_among_many():
    ranges = [Interval(0, 10**6)] + [Interval(i, i + 1) for i in range(1, 50_000)]
    start, end, _ = columns(ranges)
    assert _nest.enclosing(start, end, 49_000, 49_001).tolist() == [0, 49_000]
    assert _nest.enclosing(start, end, 500_000, 500_001).tolist() == [0]
