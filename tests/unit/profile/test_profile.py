"""Profile: its columns as arrays, rows, tables; unknown values in each."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.generate import generate
from hypothesis import given
from hypothesis import strategies as st

import fastprof
from fastprof._system.garbage import uncollected
from fastprof.api import profile as api_profile
from fastprof.api.profile import Profile
from fastprof.model import dataframe
from fastprof.model.column_table import COLUMN_OF_KEY, COLUMNS, TRACE_COLUMNS
from fastprof.model.columns import Column, Ints, Lists, RepeatedInts, SharedValues, Values, as_lists
from fastprof.profile import from_dict_lines, from_trace
from fastprof.profile.data import ProfileData, kept
from support import dict_lines
from support.report_columns import ints, lists, shared, values

PUBLIC = """
about
advise
api
available
check
column
contents
copies
counters
coverage
coverage_of_kernels
cpu_samples
cpu_switches
devices
experts
export
find
find_steps
graph_capture
idle
kernel
kernels
launches
layers
lines
memory
memory_events
name
names
os_calls
overlap
overview
paths
plot
ranges
ranges_table
report
repro
roofline
rows
serving
source
steps
summary
synchronisations
to_arrow
to_pandas
trim
warnings
whatif
with_steps
"""
KINDS = {
    "number": (Ints,),
    "triple": (Ints,),
    "numbers": (Ints, Lists),
    "text": (Values,),
    "texts": (Values,),
}


@pytest.fixture(scope="module")
def lines(profile: Profile, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    path: Path = tmp_path_factory.mktemp("profile") / "net.dict"
    path.write_bytes(dict_lines.written(profile).getvalue())
    return fastprof.open(path)


@pytest.fixture(params=["profile", "lines"])
def opened(request: pytest.FixtureRequest) -> Profile:
    result: Profile = request.getfixturevalue(request.param)
    return result


def test_every_column_of_the_table_has_a_maker_and_no_other():
    assert list(from_dict_lines._MAKERS) == [column.key for column in COLUMNS]
    assert list(from_trace._MAKERS) == [
        column.key for column in COLUMNS + TRACE_COLUMNS if not column.on_request
    ]


def test_a_profile_has_no_other_public_attributes(opened):
    assert [name for name in dir(opened) if not name.startswith("_")] == PUBLIC.split()


def test_columns_hold_what_the_table_says(opened):
    for name in opened.names:
        column, kind = opened.column(name), COLUMN_OF_KEY[name].kind
        assert isinstance(column, KINDS[kind]), name
        assert len(column) == len(opened), name
        if isinstance(column, Ints):
            assert column.values.shape[1:] == ((3,) if kind == "triple" else ()), name
        if isinstance(column, Values):
            assert {type(value) for value in column.values} <= {tuple if kind == "texts" else str}


def test_rows_arrays_and_tables_are_the_values_of_every_column(opened, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(api_profile, "_ROWS_AT_ONCE", 7)
    expected = {
        name: [opened.column(name).at(row) for row in range(len(opened))] for name in opened.names
    }
    rows = list(opened.rows())
    assert {tuple(row) for row in rows} == {tuple(opened.names)}
    table = opened.to_arrow().to_pydict()
    for name, cells in expected.items():
        assert [row[name] for row in rows] == cells, name
        assert plain(opened.kernels[name].tolist()) == plain(cells), name
        assert plain(table[name]) == plain(cells), name


def plain(cells: list[object]) -> list[object]:
    """Tuples as lists; an unknown triple as three times None."""
    result = [list(cell) if isinstance(cell, tuple) else cell for cell in cells]
    width = next((len(cell) for cell in result if isinstance(cell, list)), 0)
    return [None if cell == [None] * width and width == 3 else cell for cell in result]


def test_a_data_frame_has_the_values_of_every_column(opened):
    pytest.importorskip("pandas")
    frame = opened.to_pandas()
    assert len(frame) == len(opened)
    triples = [name for name in opened.names if COLUMN_OF_KEY[name].kind == "triple"]
    for name in opened.names:
        cells = [opened.column(name).at(row) for row in range(len(opened))]
        if name in triples:
            for axis, key in enumerate("xyz"):
                expected = [None if cell is None else cell[axis] for cell in cells]
                assert without_missing(frame[f"{name}_{key}"]) == expected
        else:
            assert without_missing(frame[name]) == cells, name


def without_missing(column: Any) -> list[object]:
    cells = zip(column.tolist(), column.isna(), strict=True)
    return [None if missing else cell for cell, missing in cells]


@pytest.mark.parametrize("version", [None, "2.3.3"])
def test_a_data_frame_is_the_users_own(profile, version, monkeypatch):
    pandas = pytest.importorskip("pandas")
    if version is not None:
        monkeypatch.setattr(pandas, "__version__", version)
    before = {name: profile.kernels[name].tolist() for name in profile.names}
    frame, other = profile.to_pandas(), profile.to_pandas()
    cells = {name: without_missing(other[name]) for name in other.columns}
    n_changed = 0
    for name in frame.columns:
        if frame[name].dtype.kind == "i":  # of NumPy, or nullable
            frame.loc[0, name] = 7
            frame.loc[frame.index[1:], name] = 8
            assert frame[name].tolist() == [7, *[8] * (len(frame) - 1)]
            n_changed += 1
    assert n_changed > 20
    assert {name: without_missing(other[name]) for name in other.columns} == cells
    assert {name: profile.kernels[name].tolist() for name in profile.names} == before


def test_a_data_frame_can_be_changed_when_its_profile_is_gone(tmp_path):
    pytest.importorskip("pandas")
    generate(tmp_path / "net.sqlite", 50)
    frame = fastprof.open(tmp_path / "net.sqlite").to_pandas()
    for name in ("start", "flops", "device", "graph_node"):
        frame.loc[3, name] = 7
        assert frame[name][3] == 7


def test_the_garbage_collector_pauses_while_a_data_frame_is_made(profile, monkeypatch):
    pytest.importorskip("pandas")
    seen = []
    convert = dataframe.FrameBuilder.convert

    def watched(self: dataframe.FrameBuilder, key: str, column: Column) -> dict[str, Any]:
        seen.append(gc.isenabled())
        return convert(self, key, column)

    monkeypatch.setattr(dataframe.FrameBuilder, "convert", watched)
    profile.to_pandas()
    assert seen and not any(seen)
    assert gc.isenabled()
    monkeypatch.setattr(dataframe.FrameBuilder, "convert", None)
    with pytest.raises(TypeError):
        profile.to_pandas()
    assert gc.isenabled()


def test_a_disabled_garbage_collector_stays_disabled():
    gc.disable()
    try:
        with uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_sums_leave_out_what_is_unknown():
    flops = ints(3, None, 0, 4).array()
    assert flops.sum() == 7
    assert flops.mask.tolist() == [False, True, False, False]
    assert flops.tolist() == [3, None, 0, 4]
    assert (flops > 0).sum() == 2
    grid = ints((1, 2, 3), None, (4, 5, 6)).array()
    assert grid.prod(axis=1).tolist() == [6, None, 120]
    start = Ints(np.array([-5, -1, 3, 9]), none=9).array()
    assert start.min() == -5 and start.tolist() == [-5, -1, 3, None]


def test_the_sum_of_nothing_is_0_and_of_unknown_numbers_unknown():
    assert Ints(np.empty(0, np.int64)).array().sum() == 0
    assert ints(None, None).array().sum() is np.ma.masked


def test_arrays_of_numbers_are_read_only(opened):
    for name in opened.names:
        if isinstance(opened.column(name), Ints):
            with pytest.raises(ValueError, match="read-only"):
                opened.kernels[name][0] = 5
            opened.kernels[name].copy()[0] = 5


@pytest.mark.parametrize(
    "column",
    [
        ints(1, None, -(2**63), 5, None),
        ints((1, 2, 3), None, (0, 0, 0), (-1, 2, 2), None),
        RepeatedInts(np.array([1, 0, 1, 2, 2], np.int32), np.array([-1, 5, 7])),
        RepeatedInts(np.array([1, 0, 1, 1, 0], np.int32), np.array([[-1] * 3, [1, 2, 3]])),
        values("a", None, "b", "a", None),
        values(("a",), (), None, ("a", "b"), ()),
        shared([0, 3, 1, 0, -1], [1, -1, 0, 0], "a", "b"),
        shared([1, 0, 0, -1, 1], [0, -1], ("a", "b")),
        lists([1], [], [2, 3], [], [5]),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_chunks_are_the_values_in_order(column, size):
    chunks = list(column.chunks(size))
    assert [len(chunk) for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
    cells = [cell for chunk in chunks for cell in chunk]
    expected = [column.at(row) for row in range(5)]
    assert cells == expected
    assert [type(cell) for cell in cells] == [type(cell) for cell in expected]


def test_columns_that_share_rows_are_mapped_and_looked_up_as_others():
    column = shared([0, 3, 1, 0, -1], [1, -1, 0, 0], "a", "b")
    assert column.ids.tolist() == [1, 0, -1, 1, -1]
    assert column.array().tolist() == ["b", "a", None, "b", None]
    upper = column.mapped(lambda text: text.upper() if text == "a" else None)
    assert [upper.at(row) for row in range(5)] == [None, "A", None, None, None]
    assert isinstance(upper, SharedValues) and upper.rows is column.rows


@pytest.mark.parametrize("n_texts", [2, 126, 127, 200, 40_000])
def test_categories_are_as_pandas_makes_them(n_texts):
    pd = pytest.importorskip("pandas")
    texts = [f"text {i}" for i in range(n_texts)]
    rows = np.array([0, -1, n_texts, n_texts - 1, 1], np.int32)
    column = SharedValues(rows, np.arange(-1, n_texts, dtype=np.int32)[::-1].copy(), texts)
    frames = dataframe.FrameBuilder({})
    expected = pd.Categorical.from_codes(column.ids, categories=texts)
    for same in column, Values(column.ids, texts):
        result = frames.convert("op", same)["op"]
        assert result.codes.dtype == expected.codes.dtype
        assert result.codes.tolist() == expected.codes.tolist()
        assert result.categories.equals(expected.categories)
        assert not np.shares_memory(result.codes, same.ids)


def test_columns_of_a_frame_have_memory_of_their_own(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setattr(dataframe, "_PIECE", 256)
    frames = dataframe.FrameBuilder({})
    ids = np.array([0, 1, 2, 1, 0], np.int32)
    columns = {
        "sub": ints(5, -7, 5, 6, 7),
        "sil": Ints(np.arange(100)),
        "registers": RepeatedInts(ids, np.array([1, 2, 3], np.int32)),
        "graph_id": RepeatedInts(ids, np.array([-1, 2, -1], np.int32)),
        "seq": ints(None, 2, None, 4, 5),
        "kind": shared([0, 1, 0, 1, 0], [0, -1], "kernel"),
    }
    result = [frames.convert(name, column)[name] for name, column in columns.items()]
    assert [without_missing(pandas_array(each)) for each in result] == [
        [column.at(row) for row in range(len(column))] for column in columns.values()
    ]


def pandas_array(array: Any) -> Any:
    import pandas

    return pandas.Series(array)


@given(st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), max_size=12))
def test_lists_of_any_lengths_become_tuples(cells):
    column = lists(*cells)
    assert column.array().tolist() == [tuple(cell) for cell in cells]
    assert column.array().shape == (len(cells),)


def test_numbers_become_lists_of_one_number():
    made = as_lists(ints(4, None, 0, dtype=np.int32))
    assert made.array().tolist() == [(4,), (), (0,)]
    assert made.values.dtype == np.int64
    assert as_lists(made) is made


def test_rows_of_several_tests():
    column = values("a", None, "b", "ab", "a", None)
    tests = [lambda text, each=each: each in text for each in "abc"]
    assert [rows.tolist() for rows in column.where_each(*tests)] == [[0, 3, 4], [2, 3], []]
    assert [column.where(test).tolist() for test in tests] == [[0, 3, 4], [2, 3], []]


def test_an_unknown_name_has_the_nearest_columns(lines):
    with pytest.raises(KeyError, match=r"unknown column 'kernels'; did you mean kernel\b"):
        lines.column("kernels")
    with pytest.raises(KeyError):
        lines.kernels["flop"]
    assert repr(lines).endswith(f"{len(lines)} kernels>")


def test_threads_that_need_the_same_kept_value_compute_it_once(opened):
    n_threads, seconds = 4, 30
    ready, begun, computed = threading.Barrier(n_threads), threading.Event(), threading.Event()
    calls = []

    def number(profile: ProfileData, factor: int) -> list[int]:
        calls.append(factor)
        begun.set()
        assert factor > 1 or computed.wait(seconds)
        return [len(profile) * factor]

    def read(i: int) -> list[int]:
        ready.wait(seconds)
        return kept(opened, number, 1)

    with ThreadPoolExecutor(n_threads) as pool:
        results = [pool.submit(read, i) for i in range(n_threads)]
        assert begun.wait(seconds)
        assert kept(opened, number, 2) == [2 * len(opened)]  # does not wait for the other value
        computed.set()
        values = [result.result(seconds) for result in results]
    assert values == [[len(opened)]] * n_threads
    assert all(value is values[0] for value in values)
    assert sorted(calls) == [1, 2]


def test_a_kept_value_that_fails_is_computed_again(opened):
    tries = []

    def fails_once(profile: ProfileData) -> int:
        tries.append(profile)
        if len(tries) == 1:
            raise ValueError("first try")
        return len(tries)

    with pytest.raises(ValueError, match="first try"):
        kept(opened, fails_once)
    assert kept(opened, fails_once) == kept(opened, fails_once) == 2
