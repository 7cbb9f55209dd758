"""docs/ops.md and the index of modules match the registry."""

import inspect
import subprocess
import sys
from pathlib import Path

from fastprof.ops.document import operators_page
from fastprof.ops.registry import FILE, formulas
from support import processes

PAGE = Path(__file__).parents[3] / "docs" / "ops.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == operators_page(), "run: python docs/make_ops.py"


def test_the_index_is_up_to_date():
    command = [sys.executable, str(PAGE.with_name("make_ops.py")), "--index"]
    done = processes.ran(command, check=True)
    assert FILE.read_text() == done.stdout, "run: python docs/make_ops.py"


NEEDED = """
import sys
from fastprof.errors import OpError
from fastprof.model.call import Arg, Call, Tensor
from fastprof.ops import op, registry, work

def loaded():
    return {name for name in sys.modules if name.startswith("fastprof.ops.matrix")}

assert not loaded()
x = Arg("", Tensor((4, 4), "float32"))
assert work(Call("aten", "mm", (x, x)), "fprop").cost.flops == 128
assert "fastprof.ops.matrix.matmul" in loaded()
assert not {name for name in sys.modules if name.startswith("fastprof.ops.attention")}
try:
    op("torch", "scaled_dot_product_attention")(lambda q: None)
except OpError as error:
    assert "already has a formula, fastprof.ops.attention" in str(error), error
else:
    raise SystemExit("a second formula")
count = len(registry._entries)
assert len({key for _, keys in registry.formulas() for key in keys}) > count
"""


def test_a_formula_is_imported_when_a_call_needs_it():
    subprocess.run([sys.executable, "-c", NEEDED], check=True)


def test_every_formula_documents_its_flops_and_bytes():
    functions = [formula.function for formula, _ in formulas()]
    missing = [
        f"{function.__module__}.{function.__name__}: {part}"
        for function in functions
        for part in undocumented(inspect.getdoc(function) or "")
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
