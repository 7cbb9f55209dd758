"""Why a kernel that could have used tensor cores did not: what a person can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fastprof.ops.tensor import canonical_type, item_size, short_type

__all__ = ["why_not"]

# Tensor cores read 16 bytes at a time along each dimension of a matrix. NVIDIA, Matrix
# Multiplication Background User's Guide, table 1.
_ALIGNMENT: Final = 16
_SUPPORTED: Final = frozenset({"tf32", "float16", "bfloat16", "int8", "uint8"})


def why_not(dtype: str | None, sizes: Mapping[str, int]) -> str:
    """Reason why a matrix kernel may have run without tensor cores.

    Parameters
    ----------
    dtype : str or None
        Type of the operands.
    sizes : mapping of str to int
        The dimensions that lie along memory, by the name that params print: M, N, K; C, K.

    Returns
    -------
    str
        One clause. The rules are those of NVIDIA's guides; newer libraries can pad, so that a
        kernel may use tensor cores all the same: the reason counts only where it did not.
    """
    name = canonical_type(dtype)
    if name is None:
        return "the type is not known"
    if name == "float32":
        return "fp32 without TF32 (since Ampere: torch.set_float32_matmul_precision('high'))"
    if name == "float64":
        return "fp64 has tensor cores on A100 and newer data-centre GPUs only"
    if name not in _SUPPORTED and not name.startswith(("float8", "float4")):
        return f"type {short_type(name)} is not supported"
    multiple = _ALIGNMENT // (item_size(name) or 1)
    for key, size in sizes.items():
        if size % multiple:
            return f"{key}={size} is not a multiple of {multiple} ({short_type(name)})"
    return "type and sizes allow them: the library chose a kernel without"
