"""The entries of a rank's chain against plain loops over work and pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core import _chain
from fastprof.errors import InternalError
from support.hypothesis_profiles import examples

N_LABELS = 5
TIME = st.integers(0, 40)
LABEL = st.integers(0, N_LABELS - 1)


@st.composite
def chains(draw):
    """Work in order of start, ends of pieces of which the last is after all work, idle time."""
    spans = draw(st.lists(st.tuples(TIME, st.integers(0, 9), LABEL), max_size=12))
    work = [(start, start + length, label) for start, length, label in sorted(spans)]
    time = [*sorted(draw(st.lists(TIME, max_size=8))), 60]
    piece = st.integers(0, len(time) - 1)
    idle = sorted(draw(st.lists(st.tuples(piece, LABEL, st.integers(1, 5)), max_size=8)))
    return work, idle, time


def columns(rows, *dtypes):
    """Rows as columns."""
    values = list(zip(*rows, strict=True)) or [()] * len(dtypes)
    return tuple(np.array(one, dtype) for one, dtype in zip(values, dtypes, strict=True))


def entries(work, idle, time, begin=0, n_labels=N_LABELS):
    return _chain.entries(
        columns(work, np.int64, np.int64, np.int32),
        columns(idle, np.int32, np.int32, np.int64),
        begin,
        np.array(time, np.int64),
        n_labels,
    )


def expected(work, idle, time):
    """{(piece, label): [ns, count]}"""
    result, until = {}, 0
    for start, end, label in work:
        low = max(start, until)
        if end <= low:
            continue
        first = min(p for p, each in enumerate(time) if each > low)
        last = min(p for p, each in enumerate(time) if each >= end)
        for piece in range(first, last + 1):
            begin = low if piece == first else time[piece - 1]
            entry = result.setdefault((piece, label), [0, 0])
            entry[0] += min(time[piece], end) - begin
            entry[1] += piece == first
        until = end
    for piece, label, ns in idle:
        result.setdefault((piece, label), [0, 0])[0] += ns
    return result


@examples(300)
@given(chains())
def test_entries_are_those_of_loops(chain):
    work, idle, time = chain
    offsets, label, ns, count = entries(work, idle, time)
    piece = np.repeat(np.arange(len(time)), np.diff(offsets))
    keys = list(zip(piece.tolist(), label.tolist(), strict=True))
    assert keys == sorted(set(keys))
    numbers = zip(ns.tolist(), count.tolist(), strict=True)
    assert dict(zip(keys, map(list, numbers), strict=True)) == expected(work, idle, time)


def test_many_labels_of_a_piece_are_in_order():
    work = [(i, i + 1, (7 * i) % 100) for i in range(100)]
    offsets, label, ns, count = entries(work, [], [100], n_labels=100)
    assert offsets.tolist() == [0, 100]
    assert label.tolist() == list(range(100))
    assert set(ns.tolist()) == set(count.tolist()) == {1}


def test_a_sum_stays_within_64_bits():
    most = 2**63 - 1
    _, _, ns, _ = entries([], [(0, 0, most), (0, 0, 1)], [10])
    assert ns.tolist() == [most]


@pytest.mark.parametrize(
    ("work", "idle", "time"),
    [
        ([(5, 6, 0), (4, 7, 0)], [], [10]),
        ([(1, 2, 0)], [], [10, 9]),
        ([(1, 12, 0)], [], [10]),
        ([(1, 2, N_LABELS)], [], [10]),
        ([(1, 2, -1)], [], [10]),
        ([], [(1, 0, 5), (0, 0, 5)], [10, 20]),
        ([], [(1, 0, 5)], [10]),
        ([], [(0, N_LABELS, 5)], [10]),
    ],
)
def test_what_is_out_of_order_or_out_of_bounds_is_refused(work, idle, time):
    with pytest.raises(InternalError):
        entries(work, idle, time)
