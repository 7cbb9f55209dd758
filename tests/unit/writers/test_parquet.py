"""The Parquet report, read back."""

import io
import sys

import numpy as np
import pytest

from fastprof.errors import MissingDependencyError
from fastprof.model import dataframe as arrow
from fastprof.model.columns import Ints, Values
from fastprof.writers import COLUMNS as TABLE
from fastprof.writers import parquet, write_report
from support.report_columns import COLUMNS, values, without_rows

pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

KEYS = [column.key for column in TABLE[:20]]


def table(keys, columns):
    file = io.BytesIO()
    write_report(columns, keys, "parquet", file)
    return pq.read_table(io.BytesIO(file.getvalue()))


def plain(value):
    return list(value) if isinstance(value, tuple) else value


def test_every_cell_is_its_value_and_na_is_null():
    read = table(KEYS, COLUMNS).to_pydict()
    assert list(read) == KEYS
    for key in KEYS:
        assert read[key] == [plain(COLUMNS[key].at(row)) for row in range(4)], key


def test_the_schema_does_not_depend_on_the_rows():
    schema = table(KEYS, COLUMNS).schema
    ints = ("sub", "device", "stream", "bytes")
    empty = without_rows() | {key: Ints(np.empty(0, np.int32)) for key in ints}
    assert table(KEYS, empty).schema == schema
    assert str(schema.field("sil").type) == "int64"
    assert str(schema.field("layer").type) == "list<element: string>"


def test_rows_come_in_groups(monkeypatch):
    monkeypatch.setattr(arrow, "ROWS_A_GROUP", 100)
    ids = np.arange(250, dtype=np.int32) % 3 - 1
    columns = {"idx": Ints(np.arange(250)), "op": Values(ids, ["a", "b"])}
    file = io.BytesIO()
    write_report(columns, "idx,op", "parquet", file)
    read = pq.ParquetFile(file)
    assert [read.metadata.row_group(i).num_rows for i in range(3)] == [100, 100, 50]
    assert read.read().to_pydict() == {
        "idx": list(range(250)),
        "op": [[None, "a", "b"][row % 3] for row in range(250)],
    }


def test_a_table_in_memory_is_what_the_file_holds(monkeypatch):
    monkeypatch.setattr(arrow, "ROWS_A_GROUP", 3)
    columns = {key: COLUMNS[key] for key in KEYS} | {"ranges": values(("a",), None, (), ("b",))}
    made = arrow.to_arrow(columns)
    file = io.BytesIO()
    parquet.write_columns(columns, file)
    assert made.to_pydict() == pq.read_table(io.BytesIO(file.getvalue())).to_pydict()
    assert made.column("ranges").to_pylist() == [["a"], None, [], ["b"]]


def test_text_that_is_no_utf8_gets_a_question_mark():
    assert table("op", {"op": values("a\udcffb")}).to_pydict() == {"op": ["a?b"]}


def test_without_pyarrow_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'fastprof\[arrow\]'"):
        write_report(COLUMNS, "idx", "parquet", io.BytesIO())
