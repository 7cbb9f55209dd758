"""Reports of real traces lose nothing: their totals equal those of SQL or json alone."""

import io
import json
import re
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fastprof.profile import recount
from fastprof.writers import write_report, write_rows
from fastprof.writers.info import describe
from real.open_traces import json_of, profile, text
from support.real_data import data_dir, open_read_only, real

CUPTI = "CUPTI_ACTIVITY_KIND_"
KINDS = {
    "KERNEL": "kernel",
    "CONCURRENT_KERNEL": "kernel",
    "GRAPH_TRACE": "graph",
    "MEMCPY": "memcpy",
    "MEMSET": "memset",
}
CATEGORIES = {"Kernel": "kernel", "Memcpy": "memcpy", "Memset": "memset"} | {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
}


def traces() -> list[str]:
    directory = data_dir()
    if directory is None:
        return ["none"]
    wanted = (".sqlite", ".nvvp", ".sql", ".json.gz", ".dict")
    files = [path.relative_to(directory).as_posix() for path in directory.rglob("*.*")]
    return sorted(path for path in files if path.endswith(wanted) and not path.startswith("rocpd/"))


every_trace = pytest.mark.parametrize("path", traces())


@pytest.fixture(autouse=True)
def one_parse(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profile.check counts with the json module, too: the text is parsed once for all tests."""

    def loads(given: bytes, **how: Any) -> Any:
        assert how == {
            "strict": False,
            "parse_float": Decimal,
            "object_pairs_hook": recount._with_all_events,
        }
        assert given == text(path)
        return json_of(path)

    monkeypatch.setattr(recount, "json", SimpleNamespace(loads=loads))


def said_by_the_file(path: str) -> dict[str, list[int]]:
    """Rows and ns of each kind of work, from SQL, json or a text search alone."""
    result: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    if path.endswith(".json.gz"):
        for event in json_of(path)["traceEvents"]:
            kind = CATEGORIES.get(event.get("cat"))
            if event.get("ph") == "X" and kind:
                result[kind][0] += 1
                result[kind][1] += max(
                    0, int(Fraction(event.get("dur", 0)) * 1000 + Fraction(1, 2))
                )
    elif path.endswith(".dict"):
        for duration in re.findall(r"^\{.*?'kDuration': (\d+)", real(path).read_text(), re.M):
            result["kernel"][0] += 1
            result["kernel"][1] += int(duration)
    else:
        connection = open_read_only(real(path))
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        for table in names:
            kind = KINDS.get(table.removeprefix(CUPTI))
            if kind and table.startswith(CUPTI):
                query = f"SELECT count(*), coalesce(sum(end - start), 0) FROM {table}"
                for i, number in enumerate(connection.execute(query).fetchone()):
                    result[kind][i] += number
        connection.close()
    return {kind: numbers for kind, numbers in result.items() if numbers[0]}


@every_trace
def test_the_report_has_the_rows_and_the_time_of_the_file(path):
    opened = profile(path, copies=True)
    truth = said_by_the_file(path)
    if not path.endswith(".dict"):
        kinds, time = opened.kernels["kind"], opened.kernels["sil"]
        rows = {kind: int((kinds == kind).sum()) for kind in set(kinds)}
        sums = {kind: int(np.maximum(time[kinds == kind], 0).sum()) for kind in set(kinds)}
        assert rows == {kind: n for kind, (n, _) in truth.items()}
        if not opened.kernels["damaged"].any():
            assert sums == {kind: time for kind, (_, time) in truth.items()}
        work = describe(opened)["work"]
        assert {kind: [*each.values()] for kind, each in work.items()} == truth
    else:
        time = opened.kernels["sil"]
        assert [[len(time), int(time.sum())]] == list(truth.values())
    assert "agree with the file" in opened.check()


@every_trace
def test_what_is_written_has_as_many_rows_and_as_much_time(path):
    opened = profile(path)
    n, time = len(opened), int(np.maximum(opened.kernels["sil"], 0).sum())
    report, lines = io.BytesIO(), io.BytesIO()
    write_report({"sil": opened.column("sil")}, ["sil"], "json", report)
    write_rows(opened.source.dict_line_columns(), "jsonl", lines)
    for written, key in ((report, "sil"), (lines, "kDuration")):
        durations = [json.loads(line)[key] for line in written.getvalue().splitlines()]
        assert (len(durations), sum(duration or 0 for duration in durations)) == (n, time)
    assert "agree with the file" in opened.check()
