"""`summary --cpu` and traces without GPU work, against torch's own tables of the same recording."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import fastprof
from fastprof.analysis.host.events import cpu_events
from fastprof.model.numbers import without_numbers
from support import torch_server
from support.commands import run
from support.kineto_files import KinetoFile

PROGRAM = Path(__file__).parents[3] / "support" / "cpu_tables.py"
# Columns, and what they are in the tables of torch.
MEASURES = {
    "calls": "calls",
    "cpu_self_ns": "self",
    "cpu_ns": "total",
    "cpu_memory": "memory",
    "cpu_self_memory": "self_memory",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpu")
    torch_server.run(PROGRAM, folder, check=True)
    return folder


def torch_table(folder: Path, name: str, by: str) -> list[Any]:
    return json.loads((folder / f"{name}.tables.json").read_text())[by]


def spelled(name: str) -> str:
    """The operator as in the column `op`."""
    return without_numbers(name.removeprefix("aten::"))


def measures(rows: list[dict[str, Any]], names: dict[str, str]) -> dict[str, Any]:
    return {ours: sum(row[theirs] for row in rows) for ours, theirs in names.items()}


@pytest.mark.parametrize("name", ["plain", "shapes", "stack"])
def test_operators_have_the_times_of_torch(name: str, folder: Path) -> None:
    expected = defaultdict(list)
    theirs = torch_table(folder, name, "by_op")
    for row in theirs:
        expected[spelled(row["name"])].append(row)
    table = fastprof.open(folder / f"{name}.json").summary(by="op")
    result = {row["op"]: row for row in table.rows()}
    compared = {k: v for k, v in MEASURES.items() if name == "shapes" or "memory" not in k}
    assert result.keys() == expected.keys()
    for op, rows in expected.items():
        wanted = measures(rows, compared)
        assert {key: result[op][key] for key in wanted} == wanted, op


def test_shapes_divide_operators_as_in_the_tables_of_torch(folder: Path) -> None:
    theirs, ours = defaultdict(list), defaultdict(list)
    for row in torch_table(folder, "shapes", "by_shape"):
        theirs[spelled(row["name"])].append(tuple(row[name] for name in MEASURES.values()))
    table = fastprof.open(folder / "shapes.json").summary(by=["op", "shape"])
    for row in table.rows():
        ours[row["op"]].append(tuple(row[name] for name in MEASURES))
    assert ours.keys() == theirs.keys()
    sums = {op: [sum(column) for column in zip(*rows, strict=True)] for op, rows in theirs.items()}
    assert {op: [sum(c) for c in zip(*rows, strict=True)] for op, rows in ours.items()} == sums
    unlike = {op for op in theirs if Counter(ours[op]) != Counter(theirs[op])}
    assert unlike == {"to", "_to_copy", "copy_", "step *"}  # several types of one shape, two names
    assert sum(len(rows) > 1 for rows in ours.values()) > 20


def test_lines_have_the_calls_that_torch_finds_by_stack(folder: Path) -> None:
    table = fastprof.open(folder / "stack.json").report(
        "summary", by=["line"], where=["dir!=bprop"], cpu=True
    )
    result: dict[Any, list[int]] = {}
    for row in table.rows():
        number = re.match(r"cpu_tables.py:(\d+)", row["line"])[1]
        sums = result.setdefault(number, [0, 0])
        sums[0] += row["calls"]
        sums[1] += row["cpu_self_ns"]
    expected = {
        re.search(r"\((\d+)\)", line)[1]: sums
        for line, *sums in torch_table(folder, "stack", "by_line")
    }
    assert result == expected
    assert len(result) == 3


@pytest.mark.parametrize(
    "by", [("dir", "op"), ("op", "shape"), ("layer",), ("line", "thread"), ("phase", "step")]
)
def test_gpu_measures_are_the_same_with_cpu_time(by: Any, profile: fastprof.Profile) -> None:
    alone = profile.summary(by)
    rows = {tuple(row[key] for key in by): row for row in profile.summary(by, cpu=True).rows()}
    for row in alone.rows():
        both = rows.pop(tuple(row[key] for key in by))
        assert {key: both[key] for key in row} == row
    assert all(row["kernels"] == row["gpu_ns"] == 0 for row in rows.values())


@pytest.mark.parametrize("name", ["op", "layer", "range", "dir", "file", "process", "step", "tc"])
def test_self_time_sums_to_the_outermost_events(name: str, profile: fastprof.Profile) -> None:
    table = profile.summary(name, cpu=True)
    events = cpu_events(profile)
    outermost = events.parent < 0
    total = int(events.time.total[outermost].sum())
    assert sum(row["cpu_self_ns"] for row in table.rows()) == table.total["cpu_self_ns"] == total
    assert sum(row["cpu_calls"] for row in table.rows()) == len(events)


def trace_of(tmp_path: Path, trace: KinetoFile, **options: Any) -> list[dict[str, Any]]:
    profile = fastprof.open(trace.write(tmp_path / "trace.json"))
    return list(profile.report("summary", **options).rows())


def test_events_that_cross_are_not_inside_each_other(tmp_path: Path) -> None:
    trace = KinetoFile().annotation(0, 100, "a").annotation(50, 200, "b").annotation(120, 130, "c")
    result = {row["op"]: row for row in trace_of(tmp_path, trace)}
    assert {op: row["cpu_self_ns"] for op, row in result.items()} == {"a": 100, "b": 140, "c": 10}


def test_memory_counts_while_an_operator_runs_by_any_thread(tmp_path: Path) -> None:
    trace = KinetoFile().op(0, 100, "aten::relu").op(20, 60, "aten::clamp_min")
    trace.op(0, 50, "aten::mul", tid=2)
    for time, size, device in ((10, 8, 0), (30, 64, 1), (60, -4, 0), (300, -4, 0)):
        trace.memory(time, size, **{"Device Type": device, "Device Id": 0})
    result = {row["op"]: row for row in trace_of(tmp_path, trace)}
    columns = ("cpu_memory", "cpu_self_memory", "gpu_memory", "gpu_self_memory")
    assert {op: tuple(row[name] for name in columns) for op, row in result.items()} == {
        "relu": (4, 8, 64, 0),
        "clamp_min": (-4, -4, 64, 64),
        "mul": (8, 8, 64, 64),
        "[memory]": (-4, -4, 0, 0),
    }


def test_totals_by_layer_count_nested_operators_once(tmp_path: Path) -> None:
    trace = KinetoFile().python(0, 100, "nn.Module: Linear_0")
    trace.op(10, 90, "aten::linear").op(20, 80, "aten::addmm")
    (row,) = trace_of(tmp_path, trace, by=["layer"])
    assert (row["calls"], row["cpu_ns"], row["cpu_self_ns"]) == (2, 80, 80)


def test_captures_without_gpu_work_and_without_anything(tmp_path: Path) -> None:
    def output(trace: KinetoFile, *words: str) -> list[str]:
        done = run("summary", trace.write(tmp_path / "trace.json"), *words)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().splitlines()

    lines = output(KinetoFile().annotation(0, 100, "load"))
    assert lines[0].split() == ["op", "calls", "cpu", "self(ns)", "cpu(%)", "cpu", "total(ns)",
                                "cpu", "mean(ns)"]  # fmt: skip
    assert lines[-1] == "no GPU work in this capture: CPU time only"
    empty = KinetoFile(deviceProperties=[]).event("M", "", "x", 0)
    assert output(empty)[0].startswith("kind")
    assert output(empty)[-1].startswith("no kernels: profile(")


def test_dict_lines_have_no_cpu_time(tmp_path: Path) -> None:
    path = tmp_path / "net.dict"
    path.write_bytes(run("parse", KinetoFile().launch(1, 2, 1).kernel(3, 9, 1).write(
        tmp_path / "trace.json")).stdout)  # fmt: skip
    done = run("summary", "--cpu", path)
    assert done.returncode == 1
    assert b"expected a trace, found dict lines, which do not contain ranges" in done.stderr
