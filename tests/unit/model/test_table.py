"""Tables: one set of rows in every form."""

import csv
import io
import json
from dataclasses import replace

import numpy as np
import polars
import pytest

from fastprof import __version__
from fastprof.errors import UnknownColumnError
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import Floats, Table, text_column

TABLE = Table(
    {
        "op": text_column(["linear", "softmax", None]),
        "stream": Values(np.array([0, 1, -1], np.int32), [7, 20]),
        "kernels": Ints(np.array([12, 3, 1])),
        "gpu_ns": Ints(np.array([2_500_000, 1_250, -1])),
        "flop_per_s": Floats(np.array([4.5e12, np.nan, np.nan])),
        "share": Floats(np.array([0.75, 0.25, np.nan])),
        "max_ns": Ints(np.array([5, 6, 7])),
    },
    (
        Heading("op", "op"),
        Heading("gpu_ns", "gpu", "ns"),
        Heading("flop_per_s", "rate", "flop/s"),
        Heading("share", "time", "share"),
        Heading("max_ns", "max", "ns", in_text=False),
    ),
    title="time by op",
    lead=("two lines", ""),
    notes=("a note",),
    total={"kernels": 16, "gpu_ns": 2_501_250},
    facts={"file": "net.json"},
)


def test_text_chooses_a_unit_per_column_and_ends_with_totals_and_notes():
    assert TABLE.text() == (
        "time by op\n"
        "two lines\n"
        "\n"
        "op       stream  kernels  gpu(ms)  rate(TFLOP/s)  time(%)\n"
        "linear        7       12    2.500          4.500     75.0\n"
        "softmax      20        3    0.001             na     25.0\n"
        "na           na        1       na             na       na\n"
        "total                 16    2.501\n"
        "a note\n"
    )


def test_text_counts_omitted_rows_before_the_total():
    lines = TABLE.text(1).splitlines()
    assert lines[-3:] == ["... 2 more rows", "total                16    2.501", "a note"]


def test_text_of_a_width_cuts_texts_and_then_omits_columns():
    path = "a/very/long/path/to/a/file.py:12"
    table = Table(
        {"name": text_column(["x" * 40]), "line": text_column([path]), "n": Ints(np.array([1]))},
        (Heading("name", "name"), Heading("line", "line", keeps_end=True), Heading("n", "n")),
    )
    wide = table.text().splitlines()
    assert wide[1] == f"{'x' * 40}  {path}  1"
    cut = table.text(width=50).splitlines()[1]
    assert len(cut) <= 50
    assert cut.startswith("x")
    assert cut.endswith("file.py:12  1")
    assert "…" in cut
    narrow = table.text(width=20).splitlines()
    assert narrow[-2:] == ["(too narrow for", "  line, n)"]
    assert all(len(line) <= 20 for line in narrow)


def test_prose_wraps_at_words_and_columns_do_not():
    table = Table({"n": Ints(np.array([1]))}, lead=("a b c d e f g h", "1  2  3  4  5  6"))
    assert table.text(width=12).splitlines()[:3] == ["a b c d e f", "  g h", "1  2  3  4  5  6"]


def test_every_form_has_the_same_values():
    rows = list(TABLE.rows())
    assert rows[2] == {
        "op": None, "stream": None, "kernels": 1, "gpu_ns": None, "flop_per_s": None, "share": None,
        "max_ns": 7,
    }  # fmt: skip
    result = json.loads(TABLE.to_json())
    assert result["rows"] == rows
    assert (result["fastprof"], result["schema"], result["file"]) == (__version__, 1, "net.json")
    assert result["total"] == TABLE.total
    assert result["notes"] == ["a note"]
    lines = list(csv.DictReader(io.StringIO(TABLE.csv())))
    assert lines[0]["gpu_ns"] == "2500000"
    assert lines[2] == {
        name: "na" if value is None else str(value) for name, value in rows[2].items()
    }
    pytest.importorskip("pandas")
    frame = TABLE.to_pandas()
    assert frame["kernels"].tolist() == [12, 3, 1]
    assert frame["stream"].isna().tolist() == [False, False, True]
    pytest.importorskip("pyarrow")
    assert TABLE.to_arrow().to_pylist() == rows


