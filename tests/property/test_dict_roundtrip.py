"""Dict lines contain all values exactly, and reading them back gives the same values."""

import ast
import io
import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastprof._core._rows import RowWriter
from fastprof.model.columns import SeqMarkers
from fastprof.readers import dict_lines
from fastprof.writers import write_rows
from fastprof.writers.dict_lines import KEYS
from fastprof.writers.write_threads import write_on_threads
from support.hypothesis_profiles import examples
from support.report_columns import ints, lists, values

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=12)
TEXT = st.one_of(st.sampled_from(["", "'", '"', "\\", "a, seq = 1", "', '", "\udcff"]), ANY_TEXT)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
INT64 = st.integers(-(2**63), 2**63 - 1).filter(lambda number: number != -1)
INT32 = st.integers(0, 2**31 - 1)
TRIPLE = st.tuples(INT32, INT32, INT32)
NUMBERS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tuple)

KINDS = (
    {key: (values, st.none() | TEXT) for key in ("kShortName", "dir", "kLongName")}
    | {key: (values, st.none() | TEXTS) for key in ("layer", "trace", "reprMarkers", "marker")}
    | {key: (values, st.none() | TEXTS) for key in ("mod", "op", "seqMarker")}
    | dict.fromkeys(("seqId", "altSeqId"), (lists, NUMBERS))
    | {key: (ints, st.none() | INT64) for key in ("kDuration", "subSeqId", "tid")}
    | {key: (ints, st.none() | INT64) for key in ("device", "stream")}
    | {key: (ints, st.none() | TRIPLE) for key in ("grid", "block")}
)
ROW = st.fixed_dictionaries({key: KINDS[key][1] for key in KEYS})


def columns_of(rows):
    return {key: KINDS[key][0](*(row[key] for row in rows)) for key in KEYS}


def lines_of(columns, form):
    file = io.BytesIO()
    write_rows(columns, form, file)
    return file.getvalue()


def literal(row):
    """A row as in a dict line: tuples become lists, except grid and block."""
    return {
        key: list(value) if isinstance(value, tuple) and key not in ("grid", "block") else value
        for key, value in row.items()
    }


@given(st.lists(ROW, max_size=5))
def test_a_written_line_evaluates_to_its_values(rows):
    lines = lines_of(columns_of(rows), "dict").decode().split("\n")
    assert lines.pop() == ""
    assert [ast.literal_eval(line) for line in lines] == [literal(row) for row in rows]


@given(st.lists(ROW, max_size=5))
def test_a_written_json_line_says_its_values(rows):
    lines = lines_of(columns_of(rows), "jsonl").decode().split("\n")[:-1]
    for line, row in zip(lines, rows, strict=True):
        got = json.loads(line)
        assert {k: tuple(v) if isinstance(v, list) else v for k, v in got.items()} == row


@given(st.lists(ROW, max_size=5), st.integers(16, 600))
def test_reading_written_lines_gives_the_columns_back(rows, block_size):
    for form in ("dict", "jsonl"):
        data = lines_of(columns_of(rows), form)
        size, dict_lines.BLOCK_SIZE = dict_lines.BLOCK_SIZE, block_size
        try:
            columns = dict_lines.read(io.BytesIO(data), "x.dict")
        finally:
            dict_lines.BLOCK_SIZE = size
        for number, row in enumerate(rows):
            for key in KEYS:
                expected = row[key]
                if key == "seqMarker" and any(", seq = " in label for label in expected or ()):
                    continue
                assert columns[key].at(number) == expected, (form, key)


@given(st.binary(max_size=60) | st.text("{}[]()'\"\\,: 1-aNone\n", max_size=40).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    try:
        dict_lines.read(io.BytesIO(data), "x.dict")
    except dict_lines.BadInputError as error:
        assert str(error).startswith("x.dict: line ")


# Lists of torch ranges against a reference.

LABEL = st.tuples(
    st.sampled_from(["mm", "add", "a", "é", "it's", "layer:x"]),
    st.sampled_from(["", ", sizes = [[1]]"]),
)
NUMBER = st.sampled_from([-1, 0, 1, 2, 2**63 - 1])


@st.composite
def seq_markers(draw):
    labels = draw(st.lists(LABEL, min_size=1, max_size=4))
    ranges = draw(
        st.lists(st.tuples(st.integers(0, len(labels) - 1), NUMBER, NUMBER), min_size=1, max_size=6)
    )
    n_frames = draw(st.integers(0, 8))
    frames = [
        (draw(st.integers(-1, frame - 1)), draw(st.integers(0, len(ranges) - 1)))
        for frame in range(n_frames)
    ]
    rows = draw(st.lists(st.integers(-1, n_frames - 1), max_size=6))
    parent, frame_range = np.array(frames, np.int32).reshape(-1, 2).T
    label, seq, op_id = np.array(ranges, np.int64).T
    return SeqMarkers(
        frame_of_row=np.array(rows, np.int32),
        frame_parent=parent,
        range_of_frame=frame_range,
        label_of_range=label,
        seq_of_range=seq,
        op_id_of_range=op_id,
        is_torch=np.array([head != "layer:x" for head, _ in labels]),
        heads=[head for head, _ in labels],
        tails=[tail for _, tail in labels],
    )


def oracle(markers, frame):
    result = set()
    while frame >= 0:
        around = markers.range_of_frame[frame]
        label = markers.label_of_range[around]
        head, tail = markers.heads[label], markers.tails[label]
        seq, op_id = int(markers.seq_of_range[around]), int(markers.op_id_of_range[around])
        if markers.is_torch[label]:
            result.add((seq, head.encode(), op_id, head, tail))
        frame = markers.frame_parent[frame]
    return [
        head
        + (f", seq = {seq}" if seq >= 0 else "")
        + (f", op_id = {op_id}" if op_id >= 0 else "")
        + tail
        for seq, _, op_id, head, tail in sorted(result)
    ]


@given(seq_markers())
def test_the_torch_ranges_of_a_row_are_those_on_the_way_to_the_root(markers):
    lines = lines_of({"seqMarker": markers}, "dict").decode().splitlines()
    got = [ast.literal_eval(line)["seqMarker"] for line in lines]
    assert got == [oracle(markers, frame) for frame in markers.frame_of_row]


@examples(50)
@given(st.lists(INT64, max_size=50), st.integers(0, 50), st.integers(0, 50))
def test_any_split_of_the_rows_writes_the_same_bytes(numbers, one, other):
    writer = RowWriter(len(numbers), b"\n")
    writer.add_ints(b"", np.array(numbers, np.int64), none=-1, none_text=b"na")
    first, second = sorted((min(one, len(numbers)), min(other, len(numbers))))
    file = io.BytesIO()
    for part in ((0, first), (first, second), (second, None)):
        write_on_threads(writer, file, *part)
    assert file.getvalue().decode() == "".join(f"{number}\n" for number in numbers)
