"""Reading traces of torch.profiler: accepted forms, and the errors for others."""

import gzip
import io
import os
import re
import threading

import numpy as np
import pytest

from fastprof._core._kineto import COLUMNS, NONE, POOLS, TABLES, TEXT_PLACE, KinetoReader
from fastprof.errors import BadInputError
from fastprof.readers import json_text
from fastprof.readers.kineto import event_columns

KERNEL = (
    '{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1712195495505583.008,'
    ' "dur": 4.928, "args": {"External id": 112, "device": 1, "context": 2, "stream": 7,'
    ' "correlation": 135071, "registers per thread": 72, "shared memory": 13824,'
    ' "grid": [3, 2, 1], "block": [128, 1, 1], "est. achieved occupancy %": 9,'
    ' "graph id": 5, "graph node id": 21474836481}}'
)
OPERATOR = (
    '{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 11, "tid": 12, "ts": 5, "dur": 6,'
    ' "args": {"External id": 3, "Sequence number": 8, "Fwd thread id": 1, "Record function id": 4,'
    ' "Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"], "Concrete Inputs": ["", "1"],'
    ' "Call stack": "a.py(3): f;b.py(4): g", "Module Hierarchy": "net"}}'
)
COPY_OF_2021 = (
    '{"ph": "X", "cat": "Memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": "stream 7", "ts": 1,'
    ' "dur": 2, "args": {"external id": "9", "bytes": 4096}}'
)
BROKEN = '{"ph": "X", "name": "a"b"}'


def trace(*events, beside=""):
    return f'{{"schemaVersion": 1{beside}, "traceEvents": [{", ".join(events)}]}}'


