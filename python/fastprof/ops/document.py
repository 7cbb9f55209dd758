"""The registry as a page of documentation: docs/ops.md.

Of each formula's docstring the first line says what it computes, and the lines that begin with
`FLOPs:` and `Bytes:` what it counts.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, Final

from fastprof.ops.registry import ATEN, TORCH, formulas

__all__ = ["operators_page"]

_HEAD: Final = """\
# Operators

<!-- Made by docs/make_ops.py from the registry; a test compares. -->

What fastprof counts for one call of each operator it knows. A fused multiply-add is two FLOPs. Matrix
products, convolutions and attention count their multiply-adds and nothing else, as
`torch.utils.flop_counter.FlopCounterMode` does; the others count one FLOP for each arithmetic operation on
an element, and 20 for an exponential, a logarithm, a square root and the like
(`python/fastprof/ops/arithmetic.py`). Bytes are the algorithm's traffic: each input read once, each output
written once, by the width of its own type. What depends on something that a capture does not hold is `na`.

Names of torch stand without their module; in-place forms (`add_`) are not listed where there is another.
"""


def operators_page() -> str:
    """The page: a section a family, a row a formula, in the order in which they are registered."""
    sections: dict[str, list[str]] = {}
    for (module, doc), names in _merged().items():
        what, counted = _parts(doc)
        cells = (_names(names), what, counted.get("FLOPs", ""), counted.get("Bytes", ""))
        row = " | ".join(cell.replace("|", "\\|") for cell in cells)
        sections.setdefault(module, []).append(f"| {row} |")
    text = [_HEAD]
    for module, rows in sections.items():
        title = (sys.modules[module].__doc__ or module).splitlines()[0]
        head = "| operators | computes | FLOPs | bytes |\n|---|---|---|---|"
        text.append("\n".join([f"## {title}", "", head, *rows, ""]))
    return "\n".join(text)


def _merged() -> dict[tuple[str, str], list[tuple[str, str]]]:
    # (module, docstring) -> (module of the operator, its name); closures of a table share a text.
    merged: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for formula, served in formulas():
        key = _home(formula.function), inspect.getdoc(formula.function) or ""
        merged.setdefault(key, []).extend(served)
    return merged


def _home(function: Callable[..., Any]) -> str:
    return function.__module__


def _parts(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and the lines behind `FLOPs:` and `Bytes:`."""
    what: list[str] = []
    counted: dict[str, list[str]] = {}
    into = what
    for line in doc.splitlines():
        label, colon, rest = line.partition(": ")
        if colon and label in ("FLOPs", "Bytes"):
            into = counted.setdefault(label, [])
            line = rest
        elif not line.strip():
            into = []  # what follows a blank line is for readers of the code
        into.append(line.strip())
    return " ".join(what), {label: " ".join(lines) for label, lines in counted.items()}


def _names(served: list[tuple[str, str]]) -> str:
    # Names of Python and of ATen; a name that both have stands once.
    python = [name if home == TORCH else f"{home}.{name}" for home, name in served if home != ATEN]
    aten = [
        f"aten::{name}" for home, name in served if home == ATEN and (TORCH, name) not in served
    ]
    names = list(dict.fromkeys([*(n for n in python if "::" not in n), *aten]))
    return ", ".join(f"`{name}`" for name in names if not _is_in_place(name, names))


def _is_in_place(name: str, names: list[str]) -> bool:
    return name.endswith("_") and not name.endswith("__") and name[:-1] in names
