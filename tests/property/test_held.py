"""The launches that hold up pieces of a chain against plain loops over work and pieces."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._held import Launched
from fastprof.errors import InternalError
from fastprof.model.trace import NO_TIME
from support.hypothesis_profiles import examples

TIME = st.integers(0, 40)
LAUNCH = st.one_of(st.just(NO_TIME), st.integers(-9, 40))
LATENCY, SLOW = 3, 5


class Kernel(NamedTuple):
    """Work, or a call that arrives at the end of a piece."""

    start: int
    end: int
    launch: int
    call: int  # how long it takes, -1 for none
    piece: int = -1


class Chain(NamedTuple):
    work: list[Kernel]
    arrivals: list[Kernel]
    time: list[int]  # the last one is after all work
    stretched: list[float]
    begin: int


@st.composite
def chains(draw):
    spans = draw(st.lists(st.tuples(TIME, st.integers(0, 9), LAUNCH, st.integers(-1, 9))))
    work = [Kernel(start, start + length, *more) for start, length, *more in sorted(spans)]
    time = [*sorted(draw(st.lists(TIME, max_size=8))), 60]
    piece = st.integers(0, len(time) - 1)
    calls = draw(st.lists(st.tuples(piece, LAUNCH, st.integers(-1, 9))))
    arrivals = [Kernel(time[p], time[p], *more, p) for p, *more in sorted(calls)]
    share = st.sampled_from([1.0, 1.25, 1.5, 3.0])
    stretched = draw(st.lists(share, min_size=len(time), max_size=len(time)))
    return Chain(work, arrivals, time, stretched, draw(st.integers(0, 20)))


def launched(chain, of_call=None):
    """The kernels in another order than they start; of_call : [kernels] instead of the calls"""
    kernels = chain.work + chain.arrivals
    row = np.arange(len(kernels), dtype=np.int32)[::-1].copy()
    table = kernels[::-1]
    known = np.array([one.call >= 0 for one in table], bool)
    call = np.where(known, np.cumsum(known) - 1, -1).astype(np.int32)
    return Launched(
        (
            np.array([one.start for one in chain.work], np.int64),
            np.array([one.end for one in chain.work], np.int64),
            row[: len(chain.work)],
        ),
        chain.begin,
        (
            np.array([one.piece for one in chain.arrivals], np.int64),
            np.array([one.start for one in chain.arrivals], np.int64),
            row[len(chain.work) :],
        ),
        (
            np.array([one.launch for one in table], np.int64),
            call if of_call is None else of_call,
            np.arange(known.sum(), dtype=np.int32) + 7,
            np.array([one.launch + one.call for one in table if one.call >= 0], np.int64),
        ),
    )


def threads(chain):
    """The thread of each kernel."""
    number, result = 7, []
    for one in (chain.work + chain.arrivals)[::-1]:
        result.append(number if one.call >= 0 else -1)
        number += one.call >= 0
    return result[::-1]


def own_moments(chain):
    """(kernel, number, first, last) of work that has moments of its own."""
    until = chain.begin
    for number, one in enumerate(chain.work):
        low = max(until, one.start)
        if one.end > low:
            yield one, number, low, one.end
        until = max(until, one.end)


def sums_of(chain):
    result = [0] * len(chain.time)
    for _, _, first, last in own_moments(chain):
        for t in range(first, last):
            result[sum(end <= t for end in chain.time)] += 1
    return result


def listed(chain):
    """(piece, kernel, number, rest) of the launches, in order."""
    left, rows = sums_of(chain), []
    for one, number, first, last in own_moments(chain):
        piece = sum(end <= first for end in chain.time)
        rows.append((piece, one, number, left[piece]))
        for t in range(first, last):
            left[sum(end <= t for end in chain.time)] -= 1
    n = len(chain.work)
    rows += [(one.piece, one, n + i, 0) for i, one in enumerate(chain.arrivals)]
    return [row for row in sorted(rows, key=lambda row: row[0]) if row[1].launch != NO_TIME]


def find(chain, **changes):
    time, stretched = np.array(chain.time, np.int64), np.array(chain.stretched)
    own = launched(chain, **changes)
    return own.find(time, own.sums(time), stretched, LATENCY, SLOW)


@examples(300)
@given(chains())
def test_pieces_are_held_up_by_their_launches(chain):
    of_thread = threads(chain)
    launch, allowed = ([NO_TIME] * len(chain.time) for _ in range(2))
    thread, rest = [-1] * len(chain.time), [0] * len(chain.time)
    slow = []
    for piece, one, number, after in listed(chain):
        if one.launch >= launch[piece]:
            launch[piece], thread[piece] = one.launch, of_thread[number]
        stretched = round(after * chain.stretched[piece])
        until = min(one.launch + LATENCY, one.start) + stretched
        if until >= allowed[piece]:
            allowed[piece], rest[piece] = until, stretched
        if one.call >= SLOW:
            slow.append((one.launch, one.launch + one.call))
    result = [column.tolist() for column in find(chain)]
    assert result[:4] == [launch, thread, allowed, rest]
    assert list(zip(*result[4:], strict=True)) == slow
    assert launched(chain).sums(np.array(chain.time)).tolist() == sums_of(chain)


@examples(300)
@given(chains(), st.lists(TIME))
def test_work_waits_from_its_launch_to_its_start(chain, times):
    expected = [
        sum(one.launch < t <= one.start for _, one, _, _ in listed(chain))
        - sum(one.start < t <= one.launch for _, one, _, _ in listed(chain))
        for t in sorted(times)
    ]
    result = launched(chain).waiting(np.array(sorted(times), np.int64))
    assert result.tolist() == expected


@pytest.mark.parametrize(
    "chain",
    [
        Chain([Kernel(5, 9, 1, 1), Kernel(4, 9, 1, 1)], [], [60], [1.0], 0),
        Chain([Kernel(5, 70, 1, 1)], [], [60], [1.0], 0),
        Chain([Kernel(5, 9, 1, 1)], [], [60, 50], [1.0, 1.0], 0),
        Chain([], [Kernel(5, 5, 1, 1, 1)], [60], [1.0], 0),
        Chain([], [Kernel(5, 5, 1, 1, -1)], [60], [1.0], 0),
        Chain([], [Kernel(5, 5, 1, 1, 1), Kernel(5, 5, 1, 1, 0)], [60, 60], [1.0, 1.0], 0),
    ],
)
def test_what_is_not_in_order_or_out_of_bounds_is_an_error(chain):
    with pytest.raises(InternalError):
        find(chain)


def test_calls_out_of_bounds_are_an_error():
    chain = Chain([Kernel(5, 9, 1, 1)], [], [60], [1.0], 0)
    with pytest.raises(InternalError):
        find(chain, of_call=np.array([1], np.int32))


def test_no_pieces_have_no_launches():
    columns = find(Chain([], [], [], [], 0))
    assert [len(column) for column in columns] == [0] * 6
