"""The order of intervals against Python's own stable sort."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof._core import _nest
from property.intervals import INT64_MAX, INT64_MIN, TIME, frozen
from support.hypothesis_profiles import examples

ROWS = st.lists(st.tuples(TIME, TIME), max_size=40)


def order(rows):
    start, end = frozen(rows, np.int64).reshape(-1, 2).T.copy()
    return _nest.order(frozen(start, np.int64), frozen(end, np.int64))


def expected(rows):
    return sorted(range(len(rows)), key=lambda i: (rows[i][0], -rows[i][1]))


@examples(200)
@given(ROWS)
@example([(INT64_MIN, INT64_MIN), (INT64_MIN, INT64_MAX), (INT64_MAX, INT64_MAX)])
def test_outer_comes_before_inner_and_equal_ones_stay_in_place(rows):
    got = order(rows)
    if expected(rows) == list(range(len(rows))):
        assert got is None
    else:
        assert got.dtype == np.int32
        assert got.tolist() == expected(rows)


@pytest.mark.parametrize("n", [2, 3, 1000, 1023, 1025, 4096])
def test_long_input_of_any_length_is_sorted(n):
    random = np.random.default_rng(n)
    rows = random.integers(0, max(2, n // 4), (n, 2)).tolist()
    assert (order(rows) if order(rows) is not None else np.arange(n)).tolist() == expected(rows)


@pytest.mark.parametrize("rows", [[], [(3, 1)], [(1, 5), (1, 5)], [(1, 5), (1, 2), (2, 9)]])
def test_what_is_in_order_needs_no_indices(rows):
    assert order(rows) is None


def test_reversed_input_is_turned_around():
    rows = [(i, i) for i in range(100)][::-1]
    assert order(rows).tolist() == list(range(99, -1, -1))


def test_starts_and_ends_of_different_length_are_refused():
    with pytest.raises(ValueError, match="2 starts, 1 ends"):
        _nest.order(np.zeros(2, np.int64), np.zeros(1, np.int64))
