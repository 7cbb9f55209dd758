"""Shares of a cost against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from intervals import INT64_MAX, INT64_MIN, frozen

from fastprof._share import add_up, ordinal, share
from fastprof.errors import BadInputError, InternalError

N_GROUPS = 3
WEIGHT = st.integers(-1, 9) | st.sampled_from([INT64_MIN, 1 << 40, INT64_MAX // 16])
TOTAL = st.integers(-1, 20) | st.sampled_from([INT64_MAX, INT64_MAX - 1, 10**15 + 7])
ROWS = st.lists(st.tuples(st.integers(-1, N_GROUPS - 1), WEIGHT), max_size=12)


def shared(rows, totals):
    """The shares of rows (group, weight); totals[g] is the total of group g."""
    group, weight = [g for g, _ in rows], [w for _, w in rows]
    of_rows = frozen([totals[g] if g >= 0 else 5 for g in group], np.int64)
    columns = frozen(group, np.int32), frozen(weight, np.int64)
    out = np.full(len(rows), -77)
    share(*columns, of_rows, len(totals), out)
    return out.tolist()


@settings(max_examples=400, deadline=None)
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


@settings(max_examples=100, deadline=None)
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
    with pytest.raises(BadInputError, match="sharing costs: a number does not fit"):
        shared([(0, INT64_MAX), (0, 1)], [1])


def test_a_group_that_is_not_there_is_an_internal_error():
    group, one = np.array([1], np.int32), np.ones(1, np.int64)
    with pytest.raises(InternalError, match="sharing costs"):
        share(group, one, one, 1, one.copy())
    with pytest.raises(InternalError, match="adding up"):
        add_up(group, one, one, 1)
    with pytest.raises(InternalError, match="ordinals"):
        ordinal(group, 1)


def test_columns_of_different_length_are_refused():
    group, one, two = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(2, np.int64)
    for weight, total, out in (two, one, one), (one, two, one), (one, one, two):
        with pytest.raises(ValueError, match="lengths differ"):
            share(group, weight, total, 1, out)
    with pytest.raises(ValueError, match="lengths differ"):
        add_up(group, one, two, 1)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 2), st.sampled_from([-1, 0, 3, 2**62]), TOTAL)))
def test_totals_and_shares_are_added_up_where_a_group_has_one_total(rows):
    group, total, shares = (
        (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 3
    )
    wanted = [0, 0]
    for number in range(N_GROUPS):
        members = [i for i in range(len(rows)) if group[i] == number]
        if len({total[i] for i in members}) == 1:
            wanted[0] += max(total[members[0]], 0)
            wanted[1] += sum(max(shares[i], 0) for i in members)
    got = add_up(
        frozen(group, np.int32), frozen(total, np.int64), frozen(shares, np.int64), N_GROUPS
    )
    assert got == tuple(number % 2**64 for number in wanted)
