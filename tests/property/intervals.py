"""Strategies for ranges of threads, and reference functions for open and crossing ranges."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

INT32_MAX = 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

TIME = st.integers(0, 12) | st.sampled_from(
    [INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX]
)


class Interval(NamedTuple):
    start: int
    end: int
    thread: int = 0


def intervals(n_threads=1, time=TIME, max_size=12):
    """Lists of intervals in the order of fp_order_sort: outer ones precede those they contain."""
    times = st.tuples(time, time).map(sorted)
    one = st.builds(lambda t, thread: Interval(*t, thread), times, st.integers(0, n_threads - 1))
    return st.lists(one, max_size=max_size).map(in_order)


def nested(n_threads=1, time=TIME, max_size=12):
    """As `intervals`, without those that cross an earlier one."""
    return intervals(n_threads, time, max_size).map(without_crossing)


def in_order(rows):
    return sorted(rows, key=lambda row: (row.start, -row.end))


def is_open(row, t, thread=0):
    return row.thread == thread and row.start <= t < row.end


def crosses(a, b):
    a, b = in_order([a, b])
    return a.thread == b.thread and a.start < b.start < a.end < b.end


def without_crossing(rows):
    kept = []
    for row in rows:
        if not any(crosses(one, row) for one in kept):
            kept.append(row)
    return kept


def frozen(values, dtype):
    """A read-only array, as a memory-mapped column is."""
    array = np.array(values, dtype)
    array.flags.writeable = False
    return array


def columns(rows):
    """start and end, int64, and thread, int32, all read-only."""
    return (
        frozen([row.start for row in rows], np.int64),
        frozen([row.end for row in rows], np.int64),
        frozen([row.thread for row in rows], np.int32),
    )


def chain(parent, index):
    """The indices from the root of a tree down to `index`; [] for -1."""
    result = []
    while index >= 0:
        result.append(int(index))
        index = parent[index]
    return result[::-1]
