"""Converts a type argument (`dtype`, `out_dtype`) of a call to torch's name."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import UNKNOWN, Unknown
from fastprof.ops.tensor import canonical_type

# c10::ScalarType (c10/core/ScalarType.h), recorded by the profiler as a number.
_BY_NUMBER: Final = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "qint8",
    13: "quint8",
    14: "qint32",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
    44: "float8_e8m0fnu",
    45: "float4_e2m1fn_x2",
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
