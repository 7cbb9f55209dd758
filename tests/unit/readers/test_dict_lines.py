"""Reading dict lines: accepted forms, and the errors for others."""

import ast
import io
import os
import threading

import pytest

from fastprof.errors import BadInputError
from fastprof.readers import dict_lines
from support.real_data import real

LINE = (
    "{'kShortName': 'mm', 'kDuration': 6624, 'layer': ['a', 'b'], 'trace': ['t.py:3'], "
    "'reprMarkers': [], 'marker': [\"{'mod': 'torch', 'op': 'mm'}\"], "
    "'seqMarker': ['aten::mm, seq = 5, op_id = 9, sizes = [[2, 3], []]', 'x, seq = 6'], "
    "'seqId': [5], 'subSeqId': 0, 'altSeqId': [6, 7], 'dir': 'fprop', 'mod': ['torch'], "
    "'op': ['mm'], 'tid': 3940300608, 'device': 0, 'stream': 7, 'grid': (640, 1, 2), "
    "'block': (128, 1, 1), 'kLongName': 'void mm<float>(int)'}"
)
VALUES = {
    "kShortName": "mm",
    "kDuration": 6624,
    "layer": ("a", "b"),
    "trace": ("t.py:3",),
    "reprMarkers": (),
    "marker": ("{'mod': 'torch', 'op': 'mm'}",),
    "seqMarker": ("aten::mm, sizes = [[2, 3], []]", "x"),
    "seqId": (5,),
    "subSeqId": 0,
    "altSeqId": (6, 7),
    "dir": "fprop",
    "mod": ("torch",),
    "op": ("mm",),
    "tid": 3940300608,
    "device": 0,
    "stream": 7,
    "grid": (640, 1, 2),
    "block": (128, 1, 1),
    "kLongName": "void mm<float>(int)",
}
NOTHING = {key: () if key in ("seqId", "altSeqId") else None for key in VALUES}


def rows(text):
    """The rows of some lines, as dicts."""
    data = text if isinstance(text, bytes) else text.encode()
    columns = dict_lines.read(io.BytesIO(data), "x.dict")
    n = len(columns["op"])
    assert {len(column) for column in columns.values()} == {n}
    return [{key: column.at(row) for key, column in columns.items()} for row in range(n)]


def refusal(text):
    with pytest.raises(BadInputError) as caught:
        rows(text)
    return str(caught.value)


def test_every_key_is_read():
    assert rows(LINE + "\n") == [VALUES]


def test_the_last_line_needs_no_newline():
    assert rows(LINE + "\n" + LINE) == [VALUES, VALUES]


def test_nothing_gives_no_rows():
    for text in ("", "\n", " \n\r\n\n"):
        assert rows(text) == []


def test_blank_lines_carriage_returns_and_a_byte_order_mark_are_skipped():
    assert rows(f"\ufeff\r\n{LINE}\r\n\r\n  {LINE}  \r\n") == [VALUES, VALUES]


def test_spacing_and_trailing_commas_do_not_matter():
    text = (
        " {'op' :\t[ 'mm' ,'a',  ] , 'seqMarker':['x, seq = 1' , 'y' , ],'seqId':[ 1,2 , ],"
        "'grid':( 1 ,2,3, ) ,'tid':5 ,'new' : [ ] , 'layer':[], 'dir':'na' , } "
    )
    expected = {"op": ("mm", "a"), "seqMarker": ("x", "y"), "seqId": (1, 2), "grid": (1, 2, 3)}
    assert rows(text) == [NOTHING | expected | {"tid": 5, "layer": (), "dir": "na"}]


def test_keys_come_in_any_order_and_unknown_ones_are_ignored():
    text = (
        "{'op': ['mm'], 'new': {'a': [(1, {'}': ']'})], 'b': 1.5e3}, 'kDuration': 1, 'other': -1}"
    )
    assert rows(text) == [dict(NOTHING, op=("mm",), kDuration=1)]


def test_a_key_that_comes_twice_keeps_the_last_value():
    assert rows("{'seqId': [1, 2], 'tid': 1, 'seqId': [3], 'tid': 2}") == [
        dict(NOTHING, seqId=(3,), tid=2)
    ]


def test_what_is_missing_or_none_is_not_known():
    none = "{" + ", ".join(f"'{key}': None" for key in VALUES) + "}"
    assert rows("{}\n" + none) == [NOTHING, NOTHING]


def test_json_lines_are_read_as_well():
    text = '{"kShortName": "mm", "tid": null, "layer": null, "seqId": [1], "grid": [1, 2, 3]}'
    assert rows(text) == [dict(NOTHING, kShortName="mm", seqId=(1,), grid=(1, 2, 3))]


