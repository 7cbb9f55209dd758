"""Forward and backward calls, sequence numbers and subs against the rules of fp_link.h."""

import time
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof._core import _link
from fastprof._core._link import BACKWARD, FORWARD, NONE
from fastprof.errors import InternalError
from property.intervals import INT32_MAX, INT64_MAX, chain, frozen
from support.hypothesis_profiles import examples

SEQ = st.integers(0, 3) | st.sampled_from([INT64_MAX, 1 << 32])
SCOPE = st.integers(0, 1) | st.sampled_from([-1, INT32_MAX, -(2**31)])
ROLE = st.sampled_from([NONE, FORWARD, FORWARD, BACKWARD])
RANGES = st.lists(st.tuples(ROLE, SEQ, SCOPE), max_size=20)


def forward_of(ranges):
    role, seq, scope = ([row[i] for row in ranges] for i in range(3))
    got = _link.forward_of(frozen(role, np.uint8), frozen(seq, np.int64), frozen(scope, np.int32))
    return got.tolist()


def latest_carrier(ranges, i):
    if ranges[i][0] != BACKWARD:
        return -1
    carriers = [j for j in range(i) if ranges[j] == (FORWARD, *ranges[i][1:])]
    return carriers[-1] if carriers else -1


@examples(400)
@given(RANGES)
@example([(FORWARD, 7, 0), (FORWARD, 7, 0), (BACKWARD, 7, 0), (FORWARD, 7, 0)])
def test_forward_is_the_latest_carrier_before_in_the_same_scope(ranges):
    assert forward_of(ranges) == [latest_carrier(ranges, i) for i in range(len(ranges))]


def test_a_range_without_a_role_may_have_no_number():
    assert forward_of([(NONE, -1, 0), (BACKWARD, 0, 0)]) == [-1, -1]
    assert forward_of([]) == []
    assert forward_of([(BACKWARD, 1, 0)]) == [-1]


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 28])
def test_many_numbers_at_regular_distances_are_all_linked(step):
    n = 50_000
    seq = np.tile(np.arange(n, dtype=np.int64) * step, 2)
    role = np.repeat(np.array([FORWARD, BACKWARD], np.uint8), n)
    got = _link.forward_of(role, seq, np.zeros(2 * n, np.int32))
    assert (got[:n] == -1).all()
    assert (got[n:] == np.arange(n)).all()


def outermost_of_run(parent, number, frame):
    """The last numbered frame on the path to the root before one with another number, or -1."""
    numbered = [at for at in reversed(chain(parent, frame)) if number[at] >= 0]
    run = list(takewhile(lambda at: number[at] == number[numbered[0]], numbered))
    return run[-1] if run else -1


@st.composite
def backward_calls(draw):
    """Rows (call, range, in_backward) of frames, and (forward, frame) of ranges."""
    n_frames, n_ranges = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    frame = st.tuples(
        st.integers(-1, n_frames - 1), st.integers(0, n_ranges - 1), st.integers(0, 1)
    )
    range_ = st.tuples(st.integers(-1, n_ranges - 1), st.integers(0, n_frames - 1))
    frames = draw(st.lists(frame, min_size=n_frames, max_size=n_frames))
    return frames, draw(st.lists(range_, min_size=n_ranges, max_size=n_ranges))


def meanings_of(frames, ranges):
    call, range_of_frame, inside = ([row[i] for row in frames] for i in range(3))
    forward, frame = ([row[i] for row in ranges] for i in range(2))
    return _link.meanings(
        frozen(call, np.int32), frozen(range_of_frame, np.int32), frozen(inside, np.uint8),
        frozen(forward, np.int32), frozen(frame, np.int32),
    )  # fmt: skip


@examples(200)
@given(backward_calls())
def test_a_part_of_a_backward_call_means_its_forward_frame(case):
    frames, ranges = case
    expected = []
    for own, (call, _, inside) in enumerate(frames):
        forward = ranges[frames[call][1]][0] if inside and call >= 0 else -1
        expected.append(ranges[forward][1] if forward >= 0 else own)
    assert meanings_of(frames, ranges).tolist() == expected


@pytest.mark.parametrize(
    ("frames", "ranges"),
    [([(1, 0, 1)], [(0, 0)]), ([(0, 1, 1)], [(0, 0)]), ([(0, 0, 1)], [(1, 0)])],
)
def test_a_call_range_or_forward_that_is_not_there_is_an_internal_error(frames, ranges):
    with pytest.raises(InternalError, match="meanings"):
        meanings_of(frames, ranges)


