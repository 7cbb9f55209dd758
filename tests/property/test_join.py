"""The table of correlation ids against a dict."""

import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof._core._join import Join
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples

PROCESS = st.integers(-1, 3)
ID = st.integers(-2, 9) | st.sampled_from(
    [INT64_MIN, INT64_MAX, INT64_MAX - 1, 1 << 32, 1 << 31, 1000, 1023, 1024, 1025]
)
PAIRS = st.lists(st.tuples(PROCESS, ID), max_size=12)


def columns(pairs):
    process, number = [p for p, _ in pairs], [i for _, i in pairs]
    return frozen(process, np.int32), frozen(number, np.int64)


def joined(kernels, launches):
    """The row of the first launch of each kernel, or -1."""
    table = Join(*columns(kernels))
    table.offer(*columns(launches))
    return table.rows(*columns(kernels)).tolist()


def expected(kernels, launches):
    first = {}
    for row, pair in enumerate(launches):
        first.setdefault(pair, row)
    return [first.get(pair, -1) if min(pair) >= 0 else -1 for pair in kernels]


@examples(400)
@given(PAIRS, PAIRS)
@example([(0, 7), (1, 7)], [(1, 7), (0, 7), (1, 7)])
@example([(0, -1), (-1, 0)], [(0, -1), (-1, 0)])
@example([(0, 5), (0, INT64_MAX), (1, 6)], [(0, INT64_MAX), (1, 5), (0, 5), (1, 6)])
@example([(2, 0), (2, 1022), (1, 0), (1, 1023), (0, 0), (0, 1024)], [(2, 1022), (0, 1024)])
def test_a_kernel_gets_the_first_launch_of_its_process_and_id(kernels, launches):
    assert joined(kernels, launches) == expected(kernels, launches)


@examples(100)
@given(PAIRS, PAIRS, PAIRS)
def test_a_launch_of_no_kernel_is_not_remembered(kernels, launches, asked):
    table = Join(*columns(kernels))
    table.offer(*columns(launches))
    result = table.rows(*columns(asked)).tolist()
    known = expected(asked, launches)
    assert result == [
        row if pair in kernels else -1 for pair, row in zip(asked, known, strict=True)
    ]


@examples(200)
@given(PAIRS, PAIRS)
def test_launches_of_kernels_are_found(kernels, launches):
    result = Join(*columns(kernels)).matching(*columns(launches)).tolist()
    assert result == [i for i, pair in enumerate(launches) if pair in kernels and min(pair) >= 0]


@pytest.mark.parametrize("step", [1, 16, 1 << 20, 1 << 28])
def test_many_ids_at_regular_distances_are_all_found(step):
    number = np.arange(50_000, dtype=np.int64) * step
    process = np.zeros(50_000, np.int32)
    table = Join(process, number)
    table.offer(process, number[::-1].copy())
    assert (table.rows(process, number) == np.arange(49_999, -1, -1)).all()
    assert (table.rows(process + 1, number) == -1).all()


def test_ids_that_differ_in_their_high_bits_only_do_not_slow_the_join_down():
    seconds = {}
    for step in (1, 1 << 44):
        number = np.arange(40_000, dtype=np.int64) * step
        process, began = np.zeros(40_000, np.int32), time.thread_time()
        Join(process, number)
        seconds[step] = time.thread_time() - began
    assert seconds[1 << 44] < 100 * seconds[1] + 0.05


def test_the_first_of_several_offers_is_remembered():
    table = Join(*columns([(0, 1), (0, 2)]))
    table.offer(*columns([(0, 2)]))
    table.offer(*columns([(0, 1), (0, 2)]))
    assert table.rows(*columns([(0, 1), (0, 2)])).tolist() == [0, 0]


def test_an_empty_table_has_no_rows():
    assert joined([], []) == []
    assert joined([], [(0, 1)]) == []
    assert joined([(0, 1)], []) == [-1]
    assert Join(*columns([])).rows(*columns([(0, 1)])).tolist() == [-1]


@examples(100)
@given(st.lists(st.integers(0, 40_000), min_size=1, max_size=60), st.integers(0, 3))
def test_dense_and_scattered_ids_of_several_processes_are_kept_apart(ids, n_far):
    far = [10**9 * (k + 1) for k in range(n_far)]
    kernels = [(process, i) for process in range(3) for i in ids + far[:process]]
    launches = [(process, i) for process, i in reversed(kernels) if i % 3]
    assert joined(kernels, launches) == expected(kernels, launches)


def test_processes_and_ids_of_different_length_are_refused():
    with pytest.raises(ValueError, match="expected 1 ids, found 2"):
        Join(np.zeros(1, np.int32), np.zeros(2, np.int64))
    table = Join(*columns([(0, 1)]))
    for method in (table.offer, table.rows):
        with pytest.raises(ValueError, match="expected 1 ids, found 2"):
            method(np.zeros(1, np.int32), np.zeros(2, np.int64))
