"""Finds the operator's own arguments among the inputs that an event records.

TorchScript's interpreter passes its entire stack to the profiler; the operator's arguments are the
last entries. torch's schemas give their number (`aten_schemas.txt`, from docs/make_schemas.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

_SPACE: Final = "aten::"
_TENSORS: Final = "TO"  # in a form: a tensor, and an out tensor
_PLAIN: Final = "."  # in a form: not a tensor; other letters: anything


def n_before(name: str, types: Sequence[Any]) -> int:
    """Number of inputs on the stack before the operator's arguments.

    Parameters
    ----------
    name : str
        The operator, such as `aten::mm`. The result is 0 for other namespaces.
    types : sequence
        The profiler's type of each input: `float` for a tensor, `Scalar`, "", ...

    Returns
    -------
    int
        0 if all inputs match a schema, or if the last inputs match none.
    """
    if not name.startswith(_SPACE) or not types:
        return 0
    forms = _forms().get(name[len(_SPACE) :].split(".", 1)[0], ())
    if any(_fits(form, types) for form in forms):
        return 0
    for form in forms:  # longest first; TorchScript calls none with an out tensor
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
    """Whether a profiler type is a tensor's; `Scalar` and `TensorList` are not."""
    return isinstance(kind, str) and kind != "" and not kind[0].isupper()


@cache
def _forms() -> dict[str, tuple[str, ...]]:
    text = Path(__file__).with_name("aten_schemas.txt").read_text("ascii")
    lines = (line.split() for line in text.splitlines()[1:])
    return {name: tuple(forms) for name, *forms in lines}
