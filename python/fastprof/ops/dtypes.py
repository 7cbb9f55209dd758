"""Types of elements: names, sizes, result types, type arguments."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from fastprof._system.classes import NamedTuple
from fastprof.model.call import UNKNOWN, Tensor, Unknown

# An argument dtype=: text, the number of a c10::ScalarType, unknown, or None.
Dtype: TypeAlias = str | int | Unknown | None

_REAL: Final = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def named(dtype: Dtype) -> str | None:
    """Canonical name of the type in an argument; None if unknown.

    Accepts legacy names of tensor types: "torch.cuda.HalfTensor" is float16.
    """
    if isinstance(dtype, str) and dtype.endswith("Tensor"):
        return canonical_type(dtype.rpartition(".")[2].removesuffix("Tensor").lower())
    name = asked_type(dtype)
    return name if isinstance(name, str) else None


def chosen(dtype: Dtype, default: str | None) -> str | None:
    """The type requested by an argument dtype=, or the default without one."""
    return default if dtype is None else named(dtype)


def same(dtype: str | None) -> str | None:
    """The input's type."""
    return canonical_type(dtype)


def sum_result(dtype: str | None) -> str | None:
    """Type of a sum: int64 for integers and booleans, else the input's type."""
    name = canonical_type(dtype)
    return name if name is None or is_floating(name) else "int64"


def float_result(dtype: str | None) -> str | None:
    """Type of a real function: float32 for integers and booleans, else the input's type."""
    name = canonical_type(dtype)
    return name if name is None or is_floating(name) else "float32"


def real_result(dtype: str | None) -> str | None:
    """Type of a magnitude: the component type of a complex type, else the input's type."""
    name = canonical_type(dtype)
    return name if name is None else _REAL.get(name, name)


def bool_result(dtype: str | None) -> str | None:
    """Type of any and all: uint8 for uint8, else bool."""
    return "uint8" if canonical_type(dtype) == "uint8" else "bool"


def count_result(_: str | None) -> str | None:
    """Type of an index or a count: int64."""
    return "int64"


def parts(dtype: str | None) -> int:
    """Real components per element: 2 for complex types, else 1 (also for an unknown type)."""
    return 2 if canonical_type(dtype) in _REAL else 1


# c10::ScalarType (c10/core/ScalarType.h), recorded by the profiler as a number.
_BY_NUMBER: Final = {
    number: name
    for first, names in (
        (0, "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128"),
        (11, "bool qint8 quint8 qint32 bfloat16"),
        (23, "float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"),
        (44, "float8_e8m0fnu float4_e2m1fn_x2"),
    )
    for number, name in enumerate(names.split(), first)
}


def asked_type(value: str | float | Unknown | None) -> str | Unknown | None:
    """Canonical name of the requested type; None if the argument is None.

    Returns
    -------
    str, Unknown or None
        `UNKNOWN` if the type is not recorded or not recognised.
    """
    if value is None:
        return None
    name = canonical_type(value) if isinstance(value, str) else None
    if isinstance(value, int):
        name = _BY_NUMBER.get(value)
    return UNKNOWN if name is None else name


BOOL, INTEGER, FLOAT, COMPLEX = range(4)


class _Type(NamedTuple):
    short: str
    size: int  # bytes of one element
    category: int


_FLOAT8: Final = tuple(
    f"float8_{form}" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
)

# torch's name -> properties. A float4 element is a byte with two packed numbers.
_TYPES: Final = {
    "bool": _Type("bool", 1, BOOL),
    **{
        f"{sign}int{bits}": _Type(f"{sign}int{bits}", bits // 8, INTEGER)
        for sign in ("u", "")
        for bits in (8, 16, 32, 64)
    },
    "quint8": _Type("uint8", 1, INTEGER),
    "qint8": _Type("int8", 1, INTEGER),
    "qint32": _Type("int32", 4, INTEGER),
    "float4_e2m1fn_x2": _Type("fp4", 1, FLOAT),
    **dict.fromkeys(_FLOAT8, _Type("fp8", 1, FLOAT)),
    "float16": _Type("fp16", 2, FLOAT),
    "bfloat16": _Type("bf16", 2, FLOAT),
    "float32": _Type("fp32", 4, FLOAT),
    "tf32": _Type("tf32", 4, FLOAT),
    "float64": _Type("fp64", 8, FLOAT),
    "complex32": _Type("complex32", 4, COMPLEX),
    "complex64": _Type("complex64", 8, COMPLEX),
    "complex128": _Type("complex128", 16, COMPLEX),
}

# Other spellings: torch's short names, and C++ scalar types of tensors in PyTorch-profiler traces
# ("Int", "Double", "Scalar" there denote non-tensor arguments).
_ALIASES: Final = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "short int": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "long": "int64",
    "long int": "int64",
    "long long": "int64",
    "unsigned long": "uint64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    **{f"c10::{name.capitalize()}": name for name in _FLOAT8},
    "c10::complex<c10::Half>": "complex32",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    **{f"c10::{name}": name for name in ("quint8", "qint8", "qint32")},
}

