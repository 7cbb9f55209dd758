"""Torch range names against a regular expression, the pools against dicts."""

import re
import time

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastprof._core._column import split_range_names
from fastprof._core._pools import Keys, Names, pairs
from property.intervals import INT64_MAX, INT64_MIN
from support.hypothesis_profiles import examples

INT32 = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))


def up_to(limit):
    """A pattern for the numbers from 0 to `limit` with at most as many digits."""
    digits = str(limit)
    parts = [f"[0-9]{{1,{len(digits) - 1}}}", digits]
    for i, digit in enumerate(digits):
        if digit != "0":
            parts.append(f"{digits[:i]}[0-{int(digit) - 1}][0-9]{{{len(digits) - i - 1}}}")
    return "|".join(parts)


NUMBERED = re.compile(
    rf"(?P<name>.*?)(, seq = (?P<seq>{up_to(INT64_MAX)}))?"
    rf"(, op_id = (?P<op_id>{up_to(INT64_MAX)}))?\Z",
    re.DOTALL,
)


def cut_list(text, key):
    """The text before `key` and the rest, if the text ends with `key` and a list."""
    depth = 0
    for place in range(len(text) - 1, -1, -1) if text.endswith("]") else ():
        depth += (text[place] == "]") - (text[place] == "[")
        if depth == 0:
            head = text[:place]
            if head.endswith(key):
                head = head.removesuffix(key)
                return head, text[len(head) :]
            break
    return text, ""


def by_pattern(text):
    """label, seq and op_id of a name; byte 1 precedes a label with torch's suffix."""
    rest, _ = cut_list(text, ", input_op_ids = ")
    rest, sizes = cut_list(rest, ", sizes = ")
    name, seq, op_id = NUMBERED.match(rest).group("name", "seq", "op_id")
    label = text if name == text else "\1" + name + sizes
    return label, int(seq or -1), int(op_id or -1)


def by_scan(texts):
    pool = Names()
    label, seq, op_id = split_range_names(pool, texts)
    labels = pool.texts()
    return [
        (labels[i] if i >= 0 else None, int(s), int(o))
        for i, s, o in zip(label, seq, op_id, strict=True)
    ]


NUMBERS = ["0", "7", "007", "-1", "", "1e3", str(INT64_MAX), str(INT64_MAX + 1), "9" * 19, "9" * 20]
PIECES = [
    "aten::mm", "a, b", "é", "\n", "\0", " ", ",", "[", "]", "]]", "[[2, 3], []]", "(5, 0)",
    ", seq = ", ", op_id = ", ", sizes = [", ", input_op_ids = [", ", sizes = ", "seq = 1",
    ", seq = 7", ", op_id = 9", ", sizes = [[2], []]", ", input_op_ids = [(5, 0)]", *NUMBERS,
]  # fmt: skip
TEXT = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)

NAME = st.lists(st.sampled_from(PIECES[:12]), min_size=1, max_size=3).map("".join)
NUMBER = st.none() | st.integers(0, 9) | st.just(INT64_MAX)
SIZES = st.lists(st.lists(st.integers(0, 10**6), max_size=5), max_size=5)
LISTS = st.sampled_from(["", "[]", "(5, 0), (0, -1)"]) | SIZES.map(lambda sizes: str(sizes)[1:-1])
LIST = st.none() | LISTS


@examples(1000)
@given(st.lists(TEXT, max_size=8))
@example([""])
@example([",", ", seq = 1", ", sizes = []", "]"])
@example(["a, seq = 1, seq = 2", "a, op_id = 3, seq = 2", "a, sizes = [1], sizes = [2]"])
@example(["a, seq = 5, op_id = 9223372036854775808", "a, seq = 00000000000000000007"])
def test_any_text_is_split_as_the_pattern_says(texts):
    assert by_scan(texts) == [by_pattern(text) for text in texts]


@examples(300)
@given(NAME, NUMBER, NUMBER, LIST, LIST)
def test_what_torch_writes_is_read_back(name, seq, op_id, sizes, input_op_ids):
    suffix = "" if seq is None else f", seq = {seq}"
    suffix += "" if op_id is None else f", op_id = {op_id}"
    tail = "" if sizes is None else f", sizes = [{sizes}]"
    suffix += tail + ("" if input_op_ids is None else f", input_op_ids = [{input_op_ids}]")
    label = "\1" + name + tail if suffix else name
    numbers = tuple(-1 if number is None else number for number in (seq, op_id))
    assert by_scan([name + suffix]) == [(label, *numbers)]


