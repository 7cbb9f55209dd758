"""Shares of a cost against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof._core._share import Groups, ordinal, pairs, too_fast
from fastprof.errors import BadInputError, InternalError
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples

N_GROUPS = 3
WEIGHT = st.integers(-1, 9) | st.sampled_from([INT64_MIN, 1 << 40, INT64_MAX // 16])
TOTAL = st.integers(-1, 20) | st.sampled_from([INT64_MAX, INT64_MAX - 1, 10**15 + 7])
ROWS = st.lists(st.tuples(st.integers(-1, N_GROUPS - 1), WEIGHT), max_size=12)


def groups_of(group, weight, n_totals):
    """Rows whose totals are those of their groups."""
    cell = frozen([max(g, 0) for g in group], np.int32)
    return Groups(frozen(group, np.int32), n_totals, cell, frozen(weight, np.int64), n_totals)


def shared(rows, totals):
    """The shares of rows (group, weight); totals[g] is the total of group g."""
    out = np.full(len(rows), -77)
    groups = groups_of([g for g, _ in rows], [w for _, w in rows], len(totals))
    groups.share(frozen(totals, np.int64), out)
    return out.tolist()


@examples(400)
@given(ROWS, st.lists(TOTAL, min_size=N_GROUPS, max_size=N_GROUPS))
@example([(0, 0), (0, 0), (0, 0)], [10, 0, 0])
@example([(0, 1 << 40)] * 3, [INT64_MAX, 0, 0])
def test_shares_are_proportional_and_add_up_to_the_total(rows, totals):
    got = shared(rows, totals)
    counted = [max(weight, 1) for _, weight in rows]
    for group, total in enumerate(totals):
        members = [i for i, row in enumerate(rows) if row[0] == group]
        if total == -1:
            assert all(got[i] == -1 for i in members)
        elif members:
            whole = sum(counted[i] for i in members)
            assert sum(got[i] for i in members) == total
            assert all(abs(got[i] - Fraction(total * counted[i], whole)) < 1 for i in members)
    assert all(got[i] == -77 for i, row in enumerate(rows) if row[0] == -1)


@examples(100)
@given(st.lists(st.integers(-1, N_GROUPS - 1), max_size=20))
def test_ordinal_counts_the_rows_of_the_group_before(groups):
    got = ordinal(frozen(groups, np.int32), N_GROUPS)
    assert got.dtype == np.int32
    assert got.tolist() == [
        groups[:i].count(group) if group >= 0 else -1 for i, group in enumerate(groups)
    ]


def test_nothing_is_shared_among_nobody():
    assert shared([], []) == []
    assert ordinal(frozen([], np.int32), 0).tolist() == []


def test_a_single_row_gets_all():
    assert shared([(0, 0)], [INT64_MAX]) == [INT64_MAX]
    assert ordinal(frozen([0], np.int32), 1).tolist() == [0]


def test_weights_whose_sum_does_not_fit_are_refused():
    with pytest.raises(BadInputError, match="sharing costs: a number is out of range"):
        shared([(0, INT64_MAX), (0, 1)], [1])


PAIRS = st.lists(st.tuples(st.integers(-1, N_GROUPS - 1), st.integers(0, 3)), max_size=20)


@examples(200)
@given(PAIRS, st.integers(0, 4))
def test_kernels_of_one_group_and_part_share_a_cost(rows, n_parts):
    group, part = ([row[i] for row in rows] for i in (0, 1))
    numbers = {}
    expected = [
        numbers.setdefault(row, len(numbers)) if row[0] >= 0 and row[1] < n_parts else -1
        for row in rows
    ]
    cell = frozen(range(len(rows)), np.int32)
    got, n_pairs = pairs(frozen(group, np.int32), N_GROUPS, cell, frozen(part, np.int8), n_parts)
    assert got.dtype == np.int32
    assert (got.tolist(), n_pairs) == (expected, len(numbers))


def test_a_group_or_cell_that_is_not_there_is_an_internal_error():
    zero, one = np.zeros(1, np.int32), np.ones(1, np.int64)
    for group, cell in (np.array([1], np.int32), zero), (zero, np.array([-1], np.int32)):
        with pytest.raises(InternalError, match="sharing costs"):
            Groups(group, 1, cell, one, 1)
    for group, cell, part in (1, 0, 0), (0, 0, -1), (0, 1, 0), (0, -1, 0):
        columns = np.array([group], np.int32), 1, np.array([cell], np.int32)
        with pytest.raises(InternalError, match="parts of calls"):
            pairs(*columns, np.array([part], np.int8), 1)
    with pytest.raises(InternalError, match="ordinals"):
        ordinal(np.array([1], np.int32), 1)


def test_columns_of_different_length_are_refused():
    columns = [np.zeros(1, np.int32), 1, np.zeros(1, np.int32), np.zeros(1, np.int64), 3]
    for place in (0, 2, 3):
        longer = [*columns]
        longer[place] = np.zeros(2, columns[place].dtype)
        with pytest.raises(ValueError, match="lengths differ"):
            Groups(*longer)
    for method in (Groups(*columns).share, Groups(*columns).add_up):
        with pytest.raises(ValueError, match="expected 1 shares of 3 totals, found 2 of 3"):
            method(np.zeros(3, np.int64), np.zeros(2, np.int64))
        with pytest.raises(ValueError, match="expected 1 shares of 3 totals, found 1 of 2"):
            method(np.zeros(2, np.int64), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="lengths differ"):
        pairs(np.zeros(1, np.int32), 1, np.zeros(2, np.int32), np.zeros(1, np.int8), 1)


@examples(200)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2), TOTAL)))
def test_totals_and_shares_are_added_up_where_a_group_has_one_total(rows):
    group, cell, shares = (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 3
    total = [5, -1, 2**62]
    wanted = [0, 0]
    for number in range(N_GROUPS):
        members = [i for i in range(len(rows)) if group[i] == number]
        totals = {total[cell[i]] for i in members}
        if len(totals) == 1:
            wanted[0] += max(*totals, 0)
            wanted[1] += sum(max(shares[i], 0) for i in members)
    groups = Groups(
        frozen(group, np.int32), N_GROUPS, frozen(cell, np.int32),
        frozen([1] * len(rows), np.int64), len(total),
    )  # fmt: skip
    result = groups.add_up(frozen(total, np.int64), frozen(shares, np.int64))
    assert result == tuple(n % 2**64 for n in wanted)


MOVES = st.lists(
    st.tuples(
        st.integers(-1, N_GROUPS - 1), st.integers(-1, 99), st.integers(-1, 9), st.integers(0, 2)
    ),
    max_size=12,
)


@examples(300)
@given(MOVES)
def test_a_call_is_too_fast_beyond_the_bandwidth(rows):
    bandwidth = [float("nan"), 5.0317e9, 9.0211e9]  # bytes per second
    wanted = []
    for group, bytes_, _, memory in rows:
        members = [row for row in rows if row[0] == group] if group >= 0 else [None]
        if group < 0:
            members = [(group, bytes_, _, memory)]
        moved = sum(max(row[1], 0) for row in members)
        time = sum(max(row[2], 0) for row in members)
        limit = 2 * (bandwidth[memory] / 1e9) * time
        wanted.append(bytes_ >= 0 and memory > 0 and time > 0 and moved > limit)
    group, bytes_, duration, memory = ([row[i] for row in rows] for i in range(4))
    got = too_fast(
        frozen(bytes_, np.int64), frozen(duration, np.int64), frozen(group, np.int32), N_GROUPS,
        frozen(memory, np.int32), np.array(bandwidth), 2,
    )  # fmt: skip
    assert got.dtype == np.bool_
    assert got.tolist() == wanted


def test_a_memory_that_is_not_there_is_an_internal_error():
    one, known = np.ones(1, np.int64), np.ones(1)
    for group, memory in (1, 0), (0, 1), (0, -1):
        columns = one, one, np.array([group], np.int32), 1, np.array([memory], np.int32)
        with pytest.raises(InternalError, match="rates of calls"):
            too_fast(*columns, known, 1)
    with pytest.raises(ValueError, match="lengths differ"):
        too_fast(one, one, np.zeros(2, np.int32), 1, np.zeros(1, np.int32), known, 1)
