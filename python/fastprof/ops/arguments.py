"""Arguments of a call by position or keyword, checked: what a model may rely on."""

from __future__ import annotations

from typing import Any

from fastprof.call import Call, Tensor
from fastprof.ops.cost import CannotModel

__all__ = ["argument", "optional_tensor", "tensor"]


def argument(call: Call, index: int, *names: str) -> Any:
    """Value of the argument at a position or under one of the names, None when not given.

    For a method of Tensor, position 0 is the tensor itself. None is also what a Python call
    passes for "nothing" and what an ATen call holds for an input without a shape.
    """
    positional = [each.value for each in call.args if not each.name]
    if index < len(positional):
        return positional[index]
    return next((each.value for each in call.args if each.name in names), None)


def optional_tensor(call: Call, index: int, *names: str) -> Tensor | None:
    """Tensor argument that may be left out.

    Raises
    ------
    CannotModel
        When the argument is something else, or a size in its shape is no natural number.
    """
    value = argument(call, index, *names)
    return None if value is None else checked(value)


def tensor(call: Call, index: int, *names: str, rank: int | None = None) -> Tensor:
    """Tensor argument that the operator needs, with `rank` dimensions if that is given.

    Raises
    ------
    CannotModel
        When it is missing, something else, or of another rank.
    """
    value = checked(argument(call, index, *names))
    if rank is not None and len(value.shape) != rank:
        raise CannotModel(f"{call.op}: argument {index} has shape {value.shape}, not {rank}-d")
    return value


def checked(value: Any) -> Tensor:
    """The value, when it is a tensor with a possible shape.

    Raises
    ------
    CannotModel
        When it is not.
    """
    if not isinstance(value, Tensor):
        raise CannotModel(f"expected a tensor, found {value!r}")
    shape, dtype = value.shape, value.dtype
    if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
        raise CannotModel(f"impossible shape {shape!r}")
    if not isinstance(dtype, str | None):
        raise CannotModel(f"impossible type {dtype!r}")
    return value
