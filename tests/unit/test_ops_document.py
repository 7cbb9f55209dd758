"""docs/ops.md matches the registry."""

import inspect
from pathlib import Path

import pytest

from fastprof.ops.document import operators_page
from fastprof.ops.registry import formulas

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == operators_page(), "run: python docs/make_ops.py"


@pytest.mark.parametrize(
    "function",
    [formula.function for formula, _ in formulas()],
    ids=lambda function: f"{function.__module__}.{function.__name__}",
)
def test_every_formula_says_what_it_counts(function):
    lines = (inspect.getdoc(function) or "").splitlines()
    assert lines and lines[0].strip()
    for label in ("FLOPs: ", "Bytes: "):
        assert any(line.startswith(label) for line in lines), label
