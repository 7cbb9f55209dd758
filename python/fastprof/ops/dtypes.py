"""Result types of operators by the type of their input."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Unknown
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.tensor import canonical_type, is_floating

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
