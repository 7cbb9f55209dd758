"""JSON lines of a report."""

import json

import numpy as np

from fastprof.model.columns import Ints
from fastprof.writers import COLUMNS as TABLE
from support.report_columns import COLUMNS, report, values, without_rows


def plain(value):
    return list(value) if isinstance(value, tuple) else value


def test_every_line_is_an_object_of_the_values():
    keys = [column.key for column in TABLE[:20]]
    lines = report(keys, "json").splitlines()
    assert len(lines) == 4
    for row, line in enumerate(lines):
        assert json.loads(line) == {key: plain(COLUMNS[key].at(row)) for key in keys}


def test_a_line_reads_so():
    assert report("idx,layer,grid,seq,flops", "json").splitlines()[:2] == [
        '{"idx": 1, "layer": ["a", "b"], "grid": [640, 1, 1], "seq": [65], "flops": 0}',
        '{"idx": 2, "layer": [], "grid": null, "seq": [], "flops": null}',
    ]


def test_a_number_that_links_is_an_array_also_where_there_is_one_at_most():
    columns = {"seq": Ints(np.array([65, -1, 0]))}
    assert report("seq", "json", columns=columns) == '{"seq": [65]}\n{"seq": []}\n{"seq": [0]}\n'


def test_any_text_makes_valid_json():
    texts = ['"', "\\", "\n\x00\x1f\x7f", "é層🔥", "\udcff", "\u2028"]
    lines = report("op", "json", columns={"op": values(*texts)}).split("\n")[:-1]
    assert [json.loads(line)["op"] for line in lines] == texts
    assert "é層🔥" in lines[3]


def test_a_column_asked_for_twice_is_there_once():
    assert report("sub,sub", "json").startswith('{"sub": 0}\n')


def test_no_rows_make_no_lines():
    assert report("idx,grid,seq,op", "json", columns=without_rows()) == ""
