"""`summary --cpu` and traces without GPU work, against torch's own tables of the same recording."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import fastprof
import torch_server
from fastprof.model.numbers import without_numbers

PROGRAM = Path(__file__).parents[1] / "programs" / "cpu_tables.py"
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
    found = {row["op"]: row for row in table.rows()}
    compared = {k: v for k, v in MEASURES.items() if name == "shapes" or "memory" not in k}
    assert found.keys() == expected.keys()
    for op, rows in expected.items():
        wanted = measures(rows, compared)
        assert {key: found[op][key] for key in wanted} == wanted, op


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
    found: dict[Any, list[int]] = {}
    for row in table.rows():
        number = re.match(r"cpu_tables.py:(\d+)", row["line"])[1]
        sums = found.setdefault(number, [0, 0])
        sums[0] += row["calls"]
        sums[1] += row["cpu_self_ns"]
    expected = {
        re.search(r"\((\d+)\)", line)[1]: sums
        for line, *sums in torch_table(folder, "stack", "by_line")
    }
    assert found == expected
    assert len(found) == 3