def test_texts_that_differ_in_their_numbers_only_are_one_label():
    pool = Names()
    texts = [f"mm, seq = {i}, op_id = {2 * i}, sizes = [[2]]" for i in range(1000)]
    label, seq, op_id = split_range_names(pool, texts)
    assert (label == 0).all()
    assert pool.texts() == ["\1mm, sizes = [[2]]"]
    assert (op_id == 2 * np.arange(1000)).all() and (seq == np.arange(1000)).all()


def test_a_text_of_the_user_is_not_taken_for_a_name_of_torch():
    label, _, _ = split_range_names(Names(), ["\1mm", "mm, seq = 1"])
    assert label[0] != label[1]


def test_no_text_is_no_label():
    assert by_scan([None, "a", None]) == [(None, -1, -1), ("a", -1, -1), (None, -1, -1)]
    assert by_scan([]) == []


def test_hostile_texts_are_split_in_time_that_grows_with_their_length():
    n = 1_000_000
    digits, commas = "7" * n, "," * n
    texts = [digits, commas, ", seq = " + digits, ", sizes = [" * (n // 11), "]" * n]
    texts += [", sizes = [" * (n // 11) + "]"]
    assert [row[1:] for row in by_scan(texts)] == [(-1, -1)] * len(texts)


@examples(200)
@given(st.lists(st.binary(max_size=40) | st.sampled_from([b"", b"\0", b"a", b"ab"]), max_size=30))
def test_a_text_keeps_the_id_of_its_first_appearance(texts):
    pool, expected = Names(), {}
    for text in texts:
        assert pool.intern(text) == expected.setdefault(text, len(expected))
    assert pool.texts() == [text.decode("utf-8", "replace") for text in expected]
    assert len(pool) == len(expected)
    assert pool.texts(1) == pool.texts()[1:]


def test_a_hundred_thousand_texts_are_kept_apart():
    pool, texts = Names(), [b"text %d" % (i * i) for i in range(100_000)]
    assert [pool.intern(text) for text in texts] == list(range(100_000))
    assert [pool.intern(text) for text in texts[::-1]] == list(range(99_999, -1, -1))
    assert pool.texts() == [text.decode() for text in texts]


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 31, 32, 33])
def test_texts_that_differ_in_one_byte_are_kept_apart(length):
    texts = [bytes(length - i - 1) + b"\1" + bytes(i) for i in range(length)] + [bytes(length)]
    pool = Names()
    assert [pool.intern(text) for text in texts] == list(range(length + 1))


@examples(200)
@given(st.lists(st.integers(-3, 3) | st.integers(INT64_MIN, INT64_MAX), max_size=30))
@example([INT64_MIN, INT64_MAX, -1, 0, INT64_MIN])
def test_a_number_keeps_the_id_of_its_first_appearance(numbers):
    pool, expected = Keys(), {}
    for number in numbers:
        assert pool.find(number) == expected.get(number, -1)
        assert pool.intern(number) == expected.setdefault(number, len(expected))
    assert pool.values().tolist() == list(expected)
    assert len(pool) == len(expected)


def test_numbers_that_differ_in_their_high_bits_only_do_not_slow_a_pool_down():
    seconds = {}
    for shift in (0, 44):
        pool, began = Keys(), time.thread_time()
        for i in range(40_000):
            pool.intern(i << shift)
        seconds[shift] = time.thread_time() - began
    assert seconds[44] < 20 * seconds[0] + 0.05


@pytest.mark.parametrize("shift", [0, 4, 24, 32])
def test_a_hundred_thousand_numbers_at_regular_distances_are_kept_apart(shift):
    pool, n = Keys(), 1 << 17
    numbers = [i << shift for i in range(n)]
    assert [pool.intern(number) for number in numbers] == list(range(n))
    assert [pool.find(number) for number in numbers] == list(range(n))
    assert pool.find(-1) == -1


@given(st.lists(st.tuples(INT32, INT32)))
def test_pairs_are_numbered_in_order_of_first_appearance(items):
    left, right = (np.array([pair[i] for pair in items], np.int32) for i in (0, 1))
    numbers: dict[tuple[int, int], int] = {}
    expected = [numbers.setdefault(pair, len(numbers)) for pair in items]
    ids, first = pairs(left, right)
    assert ids.tolist() == expected
    assert [items[row] for row in first] == list(numbers)


def test_pairs_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="expected 2 numbers on the right, found 1"):
        pairs(np.zeros(2, np.int32), np.zeros(1, np.int32))
