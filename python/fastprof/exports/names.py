"""Names, categories and arguments of ranges and GPU work in time lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fastprof.model.markers import Kind, Meaning
from fastprof.profile.range_columns import params_of

_CATEGORIES: Final = {
    Kind.USER: "range",
    Kind.ARGUMENT: "operator",
    Kind.MODULE: "module",
    Kind.TRACE: "line",
    Kind.LAYER: "layer",
    Kind.TORCH: "operator",
    Kind.FRAME: "python",
    Kind.HIDDEN: "python",
}
# The columns that say what GPU work computes, and the names of their arguments.
WORK: Final = {
    "op": "op",
    "layer": "layer",
    "dir": "direction",
    "params": "shapes",
    "line": "line",
    "class": "class",
    "compute_type": "compute type",
    "tc": "tensor cores",
    "phase": "phase",
}
# The columns of kernels in which those of one look agree, and the names of their arguments.
LOOKS: Final = {
    **WORK,
    "copy_direction": "copy",
    "grid": "grid",
    "block": "block",
    "registers": "registers per thread",
    "shared_memory": "shared memory (bytes)",
    "name": "kernel",
}


def title_of(meaning: Meaning) -> str:
    """The name of a range's slice: without shapes and without the syntax of markers."""
    if meaning.kind == Kind.ARGUMENT and meaning.call is not None:
        return meaning.call.op
    if meaning.kind == Kind.TRACE and meaning.frames:
        return meaning.frames[-1]
    return meaning.name


def category_of(meaning: Meaning) -> str:
    """The category of a range's slice."""
    return _CATEGORIES[meaning.kind]


def details_of(meaning: Meaning) -> Iterator[tuple[str, str]]:
    """The arguments of a range's slice."""
    shapes = params_of(meaning)
    if shapes:
        yield "shapes", shapes
    if meaning.layers:
        yield "layer", ":".join(meaning.layers)
    if meaning.frames:
        yield "line", meaning.frames[-1]
    if meaning.kind == Kind.MODULE:
        yield "module", meaning.module_repr or meaning.label


def shown(value: Any) -> str | int | None:
    """The value of a column as an argument: texts of a list joined, numbers of a triple too."""
    if isinstance(value, tuple):
        return (":" if value and isinstance(value[0], str) else ", ").join(map(str, value)) or None
    return value if isinstance(value, int) else (str(value) if value not in (None, "") else None)
