"""The common subsequence of two sequences, against the table of all pairs of prefixes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastprof.profile.captured_graphs.fits import by_occurrence, in_order

NUMBERS = st.lists(st.integers(0, 3), max_size=14)
WITH_UNKNOWN = st.lists(st.integers(-1, 3), max_size=14)


def longest(left, right):
    """The length of a longest common subsequence; -1 on the right matches any number."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            best = max(table[i][j + 1], table[i + 1][j])
            same = one == other or other < 0
            table[i + 1][j + 1] = max(best, table[i][j] + 1) if same else best
    return table[-1][-1]


@given(NUMBERS, WITH_UNKNOWN, st.integers(0, 14))
def test_in_order_finds_a_longest_common_subsequence_that_is_long_enough(left, right, least):
    first, second = in_order(np.array(left, np.int32), np.array(right, np.int32), least)
    expected = longest(left, right)
    assert len(first) == len(second) == (expected if expected >= least else 0)
    assert all(right[j] in (left[i], -1) for i, j in zip(first, second, strict=True))
    for places in (first.tolist(), second.tolist()):
        assert places == sorted(set(places))


@given(NUMBERS, NUMBERS)
def test_by_occurrence_pairs_as_many_as_both_have_in_their_order(left, right):
    first, second = by_occurrence(np.array(left, np.int32), np.array(right, np.int32))
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    for number in range(4):
        on_left = [i for i, one in enumerate(left) if one == number]
        on_right = [j for j, one in enumerate(right) if one == number]
        expected = list(zip(on_left, on_right, strict=False))
        assert sorted(pair for pair in pairs if left[pair[0]] == number) == expected
