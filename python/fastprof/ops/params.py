"""The params text of a call without a model: its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastprof.model.call import Call, Tensor
from fastprof.ops.tensor import canonical_type


def tensors_text(call: Call) -> str:
    """Shapes and types of the call's tensors in order, including those in lists.

    Returns
    -------
    str
        `T=[(35,20,200),(200,)],['float32','float32']`, without spaces; `T=[],[]` without tensors;
        `'na'` for an unknown type.
    """
    tensors = tensors_of(call)
    shapes = ",".join(str(tuple(found.shape)).replace(" ", "") for found in tensors)
    types = ",".join(f"'{canonical_type(found.dtype) or 'na'}'" for found in tensors)
    return f"T=[{shapes}],[{types}]"


def tensors_of(call: Call) -> list[Tensor]:
    """The tensors of a call in order, including those in lists."""
    return [found for arg in call.args for found in _tensors(arg.value)]


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _tensors(item)