def test_lists_and_tuples_stand_for_each_other():
    text = "{'layer': ('a',), 'seqId': (1, 2), 'altSeqId': (3,), 'grid': [1, 2, 3], 'op': ()}"
    expected = {"layer": ("a",), "seqId": (1, 2), "altSeqId": (3,), "grid": (1, 2, 3), "op": ()}
    assert rows(text) == [NOTHING | expected]


def test_strings_have_either_quote_escapes_and_prefixes():
    text = (
        r"""{u'kShortName': u'it\'s', 'layer': ["\"", '\\', 'a\tb\x41\u00e9', b'b'], "dir": "'"}"""
    )
    expected = {"kShortName": "it's", "layer": ('"', "\\", "a\tbAé", "b"), "dir": "'"}
    assert rows(text) == [NOTHING | expected]


def test_text_of_any_script_is_read():
    assert rows("{'layer': ['é', '層', '🔥']}") == [dict(NOTHING, layer=("é", "層", "🔥"))]


def test_bytes_that_are_no_utf8_are_kept():
    (row,) = rows(b"{'kShortName': 'a\xffb', 'layer': ['\xfe']}")
    assert row["kShortName"].encode("utf-8", "surrogateescape") == b"a\xffb"
    assert row["layer"][0].encode("utf-8", "surrogateescape") == b"\xfe"


def test_numbers_reach_the_extremes_of_64_bits():
    text = "{'kDuration': 9223372036854775807, 'tid': -9223372036854775808, 'seqId': [+5, -1]}"
    (row,) = rows(text)
    assert (row["kDuration"], row["tid"], row["seqId"]) == (2**63 - 1, -(2**63), (5, -1))


def test_torch_ranges_lose_their_numbers_and_keep_their_sizes():
    labels = [
        "mm, seq = 7",
        "mm, op_id = 3",
        "a, b, seq = 1, op_id = 2, sizes = [[1]], input_op_ids = [(1, 0)]",
        "mm",
        "it's, seq = 4",
        "both \" and ', seq = 4",
        "mm, seq = x",
        "",
    ]
    (row,) = rows(repr({"seqMarker": labels}))
    assert row["seqMarker"] == (
        "mm", "mm", "a, b, sizes = [[1]]", "mm", "it's", "both \" and '", "mm, seq = x", ""
    )  # fmt: skip


def test_ranges_that_differ_in_numbers_only_are_one_text():
    text = "".join(f"{{'seqMarker': ['mm, seq = {i}, op_id = {i}']}}\n" for i in range(1000))
    columns = dict_lines.read(io.BytesIO(text.encode()), "x.dict")
    assert columns["seqMarker"].values == [("mm",)]


def test_lines_longer_than_a_block_and_blocks_that_cut_a_line_are_read(monkeypatch):
    text = "".join(repr({"kShortName": "x" * n, "tid": n}) + "\n" for n in range(0, 3000, 7))
    expected = [dict(NOTHING, kShortName="x" * n, tid=n) for n in range(0, 3000, 7)]
    for size in (64, 1000, 4096):
        monkeypatch.setattr(dict_lines, "BLOCK_SIZE", size)
        assert rows(text) == expected


def test_more_rows_and_numbers_than_there_was_room_for_are_read():
    text = "".join(f"{{'tid': {i}, 'seqId': {list(range(i % 5))}}}\n" for i in range(20_000))
    text += repr({"altSeqId": list(range(50_000))})
    columns = dict_lines.read(io.BytesIO(text.encode()), "x.dict")
    assert columns["tid"].values[:20_000].tolist() == list(range(20_000))
    assert columns["seqId"].at(19_999) == (0, 1, 2, 3)
    assert columns["altSeqId"].at(20_000) == tuple(range(50_000))


@pytest.mark.parametrize("first", [1, 400])
def test_file_whose_first_lines_say_little_about_the_rest_is_read(first, monkeypatch, tmp_path):
    """Capacity is estimated from the first lines: here too small, then far too large."""
    monkeypatch.setattr(dict_lines, "BLOCK_SIZE", 4096)
    lengths = [first] * 50 + [401 - first] * 5_000
    lines = [
        {"tid": i, "kShortName": "x" * n, "seqId": [i] * (n % 3)} for i, n in enumerate(lengths)
    ]
    path = tmp_path / "x.dict"
    path.write_text("".join(f"{line!r}\n" for line in lines))
    columns = dict_lines.read(path, "x.dict")
    assert columns["tid"].values.tolist() == list(range(len(lines)))
    assert [columns["seqId"].at(i) for i in range(len(lines))] == [tuple(x["seqId"]) for x in lines]


