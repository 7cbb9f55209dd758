"""Every column of real traces of 2021 to 2026 equals a reference with json.load."""

import io
import json
import random

import pytest

from fastprof.readers.kineto import event_columns
from real import open_traces
from support import kineto_oracle
from support.hypothesis_profiles import IS_FULL
from support.real_data import traces

TRACES = traces("kineto/*.json.gz")

N_EVENTS = 5000

every_trace = pytest.mark.parametrize("path", TRACES)


@every_trace
def test_every_column_is_what_json_says(path):
    """Of all events in the full profile, and of the first N_EVENTS in the fast one."""
    text = open_traces.text(path)
    if IS_FULL:
        events, file = kineto_oracle.events(text), open_traces.columns(path)
    else:
        text, events = kineto_oracle.first_events(text, N_EVENTS)
        file = event_columns.read(io.BytesIO(text), path)
    rows, counts = kineto_oracle.found(file)
    expected_rows, expected_counts = kineto_oracle.expected(events)
    assert {table: len(rows[table]) for table in rows} == {
        table: len(expected_rows[table]) for table in expected_rows
    }
    for table, expected in expected_rows.items():
        differ = [pair for pair in zip(rows[table], expected, strict=True) if pair[0] != pair[1]]
        assert differ[:1] == []
    assert counts == expected_counts
    assert file.warnings() == []


@every_trace
def test_what_stands_beside_the_events_is_what_json_says(path):
    trace = open_traces.json_of(path).copy()
    del trace["traceEvents"]
    expected = json.loads(json.dumps(trace, default=float))
    assert open_traces.columns(path).root == expected


@every_trace
def test_a_trace_cut_in_the_middle_gives_the_events_before_the_cut(path, tmp_path):
    text = open_traces.text(path)
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: len(text) // 2])
    whole, half = open_traces.columns(path), event_columns.read(cut, "cut.json")
    assert not half.is_whole
    assert 0 <= half.unread_bytes < len(text) // 10
    n_rows, n_half = (
        {table: len(next(iter(columns.values()))) for table, columns in file.tables.items()}
        for file in (whole, half)
    )
    assert 0 < sum(n_half.values()) < sum(n_rows.values())
    rows, half_rows = (kineto_oracle.plain_columns(file, n_half) for file in (whole, half))
    assert rows.keys() == half_rows.keys()
    for column, values in rows.items():
        assert half_rows[column] == values, column


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("path", TRACES[4:6])
def test_wrong_bytes_cost_few_more_events_than_they_hit(path, seed):
    text = bytearray(open_traces.text(path))
    n_events = sum(open_traces.columns(path).counts.values())
    numbers = random.Random(seed)
    start = text.index(b"traceEvents") + 20
    for _ in range(40):
        text[numbers.randrange(start, len(text) - 2000)] = numbers.choice(b'{}[]",:\\\n x')
    damaged = event_columns.read(io.BytesIO(bytes(text)), path)
    assert n_events - 80 < sum(damaged.counts.values()) < n_events
    assert 0 < damaged.lost_events <= 80
    assert damaged.is_whole
    assert damaged.unread_bytes == 0
