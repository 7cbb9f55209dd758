"""Host events of real traces, compared with SQL alone."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from real import open_traces
from support.real_data import open_read_only, real, traces

every_database = pytest.mark.parametrize(
    "path", traces("nsys/*.sqlite", "nvprof/*", "pyprof/*.sql", "pyprof/*.sqlite")
)


def rows_of(path: Path, table: str, sql: str) -> Counter[tuple[Any, ...]]:
    with open_read_only(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        return Counter(connection.execute(sql) if table in tables else ())


def read(events: Any, *names: str) -> Counter[tuple[Any, ...]]:
    columns = [getattr(events, name) for name in names]
    lists = [
        (column.array() if hasattr(column, "array") else column).tolist() for column in columns
    ]
    return Counter(zip(*lists, strict=True))


@every_database
def test_synchronisations_are_those_of_the_file(path: str) -> None:
    file = real(path)
    syncs = open_traces.profile(path).synchronisations
    table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
    sql = f"""SELECT start, "end", correlationId,
        CASE streamId WHEN 4294967295 THEN -1 ELSE streamId END FROM {table}"""
    assert read(syncs, "start", "end", "correlation", "stream") == rows_of(file, table, sql)


@every_database
def test_synchronisations_lie_in_their_calls(path: str) -> None:
    """The calls are also those that SQL finds, and their names have the kinds in them."""
    profile = open_traces.profile(path)
    syncs, api = profile.synchronisations, profile.api
    result = syncs.call >= 0
    call = syncs.call[result]
    assert (api.start[call] <= syncs.start[result]).all()
    assert (syncs.end[result] <= api.end[call]).all()
    assert (api.correlation[call] == syncs.correlation[result]).all()
    assert result.sum() == len(result) - (1 if "cudagraph" in path else 0)  # one call is not there
    names = {"stream": "StreamSync", "stream wait": "StreamWait", "event": "Event", "context": "ev"}
    kinds, calls = syncs.kind.array()[result], api.name.array()[call]
    assert all(names[kind] in name for kind, name in zip(kinds, calls, strict=True))


@every_database
def test_host_events_are_those_of_the_file(path: str) -> None:
    file = real(path)
    profile = open_traces.profile(path)
    thread = "e.globalTid & 16777215, (e.globalTid >> 24) & 16777215"
    named = (
        f"SELECT start, {{}}, {thread}, s.value FROM {{}} e LEFT JOIN StringIds s ON s.id = {{}}"
    )
    calls = named.format('"end"', "OSRT_API", "nameId") + " WHERE e.globalTid & 16777215"
    chains = """(SELECT c.*, symbol FROM COMPOSITE_EVENTS c LEFT JOIN SAMPLING_CALLCHAINS h
        ON h.id = c.id AND stackDepth = 0)"""
    switches = f"SELECT start, {thread}, iif(isSchedIn, 'in', 'out') FROM SCHED_EVENTS e"
    assert read(profile.os_calls, "start", "end", "tid", "pid", "name") == rows_of(
        file, "OSRT_API", calls
    )
    assert read(profile.cpu_samples, "start", "end", "tid", "pid", "name") == rows_of(
        file, "COMPOSITE_EVENTS", named.format("start", chains, "symbol")
    )
    assert read(profile.cpu_switches, "start", "tid", "pid", "name") == rows_of(
        file, "SCHED_EVENTS", switches
    )