def test_a_pipe_is_read_to_its_end():
    reading, writing = os.pipe()

    def feed():
        with open(writing, "wb", buffering=0) as file:
            for part in (LINE[:100], LINE[100:] + "\n" + LINE, "\n"):
                file.write(part.encode())

    thread = threading.Thread(target=feed)
    thread.start()
    with open(reading, "rb", buffering=0) as file:
        columns = dict_lines.read(file, "stdin")
    thread.join()
    assert columns["kLongName"].at(1) == VALUES["kLongName"]


def test_a_line_that_is_no_dict_line_is_named_with_its_number_and_start():
    assert refusal(f"{LINE}\n\nERROR: no such table: CUPTI_ACTIVITY_KIND_MARKER\n") == (
        "x.dict: line 3: expected a dict line, found "
        "'ERROR: no such table: CUPTI_ACTIVITY_KIN' (invalid at byte 1 of the line); "
        "create the file with: fastprof parse TRACE > net.dict"
    )


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "}",
        "[]",
        "{}{}",
        "{} x",
        "{'a'}",
        "{'a': }",
        "{'a': 1 'b': 2}",
        "{a: 1}",
        "{,}",
        "{'a': 'b}",
        "{'a': 'b\\'}",
        "{'a': [1)}",
        "{'a': [1}",
        "{'tid': 'x'}",
        "{'tid': 1.5}",
        "{'tid': }",
        "{'tid': -}",
        "{'tid': True}",
        "{'tid': Nonesense}",
        "{'seqId': 1}",
        "{'seqId': [1 2]}",
        "{'seqId': [1, None]}",
        "{'grid': (1, 2)}",
        "{'grid': (1, 2, 3, 4)}",
        "{'grid': ()}",
        "{'layer': " + "[" * 101 + "]" * 101 + "}",
        LINE[:-1],
        LINE[: len(LINE) // 2],
    ],
)
def test_damaged_lines_are_refused(line):
    assert refusal(f"{{}}\n{line}\n{LINE}").startswith("x.dict: line 2: expected a dict line")


def test_a_number_that_does_not_fit_is_refused():
    for text in ("{'tid': 9223372036854775808}", "{'seqId': [-9223372036854775809]}"):
        assert "line 1: a number at byte" in refusal(text)
    assert "out of range" in refusal("{'grid': (2147483648, 1, 1)}")


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("'op': 'mm'", "op: expected a list of strings, found \"'mm'\" (it is str)"),
        ("'op': [1]", "op: expected a list of strings, found '[1]' (it is int)"),
        ("'dir': ['x']", "dir: expected a string, found \"['x']\" (it is list)"),
        ("'mod': [f()]", "mod: expected a list of strings, found '[f()]' (malformed"),
        ("'mod': [a b]", "mod: expected a list of strings, found '[a b]' ("),
        ("'seqMarker': ['a' + 'b']", "seqMarker: expected a list of strings, found \"['a'"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_where_they_first_stand(item, expected):
    message = refusal(f"{{}}\n\n{{'tid': 1, {item}}}\n{{{item}}}")
    assert message.startswith("x.dict: line 3: " + expected)


def test_an_escape_that_python_warns_of_is_read_in_silence(recwarn):
    assert rows(r"{'kLongName': 'C:\d', 'op': ['a\l']}")[0]["kLongName"] == "C:\\d"
    assert list(recwarn) == []


def test_one_error_is_one_text_whenever_it_is_told():
    message = refusal("{'op': [F]}")
    assert "malformed node or string on line 1)" in message
    assert message == refusal("{'op': [F]}")


def test_dict_lines_are_recognised_by_their_keys():
    for head in (
        LINE,
        LINE[:60],
        "\ufeff\r\n" + LINE,
        '{"kShortName": "x"}',
        "{u'op': [], 'kDuration' : 5}",
    ):
        assert dict_lines.looks_like_dict_lines(head.encode())


def test_other_files_are_not_taken_for_dict_lines():
    for head in (
        "",
        "SQLite format 3\0",
        '{"schemaVersion": 1, "traceEvents": [{"op": 1, "stream": 7, "grid": [1, 1, 1]}]}',
        "Idx,SeqId",
        "{}\n" + LINE,
        "kShortName': ",
    ):
        assert not dict_lines.looks_like_dict_lines(head.encode())


def test_the_file_that_pyprof_s_author_published_reads_as_literal_eval_reads_it():
    path = real("pyprof/lm_v100_nvprof.author.dict")
    columns = dict_lines.read(path, path.name)
    expected = [ast.literal_eval(line) for line in path.read_text().splitlines()]
    assert len(columns["op"]) == len(expected) == 160
    for row, line in enumerate(expected):
        line["seqMarker"] = [text.split(", seq = ")[0] for text in line["seqMarker"]]
        for key, value in line.items():
            got = columns[key].at(row)
            assert got == (tuple(value) if isinstance(value, list) else value), (row, key)
    assert dict_lines.looks_like_dict_lines(path.read_bytes()[:4096])