def test_numbers_that_differ_in_their_high_bits_only_do_not_slow_linking_down():
    seconds = {}
    for step in (1, 1 << 44):
        seq, scope = np.arange(40_000, dtype=np.int64) * step, np.zeros(40_000, np.int32)
        role = np.full(40_000, FORWARD, np.uint8)
        began = time.thread_time()
        _link.forward_of(role, seq, scope)
        seconds[step] = time.thread_time() - began
    assert seconds[1 << 44] < 100 * seconds[1] + 0.05


TORCH, IS_BACKWARD, NODE, RECOMPUTE = 1, 2, 4, 8  # bits of a label


@st.composite
def labelled_ranges(draw):
    """(label, thread, seq) of ranges; bits of labels; parent and in_backward of frames."""
    n = draw(st.integers(0, 8))
    bits = draw(st.lists(st.integers(0, 15) | st.just(TORCH), min_size=3, max_size=3))
    one = st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(-1, 2))
    parent = [draw(st.integers(-1, i - 1)) for i in range(n)]
    return [draw(one) for _ in range(n)], bits, parent, [draw(st.integers(0, 1)) for _ in range(n)]


def role_of(ranges, bits, parent, in_backward, i):
    """The role of range i, whose frame is i, if 0 counts as a number."""
    label, _, seq = ranges[i]
    if not bits[label] & TORCH or seq < 0:
        return NONE
    if bits[label] & IS_BACKWARD:
        inside = parent[i] >= 0 and in_backward[parent[i]]
        return BACKWARD if not inside or bits[label] & NODE else NONE
    return NONE if in_backward[i] or bits[label] & RECOMPUTE else FORWARD


@examples(300)
@given(labelled_ranges())
@example(([(0, 0, 0), (0, 0, 1), (0, 1, 0)], [TORCH] * 3, [-1] * 3, [0] * 3))
def test_role_follows_from_label_number_and_place(case):
    ranges, bits, parent, in_backward = case
    label, thread, seq = (frozen([row[i] for row in ranges], np.int64) for i in range(3))
    got = _link.roles(
        label.astype(np.int32), thread.astype(np.int32), frozen(range(len(ranges)), np.int32), seq,
        frozen(bits, np.uint8), frozen(parent, np.int32), frozen(in_backward, np.uint8), 2,
    )  # fmt: skip
    roles = [role_of(*case, i) for i in range(len(ranges))]
    counting = {
        row[1] for row, role in zip(ranges, roles, strict=True) if role == FORWARD and row[2]
    }
    assert got.tolist() == [
        NONE if role == FORWARD and not row[2] and row[1] not in counting else role
        for row, role in zip(ranges, roles, strict=True)
    ]


@st.composite
def kernels_in_frames(draw):
    """parent, seq, backward and is_torch of frames; frame and inside of kernels."""
    n = draw(st.integers(0, 8))
    parent = [draw(st.integers(-1, i - 1)) for i in range(n)]
    numbers = st.integers(-1, 3) | st.just(INT64_MAX)
    seq = [draw(numbers) for _ in range(n)]
    backward = [draw(st.integers(0, 1)) for _ in range(n)]
    is_torch = [draw(st.integers(0, 3)) > 0 for _ in range(n)]
    kernels = draw(st.lists(st.tuples(st.integers(-1, n - 1), st.integers(0, 1)), max_size=6))
    return parent, seq, backward, is_torch, kernels


def numbers_of_chain(found, inside):
    """The linking number and the others, from (seq, backward) of the frames, outermost first."""
    counted = [seq for seq, backward in found if seq >= 0 and (backward or not inside)]
    linking = next((seq for seq in reversed(counted) if seq > 0), 0 if counted else -1)
    others = {seq for seq, _ in found if seq >= 0} - {linking}
    if linking > 0 or any(seq > 0 for seq in others):
        others -= {0}
    return linking, sorted(others)


