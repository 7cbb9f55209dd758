"""Statistics of groups against plain Python."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._groups import GroupStats
from fastprof.analysis.grouping import group
from fastprof.errors import InternalError
from fastprof.model.columns import Values
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples

N = 4
NUMBER = st.integers(-1, 50) | st.integers(-(10**15), 10**15)
ROWS = st.lists(st.tuples(st.integers(-1, N - 1), NUMBER), max_size=40)


def stats_of(rows, none=-1):
    return GroupStats(
        frozen([g for g, _ in rows], np.int32), frozen([v for _, v in rows], np.int64), N, none
    )


@examples(300)
@given(ROWS)
def test_statistics_are_those_of_the_known_numbers(rows):
    result = stats_of(rows)
    medians = result.median()
    for g in range(N):
        known = [value for own, value in rows if own == g and value != -1]
        assert result.count[g] == len(known)
        assert result.sum[g] == sum(known)
        if not known:
            assert (result.min[g], result.max[g]) == (-1, -1)
            assert np.isnan(medians[g])
            continue
        assert (result.min[g], result.max[g]) == (min(known), max(known))
        assert medians[g] == pytest.approx(statistics.median(known), rel=1e-12)
        spread = statistics.pvariance(known) * len(known)
        assert result.squares[g] == pytest.approx(spread, rel=1e-6, abs=1e-6)


def test_a_sum_beyond_64_bits_is_the_largest_number():
    assert stats_of([(0, INT64_MAX), (0, 1)]).sum[0] == INT64_MAX


def test_the_unknown_value_can_be_any():
    result = stats_of([(0, INT64_MIN), (0, -1)], none=INT64_MIN)
    assert (result.count[0], result.min[0], result.max[0]) == (1, -1, -1)


def test_groups_out_of_bounds_are_refused():
    with pytest.raises(InternalError):
        stats_of([(N, 1)])
    with pytest.raises(ValueError, match="lengths differ"):
        GroupStats(frozen([0], np.int32), frozen([], np.int64), 1)


KEY = st.lists(st.integers(-1, 3), min_size=12, max_size=12)


@examples(200)
@given(KEY, KEY, st.lists(st.booleans(), min_size=12, max_size=12), KEY)
def test_kernels_of_a_group_agree_in_all_keys(left, right, selected, ids):
    keys = [Values(frozen(each, np.int32), list("abcd")) for each in (left, right)]
    for rows in (None, np.array(selected)):
        result = group(keys, 12, rows)
        used = [i for i in range(12) if rows is None or rows[i]]
        pairs = {(left[i], right[i]) for i in used}
        assert result.n == len(pairs)
        assert (result.ids >= 0).tolist() == [i in used for i in range(12)]
        for g, first in enumerate(result.first.tolist()):
            members = [i for i in used if (left[i], right[i]) == (left[first], right[first])]
            assert np.flatnonzero(result.ids == g).tolist() == members
            assert result.counts[g] == len(members)
            distinct = {ids[i] for i in members} - {-1}
            assert result.distinct_counts(frozen(ids, np.int32))[g] == len(distinct)


def test_no_kernels_are_no_groups():
    result = group([Values(np.empty(0, np.int32), [])], 0)
    assert (result.n, result.counts.tolist(), result.first.tolist()) == (0, [], [])
