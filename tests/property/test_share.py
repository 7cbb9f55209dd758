"""Shares of a cost against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from intervals import INT64_MAX, INT64_MIN, frozen

from fastprof._core._share import Parts, ordinal
from fastprof.errors import BadInputError, InternalError
from hypothesis_profiles import examples

N_GROUPS = 3
WEIGHT = st.integers(-1, 9) | st.sampled_from([INT64_MIN, 1 << 40, INT64_MAX // 16])
TOTAL = st.integers(-1, 20) | st.sampled_from([INT64_MAX, INT64_MAX - 1, 10**15 + 7])
ROWS = st.lists(st.tuples(st.integers(-1, N_GROUPS - 1), WEIGHT), max_size=12)


def parts_of(group, weight, totals, part=None):
    """Rows with the totals of their groups; part 0 by default."""
    n = len(group)
    return Parts(
        frozen(group, np.int32),
        len(totals),
        frozen([0] * n if part is None else part, np.int8),
        frozen([max(g, 0) for g in group], np.int32),
        frozen(weight, np.int64),
        frozen(totals, np.int64),
    )


def shared(rows, totals):
    """The shares of rows (group, weight); totals[g] is the total of group g."""
    out = np.full(len(rows), -77)
    parts_of([g for g, _ in rows], [w for _, w in rows], totals).share(0, out)
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


@examples(200)
@given(ROWS, st.data())
def test_each_part_is_shared_by_those_who_do_it(rows, data):
    group, weight = [g for g, _ in rows], [w for _, w in rows]
    part = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    totals = [7, 10**15 + 7, -1]
    out = np.full(len(rows), -77)
    parts_of(group, weight, totals, part).share(1, out)
    doing = [row for row, number in zip(rows, part, strict=True) if number == 1]
    alone = iter(shared(doing, totals))
    assert out.tolist() == [next(alone) if number == 1 else -77 for number in part]


def test_a_group_or_cell_that_is_not_there_is_an_internal_error():
    zero, one = np.zeros(1, np.int32), np.ones(1, np.int64)
    for group, cell in (np.array([1], np.int32), zero), (zero, np.array([-1], np.int32)):
        parts = Parts(group, 1, np.zeros(1, np.int8), cell, one, one)
        with pytest.raises(InternalError, match="sharing costs"):
            parts.share(0, one.copy())
        with pytest.raises(InternalError, match="adding up"):
            parts.add_up(0, one)
    with pytest.raises(InternalError, match="ordinals"):
        ordinal(np.array([1], np.int32), 1)


def test_columns_of_different_length_are_refused():
    columns = [np.zeros(1, np.int32), 1, np.zeros(1, np.int8), np.zeros(1, np.int32)]
    columns += [np.zeros(1, np.int64), np.zeros(3, np.int64)]
    for place in (0, 2, 3, 4):
        longer = [*columns]
        longer[place] = np.zeros(2, columns[place].dtype)
        with pytest.raises(ValueError, match="lengths differ"):
            Parts(*longer)
    for method in (Parts(*columns).share, Parts(*columns).add_up):
        with pytest.raises(ValueError, match="expected 1 shares, found 2"):
            method(0, np.zeros(2, np.int64))


@examples(200)
@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 1), st.integers(0, 2), TOTAL)))
def test_totals_and_shares_are_added_up_where_a_group_has_one_total(rows):
    group, part, cell, shares = (
        (list(column) for column in zip(*rows, strict=True)) if rows else [[]] * 4
    )
    total = [5, -1, 2**62]
    wanted = [0, 0]
    for number in range(N_GROUPS):
        members = [i for i in range(len(rows)) if group[i] == number and part[i] == 1]
        totals = {total[cell[i]] for i in members}
        if len(totals) == 1:
            wanted[0] += max(*totals, 0)
            wanted[1] += sum(max(shares[i], 0) for i in members)
    parts = Parts(
        frozen(group, np.int32), N_GROUPS, frozen(part, np.int8), frozen(cell, np.int32),
        frozen([1] * len(rows), np.int64), frozen(total, np.int64),
    )  # fmt: skip
    assert parts.add_up(1, frozen(shares, np.int64)) == tuple(n % 2**64 for n in wanted)
