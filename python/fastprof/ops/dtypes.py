"""Types to the types that results have, and what one number of them is made of."""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Unknown
from fastprof.ops.dtype_argument import asked_type
from fastprof.ops.tensor import canonical_type, is_floating

__all__ = [
    "Dtype",
    "bool_result",
    "chosen",
    "count_result",
    "float_result",
    "named",
    "parts",
    "real_result",
    "same",
    "sum_result",
]

# An argument dtype=: text, torch's number of a type (as the profiler writes it), or not known.
Dtype: TypeAlias = str | int | Unknown | None

_REAL: Final = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def named(dtype: Dtype) -> str | None:
    """Canonical name of the type that an argument names, None when it names none that is known.

    Also the older names of tensor types: "torch.cuda.HalfTensor" is float16.
    """
    if isinstance(dtype, str) and dtype.endswith("Tensor"):
        return canonical_type(dtype.rpartition(".")[2].removesuffix("Tensor").lower())
    name = asked_type(dtype)
    return name if isinstance(name, str) else None


def chosen(dtype: Dtype, default: str | None) -> str | None:
    """The type an argument dtype= chooses, the default where there is none."""
    return default if dtype is None else named(dtype)


def same(dtype: str | None) -> str | None:
    """The type itself."""
    return canonical_type(dtype)


def sum_result(dtype: str | None) -> str | None:
    """Type of a sum: int64 of integers and booleans, else the type itself."""
    name = canonical_type(dtype)
    return name if name is None or is_floating(name) else "int64"


def float_result(dtype: str | None) -> str | None:
    """Type of a function with fractions: float32 of integers and booleans, else the type."""
    name = canonical_type(dtype)
    return name if name is None or is_floating(name) else "float32"


def real_result(dtype: str | None) -> str | None:
    """Type of a magnitude: that of the parts of a complex number, else the type itself."""
    name = canonical_type(dtype)
    return name if name is None else _REAL.get(name, name)


def bool_result(dtype: str | None) -> str | None:
    """Type of any and all: bool, uint8 of uint8."""
    return "uint8" if canonical_type(dtype) == "uint8" else "bool"


def count_result(_: str | None) -> str | None:
    """Type of an index or a count: int64 whatever is counted."""
    return "int64"


def parts(dtype: str | None) -> int:
    """Real numbers in one number: 2 of a complex one, 1 of any other (or one of unknown type)."""
    return 2 if canonical_type(dtype) in _REAL else 1
