"""Cells, short kernels and time lines against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core import _cells
from fastprof.errors import InternalError
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples

N_CELLS, N_IDS = 3, 4
ROWS = st.lists(st.tuples(st.integers(0, N_CELLS - 1), st.integers(-1, N_IDS - 1)), max_size=30)
HASHED = 1 << 23  # ids: too many for a table


@examples(200)
@given(ROWS, st.sampled_from([N_IDS, HASHED]))
def test_pairs_are_numbered_in_order_of_first_appearance(rows, n_ids):
    cell, ids = (frozen([row[i] for row in rows], np.int32) for i in (0, 1))
    refined, first = _cells.refine(cell, N_CELLS, ids, n_ids)
    pairs = list(dict.fromkeys(rows))
    assert refined.tolist() == [pairs.index(row) for row in rows]
    assert first.tolist() == [rows.index(pair) for pair in pairs]


TIME = st.integers(-2, 20)
WORK = st.lists(st.tuples(TIME, TIME, st.integers(0, 2), st.booleans()), max_size=20).map(sorted)


@examples(300)
@given(WORK, st.booleans())
def test_a_time_line_counts_each_instant_once(work, is_masked):
    start, duration, ids, mask = (
        frozen([row[i] for row in work], dtype)
        for i, dtype in enumerate((np.int64, np.int64, np.int32, np.uint8))
    )
    group = frozen([1, -1, 0], np.int32)
    lines = _cells.busy(start, duration, ids, group, 2, mask if is_masked else None)
    for g, begin, end, busy in zip(range(2), *map(list, lines), strict=True):
        own = [
            (row[0], row[0] + max(row[1], 0))
            for row in work
            if group[row[2]] == g and (row[3] or not is_masked)
        ]
        if not own:
            assert begin > end and busy == 0
            continue
        assert (begin, end) == (min(own)[0], max(last for _, last in own))
        assert busy == len({time for first, last in own for time in range(first, last)})


@examples(300)
@given(WORK)
def test_an_overlap_is_with_the_preceding_work_of_the_same_id(work):
    start, duration, ids = (
        frozen([row[i] for row in work], dtype)
        for i, dtype in enumerate((np.int64, np.int64, np.int32))
    )
    expected, before = [], {}
    for begin, length, own, _ in work:
        expected.append(before.get(own, begin) - begin)
        before[own] = begin + max(length, 0)
    expected = [each for each in expected if each > 0]
    assert _cells.overlaps(start, duration, ids, 3) == (len(expected), max(expected, default=0))


def test_times_beyond_64_bits_are_the_largest_number():
    start, duration = frozen([INT64_MIN, INT64_MAX - 1], np.int64), frozen([1, 9], np.int64)
    ids, group = frozen([0, 0], np.int32), frozen([0], np.int32)
    begin, end, busy = (int(each[0]) for each in _cells.busy(start, duration, ids, group, 1))
    assert (begin, end, busy) == (INT64_MIN, INT64_MAX, 2)


def test_work_out_of_order_is_refused():
    start, ids, group = frozen([1, 0], np.int64), frozen([0, 0], np.int32), frozen([0], np.int32)
    with pytest.raises(InternalError, match="not sorted"):
        _cells.busy(start, start, ids, group, 1)


KERNEL = st.tuples(
    st.integers(0, N_CELLS - 1), st.integers(-1, 20), st.integers(-1, 9), st.integers(-1, 9)
)


@examples(200)
@given(st.lists(KERNEL, max_size=20), st.lists(st.booleans(), min_size=3, max_size=3))
def test_short_kernels_are_those_below_both_limits(kernels, small):
    per_flop, per_byte = [0.5, 0.0, 2.0], [0.0, 1.0, 0.25]
    cell = frozen([row[0] for row in kernels], np.int32)
    columns = [frozen([row[i] for row in kernels], np.int64) for i in (1, 2, 3)]
    coefficients = frozen(per_flop, np.float64), frozen(per_byte, np.float64)
    result = _cells.short_time(cell, *columns, frozen(small, np.uint8), *coefficients, 10, 3.0)
    expected = [0] * N_CELLS
    for c, time, flops, moved in kernels:
        ideal = max(flops, 0) * per_flop[c] + max(moved, 0) * per_byte[c]
        if time < 10 and (small[c] or ideal < 3.0):
            expected[c] += max(time, 0)
    assert result.tolist() == expected


def test_cells_and_ids_out_of_bounds_are_refused():
    one, none = frozen([0], np.int32), frozen([-1], np.int32)
    many, ns = frozen([7], np.int32), frozen([0], np.int64)
    flags, rates = frozen([0], np.uint8), frozen([0.0], np.float64)
    for wrong in (
        lambda: _cells.refine(many, 7, one, 1),
        lambda: _cells.refine(none, 7, one, 1),
        lambda: _cells.refine(one, 1, many, 7),
        lambda: _cells.busy(ns, ns, many, one, 1),
        lambda: _cells.busy(ns, ns, one, many, 7),
        lambda: _cells.overlaps(ns, ns, many, 7),
        lambda: _cells.short_time(many, ns, ns, ns, flags, rates, rates, 1, 1.0),
    ):
        with pytest.raises(InternalError, match="out of bounds"):
            wrong()


def test_columns_of_different_lengths_are_refused():
    one, none, ns = frozen([0], np.int32), frozen([], np.int32), frozen([0], np.int64)
    flags, rates = frozen([], np.uint8), frozen([0.0], np.float64)
    for wrong in (
        lambda: _cells.refine(one, 1, none, 1),
        lambda: _cells.busy(ns, ns, none, one, 1),
        lambda: _cells.overlaps(ns, ns, none, 1),
        lambda: _cells.busy(ns, ns, one, one, 1, flags),
        lambda: _cells.short_time(one, ns, ns, ns, flags, rates, rates, 1, 1.0),
    ):
        with pytest.raises(ValueError, match="lengths differ"):
            wrong()
