"""The registry as a page of documentation: docs/ops.md.

Of each formula's docstring the first line says what it computes, and the lines that begin with
`FLOPs:` and `Bytes:` what it counts.
"""

from __future__ import annotations

import inspect
import sys
from typing import Final

from fastprof.ops.registry import ATEN, TORCH, formulas
from fastprof.ops.unmodelled import UNMODELLED

__all__ = ["operators_page"]

_HEAD: Final = """\
# Operators

<!-- Made by docs/make_ops.py from the registry; a test compares. -->

What fastprof counts for one call of each operator it knows. A fused multiply-add is two FLOPs.
Matrix products, convolutions and attention count their multiply-adds and nothing else, as
`torch.utils.flop_counter.FlopCounterMode` does; the others count one FLOP for each arithmetic
operation on an element, and 20 for an exponential, a logarithm, a square root and the like
(`python/fastprof/ops/arithmetic.py`). Bytes are the algorithm's traffic: each input read once, each
output written once, by the width of its own type. What depends on something that a capture does not
hold is `na`.

Names of torch stand without their module; in-place forms (`add_`) are not listed beside the others.
"""

_UNKNOWN: Final = """\
## What stays unknown

These are known by name and have no formula, because their calls do not tell what they do. A report
prints `na` for them, and `fastprof prof --unknown` says why. Attention over cached keys (paged
attention, `unified_attention` and the like) has a formula, which gives `na` unless something tells
how long the sequences are: an argument that bounds them, or a range around the batch
(`python/fastprof/ops/serving/lengths.py` lists the forms of vLLM, SGLang and ATOM).
"""


def operators_page() -> str:
    """The page: a section a family, a row a formula, in the order in which they are registered."""
    sections: dict[str, list[str]] = {}
    for (family, doc), names in _merged().items():
        what, counted = _parts(doc)
        cells = (_names(names), what, counted.get("FLOPs", ""), counted.get("Bytes", ""))
        row = " | ".join(cell.replace("|", "\\|") for cell in cells)
        sections.setdefault(family, []).append(f"| {row} |")
    text = [_HEAD]
    for family, rows in sorted(sections.items()):
        title = (sys.modules[family].__doc__ or family).splitlines()[0].rstrip(".")
        head = "| operators | computes | FLOPs | bytes |\n|---|---|---|---|"
        text.append("\n".join([f"## {title}", "", head, *rows, ""]))
    return "\n".join([*text, _unmodelled()])


def _unmodelled() -> str:
    # The last section: known names without a formula, a row a reason.
    names: dict[str, list[str]] = {}
    for name, reason in UNMODELLED.items():
        names.setdefault(reason, []).append(f"`{name}`")
    rows = [f"| {', '.join(each)} | {reason} |" for reason, each in names.items()]
    return "\n".join([_UNKNOWN, "| operators | why |", "|---|---|", *rows, ""])


def _merged() -> dict[tuple[str, str], list[tuple[str, str]]]:
    # (family, docstring) -> (module of the operator, its name); closures of a table share a text.
    merged: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for formula, served in formulas():
        family = formula.function.__module__.rpartition(".")[0]
        key = family, inspect.getdoc(formula.function) or ""
        merged.setdefault(key, []).extend(served)
    return merged


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
    own = set(served)
    names = []
    for home, name in served:
        if home == TORCH:
            names.append(name)
        elif home != ATEN:
            names.append(f"{home}.{name}" if "." in home else f"{home}::{name}")
        elif (TORCH, name) not in own:
            names.append(f"aten::{name}")
    names = list(dict.fromkeys(names))
    return ", ".join(f"`{name}`" for name in names if not _is_in_place(name, names))


def _is_in_place(name: str, names: list[str]) -> bool:
    return name.endswith("_") and not name.endswith("__") and name[:-1] in names