def test_parquet_keeps_numbers_and_unknowns(tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    TABLE.write_parquet(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == list(TABLE.rows())


def test_markdown_and_html_escape_names():
    hostile = Table({"a|b": text_column(["<script>alert(1)</script>|x"])}, title="<i>")
    assert "| a\\|b |" in hostile.markdown()
    assert "\\|x" in hostile.markdown()
    assert "<script>" not in hostile._repr_html_()
    assert "&lt;script&gt;" in hostile._repr_html_()
    assert "<i>" not in hostile._repr_html_()


def test_lines_in_columns_keep_their_places_in_html():
    lead = ("a sentence", "phase   step(ms)", "forward     1.00", "after")
    html = Table({"n": text_column(["x"])}, lead=lead)._repr_html_()
    columns = "<pre>phase   step(ms)\nforward     1.00</pre>"
    assert html.startswith(f"<div>a sentence</div>{columns}<div>after</div><table>")


def test_markdown_has_the_totals_last():
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "**time by op**"
    start = lines.index("| op | stream | kernels | gpu(ms) | rate(TFLOP/s) | time(%) |")
    assert lines[start + 1] == "| --- | --: | --: | --: | --: | --: |"
    assert lines[start + 5] == "| total |  | 16 | 2.501 |  |  |"


def test_rows_sort_by_number_and_by_text_with_unknowns_last():
    assert TABLE.sort("gpu_ns")["op"].tolist() == ["linear", "softmax", None]
    assert TABLE.sort("max_ns")["op"].tolist() == [None, "softmax", "linear"]
    assert TABLE.sort("gpu_ns", ascending=True)["op"].tolist() == ["softmax", "linear", None]
    assert TABLE.sort("op", ascending=False)["op"].tolist() == ["softmax", "linear", None]
    assert TABLE.sort("stream")["stream"].tolist() == [7, 20, None]
    with pytest.raises(UnknownColumnError, match="unknown column 'gpus'; did you mean gpu"):
        TABLE.sort("gpus")


def test_rows_of_json_are_those_of_python_for_any_value_and_name():
    cells = ['a "b", 100%\nc', (1, 2), [], True, None]
    table = Table(
        {
            '50% "x"': Values(np.array([0, 1, 2, 3, 4, -1], np.int32), cells),
            "n": Floats(np.array([1.0, 1e300, -0.1, np.inf, np.nan, 12345.6])),
        }
    )
    rows = json.loads(table.to_json())["rows"]
    assert rows == json.loads(json.dumps(list(table.rows())))
    lines = [json.dumps(row) for row in table.rows()]
    assert ",\n".join(lines) in table.to_json()


def test_select_shows_the_columns_in_the_order_asked():
    table = TABLE.select(["max_ns", "op"])
    assert table.text(1).splitlines()[3].split() == ["max(ns)", "op"]
    assert list(table.head(1).rows()) == [{"max_ns": 5, "op": "linear"}]
    with pytest.raises(UnknownColumnError, match="did you mean max_ns"):
        TABLE.select(["max_n"])


def test_a_table_is_indexed_by_columns_rows_and_masks():
    assert len(TABLE) == len(list(TABLE)) == 3
    assert TABLE[0] == next(iter(TABLE)) == TABLE[:1][0]
    assert (TABLE[0]["op"], TABLE[0]["gpu_ns"], TABLE[0]["share"]) == ("linear", 2_500_000, 0.75)
    assert TABLE[-1]["op"] is None and TABLE[-1]["gpu_ns"] is None
    assert "gpu_ns" in TABLE and "gpu" not in TABLE and set(dict(TABLE)) == set(TABLE.columns)
    for rows in (slice(1, None), [1, 2], [False, True, True], TABLE["kernels"] < 12):
        assert TABLE[rows]["kernels"].tolist() == [3, 1] and not TABLE[rows].total
    assert TABLE[TABLE["gpu_ns"] < 10**6]["op"].tolist() == ["softmax"]  # unknown is False
    assert TABLE[TABLE["kernels"] > 99].text().splitlines()[3].startswith("op")
    assert list(TABLE[["op", "max_ns"]].columns) == ["op", "max_ns"]
    with pytest.raises(IndexError):
        TABLE[3]
    with pytest.raises(IndexError):
        TABLE[[True]]


def test_columns_are_named_by_key_or_heading():
    assert TABLE["gpu(ms)"].tolist() == TABLE["gpu"].tolist() == [2_500_000, 1_250, None]
    assert TABLE.sort("time(%)", ascending=True)["share"].tolist()[:2] == [0.25, 0.75]
    assert list(TABLE.select(["rate"]).columns) == ["flop_per_s"]
    for name, near in (("gpu_ms", "gpu_ns"), ("gpu(%)", "gpu"), ("rat", "rate")):
        with pytest.raises(KeyError, match=rf"^unknown column '.*'; did you mean.* {near}\b"):
            TABLE[name]
    twice = replace(TABLE, headings=(Heading("gpu_ns", "t", "ns"), Heading("max_ns", "t", "ns")))
    with pytest.raises(UnknownColumnError, match=r"headed 't'; name one: gpu_ns .*, max_ns "):
        twice.sort("t")


def test_the_repr_is_a_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert repr(TABLE).splitlines()[1].startswith("op       stream  kernels")
    assert repr(TABLE).splitlines()[-1] == "[3 rows x 7 columns]"
    for n in (0, 1, 15, 16, 17, 18, 500):
        long = TABLE.take([0] * n)
        lines = repr(long).splitlines()
        assert len(lines) <= 20 and max(map(len, lines)) <= 60
        assert lines[-1] == f"[{n} rows x 7 columns]"
        assert sum(line.startswith("linear") for line in lines) >= min(n, 13)


def test_polars_has_the_same_rows():
    frame = TABLE.to_polars()
    assert frame.to_dicts() == list(TABLE)
    assert isinstance(frame.schema["op"], polars.Categorical)


def test_an_empty_table_has_a_header():
    empty = Table({"op": text_column([]), "n": Ints(np.empty(0, np.int64))}, total={"n": 0})
    assert empty.text() == "op     n\ntotal  0\n"
    assert json.loads(empty.to_json())["rows"] == []
    assert empty.csv() == '"op","n"\n'


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "ns", "0 ns"),
        (999, "ns", "999 ns"),
        (174_800_000, "ns", "174.8 ms"),
        (3.35e12, "bytes/s", "3.35 TB/s"),
        (1.5e15, "flop", "1.5 PFLOP"),
    ],
)
def test_quantities_have_four_digits_and_a_unit(value, unit, text):
    assert quantity(value, unit) == text
