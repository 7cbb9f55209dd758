"""Look-ups by columns of indices against list look-ups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from intervals import INT64_MAX, INT64_MIN, frozen

from fastprof import _take
from fastprof.errors import InternalError


@st.composite
def look_ups(draw):
    values = draw(st.lists(st.integers(-3, 3), max_size=8))
    return values, draw(st.lists(st.integers(-1, len(values) - 1), max_size=12))


@settings(max_examples=200, deadline=None)
@given(look_ups(), st.sampled_from([np.int32, np.int64]), st.integers(-2, 2))
def test_an_index_gives_its_value_and_none_gives_none(case, dtype, none):
    values, index = case
    got = _take.take(frozen(values, dtype), frozen(index, np.int32), none)
    assert got.dtype == dtype
    assert got.tolist() == [values[i] if i >= 0 else none for i in index]


@settings(max_examples=200, deadline=None)
@given(look_ups())
def test_distinct_indices_are_those_that_occur_in_order(case):
    values, index = case
    used, place = _take.distinct(frozen(index, np.int32), len(values))
    assert used == sorted(set(index))
    assert [used[i] for i in place] == index


def test_extreme_values_come_through():
    values = np.array([INT64_MIN, INT64_MAX], np.int64)
    assert _take.take(values, np.array([1, 0, -1], np.int32), INT64_MIN).tolist() == [
        INT64_MAX, INT64_MIN, INT64_MIN,
    ]  # fmt: skip


@pytest.mark.parametrize("index", [-2, 1])
def test_an_index_that_points_nowhere_is_an_internal_error(index):
    column = np.array([index], np.int32)
    for dtype in (np.int32, np.int64):
        with pytest.raises(InternalError, match="look-up"):
            _take.take(np.zeros(1, dtype), column)
    with pytest.raises(InternalError, match="distinct values"):
        _take.distinct(column, 1)


def test_nothing_can_be_pointed_at_in_an_empty_column():
    empty = np.empty(0, np.int32)
    assert _take.take(empty, np.array([-1], np.int32)).tolist() == [-1]
    assert _take.take(empty, empty).tolist() == []
    with pytest.raises(InternalError, match="look-up"):
        _take.take(empty, np.array([0], np.int32))
