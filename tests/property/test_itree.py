"""The interval tree against a search of all ranges, and against the sweep of one thread."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof._core import _nest
from property.intervals import (
    INT32_MAX,
    INT64_MAX,
    INT64_MIN,
    TIME,
    Interval,
    chain,
    columns,
    frozen,
    intervals,
    is_open,
)
from support.hypothesis_profiles import examples

LABELS = st.lists(st.sampled_from([0, 1, 2, 1 << 20, INT32_MAX]), min_size=20, max_size=20)


def tree_of(ranges):
    start, end, _ = columns(ranges)
    return _nest.Tree(start, end)


def open_at(ranges, t):
    return [i for i, row in enumerate(ranges) if is_open(row, t)]


@examples(300)
@given(intervals(max_size=20), st.lists(TIME, max_size=5))
@example([Interval(0, 9), Interval(0, 9), Interval(9, 9)], [0, 8, 9])
@example([Interval(INT64_MIN, INT64_MAX)], [INT64_MIN, INT64_MAX - 1, INT64_MAX])
def test_all_that_is_open_is_found_and_in_order(ranges, instants):
    tree = tree_of(ranges)
    for t in instants:
        result = tree.open_at(t)
        assert result.dtype == np.int32
        assert result.tolist() == open_at(ranges, t)


@examples(300)
@given(intervals(max_size=20), LABELS, st.lists(TIME, max_size=8))
def test_a_node_is_one_distinct_chain_of_labels(ranges, labels, instants):
    label, t = frozen(labels[: len(ranges)], np.int32), frozen(instants, np.int64)
    node, node_parent, node_label = tree_of(ranges).nodes(label, t)
    chains = [tuple(labels[i] for i in open_at(ranges, t)) for t in instants]
    assert [tuple(int(node_label[i]) for i in chain(node_parent, at)) for at in node] == chains
    distinct = {found[:n] for found in chains for n in range(1, len(found) + 1)}
    assert len(node_parent) == len(node_label) == len(distinct)
    assert all(-1 <= p < i for i, p in enumerate(node_parent))


@examples(300)
@given(intervals(max_size=20), intervals())
def test_sweep_and_tree_say_the_same_of_one_thread(ranges, points):
    begin, _, thread = columns(points)
    parent, frame_range, _, of_point = _nest.sweep(*columns(ranges), begin, thread, 1)
    tree = tree_of(ranges)
    for point, frame in zip(points, of_point, strict=True):
        swept = [int(frame_range[at]) for at in chain(parent, frame)]
        assert swept == tree.open_at(point.start).tolist()


def test_nothing_is_open_in_an_empty_tree():
    tree, nothing = tree_of([]), frozen([], np.int32)
    assert tree.open_at(0).tolist() == []
    assert [x.tolist() for x in tree.nodes(nothing, frozen([0], np.int64))] == [[-1], [], []]
    one = tree_of([Interval(0, 1)])
    assert [x.tolist() for x in one.nodes(frozen([7], np.int32), frozen([], np.int64))] == [[]] * 3


def test_one_range_around_everything_is_found_among_many():
    ranges = [Interval(0, 10**6)] + [Interval(i, i + 1) for i in range(1, 50_000)]
    tree = tree_of(ranges)
    assert tree.open_at(49_000).tolist() == [0, 49_000]
    assert tree.open_at(500_000).tolist() == [0]
    assert tree.open_at(10**6).tolist() == []


def test_the_tree_keeps_the_columns_it_was_made_of():
    start, end = np.array([1], np.int64), np.array([5], np.int64)
    tree = _nest.Tree(start, end)
    del start, end
    np.full(1000, 7, np.int64)
    assert tree.open_at(4).tolist() == [0]


def test_columns_of_different_length_are_refused():
    one, two = np.zeros(1, np.int64), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="lengths differ"):
        _nest.Tree(one, two)
    with pytest.raises(ValueError, match="expected 1 labels, found 2"):
        _nest.Tree(one, one).nodes(np.zeros(2, np.int32), one)
