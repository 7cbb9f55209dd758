"""Why a kernel that could have used tensor cores did not: what a person can do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from fastprof.model.call import Call, Tensor
from fastprof.ops.tensor import canonical_type, item_size, short_type

__all__ = [
    "SINGLE",
    "UNKNOWN_TYPE",
    "Fp32",
    "for_gpus",
    "fp32_unit",
    "reason_of_name",
    "reason_of_types",
    "why_not",
]

# Tensor cores read 16 bytes at a time along each dimension of a matrix. NVIDIA, Matrix
# Multiplication Background User's Guide, table 1.
_ALIGNMENT: Final = 16
_SUPPORTED: Final = frozenset({"tf32", "float16", "bfloat16", "int8", "uint8"})

_MATMUL: Final = "torch.set_float32_matmul_precision('high')"
_CUDNN: Final = "torch.backends.cudnn.allow_tf32 = True"
# For a GPU that is not known: of a product, and of cuDNN's convolutions and recurrent layers.
SINGLE: Final = f"fp32 without TF32 (since Ampere: {_MATMUL})"
_SINGLE_CUDNN: Final = f"fp32 without TF32 (since Ampere: {_CUDNN})"
UNKNOWN_TYPE: Final = "the type is not known"


def why_not(dtype: str | None, sizes: Mapping[str, int], *, cudnn: bool = False) -> str:
    """Reason why a matrix kernel may have run without tensor cores.

    Parameters
    ----------
    dtype : str or None
        Type of the operands.
    sizes : mapping of str to int
        The dimensions that lie along memory, by the name that params print: M, N, K; C, K.
    cudnn : bool, optional
        Whether cuDNN's switch for TF32 counts, as for convolutions, and not that of products.

    Returns
    -------
    str
        One clause. The rules are those of NVIDIA's guides; newer libraries can pad, so that a
        kernel may use tensor cores all the same: the reason counts only where it did not.
        `for_gpus` makes it fit a GPU.
    """
    name = canonical_type(dtype)
    if name is None:
        return UNKNOWN_TYPE
    if name == "float32":
        return _SINGLE_CUDNN if cudnn else SINGLE
    if name == "float64":
        return "fp64 has tensor cores on A100 and newer data-centre GPUs only"
    if name not in _SUPPORTED and not name.startswith(("float8", "float4")):
        return f"type {short_type(name)} is not supported"
    multiple = _ALIGNMENT // (item_size(name) or 1)
    for key, size in sizes.items():
        if size % multiple:
            return f"{key}={size} is not a multiple of {multiple} ({short_type(name)})"
    return "type and sizes allow them: the library chose a kernel without"


def reason_of_name(name: str) -> str:
    """Reason of a kernel by its own name: that of a product of fp32 numbers says so.

    A heuristic on the names of NVIDIA's libraries (sgemm, scudnn), in which the operands may still
    be of 16 bits (`fp16_sgemm_fp16`). As for other names of unknown types: the type is not known.
    """
    found = _SINGLE_NAME.search(name[:_LONGEST])
    if found is None:
        return UNKNOWN_TYPE
    return _SINGLE_CUDNN if found[1] == "scudnn" else SINGLE


def reason_of_types(call: Call) -> str:
    """Reason of a product whose cost is not known, by the types of its first two tensors alone."""
    tensors = [each.value for each in call.args if isinstance(each.value, Tensor)]
    operands = [each for each in tensors if each.shape][:2]
    types = {canonical_type(each.dtype) for each in operands}
    if len(types) != 1:
        return UNKNOWN_TYPE
    return why_not(types.pop(), {}, cudnn="conv" in call.op)


# Of a kernel's name what tells it (a name may have 100 kB).
_LONGEST: Final = 600
_SINGLE_NAME: Final = re.compile(r"(?<![a-z])(?<!fp16_)(sgemm|scudnn|gemmSN_)(?!_fp16)")


class Fp32(Enum):
    """What a GPU has for products of fp32 matrices."""

    NOTHING = "no tensor cores"
    HALF = "tensor cores for fp16, without TF32"  # NVIDIA before compute capability 8.0
    AMD_HALF = "matrix cores for 16-bit types, without TF32"
    AMD_TF32 = "TF32 in products, not in MIOpen's convolutions"
    TF32 = "TF32"


# By words of the GPU's name, the first that is found. Sources: NVIDIA, CUDA GPUs by compute
# capability (tensor cores since 7.0 but for the GTX 16 and small T series, TF32 since 8.0); AMD,
# CDNA 1 to 4 ISA guides (MFMA instructions; XF32 in CDNA 3 alone).
_UNITS: Final = (
    (Fp32.AMD_TF32, r"\bMI3(?:00|08|25)"),
    (Fp32.AMD_HALF, r"\bMI[123]\d\d|\bRX [79]\d\d\d|\bPRO W7"),
    (Fp32.NOTHING, r"\bMI\d\d?\b|\bRadeon|\bVega|\bRX \d"),
    (
        Fp32.NOTHING,
        r"\b[KMP]\d+\w{0,2}\b|\bGP100|\bGTX|\bTITAN (?:X|Z|Black)|\bMX\d|\bT\d\d\d+\b|\bNVS",
    ),
    (
        Fp32.HALF,
        r"V100|\bTITAN (?:V|RTX)|\bGV100|\bT4G?\b|\bT10\b|\bQuadro RTX|\bRTX 20\d\d|Xavier",
    ),
    (
        Fp32.TF32,
        r"\bA\d+|\bRTX A\d|\bRTX [345]\d\d\d|\bRTX PRO|\bAda\b|\bH\d\d+|\bGH\d|\bG?B\d\d\d"
        r"|\bL\d+S?\b|\bL20\b|\bPG509|\bOrin|\bThor|\bCMP 1[57]0",
    ),
)
_COMPILED: Final = tuple((unit, re.compile(words, re.IGNORECASE)) for unit, words in _UNITS)


def fp32_unit(name: str) -> Fp32 | None:
    """What the GPU of that name has for products of fp32 matrices, None where it is not known."""
    return next((unit for unit, words in _COMPILED if words.search(name)), None)


def for_gpus(reason: str, names: Iterable[str]) -> str:
    """The reason with the remedy that the GPUs have.

    Parameters
    ----------
    reason : str
        As `why_not` gives it.
    names : iterable of str
        Names of the GPUs in a capture. Where they are not known, or have not the same, the reason
        is that for any GPU.
    """
    distinct = set(names)
    units = {fp32_unit(name) for name in distinct}
    unit = units.pop() if len(units) == 1 else None
    if unit is None:
        return reason
    gpu = distinct.pop() if len(distinct) == 1 else "this GPU"
    if unit is Fp32.NOTHING:
        return f"{gpu} has no tensor cores"
    if reason not in (SINGLE, _SINGLE_CUDNN):
        return reason
    if unit is Fp32.HALF:
        return f"fp32, and {gpu} has no TF32: fp16 under AMP (torch.autocast) uses them"
    if unit is Fp32.AMD_HALF or (unit is Fp32.AMD_TF32 and reason == _SINGLE_CUDNN):
        return f"fp32 without TF32 on {gpu}: fp16 or bf16 under AMP (torch.autocast) uses them"
    if unit is Fp32.AMD_TF32:
        return f"fp32 without TF32 (HIPBLASLT_ALLOW_TF32=1 and {_MATMUL})"
    return f"fp32 without TF32 ({_CUDNN if reason == _SINGLE_CUDNN else _MATMUL})"
