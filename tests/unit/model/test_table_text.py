"""Text of tables whose rows have an order of their own, and of tables that are too wide."""

import numpy as np

from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.table import Table, text_column
from fastprof.model.table_text import Layout

TABLE = Table(
    {
        "frame": text_column(["a.py:7", "b.py:3", "b.py:4", "(none)"]),
        "gpu_ns": Ints(np.array([5_000_000, 2_000, 0, 1_000_000])),
        "own_ns": Ints(np.array([5_000, 2_000, 0, 1_000])),
        "code": text_column(["x = f(y)", "return a", "", None]),
    },
    (
        Heading("frame", "line"),
        Heading("gpu_ns", "gpu", "ns"),
        Heading("own_ns", "own", "ns", digits=5, same_unit="gpu_ns"),
    ),
    total={"gpu_ns": 6_002_000},
    layout=Layout(
        {
            "frame": text_column(["  7", "  3", "  4", "(none)"]),
            "code": text_column(["x = f(y)", "", "", ""]),
        },
        Values(np.array([0, 1, 1, -1], np.int32), ["a.py\x1b", "b.py"]),
        np.array([False, False, True, False]),
    ),
)


def test_sections_labels_and_blank_rows() -> None:
    assert TABLE.text() == (
        "line    gpu(ms)  own(ms)  code\n"
        "a.py \n"
        "  7       5.000   0.0050  x = f(y)\n"
        "\n"
        "b.py\n"
        "  3       0.002   0.0020\n"
        "  4\n"
        "\n"
        "(none)    1.000   0.0010\n"
        "total     6.002\n"
    )


def test_some_rows_keep_their_sections() -> None:
    assert TABLE.take([1, 2]).text().splitlines()[1:4] == ["b.py", "  3      0.002   0.0020", "  4"]
    assert TABLE.text(1).splitlines()[1:4] == [
        "a.py ",
        "  7      5.000   0.0050  x = f(y)",
        "... 3 more rows",
    ]


def test_sorted_rows_show_their_cells() -> None:
    lines = TABLE.sort("own_ns").text().splitlines()
    assert [line.split()[0] for line in lines] == [
        "line",
        "a.py:7",
        "b.py:3",
        "(none)",
        "b.py:4",
        "total",
    ]


def test_markdown_has_cells_in_place_of_sections() -> None:
    assert "| b.py:4 |  |  |  |" in TABLE.markdown()


def wide() -> Table:
    return Table(
        {
            "name": text_column(["n" * 30]),
            "first": Ints(np.array([1])),
            "second": Ints(np.array([2])),
            "code": text_column(["c" * 40]),
        },
        (
            Heading("name", "name", min_width=20),
            Heading("first", "first", rank=2),
            Heading("second", "second", rank=1),
            Heading("code", "code", min_width=24),
        ),
    )


def test_columns_of_high_rank_are_omitted_before_texts_are_short() -> None:
    assert wide().text(width=85).splitlines()[0] == f"{'name':30}  first  second  code"
    assert wide().text(width=61).splitlines() == [
        f"{'name':20}  first  second  code",
        f"{'n' * 11}…{'n' * 8}      1       2  {'c' * 14}…{'c' * 9}",
    ]
    assert wide().text(width=60).splitlines()[1:] == [
        f"{'n' * 14}…{'n' * 10}       2  {'c' * 14}…{'c' * 10}",
        "(too narrow for first)",
    ]


def test_texts_are_cut_further_once_no_ranked_column_is_left() -> None:
    lines = wide().text(width=30).splitlines()
    assert lines == [
        f"{'name':14}  code",
        f"{'n' * 8}…{'n' * 5}  {'c' * 8}…{'c' * 5}",
        "(too narrow for first, second)",
    ]
