"""docs/versions.md says what was tested, and each row names tests that there are."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "docs" / "versions.md").read_text()
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
    for row in re.findall(r"^\|.*\|$", TEXT, re.MULTILINE)
    if not row.startswith(("|---", "| what "))
]


def problem(shown_by: str) -> str | None:
    """What is wrong with the last cell of a row; None for tests that there are, or `untested`."""
    if shown_by == "untested":
        return None
    named = re.findall(r"`([^`]+)`", shown_by)
    if not named or re.sub(r"`[^`]+`", "", shown_by).strip(", "):
        return f"expected names of tests, or untested: {shown_by!r}"
    for name in named:
        path, _, function = name.partition("::")
        if not (ROOT / path).is_file():
            return f"no file {path}"
        tests = {
            node.name
            for node in ast.parse((ROOT / path).read_text()).body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        if not tests or (function and function not in tests):
            return f"no test {function} in {path}"
    return None


def test_each_row_names_tests_that_there_are() -> None:
    assert [row for row in ROWS if len(row) != 3] == []
    problems = {" ".join(row[:2]): problem(row[2]) for row in ROWS}
    assert {row: found for row, found in problems.items() if found} == {}


def test_there_are_rows_and_some_say_untested() -> None:
    assert len(ROWS) > 20
    assert sum(row[2] == "untested" for row in ROWS) > 3


@pytest.mark.parametrize(
    "cell",
    ["", "surely works", "`tests/unit/test_nothing.py`", "untested, but works",
     "`tests/unit/repository/test_versions.py::test_of_a_name_that_is_not_there`",
     "`tests/support/exports.py`"],
)  # fmt: skip
def test_a_row_without_a_test_is_told(cell: str) -> None:
    assert problem(cell) is not None


def test_the_pythons_are_those_of_the_package() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (least,) = re.findall(r'requires-python = ">=([\d.]+)"', project)
    (numpy,) = re.findall(r'dependencies = \["numpy>=([\d.]+)"', project)
    rows = {row[0]: row[1] for row in ROWS}
    assert least in rows["Python"].split(", ")
    assert any(part.startswith(numpy) for part in rows["numpy"].split(", "))
