"""Look-ups by columns of indices against list look-ups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core import _pools, _take
from fastprof.errors import InternalError
from property.intervals import INT64_MAX, INT64_MIN, frozen
from support.hypothesis_profiles import examples


@st.composite
def look_ups(draw):
    values = draw(st.lists(st.integers(-3, 3), max_size=8))
    return values, draw(st.lists(st.integers(-1, len(values) - 1), max_size=12))


@examples(200)
@given(look_ups(), st.sampled_from([np.int8, np.int16, np.int32, np.int64]), st.integers(-2, 2))
def test_an_index_gives_its_value_and_none_gives_none(case, dtype, none):
    values, index = case
    expected = [values[i] if i >= 0 else none for i in index]
    got = _take.take(frozen(values, dtype), frozen(index, np.int32), none)
    assert got.dtype == dtype
    assert got.tolist() == expected
    room = np.full(len(index), 99, dtype)
    assert _take.take(frozen(values, dtype), frozen(index, np.int32), none, out=room) is room
    assert room.tolist() == expected


def test_flags_and_columns_of_a_table_can_be_looked_up():
    index = np.array([1, -1, 0], np.int32)
    assert _take.take(np.array([True, False]), index, False).tolist() == [False, False, True]
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert _take.take(table.T[2], index).tolist() == [5, -1, 2]


def test_look_ups_need_numbers_and_room_of_their_type():
    index = np.zeros(2, np.int32)
    with pytest.raises(ValueError, match=r"expected numbers .* found complex128, \[3\]"):
        _take.take(np.zeros(3, complex), index)
    with pytest.raises(ValueError, match=r"found int32, \[3, 2\]"):
        _take.take(np.zeros((3, 2), np.int32), index)
    for room in (np.zeros(3, np.int32), np.zeros(2, np.int64)):
        with pytest.raises(ValueError, match="expected room for 2 int32, found"):
            _take.take(np.zeros(3, np.int32), index, out=room)


@examples(200)
@given(look_ups())
def test_objects_are_looked_up_as_numbers_are(case):
    values, index = case
    tuples = [(value,) for value in values]
    got = _take.objects(tuples, frozen(index, np.int32))
    assert got.dtype == object
    assert got.tolist() == [tuples[i] if i >= 0 else None for i in index]


@examples(200)
@given(look_ups())
def test_distinct_indices_are_those_that_occur_in_order(case):
    values, index = case
    used, place = _take.distinct(frozen(index, np.int32), len(values))
    assert used == sorted(set(index))
    assert [used[i] for i in place] == index


@examples(200)
@given(look_ups(), st.data())
def test_distinct_indices_can_be_those_of_another_table(case, data):
    values, index = case
    n = data.draw(st.integers(0, 4))
    inner = data.draw(st.lists(st.integers(-1, n - 1), min_size=len(values), max_size=len(values)))
    outer = data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n))
    at_inner = [inner[i] if i >= 0 else -1 for i in index]
    at_outer = [outer[i] if i >= 0 else -1 for i in at_inner]
    column, *tables = (frozen(each, np.int32) for each in (index, inner, outer))
    for wanted, n_values, given_tables in ((at_inner, n, tables[:1]), (at_outer, 3, tables)):
        used, place = _take.distinct(column, n_values, *given_tables)
        assert used == sorted(set(wanted))
        assert [used[i] for i in place] == wanted


@examples(200)
@given(look_ups())
def test_the_rank_is_the_number_of_smaller_indices(case):
    values, index = case
    known = sorted({i for i in index if i >= 0})
    got = _take.ranks(frozen(index, np.int32), len(values))
    assert got.tolist() == [known.index(i) if i >= 0 else -1 for i in index]


def test_ranks_do_not_depend_on_words_of_bits():
    index = np.array([200, 63, 64, -1, 127, 128, 0, 64], np.int32)
    assert _take.ranks(index, 201).tolist() == [5, 1, 2, -1, 3, 4, 0, 2]


@examples(200)
@given(look_ups())
def test_rows_with_a_flag_are_found_in_order(case):
    values, index = case
    flags = np.array([value > 0 for value in values], bool)
    got = _take.where(flags, frozen(index, np.int32))
    assert got.dtype == np.int64
    assert got.tolist() == [row for row, i in enumerate(index) if i >= 0 and flags[i]]


@examples(200)
@given(
    st.integers(0, 12).flatmap(lambda n: st.sets(st.integers(0, n - 1)) if n else st.just(set())),
    st.integers(0, 3),
    st.sampled_from([np.int8, np.int32, np.int64]),
)
def test_without_some_rows_are_all_others(gaps, further, dtype):
    n = max(gaps, default=-1) + 1 + further
    rows = np.array(sorted(gaps), np.int64)
    got = _take.without(np.arange(n, dtype=dtype), rows)
    assert got.dtype == dtype
    assert got.tolist() == [i for i in range(n) if i not in gaps]


@pytest.mark.parametrize("rows", [[3], [-1], [1, 1], [1, 0]])
def test_rows_that_are_not_there_or_not_in_order_are_refused(rows):
    with pytest.raises(ValueError, match="ascending rows below 3"):
        _take.without(np.zeros(3, np.int64), np.array(rows, np.int64))


def test_extreme_values_come_through():
    values = np.array([INT64_MIN, INT64_MAX], np.int64)
    assert _take.take(values, np.array([1, 0, -1], np.int32), INT64_MIN).tolist() == [
        INT64_MAX, INT64_MIN, INT64_MIN,
    ]  # fmt: skip


@pytest.mark.parametrize("index", [-2, 1])
def test_an_index_that_points_nowhere_is_an_internal_error(index):
    column = np.array([index], np.int32)
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        with pytest.raises(InternalError, match="look-up"):
            _take.take(np.zeros(1, dtype), column)
    with pytest.raises(InternalError, match="look-up"):
        _take.objects([()], column)
    with pytest.raises(InternalError, match="distinct values"):
        _take.distinct(column, 1)
    zero, table = np.zeros(1, np.int32), np.zeros(1, np.int32)
    for tables in ((column, table), (table, column)):
        with pytest.raises(InternalError, match="distinct values"):
            _take.distinct(zero, 1, *tables)
    with pytest.raises(InternalError, match="distinct values"):
        _take.distinct(column, 1, table, table)
    with pytest.raises(InternalError, match="ranks"):
        _take.ranks(column, 1)
    with pytest.raises(InternalError, match="look-up of flags"):
        _take.where(np.ones(1, bool), column)


def test_nothing_can_be_pointed_at_in_an_empty_column():
    empty = np.empty(0, np.int32)
    assert _take.take(empty, np.array([-1], np.int32)).tolist() == [-1]
    assert _take.take(empty, empty).tolist() == []
    assert _take.distinct(np.array([-1], np.int32), 1, empty, empty)[0] == [-1]
    assert _take.ranks(empty, 0).tolist() == _take.where(np.empty(0, bool), empty).tolist() == []
    with pytest.raises(InternalError, match="look-up"):
        _take.take(empty, np.array([0], np.int32))


DTYPES = st.sampled_from([np.int32, np.int64, (np.int32, 3)])


@st.composite
def tables(draw):
    n, columns = draw(st.integers(0, 12)), []
    for dtype in draw(st.lists(DTYPES, min_size=1, max_size=6)):
        kind, sides = dtype if isinstance(dtype, tuple) else (dtype, 1)
        cell = st.integers(-1, 1) | st.sampled_from([np.iinfo(kind).min, np.iinfo(kind).max])
        cells = draw(st.lists(cell, min_size=n * sides, max_size=n * sides))
        columns.append(frozen(cells, kind).reshape((n,) if sides == 1 else (n, sides)))
    return columns


@examples(200)
@given(tables())
def test_rows_are_alike_where_all_numbers_are(columns):
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    rows = [str(row) for row in rows]
    ids, first = _pools.alike(columns)
    assert ids.dtype == first.dtype == np.int32
    assert [rows[i] for i in first] == list(dict.fromkeys(rows))
    assert [rows[first[i]] for i in ids] == rows


def test_many_distinct_rows_are_numbered_in_order_of_appearance():
    few = np.arange(200_000) % 50_000
    left, right = (few % 7).astype(np.int32), few // 7 * 2**40
    ids, first = _pools.alike([left, right])
    assert np.array_equal(ids, few)
    assert np.array_equal(first, np.arange(50_000))


def test_columns_that_cannot_be_compared_row_by_row_are_refused():
    two, three = np.zeros(2, np.int64), np.zeros(3, np.int32)
    with pytest.raises(ValueError, match="lengths differ"):
        _pools.alike([two, three])
    with pytest.raises(ValueError, match="33 columns"):
        _pools.alike([two] * 33)


INT64 = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.integers(-3, 3)) | st.lists(st.integers(-(2**40), 2**40)) | st.lists(INT64))
def test_rows_are_sorted_like_python_sorts_them(numbers):
    order = _take.ascending(frozen(numbers, np.int64))
    assert order.tolist() == sorted(range(len(numbers)), key=numbers.__getitem__)
