"""Checks the arguments of a call against the types that a formula accepts, and shows them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, Union, get_args, get_origin

from fastprof.model.call import UNKNOWN, Call, Tensor, Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.dtypes import canonical_type

Ints: TypeAlias = int | tuple[int, ...]
# Values that a capture may not record.
Int: TypeAlias = int | Unknown
Flag: TypeAlias = bool | Unknown
Size: TypeAlias = Int | None  # a number that a call may omit
Number: TypeAlias = bool | int | float | complex
Tensors: TypeAlias = tuple[Tensor, ...]

# Without int: integers are sizes, dimensions and types, which are never passed as tensors.
_NUMBERS: Final = frozenset({float, complex})


def members(annotation: Any) -> frozenset[Any]:
    """The types allowed by an annotation: `Tensor | None` is {Tensor, NoneType}."""
    if get_origin(annotation) in (Union, types.UnionType):
        return frozenset().union(*map(members, get_args(annotation)))
    return frozenset({type(None) if annotation is None else annotation})


def convert(value: Any, allowed: frozenset[Any]) -> Any:
    """Convert a value to one of the allowed types.

    Torch ranges record non-tensors as tensors without dimensions and type. Such a tensor becomes
    None for an optional tensor and `UNKNOWN` for other types, except that an empty profiler type
    becomes None where None or a number is allowed. A 0-dim tensor passed for a real number becomes
    `UNKNOWN`.

    Raises
    ------
    CannotModel
        The value has another type, is unknown although `Unknown` is not allowed, or is a tensor
        with a negative or non-integer size.
    """
    if isinstance(value, Tensor):
        bare = not value.shape and not value.dtype
        if Tensor in allowed and not (bare and type(None) in allowed):
            return checked(value)
        if Tensor in allowed:
            return None
        if Any not in allowed and bare:
            value = None if value.dtype == "" and _is_none(allowed) else UNKNOWN
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
        raise CannotModel("its value is not in the capture")
    raise CannotModel(f"expected {_names(allowed)}, found {shown(value)}")


def _is_none(allowed: frozenset[Any]) -> bool:
    # Traces record the type of every number, but not of strings: without one, a number is None.
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
    """Return the value if it is a tensor with a valid shape.

    Raises
    ------
    CannotModel
        The value is no tensor, or its shape or type is invalid.
    """
    if not isinstance(value, Tensor):
        raise CannotModel(f"expected a tensor, found {shown(value)}")
    shape, dtype = value.shape, value.dtype
    if type(shape) is not tuple or not all(type(size) is int and size >= 0 for size in shape):
        raise CannotModel(f"invalid shape {shape!r}")
    if not isinstance(dtype, str | None):
        raise CannotModel(f"invalid type {dtype!r}")
    return value


def _names(allowed: frozenset[Any]) -> str:
    special = {type(None): "None", Unknown: ""}
    return " or ".join(sorted(filter(None, (special.get(kind, _name(kind)) for kind in allowed))))


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", kind))


_LONGEST: Final = 24  # characters shown of a value


def shown(value: Any) -> str:
    """An argument in messages: `tensor [2, 3]`, `2 tensors`, `not recorded`, else its repr."""
    if isinstance(value, Tensor) and (value.shape or value.dtype):
        return f"tensor {list(value.shape)}"
    if isinstance(value, tuple) and any(isinstance(tensor, Tensor) for tensor in value):
        return f"{len(value)} tensors"
    if value is UNKNOWN or isinstance(value, Tensor):
        return "not recorded"
    return repr(value)[:_LONGEST]


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
