"""Calls and parts of kernels against the same told row by row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastprof._calls import BESIDE, MOST_PARTS, WHOLE, find, parts
from fastprof.errors import InternalError

N_FRAMES, N_LABELS, N_GROUPS, N_ROWS, N_INFOS = 6, 3, 3, 3, 3


def some(n, low, high):
    return st.lists(st.integers(low, high), min_size=n, max_size=n)


FRAME = st.integers(-1, N_FRAMES - 1)
FRAMES = st.tuples(
    some(N_FRAMES, 0, N_LABELS - 1), *[some(N_FRAMES, -1, N_FRAMES - 1)] * 3,
    some(N_LABELS, 0, 1), some(N_LABELS, 0, 1),
)  # fmt: skip


def columns(frames):
    *of_frames, known, unknown = frames
    return [np.array(each, np.int32) for each in of_frames] + [
        np.array(each, np.uint8) for each in (known, unknown)
    ]


@settings(max_examples=500, deadline=None)
@given(FRAMES, st.lists(st.tuples(FRAME, FRAME), max_size=8))
def test_each_kernel_gets_the_call_that_says_most(frames, kernels):
    label, picked, backward, instance, known, unknown = frames
    wanted, groups = [], {}
    for frame, meaning in kernels:
        own = picked[frame] if frame >= 0 else -1
        forward = picked[meaning] if meaning >= 0 and meaning != frame else -1
        tells_more = own >= 0 and known[label[own]] and unknown[label[forward]]
        backward_of = bool(forward >= 0 and not tells_more)
        call = group = forward if backward_of else own
        if backward_of:
            around = backward[frame] if frame >= 0 else -1
            stands = instance[around] if around >= 0 else -1
            group = stands if stands >= 0 else forward
        number = groups.setdefault(group, len(groups)) if group >= 0 else -1
        wanted.append((label[call] if call >= 0 else -1, backward_of, number))
    frame, meaning = (np.array([k[i] for k in kernels], np.int32) for i in (0, 1))
    labels, is_backward, group, n_groups = find(frame, meaning, *columns(frames))
    got = zip(labels.tolist(), is_backward.tolist(), group.tolist(), strict=True)
    assert list(got) == wanted
    assert n_groups == len(groups)


TABLES = st.tuples(
    some(N_ROWS * N_INFOS, -1, MOST_PARTS - 1),
    some(N_ROWS * N_INFOS, 0, 1),
    some(N_ROWS * MOST_PARTS, 0, 1),
    some(N_ROWS, 0, 1), some(N_ROWS, 0, 1), some(N_INFOS, 0, 1),
)  # fmt: skip
KERNELS = st.lists(
    st.tuples(
        st.integers(0, N_ROWS - 1), st.integers(0, N_INFOS - 1), st.integers(-1, N_GROUPS - 1)
    ),
    max_size=10,
)


def shaped(tables):
    part_of, sure, main, *others = tables
    return [
        np.array(part_of, np.int8).reshape(N_ROWS, N_INFOS),
        np.array(sure, bool).reshape(N_ROWS, N_INFOS),
        np.array(main, bool).reshape(N_ROWS, MOST_PARTS),
        *(np.array(each, bool) for each in others),
    ]


def parts_of_group(members, tables, has_group):
    """The parts of the kernels (row, info) of one group."""
    part_of, sure, main, costed, whole_always, other = tables
    claims = [int(part_of[row, info]) for row, info in members]
    both = list(zip(members, claims, strict=True))
    recognised = any(part >= 0 and main[row, part] for (row, _), part in both)
    unknown = any(costed[row] and other[info] for row, info in members)
    gradient = [bool(main[row, 1]) and part in (0, 1) for (row, _), part in both]
    claimed = {part for part, is_gradient in zip(claims, gradient, strict=True) if is_gradient}
    unsure = [g and not sure[member] for g, member in zip(gradient, members, strict=True)]
    settled = any(g and sure[member] for g, member in zip(gradient, members, strict=True))
    several = has_group and sum(unsure) > 1
    found, met = [], 0
    for ((row, _), part), doubtful in zip(both, unsure, strict=True):
        if part < 0:
            whole = costed[row] and not recognised and (whole_always[row] or unknown)
            part = WHOLE if whole else BESIDE
        elif doubtful and len(claimed) == 1:
            second = has_group and met > 0
            met += 1
            if settled or (several and second == (part == 0)):
                part = 1 - part
        found.append(part)
    return found


@settings(max_examples=800, deadline=None)
@given(TABLES, KERNELS)
def test_each_kernel_does_the_part_that_its_name_and_the_others_say(tables, kernels):
    wanted = [None] * len(kernels)
    for group in range(-1, N_GROUPS):
        places = [i for i, kernel in enumerate(kernels) if kernel[2] == group]
        members = [kernels[i][:2] for i in places]
        for i, part in zip(
            places, parts_of_group(members, shaped(tables), group >= 0), strict=True
        ):
            wanted[i] = part
    row, info, group = (np.array([k[i] for k in kernels], np.int32) for i in range(3))
    assert parts(row, info, group, N_GROUPS, *shaped(tables)).tolist() == wanted


NO_FRAMES = columns([[0], [0], [-1], [-1], [1], [0]])
ONE_ROW = [np.zeros((1, 1), np.int8), *(np.ones((1, n), bool) for n in (1, MOST_PARTS))]
ONE_ROW += [np.ones(1, bool) for _ in range(3)]


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("bad", [1, -2, 2**31 - 1, -(2**31)])
def test_an_index_outside_its_table_is_an_internal_error(column, bad):
    frame, meaning = np.array([0], np.int32), np.array([-1], np.int32)
    if column > 2:
        ([frame] if column == 3 else [meaning])[0][0] = bad
        with pytest.raises(InternalError, match="finding calls"):
            find(frame, meaning, *NO_FRAMES)
        return
    indices = [np.zeros(1, np.int32) for _ in range(3)]
    indices[column][0] = bad
    with pytest.raises(InternalError, match="parts of calls"):
        parts(*indices, 1, *ONE_ROW)


def test_columns_of_another_length_are_refused():
    one, two = np.zeros(1, np.int32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="1 values, expected 2"):
        find(two, one, *NO_FRAMES)
    with pytest.raises(ValueError, match="2 values, expected 1"):
        parts(one, two, one, 1, *ONE_ROW)


def test_no_kernels_have_no_calls():
    none = np.empty(0, np.int32)
    assert find(none, none, *NO_FRAMES)[3] == 0
    assert len(parts(none, none, none, 0, *ONE_ROW)) == 0
