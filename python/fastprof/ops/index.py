"""Which module registers the formula of an operator: a formula is imported when a call needs it.

`index.txt` is written by docs/make_ops.py.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).with_name("index.txt")
# Lines: `module space name ...`, and `PATTERN expression space name` for generated names.
PATTERN: Final = "~"


def import_formula(key: tuple[str, str]) -> bool:
    """Import the module that registers an operator, (module of the call, name); False if none."""
    module = _modules().get(key[0], {}).get(key[1])
    if module is not None:
        import_module(f"fastprof.ops.{module}")
    return module is not None


def import_all() -> None:
    """Import the modules of all formulas."""
    for module in {name: None for names in _modules().values() for name in names.values()}:
        import_module(f"fastprof.ops.{module}")


def keys() -> list[tuple[str, str]]:
    """All operators with a formula of fastprof, in the order of the index."""
    return [(space, name) for _, space, names in _rows() for name in names]


@cache
def generated_names(namespace: str) -> dict[re.Pattern[str], tuple[str, str]]:
    """Expressions for names of code generators, and the operator whose formula they have.

    namespace : of the names; those of another are not compiled
    """
    lines = [line.split(" ") for line in _lines() if line.startswith(PATTERN)]
    return {
        re.compile(pattern): (space, name)
        for _, pattern, space, name in lines
        if re.fullmatch(pattern.partition("::")[0], namespace)
    }


@cache
def _modules() -> dict[str, dict[str, str]]:
    modules: dict[str, dict[str, str]] = {}
    for module, space, names in _rows():
        modules.setdefault(space, {}).update(dict.fromkeys(names, module))
    return modules


def _rows() -> list[tuple[str, str, list[str]]]:
    rows = (line.split(" ") for line in _lines() if not line.startswith(PATTERN))
    return [(module, space, names) for module, space, *names in rows]


@cache
def _lines() -> list[str]:
    return FILE.read_text("utf-8").splitlines()[1:]
