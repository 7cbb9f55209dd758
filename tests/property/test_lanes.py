"""Lanes of slices against plain Python, and the errors of their input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._packets import lanes
from fastprof.errors import InternalError
from support.hypothesis_profiles import examples

TIME = st.integers(0, 20)
SLICES = st.lists(st.tuples(TIME, TIME, st.integers(0, 2)), max_size=15).map(
    lambda rows: sorted(rows, key=lambda row: (row[0], -row[1]))
)


def arrays(rows):
    start, end, track = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(start, np.int64), np.array(end, np.int64), np.array(track, np.int32)


def plain(rows, may_nest):
    """The first lane in which each slice crosses no earlier one."""
    placed = []
    for start, end, track in rows:
        end, lane = max(start, end), 0
        while any(
            not (e <= start or (may_nest and end <= e))
            for _, e, t, number in placed
            if (t, number) == (track, lane)
        ):
            lane += 1
        placed.append((start, end, track, lane))
    return [lane for *_, lane in placed]


@examples(400)
@given(SLICES, st.booleans())
def test_slices_get_the_first_lane_with_room(rows, may_nest):
    lane, counts = lanes(*arrays(rows), 3, may_nest)
    expected = plain(rows, may_nest)
    assert lane.tolist() == expected
    most = [max((n + 1 for n, r in zip(expected, rows, strict=True) if r[2] == t), default=0)
            for t in range(3)]  # fmt: skip
    assert counts.tolist() == most


def test_every_slice_gets_a_lane_however_many_overlap():
    n = 300
    start, end = np.zeros(n, np.int64), np.full(n, 10, np.int64)
    lane, counts = lanes(start, end, np.zeros(n, np.int32), 1, False)
    assert lane.tolist() == list(range(n))
    assert counts.tolist() == [n]


@pytest.mark.parametrize("start, track", [([1, 0], [0, 0]), ([0, 1], [0, 3]), ([0, 1], [-1, 0])])
def test_bad_slices_are_rejected(start, track):
    start = np.array(start, np.int64)
    with pytest.raises(InternalError):
        lanes(start, start, np.array(track, np.int32), 3, True)
