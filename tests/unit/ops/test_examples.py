"""Every registered operator has a worked example."""

from __future__ import annotations

import importlib
from pathlib import Path

from fastprof.ops.registry import MODULES, TORCH, formulas
from unit.ops.ops_examples import Example


def examples() -> list[Example]:
    here = Path(__file__).parent
    paths = [path for path in here.rglob("test_*.py") if not path.stem.endswith("_torch")]
    names = sorted(".".join(path.relative_to(here).with_suffix("").parts) for path in paths)
    modules = [importlib.import_module(f"unit.ops.{name}") for name in names]
    return [example for module in modules for example in getattr(module, "EXAMPLES", ())]


def test_every_registered_operator_has_a_worked_example() -> None:
    worked = {
        (TORCH if example.call.mod in MODULES else example.call.mod, example.call.op)
        for example in examples()
    }
    registered = {key for _, served in formulas() for key in served}
    assert len(registered) > 300
    assert sorted(registered - worked) == []
