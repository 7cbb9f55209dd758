"""Dict lines and the same lines as JSON, byte by byte and read back."""

import ast
import io
import json

import numpy as np

from fastprof.model.columns import SeqMarkers
from fastprof.readers import dict_lines
from fastprof.writers import write_rows
from fastprof.writers.dict_lines import KEYS
from support.real_data import real
from support.report_columns import ints, lists, values

COLUMNS = {
    "kShortName": values("mm", "it's", None),
    "kDuration": ints(6624, 2**63 - 1, None),
    "layer": values((), ("a", 'b"'), None),
    "trace": values(("t.py:3",), ("t.py:3",), None),
    "reprMarkers": values((), (), None),
    "marker": values(("{'mod': 'torch'}",), (), None),
    "seqMarker": values(("mm, seq = 5",), (), None),
    "seqId": lists([5], [], []),
    "subSeqId": ints(0, 1, None),
    "altSeqId": lists([6, 7], [], []),
    "dir": values("fprop", "na", None),
    "mod": values(("torch",), ("torch", "Tensor"), None),
    "op": values(("mm",), ("é", "\\\n"), None),
    "tid": ints(3940300608, 1, None),
    "device": ints(0, 1, None),
    "stream": ints(7, 7, None),
    "grid": ints((640, 1, 2), (1, 2, 3), None),
    "block": ints((128, 1, 1), (1, 1, 1), None),
    "kLongName": values("void mm<float>(int)", "x", None),
}


def rows(columns, form):
    file = io.BytesIO()
    write_rows(columns, form, file)
    return file.getvalue().decode()


def test_dict_lines_read_as_pyprof_s():
    assert rows(COLUMNS, "dict").split("\n")[:2] == [
        "{'kShortName': 'mm', 'kDuration': 6624, 'layer': [], 'trace': ['t.py:3'], "
        "'reprMarkers': [], 'marker': [\"{'mod': 'torch'}\"], 'seqMarker': ['mm, seq = 5'], "
        "'seqId': [5], 'subSeqId': 0, 'altSeqId': [6, 7], 'dir': 'fprop', 'mod': ['torch'], "
        "'op': ['mm'], 'tid': 3940300608, 'device': 0, 'stream': 7, 'grid': (640, 1, 2), "
        "'block': (128, 1, 1), 'kLongName': 'void mm<float>(int)'}",
        "{'kShortName': \"it's\", 'kDuration': 9223372036854775807, 'layer': ['a', 'b\"'], "
        "'trace': ['t.py:3'], 'reprMarkers': [], 'marker': [], 'seqMarker': [], 'seqId': [], "
        "'subSeqId': 1, 'altSeqId': [], 'dir': 'na', 'mod': ['torch', 'Tensor'], "
        "'op': ['é', '\\\\\\n'], 'tid': 1, 'device': 1, 'stream': 7, 'grid': (1, 2, 3), "
        "'block': (1, 1, 1), 'kLongName': 'x'}",
    ]


def test_dict_lines_are_what_repr_says_of_the_values():
    for row, line in enumerate(rows(COLUMNS, "dict").splitlines()):
        expected = {}
        for key, column in COLUMNS.items():
            value = column.at(row)
            is_list = isinstance(value, tuple) and key not in ("grid", "block")
            expected[key] = list(value) if is_list else value
        assert line == repr(expected)


def test_json_lines_say_the_same():
    for form_row, line in zip(
        rows(COLUMNS, "dict").splitlines(), rows(COLUMNS, "jsonl").splitlines(), strict=True
    ):
        expected = ast.literal_eval(form_row)
        for key in ("grid", "block"):
            expected[key] = expected[key] and list(expected[key])
        assert json.loads(line) == expected


def test_keys_come_in_pyprof_s_order_and_missing_ones_are_left_out():
    columns = {"op": values(("mm",)), "kShortName": values("x"), "new": ints(1)}
    assert rows(columns, "dict") == "{'kShortName': 'x', 'op': ['mm']}\n"
    assert tuple(ast.literal_eval(rows(COLUMNS, "dict").splitlines()[0])) == KEYS


def test_a_number_that_links_is_a_list():
    assert rows({"seqId": ints(5, None)}, "dict") == "{'seqId': [5]}\n{'seqId': []}\n"


def test_no_rows_make_no_lines():
    assert rows({"op": values(), "grid": ints(), "seqId": lists()}, "dict") == ""


def markers(heads, is_torch):
    """Three kernels: outside ranges, in one range, and in four."""
    return SeqMarkers(
        frame_of_row=np.array([-1, 0, 3], np.int32),
        frame_parent=np.array([-1, 0, 1, 2], np.int32),
        range_of_frame=np.array([3, 2, 1, 0], np.int32),
        label_of_range=np.array([0, 1, 2, 3], np.int32),
        seq_of_range=np.array([-1, 7, 7, 0], np.int64),
        op_id_of_range=np.array([4, -1, 2, -1], np.int64),
        is_torch=np.array(is_torch, np.uint8),
        heads=heads,
        tails=[", sizes = [[2, 3], []]", "", "", ""],
    )


HEADS = ["aten::mm", "layer:x", 'it\'s "é"', "sum"]


def test_torch_ranges_around_a_kernel_are_written_with_their_numbers():
    lines = rows({"seqMarker": markers(HEADS, [1, 0, 1, 1])}, "dict").splitlines()
    assert lines == [
        "{'seqMarker': []}",
        "{'seqMarker': ['sum, seq = 0']}",
        "{'seqMarker': ['aten::mm, op_id = 4, sizes = [[2, 3], []]', 'sum, seq = 0', "
        "'it\\'s \"é\", seq = 7, op_id = 2']}",
    ]
    assert ast.literal_eval(lines[2])["seqMarker"][2] == 'it\'s "é", seq = 7, op_id = 2'


def test_torch_ranges_in_json_are_the_same_texts():
    columns = {"seqMarker": markers([*HEADS[:1], "\\ \n\udcff", *HEADS[2:]], [1, 1, 1, 1])}
    in_python = [ast.literal_eval(line) for line in rows(columns, "dict").splitlines()]
    in_json = [json.loads(line) for line in rows(columns, "jsonl").splitlines()]
    assert in_json == in_python
    assert in_json[2]["seqMarker"][2] == "\\ \n\udcff, seq = 7"


def test_the_author_s_dict_lines_come_out_as_they_went_in_but_for_the_numbers():
    path = real("pyprof/lm_v100_nvprof.author.dict")
    columns = dict_lines.read(path, path.name)
    expected = [ast.literal_eval(line) for line in path.read_text().splitlines()]
    for line in expected:
        line["seqMarker"] = [text.split(", seq = ")[0] for text in line["seqMarker"]]
    assert rows(columns, "dict") == "".join(f"{line}\n" for line in expected)
