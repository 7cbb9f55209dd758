"""Every registered operator has a worked example."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from fastprof.ops.registry import MODULES, TORCH, formulas
from ops_examples import Example


def examples() -> list[Example]:
    paths = sorted(Path(__file__).parent.rglob("test_ops_*.py"), key=lambda path: path.stem)
    sys.path += sorted({str(path.parent) for path in paths} - set(sys.path))
    modules = [importlib.import_module(path.stem) for path in paths]
    return [each for module in modules for each in getattr(module, "EXAMPLES", ())]


def test_every_registered_operator_has_a_worked_example() -> None:
    worked = {
        (TORCH if example.call.mod in MODULES else example.call.mod, example.call.op)
        for example in examples()
    }
    registered = {key for _, served in formulas() for key in served}
    assert len(registered) > 300
    assert sorted(registered - worked) == []
