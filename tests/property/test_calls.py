"""Calls and parts of kernels against a row-by-row reference."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core import _parts
from fastprof._core._calls import (
    ALL_TAKEN,
    BIAS,
    BIAS_BACKWARD,
    ENGINE,
    FAMILY,
    FITS,
    FORMULA,
    GRADIENT,
    KNOWN,
    MATRICES,
    MOVES,
    NODE,
    SOME_TAKEN,
    UNKNOWN_BACKWARD,
    find,
    following,
    instances,
    outside,
)
from fastprof._core._parts import ALL_PARTS, BESIDE, MOST_PARTS, VARIANTS, WHOLE
from fastprof.errors import InternalError
from support.hypothesis_profiles import examples

N_FRAMES, N_LABELS, N_GROUPS = 8, 4, 3
N_ROWS, N_FORMS, N_INFOS, N_KINDS, N_NAMES = 4, 3, 3, 3, 2


def some(n, low, high):
    return st.lists(st.integers(low, high), min_size=n, max_size=n)


@st.composite
def trees(draw):
    """Frames with what is known of each and of their labels: picked, inner and backward are on the
    way to the root, as they are in a trace."""
    parent = [draw(st.integers(-1, i - 1)) for i in range(N_FRAMES)]

    def on_the_way(i):
        way = [i]
        while parent[way[-1]] >= 0:
            way.append(parent[way[-1]])
        return draw(st.sampled_from([*way, -1]))

    span = [draw(st.sampled_from([i, i, i, draw(st.integers(0, i))])) for i in range(N_FRAMES)]
    columns = [[on_the_way(i) for i in range(N_FRAMES)] for _ in range(3)]
    label, instance = draw(some(N_FRAMES, 0, N_LABELS - 1)), draw(some(N_FRAMES, -1, N_FRAMES - 1))
    says = draw(some(N_LABELS, 0, 2 * FORMULA - 1))
    of_labels = [draw(some(N_LABELS, low, 1)) for low in (-1, 0, 0, -1, -1)]
    return (parent, label, span, *columns, instance), says, of_labels


def arrays(tree):
    frames, says, labels = tree
    return (
        [np.array(column, np.int32) for column in frames],
        np.array(says, np.uint16),
        [np.array(column, np.int32) for column in labels],
    )


class Calls:
    """The rules of fp_calls.h, kernel by kernel."""

    def __init__(self, tree, kernels):
        frames, self.says, labels = tree
        self.name, self.overload, self.sizes, self.dtypes, self.flops = labels
        self.parent, self.label, self.span, *others = frames
        self.picked, self.inner, self.backward, self.instance = others
        self.inside, self.products, self.taken = {}, {}, {}
        self.kernels = [self.around(*kernel) for kernel in kernels]
        for kernel in self.kernels:
            self.take(kernel)

    def is_(self, frame, bits):
        return frame >= 0 and self.says[self.label[frame]] & bits == bits

    def alike(self, outer, frame):
        same = self.name[self.label[outer]] == self.name[self.label[frame]]
        return same or (self.is_(outer, FAMILY) and self.is_(frame, FAMILY))

    def again(self, outer, frame):
        """Whether the frame is all of the call `outer`, in other types or sizes."""
        of, own = self.label[outer], self.label[frame]
        known = self.dtypes[of] >= 0 and self.dtypes[own] >= 0
        differ = known and self.dtypes[of] != self.dtypes[own]
        if differ and self.is_(outer, KNOWN) and self.alike(outer, frame):
            return True
        around, between = self.parent[frame], 0
        while around >= 0 and self.name[self.label[around]] < 0 and between < 4:
            around, between = self.parent[around], between + 1
        if around < self.picked[frame] or self.name[own] < 0:
            return False
        of = self.label[around]
        return self.overload[of] == self.overload[own] and self.sizes[of] != self.sizes[own]

    def outer(self, frame):
        """The call around a frame that has the cost if the frame has not."""
        parent, call = self.parent[frame], self.picked[frame]
        inherited = self.restated(parent) if parent >= 0 and self.picked[parent] == call else -1
        return inherited if inherited >= 0 else call

    def restated(self, frame):
        if frame < 0:
            return -1
        outer = self.outer(frame)
        if outer not in (frame, -1) and self.is_(frame, KNOWN):
            flops, of = self.flops[self.label[frame]], self.flops[self.label[outer]]
            is_part = self.is_(frame, MATRICES) and self.is_(outer, KNOWN) and flops not in (-1, of)
            if self.again(outer, frame) or is_part:
                return frame
        return -1 if outer == self.picked[frame] else outer

    def around(self, frame, meaning):
        own = self.picked[frame] if frame >= 0 else -1
        forward = self.picked[meaning] if meaning >= 0 and meaning != frame else -1
        backward = self.backward[frame] if frame >= 0 and forward >= 0 else -1
        instance = forward if forward >= 0 else own
        if backward >= 0 and self.instance[backward] >= 0:
            instance = self.instance[backward]
        inner = self.inner[frame] if frame >= 0 else -1
        if inner < (backward if forward >= 0 else own):
            inner = -1
        ran = self.restated(frame) if self.restated(frame) >= 0 else own
        restated = self.restated(meaning if forward >= 0 else frame)
        return own, forward, backward, instance, inner, restated, ran

    def product(self, kernel):
        _, forward, _, _, inner, *_ = kernel
        tells = self.is_(inner, MATRICES) or self.is_(forward, UNKNOWN_BACKWARD)
        return self.is_(forward, FAMILY) and self.is_(inner, FAMILY | KNOWN) and tells

    def does_own(self, kernel):
        own, forward, _, _, inner, *_ = kernel
        unlike = self.is_(inner, FAMILY | KNOWN) and not self.is_(forward, FAMILY)
        unlike |= self.is_(forward, UNKNOWN_BACKWARD)
        knows = self.is_(own, KNOWN) and unlike
        knows |= self.is_(own, FORMULA) and not self.is_(forward, FORMULA)
        return forward >= 0 and knows

    def set_inside(self, call, frame, is_all):
        now = self.inside.get(self.span[call], -1)
        if is_all and self.alike(call, frame):
            now = max(now, frame)
        elif now == -1:
            now = frame if is_all else -2
        elif is_all and now >= 0 and self.span[now] != self.span[frame]:
            now = now if self.alike(call, now) else -2
        self.inside[self.span[call]] = now

    def take(self, kernel):
        own, forward, backward, instance, inner, _, ran = kernel
        if forward < 0 or (self.does_own(kernel) and not self.product(kernel)):
            while ran != own:
                outer = self.outer(ran)
                is_all, span = self.again(outer, ran), self.span[outer]
                self.taken[span] = ALL_TAKEN if is_all else self.taken.get(span, SOME_TAKEN)
                if forward < 0:
                    self.set_inside(own, ran, is_all)
                ran = outer
        if not self.product(kernel) or backward < 0:
            return
        at, product = inner, self.span[inner]
        around = []
        while at > backward and self.parent[at] >= 0:
            at = self.parent[at]
            if self.span[at] != product:
                around.append(self.span[at])
        if self.span[instance] not in {product, *around}:
            around.append(self.span[instance])
        if (product, None) not in self.products:  # first kernel of a product
            self.products[product, None] = 1
            for frame in around:
                self.products[frame] = self.products.get(frame, 0) + 1

    def n_taken(self, span):
        return self.taken.get(span, self.products.get(span, 0))

    def helps(self, kernel):
        own, forward, _, _, inner, restated, _ = kernel
        call, bias = (forward, BIAS_BACKWARD) if forward >= 0 else (own, BIAS)
        if not self.is_(call, KNOWN) or not self.is_(inner, KNOWN):
            return False
        moves = self.is_(inner, MOVES)
        is_own = forward < 0 and self.span[inner] != self.span[call]
        is_own &= not self.is_(inner, FAMILY)
        if restated < 0 and self.span[call] in self.inside and (moves or is_own):
            return True
        is_product = self.is_(call, FAMILY) and not self.is_(inner, FAMILY)
        return is_product and (moves or not self.is_(call, bias))

    def told(self, kernel):
        """Label, is_backward, work, is_gradient, helper, the frame of the instance of the work and
        that of the call."""
        own, forward, _, instance, inner, restated, ran = kernel
        label = [*self.label, -1]  # the last for frame -1
        call = forward if forward >= 0 else own
        if self.product(kernel):
            return label[forward], True, label[inner], False, -1, inner, instance
        if self.does_own(kernel):
            is_backward = self.is_(own, GRADIENT)
            call, of_call = (forward, instance) if is_backward else (own, own)
            return label[call], is_backward, label[ran], False, -1, ran, of_call
        work = label[call]
        if restated >= 0:
            work = label[restated]
        elif self.is_(call, KNOWN) and self.inside.get(self.span[call], -1) >= 0:
            work = label[self.inside[self.span[call]]]
        if self.helps(kernel):
            return label[call], forward >= 0, work, forward >= 0, label[inner], inner, instance
        group = restated if forward < 0 <= restated else instance
        return label[call], forward >= 0, work, forward >= 0, -1, group, instance


FRAME = st.integers(-1, N_FRAMES - 1)
# One kernel or two in a row of the same frames.
IN_A_ROW = st.lists(st.tuples(st.tuples(FRAME, FRAME), st.integers(1, 2)), max_size=8)


def as_columns(kernels):
    return (np.array([kernel[i] for kernel in kernels], np.int32) for i in (0, 1))


def listed(kinds):
    """Kinds as tuples: (call, backward, work, gradient, helper)."""
    calls, backward, gradient = (column.tolist() for column in kinds)
    return [
        (call, is_backward, work, is_gradient, helper)
        for (call, work, helper), is_backward, is_gradient in zip(
            calls, backward, gradient, strict=True
        )
    ]


@examples(1500)
@given(trees(), IN_A_ROW)
def test_each_kernel_gets_the_call_and_the_cost_that_the_rules_say(tree, in_a_row):
    kernels = [frames for frames, times in in_a_row for _ in range(times)]
    calls, wanted, groups = Calls(tree, kernels), [], {}
    for kernel in calls.kernels:
        *told, group, instance = calls.told(kernel)
        span, of_call = (calls.span[each] if each >= 0 else -1 for each in (group, instance))
        number = groups.setdefault(span, len(groups)) if span >= 0 else -1
        wanted.append((tuple(told), number, 2 * of_call + told[1] if of_call >= 0 else -1))
    kinds, kind, group, taken, instance = find(*as_columns(kernels), *arrays(tree))
    kinds = listed(kinds)
    assert [kinds[i] for i in kind] == [told for told, *_ in wanted]
    assert kinds == list(dict.fromkeys(told for told, *_ in wanted))
    assert list(zip(group.tolist(), instance.tolist(), strict=True)) == [
        tuple(numbers) for _, *numbers in wanted
    ]
    assert taken.tolist() == [calls.n_taken(span) for span in groups]


@examples(200)
@given(trees(), IN_A_ROW, some(N_FRAMES, 0, 1))
def test_work_outside_of_a_node_has_the_purpose_of_its_own_frame(tree, in_a_row, flags):
    kernels = [frames for frames, times in in_a_row for _ in range(times)]
    own = [(f, f if f >= 0 and flags[f] else m) for f, m in kernels]
    result = find(*as_columns(kernels), *arrays(tree), np.array(flags, bool))
    expected = find(*as_columns(own), *arrays(tree))
    assert listed(result[0]) == listed(expected[0])
    for column, other in zip(result[1:], expected[1:], strict=True):
        assert column.tolist() == other.tolist()


FRAME_BITS = st.sampled_from([0, 0, ENGINE, NODE, FITS, ENGINE | FITS])


@examples(400)
@given(st.data())
def test_work_of_the_engine_is_outside_of_the_node_that_it_evaluates(data):
    parent = [data.draw(st.integers(-1, i - 1)) for i in range(N_FRAMES)]
    label = data.draw(some(N_FRAMES, 0, N_LABELS - 1))
    bits = data.draw(st.lists(FRAME_BITS, min_size=N_LABELS, max_size=N_LABELS))
    of_frame = [bits[each] for each in label]
    has_node = [
        any(parent[i] == at and of_frame[i] & NODE for i in range(N_FRAMES))
        for at in range(N_FRAMES)
    ]
    expected = []
    for frame in range(N_FRAMES):
        at, is_outside = frame, False
        while at >= 0:
            around = of_frame[parent[at]] if parent[at] >= 0 else 0
            if of_frame[at] & NODE or (of_frame[at] & FITS and around & ENGINE):
                break
            if of_frame[at] & ENGINE:
                is_outside = has_node[at]
                break
            at = parent[at]
        expected.append(is_outside and not of_frame[frame] & ENGINE)
    columns = np.array(parent, np.int32), np.array(label, np.int32)
    assert outside(*columns, np.array(bits, np.uint8)).tolist() == expected


@examples(300)
@given(some(N_FRAMES, 0, 1), some(N_FRAMES, -1, N_FRAMES - 1), some(N_FRAMES, -1, N_FRAMES - 1))
def test_the_first_backward_call_stands_for_those_of_its_forward_call(is_call, meaning, picked):
    backward = [i if flag else -1 for i, flag in enumerate(is_call)]
    expected, seen, first = list(range(N_FRAMES)), set(), {}
    for call in filter(lambda frame: backward[frame] >= 0, range(N_FRAMES)):
        forward = meaning[call]
        if forward < 0 or forward in seen:
            continue
        seen.add(forward)
        if picked[forward] >= 0:
            expected[call] = first.setdefault(picked[forward], call)
    columns = (np.array(column, np.int32) for column in (backward, meaning, picked))
    assert instances(*columns).tolist() == expected


@pytest.mark.parametrize("column", [1, 2])
@pytest.mark.parametrize("bad", [-2, 1])
def test_a_forward_frame_that_is_not_there_is_an_internal_error(column, bad):
    columns = [np.zeros(1, np.int32) for _ in range(3)]
    columns[column][0] = bad
    with pytest.raises(InternalError, match="instances of backward calls"):
        instances(*columns)
    with pytest.raises(InternalError, match="outside of autograd nodes"):
        outside(np.zeros(1, np.int32), columns[column], np.zeros(1, np.uint8))
    none = np.empty(0, np.int32)
    assert len(instances(none, none, none)) == len(outside(none, none, np.zeros(0, "u1"))) == 0


TABLES = st.tuples(
    some(N_ROWS, 0, N_FORMS - 1),
    some(N_FORMS * N_INFOS, -1, MOST_PARTS - 1),
    some(N_FORMS * N_INFOS, 0, 1),
    some(N_FORMS * N_INFOS, 0, VARIANTS - 1),
    some(N_FORMS * MOST_PARTS, 0, 1),
    some(N_FORMS, 0, 1), some(N_FORMS, 0, 1), some(N_INFOS, 0, 1),
)  # fmt: skip
TAKEN = some(N_GROUPS, 0, MOST_PARTS) | some(N_GROUPS, SOME_TAKEN, ALL_TAKEN)
KERNELS = st.lists(
    st.tuples(
        st.integers(0, N_KINDS - 1), st.integers(-1, N_NAMES - 1), st.integers(-1, N_GROUPS - 1)
    ),
    max_size=10,
)


def shaped(tables):
    form, part_of, sure, variant, main, *others = tables
    return [
        np.array(form, np.int32),
        np.array(part_of, np.int8).reshape(N_FORMS, N_INFOS),
        np.array(sure, bool).reshape(N_FORMS, N_INFOS),
        np.array(variant, np.uint8).reshape(N_FORMS, N_INFOS),
        np.array(main, bool).reshape(N_FORMS, MOST_PARTS),
        *(np.array(other, bool) for other in others),
    ]


def parts_of_group(members, tables, has_group, n_taken):
    """The parts of the kernels (form, info) of one group, some of whose main parts are taken."""
    _, part_of, sure, _, main, costed, whole_always, other = tables
    claims = [int(part_of[form, info]) for form, info in members]
    both = list(zip(members, claims, strict=True))
    recognised = any(part >= 0 and main[form, part] for (form, _), part in both)
    unknown = any(costed[form] and other[info] for form, info in members)
    gradient = [bool(main[form, 1]) and part in (0, 1) for (form, _), part in both]
    claimed = {part for part, is_gradient in zip(claims, gradient, strict=True) if is_gradient}
    unsure = [g and not sure[member] for g, member in zip(gradient, members, strict=True)]
    settled = any(g and sure[member] for g, member in zip(gradient, members, strict=True))
    several = has_group and sum(unsure) > 1
    result, met = [], 0
    for ((form, _), part), doubtful in zip(both, unsure, strict=True):
        all_taken = n_taken >= sum(main[form]) and n_taken != SOME_TAKEN
        if n_taken and (part < 0 or (main[form, part] and all_taken)):
            part = BESIDE
        elif part < 0:
            whole = costed[form] and not recognised and (whole_always[form] or unknown)
            part = WHOLE if whole else BESIDE
        elif doubtful and len(claimed) == 1:
            second = has_group and met > 0
            met += 1
            if settled or (several and second == (part == 0)):
                part = 1 - part
        result.append(part)
    return result


@examples(800)
@given(TABLES, KERNELS, some(N_KINDS, 0, N_ROWS - 1), some(N_NAMES + 1, 0, N_INFOS - 1), TAKEN)
def test_each_kernel_does_the_part_that_its_name_and_the_others_say(
    tables, kernels, row_of, info_of, taken
):
    form, _, _, variant, *_ = shaped(tables)
    places = [(row_of[kind], info_of[name]) for kind, name, _ in kernels]  # -1: the last
    wanted = [None] * len(kernels)
    for group in range(-1, N_GROUPS):
        own = [i for i, kernel in enumerate(kernels) if kernel[2] == group]
        members = [(int(form[places[i][0]]), places[i][1]) for i in own]
        n_taken = taken[group] if group >= 0 else 0
        of_group = parts_of_group(members, shaped(tables), group >= 0, n_taken)
        for i, part, member in zip(own, of_group, members, strict=True):
            wanted[i] = (places[i][0] * ALL_PARTS + part) * VARIANTS + int(variant[member])
    kind, name, group = (np.array([k[i] for k in kernels], np.int32) for i in range(3))
    columns = (kind, np.array(row_of, np.int32), name, np.array(info_of, np.int32), group)
    result = _parts.find((*columns, np.array(taken, np.uint8)), shaped(tables))
    assert result.tolist() == wanted


@examples(300)
@given(st.data())
def test_the_next_kernel_is_that_launched_next_on_the_thread(data):
    n_launches, n_threads = data.draw(st.integers(1, 6)), 2
    thread = data.draw(some(n_launches, -1, n_threads - 1))
    start = data.draw(some(n_launches, 0, 9))
    if data.draw(st.booleans()):
        start.sort()
    launch = data.draw(st.lists(st.integers(-1, n_launches - 1), max_size=8))
    if data.draw(st.booleans()):
        launch.sort()
    launched = [i for i, each in enumerate(launch) if each >= 0]
    rows = [i for i in launched if data.draw(st.booleans())]
    columns = np.array(launch, np.int32), np.array(thread, np.int32), np.array(start, np.int64)
    result = following(*columns, n_threads, np.array(rows, np.int64))
    of_thread = [
        [i for i in launched if thread[launch[i]] == each] for each in range(-1, n_threads)
    ]
    times = [[start[launch[i]] for i in each] for each in of_thread]
    if rows and any(time != sorted(time) for time in times):
        assert result is None
        return
    after = dict.fromkeys(launched, -1)
    after |= {i: j for each in of_thread for i, j in pairwise(each)}
    assert result.tolist() == [after[i] for i in rows]


@pytest.mark.parametrize(
    ("launch", "thread", "rows"), [(1, 0, 0), (0, 1, 0), (0, -2, 0), (-1, 0, 0), (0, 0, 1)]
)
def test_a_launch_that_is_not_there_is_an_internal_error(launch, thread, rows):
    columns = np.array([launch], np.int32), np.array([thread], np.int32), np.zeros(1, np.int64)
    with pytest.raises(InternalError, match="launched next"):
        following(*columns, 1, np.array([rows], np.int64))
    with pytest.raises(ValueError, match="lengths differ"):
        following(*columns[:2], np.zeros(2, np.int64), 1, np.array([rows], np.int64))


ONE_FRAME = arrays(([[-1], [0], [0], [0], [0], [-1], [-1]], [KNOWN], [[0]] * 3 + [[-1]] * 2))
# A row, form, kind, name and kernel each.
ONE_TABLE = [np.zeros(1, np.int32), np.zeros((1, 1), np.int8), np.ones((1, 1), bool)]
ONE_TABLE += [np.zeros((1, 1), np.uint8), np.ones((1, MOST_PARTS), bool)]
ONE_TABLE += [np.ones(1, bool) for _ in range(3)]
ONE_KERNEL = [np.zeros(n, np.int32) for n in (1, 1, 1, 2, 1)] + [np.zeros(1, np.uint8)]
BAD = [1, -2, 2**31 - 1, -(2**31)]


@pytest.mark.parametrize("column", range(7))
@pytest.mark.parametrize("bad", BAD)
def test_a_frame_outside_its_table_is_an_internal_error(column, bad):
    frames = [array.copy() for array in ONE_FRAME[0]]
    frames[column][0] = bad
    if column == 0 and bad < 0:
        return  # any number below 0 is a root
    with pytest.raises(InternalError, match="finding calls"):
        find(np.array([0], np.int32), np.array([0], np.int32), frames, *ONE_FRAME[1:])


@pytest.mark.parametrize("column", range(2))
@pytest.mark.parametrize("bad", BAD)
def test_a_kernel_outside_the_frames_is_an_internal_error(column, bad):
    columns = [np.array([0], np.int32), np.array([-1], np.int32)]
    columns[column][0] = bad
    with pytest.raises(InternalError, match="finding calls"):
        find(*columns, *ONE_FRAME)


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("bad", BAD)
def test_an_index_outside_its_table_is_an_internal_error(column, bad):
    kernel = [array.copy() for array in ONE_KERNEL]
    kernel[column][0] = bad
    with pytest.raises(InternalError, match="parts of calls"):
        _parts.find(kernel, ONE_TABLE)


@pytest.mark.parametrize(
    ("column", "bad"), [(0, 1), (0, -1), (1, MOST_PARTS), (1, -2), (3, VARIANTS)]
)
def test_an_entry_outside_its_range_is_an_internal_error(column, bad):
    tables = [array.copy() for array in ONE_TABLE]
    tables[column][0] = bad
    with pytest.raises(InternalError, match="parts of calls"):
        _parts.find(ONE_KERNEL, tables)


def test_columns_of_another_length_are_refused():
    one, two = np.zeros(1, np.int32), np.zeros(2, np.int32)
    with pytest.raises(ValueError, match="expected 2 values, found 1"):
        find(two, one, *ONE_FRAME)
    with pytest.raises(ValueError, match="expected 1 flags, found 2"):
        find(one, one, *ONE_FRAME, np.zeros(2, bool))
    for column in (2, 4):
        kernel = [*ONE_KERNEL]
        kernel[column] = two
        with pytest.raises(ValueError, match="expected 1 values, found 2"):
            _parts.find(kernel, ONE_TABLE)
    for column in range(1, 7):
        tables = [*ONE_TABLE]
        tables[column] = np.zeros((2, 2), ONE_TABLE[column].dtype)
        with pytest.raises(ValueError, match=r"expected \d flags, found \d"):
            _parts.find(ONE_KERNEL, tables)


def test_no_kernels_have_no_calls():
    none = np.empty(0, np.int32)
    assert len(find(none, none, *ONE_FRAME)[-1]) == 0
    assert len(following(none, none, np.empty(0, np.int64), 0, np.empty(0, np.int64))) == 0
    kernel = [none, none, none, np.zeros(1, np.int32), none, np.zeros(0, np.uint8)]
    assert len(_parts.find(kernel, ONE_TABLE)) == 0
