"""Bytes of copies and type conversions: read in one type, written in another."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.dtypes import Dtype, named
from fastprof.ops.parameters import Number
from fastprof.ops.registry import TORCH, op, operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import (
    broadcast,
    byte_count,
    canonical_type,
    elements,
    tensor_bytes,
    tensor_text,
)


def converted(x: Tensor, dtype: str | None, direction: str) -> Cost:
    """Cost of reading x in its type and writing it in another; backward reversed."""
    count = elements(x.shape)
    if direction == "fprop":
        return Cost(0, add_known(tensor_bytes(x), byte_count(count, dtype)))
    return Cost(0, add_known(byte_count(count, dtype), byte_count(count, x.dtype)))


def _perhaps(x: Tensor, dtype: str | None, direction: str) -> tuple[Cost, str]:
    # A call that copies only if the type, which is known, or the device, which is not, changes.
    cost = converted(x, dtype, direction)
    changes = dtype is not None and canonical_type(x.dtype) not in (None, dtype)
    return Cost(0, cost.bytes, changes), tensor_text(x)


@operators("""
    (x, src=source, ...): torch.copy_
    (x, source, ...): aten::copy_ aten::copy
""")
def copy_(x: Tensor, source: Tensor | Number, *, direction: str) -> tuple[Cost, str]:
    """A source, broadcast, written over x, in the type of x.

    FLOPs: none.
    Bytes: source read, x written, each in its own type; backward the gradient read in the type of x
    and written in that of the source.
    """
    if not isinstance(source, Tensor):
        return Cost(0, byte_count(elements(x.shape), x.dtype)), tensor_text(x)
    if broadcast(x.shape, source.shape) != x.shape:
        raise CannotModel(f"{source.shape} does not broadcast to {x.shape}")
    written = byte_count(elements(x.shape), x.dtype)
    read = tensor_bytes(source)
    if direction == "bprop":
        read = byte_count(elements(source.shape), source.dtype)
    return Cost(0, add_known(read, written)), f"{tensor_text(x)};{tensor_text(source)}"


table_row("""
    A source written over x, in the type of x.
    FLOPs: none.
    Bytes: source read, x written, each in its own type.
    (source, x, ...): aten::_copy_from
    (source, x): aten::_copy_from_and_resize
""")("source, x", lambda source, x: copy_(x, source, direction="fprop"))


@operators("""
    (x, dtype, _, _, _, _, _): aten::_to_copy
    (x, _, _): aten::_to_copy
""")
def to_copy(x: Tensor, dtype: Dtype = None, *, direction: str) -> tuple[Cost, str]:
    """x in another type, or on another device, in new memory.

    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.
    """
    result = canonical_type(x.dtype) if dtype is None else named(dtype)
    return converted(x, result, direction), tensor_text(x)


@operators("""
    (x, target, second, _, _, dtype, device): torch.to
    (x, first, second, third, ...): aten::to
""")
def to(
    x: Tensor,
    target: Tensor | str | int | Unknown | None = None,
    second: Dtype | bool = None,
    dtype: Dtype = None,
    device: str | int | Unknown | None = None,
    first: Tensor | Dtype = None,
    third: Dtype | bool = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """x in another type or on another device; x itself if nothing changes.

    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.

    An estimate unless the types differ: if a kernel runs, there is a copy.
    """
    other = next((tensor for tensor in (target, first) if isinstance(tensor, Tensor)), None)
    if other is not None:
        return _perhaps(x, canonical_type(other.dtype), direction)
    # Python: to(dtype), to(device, dtype); a number is a device. ATen: to(dtype, non_blocking, ..),
    # to(device, dtype, non_blocking, ..), to(dtype, layout, device, ..).
    of_device = isinstance(third, bool) and not isinstance(second, bool)
    asked = [dtype, second if of_device else first, target if isinstance(target, str) else None]
    if third is None and first is None:
        asked.append(second)
    given = [each for each in asked if each is not None and not isinstance(each, bool)]
    names = [named(tensor) for tensor in given if not isinstance(tensor, Tensor)]
    found = next((name for name in names if name is not None), None)
    unclear = any(isinstance(each, Unknown) for each in (*given, target))
    if found is None and not unclear:
        found = canonical_type(x.dtype)
    return _perhaps(x, found, direction)


@operators("""
    (x, dtype, ...): torch.type
    (x, other): type_as
""")
def torch_type(
    x: Tensor, dtype: Dtype = None, other: Tensor | None = None, *, direction: str
) -> tuple[Cost, str]:
    """x in another type; x itself if it has that type. Without an argument, the name of its type.

    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.
    """
    if other is not None:
        return _perhaps(x, canonical_type(other.dtype), direction)
    if dtype is None:
        return Cost(0, 0), tensor_text(x)
    return _perhaps(x, named(dtype), direction)


_METHODS: Final = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
_CASTS: Final = {
    "_cast_Double": "float64",
    "_cast_Float": "float32",
    "_cast_Half": "float16",
    "_cast_Long": "int64",
    "_cast_Int": "int32",
    "_cast_Short": "int16",
    "_cast_Char": "int8",
    "_cast_Byte": "uint8",
}
_CONVERSION: Final = """x as {dtype}; x itself if it has that type.

    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; none if x has the type; backward
    reversed.
    """


def _register(name: str, dtype: str) -> None:
    def formula(x: Tensor, *, direction: str) -> tuple[Cost, str]:
        if canonical_type(x.dtype) == dtype:
            return Cost(0, 0), tensor_text(x)
        return _perhaps(x, dtype, direction)

    formula.__name__ = formula.__qualname__ = name
    formula.__doc__ = _CONVERSION.format(dtype=dtype)
    python, aten = ((f"{name}(x, ...)",), ()) if name in _METHODS else ((), (f"{name}(x, ...)",))
    op(TORCH, *python, aten=aten)(formula)


for _name, _dtype in (*_METHODS.items(), *_CASTS.items()):
    _register(_name, _dtype)


table_row("""
    x on another device; x itself if it is there.
    FLOPs: none.
    Bytes: x read and written, an estimate: the device is not recorded.
    (x, ...): cpu cuda
""")("x", lambda x, direction: _perhaps(x, canonical_type(x.dtype), direction))


@operators("""
    (x, ...): aten::_autocast_to_full_precision
    (x, _, _, dtype, ...): aten::_autocast_to_reduced_precision
""")
def autocast_to_full_precision(
    x: Tensor, dtype: Dtype = "float32", *, direction: str
) -> tuple[Cost, str]:
    """x in autocast's type; x itself if it has that type.

    FLOPs: none, a conversion moves data.
    Bytes: x read, the copy written, each in its own type; backward reversed.

    An estimate unless the types differ: if a kernel runs, there is a copy.
    """
    return _perhaps(x, named(dtype), direction)


table_row("""
    Elements of x as numbers of Python: a copy to the host.
    FLOPs: none.
    Bytes: x read.
    (x): item torch.tolist torch.__float__ torch.__int__ torch.__index__ aten::_local_scalar_dense
""")("x", Traffic(0, "x"))
