"""The windows of times, and the parts of gaps in windows, against plain Python."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastprof.analysis.idle.causes import Cause, Parts
from fastprof.analysis.steps.windows import Windows
from property.intervals import frozen
from support.hypothesis_profiles import examples

TIME = st.integers(0, 20)
LENGTHS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), max_size=6)
PARTS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(Cause), st.integers(1, 9)), max_size=12
)


@examples(400)
@given(LENGTHS, st.lists(TIME, max_size=12).map(sorted), st.booleans())
def test_a_time_is_in_the_last_window_that_begins_before_it(lengths, times, is_second):
    start, end, now = [], [], 0
    for gap, length, _ in lengths:
        start.append(now + gap)
        end.append(now := now + gap + length)
    known = [each for _, _, each in lengths]
    # The rows of another lane are between those of the lane.
    rows = [2 * i + is_second for i in range(len(lengths))]
    columns = np.full((3, 2 * len(lengths)), 7, np.int64)
    columns[:, rows] = start, end, known
    lane = np.arange(2 * len(lengths), dtype=np.int32) % 2
    windows = Windows(
        [None, None],
        lane,
        lane,
        columns[0],
        columns[1],
        columns[2].astype(bool),
        *[np.zeros(len(lane), bool)] * 2,
    )
    result = windows.row_of(np.full(len(times), is_second, np.int32), frozen(times, np.int64))
    for time, row in zip(times, result.tolist(), strict=True):
        some = [i for i in range(len(rows)) if known[i] and start[i] <= time]
        expected = rows[some[-1]] if some and time < end[some[-1]] else -1
        assert row == expected


@examples(300)
@given(PARTS, st.lists(st.integers(-1, 2), min_size=5, max_size=5))
def test_parts_add_up_in_any_windows(rows, window):
    parts = Parts(
        frozen([gap for gap, _, _ in rows], np.int32),
        frozen([cause for _, cause, _ in rows], np.uint8),
        frozen([ns for _, _, ns in rows], np.int64),
    )
    result = parts.time_by_window(frozen(window, np.int32), 3)
    expected = np.zeros((3, len(Cause)), np.int64)
    for gap, cause, ns in rows:
        if window[gap] >= 0:
            expected[window[gap], cause] += ns
    assert np.array_equal(result, expected)
