"""The functions of sets of `fastprof.model.arrays` answer as those of numpy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof.model import arrays
from fastprof.model.columns import Ints
from fastprof.model.table import Floats

NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=20)


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@given(NUMBERS, NUMBERS)
def test_sets_are_those_of_numpy(first: list[int], second: list[int]) -> None:
    one, two = np.array(first, np.int64), np.array(second, np.int64)
    before = one.copy()
    same(arrays.unique(one), np.unique(one))
    same(arrays.difference(one, two), np.setdiff1d(one, two))
    same(arrays.union(one, two), np.union1d(one, two))
    same(arrays.among(one, two), np.isin(one, two))
    same(one, before)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint32])
def test_sets_keep_the_type(dtype: Any) -> None:
    some = np.array([3, 1, 3, 2], dtype)
    same(arrays.unique(some), np.unique(some))
    same(arrays.difference(some, some[:1]), np.setdiff1d(some, some[:1]))


@given(st.lists(st.integers(-1, 3), max_size=9))
def test_known_numbers_are_those_that_are_not_masked(values: list[int]) -> None:
    column = Ints(np.array(values, np.int64))
    assert column.known().tolist() == column.array().compressed().tolist()
    of_floats = Floats(np.where(np.array(values, np.int64) < 0, np.nan, values))
    assert of_floats.known().tolist() == [value for value in values if value >= 0]
