"""Checks the arguments of a call against the types that a formula asks for."""

from __future__ import annotations

import types
from typing import Any, Final, TypeAlias, Union, get_args, get_origin

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel

__all__ = ["Ints", "Number", "Tensors", "checked", "convert", "members"]

Ints: TypeAlias = int | tuple[int, ...]
Number: TypeAlias = bool | int | float | complex
Tensors: TypeAlias = tuple[Tensor, ...]

# Whole numbers are sizes, dimensions and types, which no tensor holds.
_NUMBERS: Final = frozenset({float, complex})


def members(annotation: Any) -> frozenset[Any]:
    """The types that an annotation allows: `Tensor | None` is {Tensor, NoneType}."""
    if get_origin(annotation) in (Union, types.UnionType):
        return frozenset().union(*map(members, get_args(annotation)))
    return frozenset({type(None) if annotation is None else annotation})


def convert(value: Any, allowed: frozenset[Any]) -> Any:
    """The value as one of the allowed types.

    Torch ranges write whatever is no tensor as a tensor without dimensions and type: where no
    tensor is asked for, that is `UNKNOWN`; where a tensor may be left out, it is None. So is a
    number in a tensor, where a real number is asked for. What the profiler has no type of is None,
    where that and else only numbers are asked for.

    Raises
    ------
    CannotModel
        When the value is none of them, when it is not known and `Unknown` is not among them, or
        when a size of a tensor is no natural number.
    """
    if isinstance(value, Tensor):
        bare = not value.shape and not value.dtype
        if Tensor in allowed and not (bare and type(None) in allowed):
            return checked(value)
        if Tensor in allowed:
            return None
        if Any not in allowed and bare:
            value = None if value.dtype == "" and _is_told(allowed) else UNKNOWN
        elif Any not in allowed and not value.shape and allowed & _NUMBERS:
            value = UNKNOWN  # a number in a tensor
    if Any in allowed:
        return value
    if isinstance(value, (tuple, list)):
        return _convert_list(tuple(value), allowed)
    for kind in (type(value), float if type(value) is int else None):
        if kind in allowed:
            return value
    if value is UNKNOWN:
        raise CannotModel("the value of an argument is not in the capture")
    raise CannotModel(f"expected {_names(allowed)}, found {shown(value)}")


def _is_told(allowed: frozenset[Any]) -> bool:
    # A trace has a type for every number, not for a text: where it leaves it out, there is none.
    return type(None) in allowed and (str not in allowed or int in allowed)


def _convert_list(value: tuple[Any, ...], allowed: frozenset[Any]) -> tuple[Any, ...]:
    for kind in allowed:
        if get_origin(kind) is tuple:
            items = members(get_args(kind)[0])
            try:
                return tuple(convert(each, items) for each in value)
            except CannotModel:
                continue
    raise CannotModel(f"expected {_names(allowed)}, found {shown(value)}")


def checked(value: Any) -> Tensor:
    """The value, when it is a tensor with a possible shape.

    Raises
    ------
    CannotModel
        When it is not.
    """
    if not isinstance(value, Tensor):
        raise CannotModel(f"expected a tensor, found {shown(value)}")
    shape, dtype = value.shape, value.dtype
    if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
        raise CannotModel(f"impossible shape {shape!r}")
    if not isinstance(dtype, str | None):
        raise CannotModel(f"impossible type {dtype!r}")
    return value


def _names(allowed: frozenset[Any]) -> str:
    told = {type(None): "None", Unknown: ""}  # that a value may be unknown is no kind of it
    return " or ".join(sorted(filter(None, (told.get(kind, _name(kind)) for kind in allowed))))


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


_LONGEST: Final = 24  # characters of a value that are shown


def shown(value: Any) -> str:
    """An argument as messages show it: `tensor [2, 3]`, `2 tensors`, `not told`, else its text."""
    if isinstance(value, Tensor) and (value.shape or value.dtype):
        return f"tensor {list(value.shape)}"
    if isinstance(value, tuple) and any(isinstance(each, Tensor) for each in value):
        return f"{len(value)} tensors"
    if value is UNKNOWN or isinstance(value, Tensor):
        return "not told"
    return repr(value)[:_LONGEST]
