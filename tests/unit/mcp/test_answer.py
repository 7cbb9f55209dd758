"""Answers are short, bounded, and say what they leave out."""

import json
import math

from fastprof.mcp.answer import LINES, Paging, bounded, cut, shortened, table_answer
from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.table import Floats, Table, text_column


def table(n, **more):
    import numpy as np

    columns = {
        "op": text_column([f"op{i}" for i in range(n)]),
        "gpu_ns": Ints(np.arange(n)),
        "hidden": Ints(np.arange(n)),
        "roof": Floats(np.full(n, np.nan)),
    }
    headings = (
        Heading("op", "op"),
        Heading("gpu_ns", "gpu", "ns"),
        Heading("hidden", "hidden", in_text=False),
        Heading("roof", "roof", "share", in_text=False),
    )
    return Table(columns, headings, **more)


def test_columns_that_text_omits_are_named_and_unknown_ones_apart():
    values = table_answer(table(3), Paging(), {}).values
    assert values["rows"][2] == {"op": "op2", "gpu_ns": 2}
    assert (values["more_columns"], values["unknown_columns"]) == (["hidden"], ["roof"])
    assert values["units"] == {"gpu_ns": "ns"}
    every = table_answer(table(3), Paging(columns=["all"]), {}).values
    assert every["rows"][0] == {"op": "op0", "gpu_ns": 0, "hidden": 0, "roof": None}


def test_sorted_rows_are_cut():
    values = table_answer(table(100), Paging("gpu", None, 10, 5), {"file": "x"}).values
    assert [row["gpu_ns"] for row in values["rows"]] == [89, 88, 87, 86, 85]
    assert values["cut"] == "rows 11 to 15 of 100; the next: offset=15; at most limit=200 a call"
    assert values["file"] == "x"


def test_what_is_cut_is_told():
    assert cut(0, 3, 3) is None
    assert cut(2, 1, 3) == "rows 3 to 3 of 3; earlier ones: offset=0"


def test_a_long_table_loses_rows_and_keeps_its_notes():
    answer = table_answer(table(500, notes=("a note",)), Paging(limit=200), {})
    lines = answer.text.splitlines()
    assert len(lines) <= LINES and lines[-1] == "a note"
    assert len(answer.values["rows"]) == 200


def test_text_is_printable_and_short():
    assert shortened("a\x1b[31m\nb\u202e") == "a [31m\nb "
    lines = shortened("\n".join(map(str, range(1000)))).splitlines()
    assert len(lines) == LINES and lines[-1].startswith("... 941 more lines")


def test_values_are_bounded():
    result = bounded({"a": "x" * 5000, "b": list(range(500)), "c": math.nan, "d": "\udcff"})
    assert len(result["a"]) == 1003 and result["b"][-1] == "... 450 more" and result["c"] is None
    json.dumps(result, allow_nan=False).encode()