@examples(400)
@given(kernels_in_frames())
@example(([-1, 0], [71, 72], [0, 0], [True, True], [(1, 0)]))
@example(([-1, 0, 1], [7, 7, 0], [1, 1, 0], [True, True, True], [(2, 1)]))
def test_the_number_that_links_and_the_others_are_those_of_the_chain(case):
    parent, seq, backward, is_torch, kernels = case
    n = len(parent)  # ranges: those of the frames in reverse order; labels: torch's and another
    linking, offsets, others = _link.numbers(
        frozen(parent, np.int32), frozen(range(n)[::-1], np.int32), frozen(backward, np.uint8),
        frozen(seq[::-1], np.int64), frozen([int(not each) for each in is_torch[::-1]], np.int32),
        frozen([1, 0], np.uint8),
        frozen([frame for frame, _ in kernels], np.int32),
        frozen([inside for _, inside in kernels], np.uint8), n,
    )  # fmt: skip
    seq = [number if each else -1 for number, each in zip(seq, is_torch, strict=True)]
    got = [
        (int(linking[i]), others[offsets[i] : offsets[i + 1]].tolist()) for i in range(len(kernels))
    ]
    assert got == [
        numbers_of_chain([(seq[at], backward[at]) for at in chain(parent, frame)], inside)
        for frame, inside in kernels
    ]
    assert len(others) == offsets[-1]


def ids(*values):
    return np.array(values, np.int32)


def two_frames():
    """Two nested frames with a kernel inside."""
    parent, own, flags = ids(-1, 0), ids(0, 1), np.zeros(2, np.uint8)
    seq, label, is_torch = np.array([1, 2]), ids(0, 0), np.ones(1, np.uint8)
    return [parent, own, flags, seq, label, is_torch, ids(1), np.zeros(1, np.uint8), 2]


def test_a_chain_deeper_than_said_is_an_internal_error():
    assert _link.numbers(*two_frames())[0].tolist() == [2]
    with pytest.raises(InternalError, match="sequence numbers"):
        _link.numbers(*two_frames()[:-1], 1)


@pytest.mark.parametrize("bad", [2, -1, 2**31 - 1])
@pytest.mark.parametrize("column", [1, 4])  # range, label
def test_a_range_or_label_that_is_not_there_is_an_internal_error(column, bad):
    columns = two_frames()
    columns[column][1] = bad
    with pytest.raises(InternalError, match="sequence numbers"):
        _link.numbers(*columns)


@examples(300)
@given(kernels_in_frames())
@example(([-1, 0, 1, 2, 3], [7, -1, 7, 8, 7], [0] * 5, [True] * 5, []))
def test_a_backward_call_is_the_outermost_frame_of_a_run_with_one_number(case):
    parent, number, *_ = case
    n = len(parent)
    links = [value >= 0 for value in number]
    # The ranges of the frames, in any other order.
    role = [_link.BACKWARD if linking else _link.FORWARD for linking in links[::-1]]
    call, linking = _link.calls(
        frozen(parent, np.int32), frozen(range(n - 1, -1, -1), np.int32),
        frozen(role, np.uint8), frozen(number[::-1], np.int64),
    )  # fmt: skip
    assert call.dtype == np.int32
    assert call.tolist() == [outermost_of_run(parent, number, i) for i in range(n)]
    assert linking.tolist() == links


SUB_ROW = st.tuples(st.integers(0, 1), st.integers(-1, 1) | st.just(INT64_MAX), st.integers(-1, 1))


def rows_before_alike(rows, i):
    """The number of rows with the same number and operator directly before row i in its process."""
    process, seq, _ = rows[i]
    count, numbered = 0, [row for row in rows[:i] if row[0] == process and row[1] >= 0]
    while seq >= 0 and count < len(numbered) and numbered[-1 - count] == rows[i]:
        count += 1
    return count


@examples(300)
@given(st.lists(SUB_ROW, max_size=20))
@example([(0, 7, 1), (1, 7, 1), (0, 7, 1), (0, -1, 1), (0, 7, 1), (0, 7, 2), (0, 7, 1)])
def test_sub_counts_the_rows_in_a_row_with_one_number_and_operator(rows):
    process, seq, operator = ([row[i] for row in rows] for i in range(3))
    got = _link.sub(frozen(process, np.int32), frozen(seq, np.int64), frozen(operator, np.int32), 2)
    assert got.dtype == np.int32
    assert got.tolist() == [rows_before_alike(rows, i) for i in range(len(rows))]


@pytest.mark.parametrize("process", [-1, 1])
def test_a_process_that_is_not_there_is_an_internal_error(process):
    with pytest.raises(InternalError, match="sub"):
        _link.sub(np.array([process], np.int32), np.zeros(1, np.int64), np.zeros(1, np.int32), 1)


def test_columns_of_different_length_are_refused():
    role, two = np.zeros(1, np.uint8), np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="lengths differ"):
        _link.forward_of(role, two, np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="lengths differ"):
        _link.sub(np.zeros(1, np.int32), two, np.zeros(1, np.int32), 1)
