"""docs/ops.md matches the registry."""

import inspect
from pathlib import Path

from fastprof.ops.document import operators_page
from fastprof.ops.registry import formulas

PAGE = Path(__file__).parents[2] / "docs" / "ops.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == operators_page(), "run: python docs/make_ops.py"


def test_every_formula_documents_its_flops_and_bytes():
    functions = [formula.function for formula, _ in formulas()]
    missing = [
        f"{each.__module__}.{each.__name__}: {part}"
        for each in functions
        for part in undocumented(inspect.getdoc(each) or "")
    ]
    assert len(functions) > 300
    assert missing == []


def undocumented(text: str) -> list[str]:
    """The parts that the docstring of a formula lacks."""
    summary, *lines = text.splitlines() or [""]
    labels = ("FLOPs: ", "Bytes: ")
    lacking = [label for label in labels if not any(line.startswith(label) for line in lines)]
    return lacking if summary.strip() else ["summary", *lacking]


def test_undocumented_parts_are_found():
    assert undocumented("") == ["summary", "FLOPs: ", "Bytes: "]
    assert undocumented("Add.\n\nFLOPs: one an element") == ["Bytes: "]
    assert undocumented("Add.\n\nFLOPs: 1\nBytes: 2") == []