# Types of Python scalar operands, by torch's defaults.
SCALAR_TYPES: Final = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}


def canonical_type(dtype: str | None) -> str | None:
    """torch's name ("float32") of a type in any spelling; None if unknown."""
    if dtype is None:
        return None
    name = dtype.removeprefix("torch.")
    name = _ALIASES.get(name, name)
    return name if name in _TYPES else None


def short_type(dtype: str | None) -> str:
    """The name of a type in params ("fp32"); "na" if unknown."""
    name = canonical_type(dtype)
    return "na" if name is None else _TYPES[name].short


def item_size(dtype: str | None) -> int | None:
    """Bytes per element; None if the type is unknown."""
    name = canonical_type(dtype)
    return None if name is None else _TYPES[name].size


def _category(dtype: str | None) -> int | None:
    name = canonical_type(dtype)
    return None if name is None else _TYPES[name].category


def is_integer(dtype: str | None) -> bool:
    """Whether the type is known to be an integer (bool is not)."""
    return _category(dtype) == INTEGER


def is_complex(dtype: str | None) -> bool:
    """Whether the type is known to be complex."""
    return _category(dtype) == COMPLEX


def is_floating(dtype: str | None) -> bool:
    """Whether the type is known to be a real or complex floating-point one."""
    return _category(dtype) in (FLOAT, COMPLEX)


def promote(left: str, right: str) -> str | None:
    """Common type of two tensors, as in `torch.promote_types`.

    Names are canonical. None if torch has no common type (float8 with another float,
    uint16 and wider unsigned integers with other integers).
    """
    if left == right:
        return left
    low, high = sorted((left, right), key=lambda name: (_TYPES[name].category, _TYPES[name].size))
    low_type, high_type = _TYPES[low], _TYPES[high]
    if high_type.category == COMPLEX:
        # A complex type contains two floats of half its size: double + complex64 is complex128.
        parts = 2 if low_type.category == FLOAT else 1
        widest = max(high_type.size, low_type.size * parts)
        return {4: "complex32", 8: "complex64", 16: "complex128"}[widest]
    if low_type.category != high_type.category:
        return high
    if high_type.category == INTEGER:
        return _promote_integers(low, high)
    if low_type.size == 1:
        return None
    return "float32" if high_type.size == 2 else high


def _promote_integers(low: str, high: str) -> str | None:
    signed = {"int8", "int16", "int32", "int64"}
    if {low, high} == {"int8", "uint8"}:
        return "int16"
    return high if high in signed and low in signed | {"uint8"} else None


def result_type(operands: Iterable[Tensor | bool | int | float | complex]) -> str | None:
    """Result type of an operation on tensors and Python scalars, as in `torch.result_type`.

    Tensors with dimensions take precedence over 0-dim tensors, and these over Python scalars. A
    later group counts only if its category (bool, integer, float, complex) is higher. 0-dim tensors
    of unknown type are ignored: torch ranges record scalars that way.

    Returns
    -------
    str or None
        Canonical name. None if the type of a tensor with dimensions, or of all operands, is
        unknown.
    """
    dimensioned: list[str] = []
    zero_dim: list[str] = []
    scalars: list[str] = []
    for operand in operands:
        if not isinstance(operand, Tensor):
            scalars.append(SCALAR_TYPES[type(operand)])
            continue
        given = canonical_type(operand.dtype)
        if given is not None:
            (dimensioned if operand.shape else zero_dim).append(given)
        elif operand.shape:
            return None
    if not dimensioned and not zero_dim:
        return None
    result: str | None = None
    for group in filter(None, (dimensioned, zero_dim, scalars)):
        name: str | None = group[0]
        for other in group[1:]:
            name = _promote_known(name, other)
        if name is None:
            return None
        if result is None or _TYPES[name].category > _TYPES[result].category:
            result = _promote_known(result or name, name)
    return result


def _promote_known(left: str | None, right: str | None) -> str | None:
    return None if left is None or right is None else promote(left, right)
