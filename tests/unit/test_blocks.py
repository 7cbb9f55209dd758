"""Memory that large arrays take turns in."""

from __future__ import annotations

import contextvars
import threading

import numpy as np
import pytest

from fastprof._core._blocks import LARGE, Reused

N = LARGE  # int8 arrays of this length are large


@pytest.fixture
def reused():
    with Reused() as reused:
        np.empty(N, np.int8)
        if reused.held() == (0, 0, 0):
            pytest.skip("this system has no mremap: all memory is malloc's")
        yield reused


def test_freed_array_serves_a_later_one(reused):
    used, kept, most = reused.held()
    assert used == 0 and kept == most >= N
    array = np.ones(N, np.int8)
    assert reused.held() == (kept, 0, most)
    assert array.all()


def test_small_arrays_are_put_together_for_a_larger_one(reused):
    parts = [np.full(N, i, np.int8) for i in range(3)]
    most = reused.held()[2]
    del parts
    whole = np.arange(5 * N // 2 // 4, dtype=np.int32)
    assert reused.held()[2] == most
    assert np.array_equal(whole, np.arange(len(whole)))


def test_zeros_are_zeros_where_others_were(reused):
    array = np.ones(N, np.int8)
    del array
    assert not np.zeros(N, np.int8).any()


def test_array_keeps_its_numbers_when_it_is_resized(reused):
    array = np.arange(N // 4, dtype=np.int32)
    for n in (N, 10, N // 2, 3 * N, N // 4 + 1):
        before = array[: min(n, len(array))].copy()
        array.resize(n, refcheck=False)
        assert np.array_equal(array[: len(before)], before)


def test_array_outlives_the_memory_it_came_from():
    with Reused():
        array = np.arange(N, dtype=np.int64)
    assert array[-1] == N - 1
    array.resize(2 * N, refcheck=False)
    assert array[N - 1] == N - 1


def test_nothing_is_kept_behind_and_arrays_come_from_numpy_again():
    with Reused() as reused:
        np.empty(N, np.int8)
    array = np.ones(N, np.int8)
    assert array.all() and reused.held() == (0, 0, 0)


def test_inside_another_it_leaves_memory_to_the_outer_one(reused):
    before = reused.held()
    with Reused() as inner:
        array = np.ones(N, np.int8)
        assert inner.held() == (0, 0, 0)
        assert reused.held()[0] > before[0]
    assert array.all()
    assert reused.held()[0] > before[0]


def test_it_ends_with_an_error():
    with pytest.raises(ValueError), Reused() as reused:
        raise ValueError
    np.empty(N, np.int8)
    assert reused.held() == (0, 0, 0)


def test_threads_in_a_copy_of_the_context_share_it(reused):
    sums = []

    def work(value):
        for _ in range(20):
            array = np.full(N, value, np.int8)
            sums.append(int(array[:: N // 64].sum()) - 64 * value)

    contexts = [contextvars.copy_context() for _ in range(3)]
    threads = [
        threading.Thread(target=context.run, args=(work, value))
        for value, context in enumerate(contexts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    used, kept, _ = reused.held()
    assert sums == [0] * 60
    assert used == 0 and kept >= N
