"""The table of report columns, and the selection of columns."""

import re

import numpy as np
import pytest

from fastprof.errors import FastprofError, UnknownColumnError
from fastprof.model.columns import Ints, RepeatedInts
from fastprof.writers import COLUMNS, DEFAULT_KEYS, TRACE_COLUMNS, select
from fastprof.writers.columns import last_frame
from support.documents import ROOT
from support.report_columns import report

TABLE = COLUMNS + TRACE_COLUMNS

# PyProf's key, header, kind and minimum width.
PYPROF = """
idx Idx int 7
seq SeqId str 7
altseq AltSeqId str 7
tid TId int 12
layer Layer str 10
trace Trace str 25
dir Direction str 5
sub Sub int 3
mod Module str 15
op Op str 15
kernel Kernel str 0
params Params str 0
sil Sil(ns) int 10
tc TC str 2
device Device int 3
stream Stream int 3
grid Grid str 12
block Block str 12
flops FLOPs int 12
bytes Bytes int 12
"""


def test_the_columns_are_pyprof_s():
    kinds = {"number": "int"}
    rows = [f"{c.key} {c.header} {kinds.get(c.kind, 'str')} {c.width}" for c in COLUMNS]
    assert rows[:20] == PYPROF.strip().splitlines()


def test_every_column_has_its_own_key_and_one_line_of_help():
    assert len({column.key for column in TABLE}) == len(TABLE)
    assert all(column.about and "\n" not in column.about for column in TABLE)


def test_the_document_has_a_row_for_every_column_and_no_other():
    page = (ROOT / "docs" / "columns.md").read_text()
    section = page.split("\n## Columns of every input\n")[1].split("\n## params\n")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ([^|]+) \|", section, re.MULTILINE)
    shown = [
        pair
        for keys, headers in rows
        for pair in zip(re.findall(r"\w+", keys), headers.split(", "), strict=True)
    ]
    assert sorted(shown) == sorted((column.key, column.header) for column in TABLE)


def test_a_width_holds_the_header_of_what_pyprof_did_not_have():
    assert [c.key for c in TABLE[21:] if len(c.header) > c.width] == []


def test_columns_are_chosen_in_the_order_asked_for():
    assert [column.key for column in select("op, idx,op")] == ["op", "idx", "op"]
    assert [column.key for column in select(["sil", "tc"])] == ["sil", "tc"]
    assert [column.header for column in select(DEFAULT_KEYS)] == [
        "Idx", "Direction", "Sub", "Module", "Op", "Kernel", "Params", "Sil(ns)"
    ]  # fmt: skip


def test_an_unknown_column_is_named_and_the_valid_ones_are_listed():
    valid = ",".join(column.key for column in TABLE)
    with pytest.raises(UnknownColumnError) as caught:
        select("idx,Op,frobs")
    assert str(caught.value) == f"unknown column 'Op', 'frobs'; valid columns: {valid}"
    assert isinstance(caught.value, FastprofError)


@pytest.mark.parametrize("keys", ["", "idx,", []])
def test_no_column_is_an_unknown_column(keys):
    with pytest.raises(UnknownColumnError, match="valid columns: idx,seq,"):
        select(keys)


def test_the_last_frame_is_shown_without_its_directory():
    assert last_frame(("a/b.py:1", "/c/d.py:22")) == "d.py:22"
    assert last_frame(("d.py:22",)) == "d.py:22"
    assert last_frame(("/c/d.py:22 forward",)) == "d.py:22 forward"
    assert last_frame(("C:\\net\\train.py:7",)) == "train.py:7"
    assert last_frame(()) == "-"


@pytest.mark.parametrize("n", [0, 5, 500])  # no repeats, too few for texts, many
@pytest.mark.parametrize("style", ["csv", "spaces", "width", "json"])
def test_repeated_numbers_are_written_as_any_numbers(style, n):
    distinct = {
        "device": np.array([0, -1, 12345], np.int32),
        "stream": np.array([-(2**63), 2**63 - 1, -1]),
        "grid": np.array([[1, 2, 3], [-1, -1, -1], [2147483647, 65535, 65535]], np.int32),
        "block": np.array([[-1, 0, 0], [0, -1, 0], [1024, 1, 1]], np.int64),
    }
    ids = np.arange(n, dtype=np.int32) % 3
    repeated = {key: RepeatedInts(ids, values) for key, values in distinct.items()}
    plain = {key: Ints(values[ids]) for key, values in distinct.items()}
    width = 120 if style == "width" else None
    texts = [report(",".join(distinct), style, width, columns) for columns in (repeated, plain)]
    assert texts[0] == texts[1]
    assert all(repeated[key].at(row) == plain[key].at(row) for key in distinct for row in range(n))
