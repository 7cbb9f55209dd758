"""Every registered operator has a worked example."""

from __future__ import annotations

import importlib
from pathlib import Path

from fastprof.ops.registry import MODULES, TORCH, formulas
from ops_examples import Example


def examples() -> list[Example]:
    names = sorted(path.stem for path in Path(__file__).parent.glob("test_ops_*.py"))
    modules = [importlib.import_module(name) for name in names]
    return [each for module in modules for each in getattr(module, "EXAMPLES", ())]


def test_every_registered_operator_has_a_worked_example() -> None:
    worked = {
        (TORCH if example.call.mod in MODULES else example.call.mod, example.call.op)
        for example in examples()
    }
    registered = {key for _, served in formulas() for key in served}
    assert len(registered) > 300
    assert sorted(registered - worked) == []