def read(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return event_columns.read(io.BytesIO(data), "t.json")


def row(file, table, i=0):
    return {key: column[i].tolist() for key, column in file.tables[table].items()}


def rows_of(file):
    return {table: len(next(iter(columns.values()))) for table, columns in file.tables.items()}


def refusal(text):
    with pytest.raises(BadInputError) as caught:
        read(text)
    return str(caught.value)


def test_a_kernel_has_all_its_columns():
    file = read(trace(KERNEL))
    assert file.names == ["gemm"]
    assert row(file, "gpu") == {
        "kind": 0,
        "start": 1712195495505583008,
        "duration": 4928,
        "name": 0,
        "pid": 0,
        "tid": 7,
        "correlation": 135071,
        "external_id": 112,
        "device": 1,
        "context": 2,
        "stream": 7,
        "grid": [3, 2, 1],
        "block": [128, 1, 1],
        "registers": 72,
        "shared_memory": 13824,
        "graph_id": 5,
        "graph_node": 21474836481,
        "bytes": -1,
        "occupancy": 9,
        "annotation": -1,
    }


def test_an_operator_has_its_call_in_one_label():
    file = read(trace(OPERATOR, OPERATOR))
    label = 'aten::mm\x1f[[2, 3], []]\x1f["float", "Scalar"]\x1f\x1f["", "1"]\x1f\x1f'
    assert file.labels == [label]
    assert row(file, "ranges", 1) == {
        "category": 0,
        "start": 5000,
        "duration": 6000,
        "label": 0,
        "pid": 11,
        "tid": 12,
        "seq": 8,
        "external_id": 3,
        "forward_thread": 1,
        "message": -1,
        "record_function": 4,
        "python_id": -1,
        "python_parent": -1,
        "python_module": -1,
        "stack": 0,
        "hierarchy": 1,
    }
    assert file.stacks == ["a.py(3): f;b.py(4): g", "net"]
    assert file.categories == ["cpu_op"]


def test_names_of_2021_are_known():
    file = read(trace(COPY_OF_2021))
    copy = row(file, "gpu")
    assert (copy["kind"], copy["external_id"], copy["bytes"]) == (1, 9, 4096)
    assert file.place(copy["tid"]) == "stream 7"
    assert file.place(copy["pid"]) == 0


def test_what_is_missing_is_none():
    file = read(trace('{"ph": "X", "cat": "kernel"}'))
    kernel = row(file, "gpu")
    assert {key for key, value in kernel.items() if value == NONE} == {
        *("start", "duration", "pid", "tid"),
    }
    assert kernel["grid"] == [-1, -1, -1]
    assert kernel["name"] == -1
    assert file.place(kernel["pid"]) is None


def test_a_negative_duration_stays_negative():
    assert row(read(trace('{"ph": "X", "cat": "kernel", "dur": -0.001}')), "gpu")["duration"] == -1


def test_pids_that_are_no_numbers_are_texts():
    places = {'"Spans"': "Spans", '"-3"': -3, '" 4 "': 4, '""': "", "-5": -5, "4294967296": 2**32}
    places |= {"1.5": "1.5", str(TEXT_PLACE): str(TEXT_PLACE), "true": "true", "null": None}
    file = read(trace(*(f'{{"ph": "M", "pid": {text}}}' for text in places)))
    assert [file.place(pid) for pid in file.tables["metadata"]["pid"].tolist()] == [
        *places.values()
    ]


def test_either_root_is_read():
    as_object, as_list = read(trace(KERNEL, OPERATOR)), read(f"[{KERNEL}, {OPERATOR}]")
    assert rows_of(as_object) == rows_of(as_list)
    assert as_object.root == {"schemaVersion": 1}
    assert as_list.root == {}


def test_an_empty_list_of_events_is_a_trace():
    for text in ("[]", " [ ] ", '{"traceEvents": []}', "\ufeff[]\n"):
        file = read(text)
        assert file.warnings() == []
        assert set(rows_of(file).values()) == {0}


def test_what_stands_beside_the_events_is_kept_before_and_behind_them():
    text = (
        f'{{"a": [1, {{"b": "]}}"}}], "traceEvents": [{KERNEL}], "n": NaN, "é\\u0041": "\\ud83d"}}'
    )
    root = read(text).root
    assert root.pop("n") != 0
    assert root == {"a": [1, {"b": "]}"}], "éA": "\ud83d"}


def test_a_value_beside_the_events_that_is_too_long_is_passed_over():
    long = ', "long": "' + "x" * (1 << 24) + '"'
    assert list(read(trace(KERNEL, beside=long)).root) == ["schemaVersion"]


def test_a_value_beside_the_events_that_python_cannot_read_is_left_out():
    assert read(trace(KERNEL, beside=', "a": nan, "b": 2')).root == {"schemaVersion": 1, "b": 2}


def test_names_may_hold_anything():
    names = [
        '"é€😀"',
        '"\\u00e9\\u20ac\\ud83d\\ude00"',
        '"\\ud83d"',
        '"a\\"b"',
        '"C:\\Users"',
        '"\t"',
    ]
    file = read(trace(*(f'{{"ph": "M", "name": {name}}}' for name in names)))
    assert file.names == ["é€😀", "\ufffd", 'a"b', "C:\\Users", "\t"]
    assert file.tables["metadata"]["name"].tolist() == [0, 0, 1, 2, 3, 4]


def test_bytes_that_are_not_utf8_are_replaced():
    assert read(b'[{"ph": "M", "name": "a\xffb"}]').names == ["a\ufffdb"]


def test_events_are_counted_by_phase_and_category():
    file = read(trace(KERNEL, KERNEL, '{"ph": "f", "cat": "ac2g"}', '{"ph": "M"}', "{}"))
    assert file.counts == {
        ("X", "kernel"): 2,
        ("f", "ac2g"): 1,
        ("M", None): 1,
        (None, None): 1,
    }


def test_a_malformed_event_is_left_out_and_counted():
    file = read(trace(KERNEL, BROKEN, OPERATOR))
    assert rows_of(file)["gpu"] == rows_of(file)["ranges"] == 1
    assert (file.lost_events, file.lost_bytes) == (1, len(BROKEN))
    assert file.warnings() == ["t.json: 1 malformed events were skipped (26 bytes)"]


NAMED = (
    '{{"ph": "X", "cat": "user_annotation", "name": "{}", "pid": 1, "tid": 2,\n "ts": 5, "dur": 6}}'
)


@pytest.mark.parametrize(
    "name",
    [
        'say "hi"',
        '"',
        'a"b',
        'a, "b", c',
        '"pid',
        'x", y',
        "{'mod': 'torch', 'op': 'f', 'args': [{'name': '', 'type': 'str', 'value': \"it's\"}]}",
        "{'mod': 'torch', 'op': 'f', 'args': [{'name': '', 'type': 'str', 'value': 'a\"b'}]}",
        "{'a': \"it's\"}, {'a': \"it's\"}",
        "{'a': \"}'\", 'b': \"]}'\"}",
    ],
)
def test_quotes_that_torch_wrote_bare_into_a_name_are_a_part_of_it(name):
    # torch 2.13 writes such names of record_function, and json.loads rejects the file.
    file = read(trace(KERNEL, NAMED.format(name), OPERATOR))
    assert (file.warnings(), rows_of(file)["gpu"], rows_of(file)["ranges"]) == ([], 1, 2)
    assert file.labels[0].split("\x1f")[0] == name
    assert (row(file, "ranges")["start"], row(file, "ranges")["duration"]) == (5000, 6000)


def test_a_name_with_bare_quotes_that_cannot_be_told_is_lost_alone():
    for name in ('{"a": 1, "pid": 2}', 'x", "pid": "y'):
        file = read(trace(KERNEL, NAMED.format(name), OPERATOR, KERNEL))
        assert rows_of(file)["gpu"] == 2
        assert file.unread_bytes == 0


def test_brackets_that_never_close_stop_reading_there():
    text = trace(KERNEL, '{"ph": "X", "args": [[[')[:-2]
    file = read(text)
    assert rows_of(file)["gpu"] == 1
    assert file.unread_bytes == len('{"ph": "X", "args": [[[')


def test_a_trace_that_is_cut_off_says_where():
    text = trace(KERNEL, OPERATOR)[:-30]
    file = read(text)
    start = text.rindex('{"ph"')
    assert (rows_of(file)["gpu"], rows_of(file)["ranges"]) == (1, 0)
    assert file.warnings() == [
        f"t.json: the trace is cut off: its last {len(text) - start} bytes, from byte {start} of "
        "the JSON text on, contain no complete event"
    ]


def test_text_behind_the_trace_is_told():
    file = read(trace(KERNEL) + "\n junk ")
    assert file.unread_bytes == 4
    assert file.warnings() == ["t.json: 4 bytes after the trace were not read"]
    assert read(trace(KERNEL) + " \n" * 2_000_000).warnings() == []


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize(
    ("text", "n"), [("", 0), (" \n ", 0), ("\na", 1), ("  a b\n\n cd \n\n", 8)]
)
def test_text_behind_the_trace_is_counted_alike_in_any_blocks(text, n, size, monkeypatch):
    monkeypatch.setattr(json_text, "BLOCK_SIZE", size)
    monkeypatch.setattr(json_text, "COMPRESSED_SIZE", size)
    assert read(trace(KERNEL) + text).unread_bytes == n


def test_gzip_is_known_by_its_first_bytes_and_may_have_members(tmp_path):
    text = trace(KERNEL, OPERATOR).encode()
    path = tmp_path / "trace.json"
    path.write_bytes(
        gzip.compress(text[:50]) + gzip.compress(b"") + gzip.compress(text[50:]) + b"\0" * 9
    )
    file = event_columns.read(path, "t.json")
    assert rows_of(file) == rows_of(read(text))
    assert file.warnings() == []


def test_members_that_end_with_a_block_go_on_in_the_next():
    noise = os.urandom(json_text.COMPRESSED_SIZE).hex()
    first = gzip.compress(f'[{{"ph": "M", "name": "{noise}"}}, '.encode())
    for size in range(len(first) - 3, len(first) + 3):
        file = io.BytesIO(first + gzip.compress(f"{KERNEL}]".encode()))
        read_size, json_text.COMPRESSED_SIZE = json_text.COMPRESSED_SIZE, size
        try:
            assert rows_of(event_columns.read(file, "t.json"))["gpu"] == 1
        finally:
            json_text.COMPRESSED_SIZE = read_size


def test_gzip_that_is_cut_off_or_damaged_gives_what_came_before():
    data = gzip.compress(trace(*[KERNEL] * 20_000).encode())
    cut = read(data[: len(data) // 2])
    assert 0 < rows_of(cut)["gpu"] < 20_000
    told = (
        r"data is cut off; [1-9]\d* bytes of JSON text before that were read, with [1-9]\d* events"
    )
    assert re.search(told, cut.warnings()[0])
    wrong = read(data[:-8] + bytes(8))
    assert "the compressed data is damaged" in wrong.warnings()[0]


def test_all_that_comes_before_damage_is_read_also_in_one_block():
    data = gzip.compress(trace(*[KERNEL] * 20).encode(), 0)  # stored: uncompressed
    for end in (bytes(8), b"\0" * 4 + data[-4:], data[-8:-4] + b"\0" * 4):
        wrong = read(data[:-8] + end)
        assert "the compressed data is damaged" in wrong.warnings()[0]
        assert rows_of(wrong)["gpu"] == 20
    later = read(data + data[:10] + b"\xff" * 20)
    assert "the compressed data is damaged" in later.warnings()[0]
    assert rows_of(later)["gpu"] == 20


def test_a_missing_comma_before_the_events_loses_nothing():
    file = read('{"schemaVersion": 1, "a": {"b": 2} "traceEvents": [' + KERNEL + "]}")
    assert (rows_of(file)["gpu"], file.lost_events, file.warnings()) == (1, 0, [])


def test_blanks_at_the_end_are_no_event_in_whatever_blocks_they_come():
    text = trace(KERNEL)[:-2].encode() + b" \n\0" * 500
    for size in (64, 1 << 20):
        reader, waiting = KinetoReader("t.json"), b""
        for at in range(0, len(text), size):
            waiting += text[at : at + size]
            waiting = waiting[reader.feed(waiting) :]
        assert waiting == b""
        assert len(reader.finish()["gpu"]["start"]) == 1


def test_an_event_longer_than_many_blocks_is_read():
    text = trace(KERNEL, f'{{"ph": "M", "args": {{"name": "{"x" * 5_000_000}"}}}}', KERNEL)
    file = read(text)
    assert rows_of(file)["gpu"] == 2
    assert file.warnings() == []
    assert max(map(len, file.names)) == 5_000_000


def test_an_event_that_is_too_long_ends_reading(monkeypatch):
    monkeypatch.setattr(json_text, "LARGEST_EVENT", 1 << 21)
    text = trace(KERNEL, f'{{"ph": "M", "name": "{"x" * 9_000_000}"}}', KERNEL)
    file = read(text)
    assert rows_of(file) == dict.fromkeys(TABLES, 0) | {"gpu": 1}
    assert file.unread_bytes == len(text) - text.index('{"ph": "M"')


def test_a_pipe_is_read_as_a_file_is():
    reading, writing = os.pipe()
    text = trace(*[KERNEL] * 5000).encode()

    def write():
        with open(writing, "wb") as pipe:
            pipe.write(text)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb", buffering=0) as pipe:
        file = event_columns.read(pipe, "-")
    writer.join()
    assert rows_of(file)["gpu"] == 5000


def test_other_texts_are_refused_with_what_was_found():
    assert "found b'hello'" in refusal("hello")
    assert "found no text" in refusal("")
    assert "without traceEvents, with a, b" in refusal('{"a": 1, "b": [2]}')
    assert "without traceEvents, with no keys" in refusal("{}")
    assert "cut off or damaged before its traceEvents" in refusal('{"schemaVersion": 1, "dev')
    assert "the compressed data is damaged" in refusal(b"\x1f\x8bnothing")
    assert "the compressed data is cut off" in refusal(gzip.compress(b"[]")[:9])


def test_an_error_of_reading_reaches_the_caller():
    class Broken(io.BytesIO):
        def read(self, size=-1):
            if self.tell():
                raise OSError("no more")
            return super().read(size)

    with pytest.raises(OSError, match="no more"):
        event_columns.read(Broken(trace(*[KERNEL] * 5000).encode()), "t.json")


def test_columns_have_the_types_they_say():
    file = read(trace(KERNEL))
    assert tuple(file.tables) == TABLES == tuple(COLUMNS)
    for table, columns in file.tables.items():
        assert list(columns) == list(COLUMNS[table])
        for key, column in columns.items():
            dtype, shape = COLUMNS[table][key]
            assert (column.dtype, column.shape[1:]) == (np.dtype(dtype), shape)


def test_a_reader_is_used_once():
    reader = KinetoReader("t.json")
    assert reader.feed(b"[]") == 2
    assert [reader.texts(pool) for pool in POOLS] == [[]] * len(POOLS)
    reader.finish()
    with pytest.raises(ValueError, match="has finished"):
        reader.feed(b"[]")


def test_the_last_pool_is_the_last_of_the_core():
    assert read(trace(KERNEL, beside=', "a": 2')).root["a"] == 2
    with pytest.raises(ValueError):
        KinetoReader("t.json").texts("others")
