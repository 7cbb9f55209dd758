"""Sums over launching calls and their kernels by group, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._launched import NO_GROUP, OTHER, launched
from fastprof.errors import InternalError
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples

N_GROUPS, STARVED = 3, 4
TIME = st.integers(0, 12)
CALLS = st.lists(st.tuples(TIME, TIME | st.just(INT64_MAX)), min_size=1, max_size=5)
KERNELS = st.lists(
    st.tuples(st.integers(OTHER, N_GROUPS - 1), st.integers(-1, 4), TIME), max_size=12
)


def arrays(kernels, calls):
    group, call, start = zip(*kernels, strict=True) if kernels else ((), (), ())
    begin, end = zip(*calls, strict=True)
    return (
        (frozen(group, np.int32), frozen(call, np.int32), frozen(start, np.int64)),
        (frozen(begin, np.int64), frozen(end, np.int64)),
    )


@examples(400)
@given(KERNELS, CALLS)
def test_sums_are_those_of_loops(kernels, calls):
    kernels = [(group, min(call, len(calls) - 1), start) for group, call, start in kernels]
    expected, seen = np.zeros((4, N_GROUPS), np.int64), set()
    for group, call, start in kernels:
        begin, end = calls[call] if call >= 0 else (0, INT64_MAX)
        if group == OTHER or end == INT64_MAX:
            continue
        is_first = call not in seen
        seen.add(call)
        if group == NO_GROUP:
            continue
        on_time = start >= begin
        starved = on_time and start - end < STARVED
        host = max(end - begin, 0) * is_first
        expected[:, group] += [is_first, host, on_time, starved]
    result = launched(*arrays(kernels, calls), N_GROUPS, STARVED)
    assert np.array(result).tolist() == expected.tolist()


def test_times_at_the_limits():
    kernels = [(0, 0, INT64_MAX), (0, 1, INT64_MAX), (0, 2, INT64_MAX)]
    calls = [(INT64_MIN, INT64_MAX - 1), (0, INT64_MAX - 1), (0, INT64_MAX - 1)]
    result = launched(*arrays(kernels, calls), 1, STARVED)
    assert [each.tolist() for each in result] == [[3], [INT64_MAX], [3], [3]]


@pytest.mark.parametrize("kernel", [(N_GROUPS, 0, 0), (OTHER - 1, 0, 0), (0, 1, 0), (0, -2, 0)])
def test_indices_out_of_range_are_rejected(kernel):
    with pytest.raises(InternalError):
        launched(*arrays([kernel], [(0, 1)]), N_GROUPS, STARVED)


def test_lengths_must_agree():
    (group, call, start), calls = arrays([(0, 0, 0)], [(0, 1)])
    with pytest.raises(ValueError, match="lengths differ"):
        launched((group, call, start[:0]), calls, N_GROUPS, STARVED)
    with pytest.raises(ValueError, match="lengths differ"):
        launched((group, call, start), (calls[0], calls[1][:0]), N_GROUPS, STARVED)
