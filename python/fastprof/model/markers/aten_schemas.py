"""Which of the inputs that an event tells are the operator's arguments.

TorchScript's interpreter hands the profiler its whole stack: an operator's arguments are the last
ones of it. How many is in torch's schemas (`aten_schemas.txt`, made by docs/make_schemas.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any, Final

__all__ = ["n_before"]

_SPACE: Final = "aten::"
_TENSORS: Final = "TO"  # in a form: a tensor, and one that takes the result
_PLAIN: Final = "."  # what is no tensor; else: whatever


def n_before(name: str, types: Sequence[Any]) -> int:
    """How many inputs stand before the arguments of an operator, from below on the stack.

    Parameters
    ----------
    name : str
        The operator, `aten::mm`. Those of other namespaces have no schema here: 0.
    types : sequence
        The type of each input as the profiler writes it: `float` for a tensor, `Scalar`, "", ...

    Returns
    -------
    int
        0 where all inputs fit a schema, or the last ones fit none.
    """
    if not name.startswith(_SPACE) or not types:
        return 0
    forms = _forms().get(name[len(_SPACE) :].split(".", 1)[0], ())
    if any(_fits(form, types) for form in forms):
        return 0
    for form in forms:  # the longest first; TorchScript does not call those with an out tensor
        n = len(types) - len(form)
        plain = all(
            kind != _PLAIN or not _is_tensor(each)
            for kind, each in zip(form, types[max(n, 0) :], strict=False)
        )
        if n > 0 and "T" in form and "O" not in form and plain and _fits(form, types[n:]):
            return n
    return 0


def _fits(form: str, types: Sequence[Any]) -> bool:
    return len(form) == len(types) and all(
        _is_tensor(each) for kind, each in zip(form, types, strict=True) if kind in _TENSORS
    )


def _is_tensor(kind: Any) -> bool:
    """Whether the profiler wrote the type of a tensor: `Scalar` and `TensorList` are none."""
    return isinstance(kind, str) and kind != "" and not kind[0].isupper()


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    text = resources.files("fastprof.model.markers").joinpath("aten_schemas.txt").read_text("ascii")
    lines = (line.split() for line in text.splitlines()[1:])
    return {name: tuple(forms) for name, *forms in lines}
