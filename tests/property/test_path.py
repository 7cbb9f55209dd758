"""The call-path tree and values along its paths, against tuples of labels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core import _path
from fastprof.errors import InternalError
from property.intervals import INT32_MAX, chain, frozen
from support.hypothesis_profiles import examples

N_LABELS = 4
LABEL = st.integers(0, N_LABELS - 1)


@st.composite
def trees(draw, value=LABEL, max_size=20):
    """parent, before its children, and a value for each entry of a tree."""
    n = draw(st.integers(0, max_size))
    parent = [draw(st.integers(-1, i - 1)) for i in range(n)]
    return parent, [draw(value) for _ in range(n)]


def nodes(parent, label, n_labels=N_LABELS, wanted=None):
    wanted = None if wanted is None else frozen(wanted, np.uint8)
    return _path.nodes(frozen(parent, np.int32), frozen(label, np.int32), n_labels, wanted)


@examples(300)
@given(trees(), st.none() | st.lists(st.integers(0, 1), min_size=N_LABELS, max_size=N_LABELS))
def test_a_node_is_one_distinct_path_of_wanted_labels(tree, wanted):
    parent, label = tree
    of_frame, node_parent, node_label = nodes(parent, label, wanted=wanted)
    paths = [
        tuple(label[i] for i in chain(parent, frame) if wanted is None or wanted[label[i]])
        for frame in range(len(parent))
    ]
    got = [tuple(int(node_label[i]) for i in chain(node_parent, node)) for node in of_frame]
    assert got == paths
    assert len(node_parent) == len({path for path in paths if path})
    assert all(-1 <= p < i for i, p in enumerate(node_parent))


def values_around(parent, own, i):
    """The values from the root down to entry i, without -1."""
    return [own[at] for at in chain(parent, i) if own[at] != -1]


@examples(300)
@given(trees(st.sampled_from([-1, -1, 0, 1, INT32_MAX])))
def test_innermost_is_the_last_on_the_way(tree):
    parent, own = tree
    columns = frozen(parent, np.int32), frozen(own, np.int32)
    around = [values_around(parent, own, i) for i in range(len(parent))]
    assert _path.innermost(*columns).tolist() == [[-1, *found][-1] for found in around]


@examples(300)
@given(trees(), st.lists(st.sampled_from([0, 1, 2, _path.NO_RANK]), min_size=4, max_size=4))
def test_the_best_is_the_outermost_of_the_least_rank(tree, rank):
    parent, label = tree
    got = _path.best(frozen(parent, np.int32), frozen(label, np.int32), np.array(rank, np.uint8))
    for i in range(len(parent)):
        ranked = [(rank[label[at]], at) for at in chain(parent, i)]  # outermost first
        least = min(number for number, _ in ranked)
        expected = next(at for number, at in ranked if number == least)
        assert got[i] == (expected if least != _path.NO_RANK else -1)
    columns = frozen(parent, np.int32), frozen(label, np.int32), np.array(rank, np.uint8)
    ones = [at if at >= 0 and rank[label[at]] == 1 else -1 for at in got.tolist()]
    number, entries = _path.best_of_rank(*columns, 1)
    assert entries.tolist() == sorted({at for at in ones if at >= 0})
    assert [entries[i] if i >= 0 else -1 for i in number] == ones


@examples(300)
@given(trees(), st.lists(st.integers(0, 1), min_size=N_LABELS, max_size=N_LABELS))
def test_the_nearest_is_the_innermost_of_a_wanted_label(tree, wanted):
    parent, label = tree
    columns = frozen(parent, np.int32), frozen(label, np.int32)
    expected = [
        [-1, *(at for at in chain(parent, i) if wanted[label[at]])][-1] for i in range(len(parent))
    ]
    assert _path.nearest(*columns, np.array(wanted, np.uint8)).tolist() == expected


def direction_of(says):
    """The direction from the flags on the path from the root to an entry."""
    turns = [said for said in says if said & (_path.SAYS_BACKWARD | _path.SAYS_FORWARD)]
    if turns and turns[-1] & _path.SAYS_BACKWARD:
        return _path.BACKWARD
    return _path.FORWARD if any(said & _path.SAYS_TORCH for said in says) else _path.NOWHERE


SAYS = st.sampled_from([0, 0, *range(8)])


@examples(300)
@given(trees(), st.lists(SAYS, min_size=N_LABELS, max_size=N_LABELS))
def test_the_innermost_that_says_so_turns_the_direction(tree, says):
    parent, label = tree
    got = _path.directions(frozen(parent, np.int32), frozen(label, np.int32), np.array(says, "u1"))
    assert got.dtype == np.uint8
    assert got.tolist() == [
        direction_of([says[label[at]] for at in chain(parent, i)]) for i in range(len(parent))
    ]


@examples(200)
@given(trees(st.integers(-(2**40), 2**40)))
def test_sums_are_those_of_an_entry_and_all_inside_it(tree):
    parent, own = tree
    expected = [
        sum(value for i, value in enumerate(own) if at in chain(parent, i))
        for at in range(len(parent))
    ]
    assert _path.sums(frozen(parent, np.int32), frozen(own, np.int64)).tolist() == expected


@examples(200)
@given(trees())
def test_depth_is_the_length_of_the_longest_chain(tree):
    parent, _ = tree
    expected = max((len(chain(parent, i)) for i in range(len(parent))), default=0)
    assert _path.depth(frozen(parent, np.int32)) == expected


def test_empty_trees_have_no_nodes():
    assert [column.tolist() for column in nodes([], [])] == [[], [], []]
    assert [column.tolist() for column in nodes([], [], 0, [])] == [[], [], []]
    nothing = frozen([], np.int32)
    assert _path.innermost(nothing, nothing).tolist() == []
    assert _path.best(nothing, nothing, np.empty(0, np.uint8)).tolist() == []
    assert _path.directions(nothing, nothing, np.empty(0, np.uint8)).tolist() == []
    assert _path.nearest(nothing, nothing, np.empty(0, np.uint8)).tolist() == []


def test_one_frame_is_one_node_or_none():
    assert [column.tolist() for column in nodes([-1], [2])] == [[0], [-1], [2]]
    assert [column.tolist() for column in nodes([-1], [2], wanted=[1, 1, 0, 1])] == [[-1], [], []]


def test_largest_label_is_kept_apart_from_its_parent():
    of_frame, parent, label = nodes([-1, 0], [INT32_MAX - 1, INT32_MAX - 1], INT32_MAX)
    assert of_frame.tolist() == [0, 1]
    assert parent.tolist() == [-1, 0]
    assert label.tolist() == [INT32_MAX - 1] * 2


def test_a_path_of_a_hundred_thousand_frames_is_as_many_nodes():
    n = 100_000
    of_frame, parent, _ = nodes(range(-1, n - 1), [0] * n)
    assert (of_frame == np.arange(n)).all()
    assert (parent == np.arange(-1, n - 1)).all()


@pytest.mark.parametrize(
    "parent, label", [([0], [0]), ([1, -1], [0, 0]), ([-1], [4]), ([-1], [-1])]
)
def test_an_index_that_points_nowhere_is_an_internal_error(parent, label):
    with pytest.raises(InternalError, match="call paths"):
        nodes(parent, label)


def test_a_parent_behind_its_child_is_an_internal_error():
    with pytest.raises(InternalError):
        _path.innermost(np.array([1, -1], np.int32), np.zeros(2, np.int32))


@pytest.mark.parametrize("parent, label", [([0], [0]), ([-1], [1]), ([-1], [-1])])
@pytest.mark.parametrize("of_labels", [_path.best, _path.directions, _path.nearest])
def test_labels_that_point_nowhere_are_an_internal_error(of_labels, parent, label):
    with pytest.raises(InternalError, match="call paths"):
        of_labels(np.array(parent, "i4"), np.array(label, "i4"), np.zeros(1, np.uint8))


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match=r"equal lengths .* found 1 and 2"):
        nodes([-1], [0, 0])
    with pytest.raises(ValueError, match="expected 4 flags, found 1"):
        nodes([-1], [0], wanted=[1])
    with pytest.raises(ValueError, match=r"equal lengths .* found 1 and 2"):
        _path.innermost(np.zeros(1, np.int32), np.zeros(2, np.int32))
