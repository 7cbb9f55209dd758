"""Sums over the kernels of counted steps, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._counted import counted
from fastprof.errors import InternalError
from property.intervals import INT64_MAX, frozen
from support.hypothesis_profiles import examples

N_GROUPS, N_STEPS, N_WINDOWS = 3, 3, 3
KERNELS = st.lists(
    st.tuples(
        st.integers(-1, N_GROUPS - 1),
        st.integers(-1, N_STEPS - 1),
        st.integers(-1, 4),
        st.integers(-1, 9),
    ),
    max_size=20,
)
COUNTED = st.lists(st.booleans(), min_size=N_STEPS, max_size=N_STEPS)
PIECES = st.lists(
    st.tuples(st.integers(0, 19), st.integers(0, N_WINDOWS - 1), st.integers(0, 9)), max_size=20
)


def arrays(rows, *types):
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    return tuple(frozen(each, dtype) for each, dtype in zip(columns, types, strict=True))


def sums(kernels, pieces, is_counted):
    """The arrays that `counted` returns."""
    return counted(
        arrays(kernels, np.int32, np.int32, np.int32, np.int64),
        arrays(pieces, np.int32, np.int32, np.int64),
        np.array(is_counted, np.uint8),
        N_GROUPS,
    )


@examples(400)
@given(KERNELS, PIECES, COUNTED)
def test_sums_are_those_of_loops(kernels, pieces, is_counted):
    pieces = [piece for piece in pieces if piece[0] < len(kernels) and kernels[piece[0]][0] >= 0]
    runs, seen = {row for row, _, _ in pieces}, set()
    expected, first = np.zeros((3, N_GROUPS), np.int64), {}
    for row, (group, step, call, ns) in enumerate(kernels):
        if group < 0 or not (is_counted[step] if step >= 0 else row in runs):
            continue
        first.setdefault(group, row)
        expected[:, group] += [1, call not in seen, max(ns, 0)]
        seen |= {call} - {-1}
    (*result, first_found), _ = sums(kernels, pieces, is_counted)
    assert np.array(result).tolist() == expected.tolist()
    assert {group: first_found[group] for group in first} == first


@examples(400)
@given(KERNELS, PIECES)
def test_merged_pieces_add_up(kernels, pieces):
    pieces = [piece for piece in pieces if piece[0] < len(kernels) and kernels[piece[0]][0] >= 0]
    _, merged = sums(kernels, pieces, [False] * N_STEPS)
    last, expected = {}, []
    for row, window, ns in pieces:
        group = kernels[row][0]
        if last.get(group, (-1,))[0] != window:
            last[group] = (window, len(expected))
            expected.append([group, window, 0])
        expected[last[group][1]][2] += ns
    assert [list(each) for each in zip(*map(np.ndarray.tolist, merged), strict=True)] == expected


def test_sums_are_limited():
    kernels = [(0, 0, 0, INT64_MAX), (0, 0, 0, 1)]
    pieces = [(0, 0, INT64_MAX), (1, 0, 1)]
    (_, _, ns, _), (_, _, merged) = sums(kernels, pieces, [True] * N_STEPS)
    assert ns[0] == INT64_MAX
    assert merged.tolist() == [INT64_MAX]


@pytest.mark.parametrize("kernel", [(N_GROUPS, 0, 0, 0), (0, N_STEPS, 0, 0), (0, -2, 0, 0)])
def test_indices_out_of_range_are_rejected(kernel):
    with pytest.raises(InternalError):
        sums([kernel], [], [True] * N_STEPS)


@pytest.mark.parametrize("piece", [(1, 0, 0), (-1, 0, 0)])
def test_pieces_of_other_rows_are_rejected(piece):
    with pytest.raises(InternalError):
        sums([(0, 0, 0, 0)], [piece], [True] * N_STEPS)


def test_pieces_without_a_group_are_rejected():
    with pytest.raises(InternalError):
        sums([(-1, 0, 0, 0)], [(0, 0, 0)], [True] * N_STEPS)


def test_lengths_must_agree():
    kernels = arrays([(0, 0, 0, 0)], np.int32, np.int32, np.int32, np.int64)
    pieces = arrays([(0, 0, 0)], np.int32, np.int32, np.int64)
    flags = np.ones(N_STEPS, np.uint8)
    with pytest.raises(ValueError, match="lengths differ"):
        counted((*kernels[:3], kernels[3][:0]), pieces, flags, N_GROUPS)
    with pytest.raises(ValueError, match="lengths differ"):
        counted(kernels, (*pieces[:2], pieces[2][:0]), flags, N_GROUPS)
