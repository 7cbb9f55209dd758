"""Shares of a cost against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastprof._share import ordinal, share
from fastprof.errors import BadInputError, InternalError
from intervals import INT64_MAX, INT64_MIN, frozen

N_GROUPS = 3
WEIGHT = st.integers(-1, 9) | st.sampled_from([INT64_MIN, 1 << 40, INT64_MAX // 16])
TOTAL = st.integers(-1, 20) | st.sampled_from([INT64_MAX, INT64_MAX - 1, 10**15 + 7])
ROWS = st.lists(st.tuples(st.integers(-1, N_GROUPS - 1), WEIGHT), max_size=12)


def shares(rows, totals):
    group, weight = [g for g, _ in rows], [w for _, w in rows]
    return share(
        frozen(group, np.int32), frozen(weight, np.int64),
        frozen([totals[g] if g >= 0 else 5 for g in group], np.int64), len(totals),
    ).tolist()  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(ROWS, st.lists(TOTAL, min_size=N_GROUPS, max_size=N_GROUPS))
@example([(0, 0), (0, 0), (0, 0)], [10, 0, 0])
@example([(0, 1 << 40)] * 3, [INT64_MAX, 0, 0])
def test_shares_are_proportional_and_add_up_to_the_total(rows, totals):
    got = shares(rows, totals)
    counted = [max(weight, 1) for _, weight in rows]
    for group, total in enumerate(totals):
        members = [i for i, row in enumerate(rows) if row[0] == group]
        if total == -1:
            assert all(got[i] == -1 for i in members)
        elif members:
            whole = sum(counted[i] for i in members)
            assert sum(got[i] for i in members) == total
            assert all(abs(got[i] - Fraction(total * counted[i], whole)) < 1 for i in members)
    assert all(got[i] == -1 for i, row in enumerate(rows) if row[0] == -1)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-1, N_GROUPS - 1), max_size=20))
def test_ordinal_counts_the_rows_of_the_group_before(groups):
    got = ordinal(frozen(groups, np.int32), N_GROUPS)
    assert got.dtype == np.int32
    assert got.tolist() == [
        groups[:i].count(group) if group >= 0 else -1 for i, group in enumerate(groups)
    ]


def test_nothing_is_shared_among_nobody():
    assert shares([], []) == []
    assert ordinal(frozen([], np.int32), 0).tolist() == []


def test_a_single_row_gets_all():
    assert shares([(0, 0)], [INT64_MAX]) == [INT64_MAX]
    assert ordinal(frozen([0], np.int32), 1).tolist() == [0]


def test_weights_whose_sum_does_not_fit_are_refused():
    with pytest.raises(BadInputError, match="sharing costs: a number does not fit"):
        shares([(0, INT64_MAX), (0, 1)], [1])


def test_a_group_that_is_not_there_is_an_internal_error():
    group = np.array([1], np.int32)
    with pytest.raises(InternalError, match="sharing costs"):
        share(group, np.ones(1, np.int64), np.ones(1, np.int64), 1)
    with pytest.raises(InternalError, match="ordinals"):
        ordinal(group, 1)


def test_columns_of_different_length_are_refused():
    with pytest.raises(ValueError, match="lengths differ: 1, 2, 1"):
        share(np.zeros(1, np.int32), np.zeros(2, np.int64), np.zeros(1, np.int64), 1)
