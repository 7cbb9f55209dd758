"""Why a matrix kernel did not use tensor cores, and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final

from fastprof._system.regex import regex
from fastprof.model.call import Call, Tensor
from fastprof.ops.tensor import canonical_type, item_size, short_type

# Matrix dimensions must be multiples of 16 bytes. NVIDIA, Matrix Multiplication Background User's
# Guide, table 1.
_ALIGNMENT: Final = 16
_SUPPORTED: Final = frozenset({"tf32", "float16", "bfloat16", "int8", "uint8"})

_MATMUL: Final = "torch.set_float32_matmul_precision('high')"
_CUDNN: Final = "torch.backends.cudnn.allow_tf32 = True"
# For an unknown GPU: matrix products, and cuDNN's convolutions and recurrent layers.
SINGLE: Final = f"fp32 without TF32 (since Ampere: {_MATMUL})"
_SINGLE_CUDNN: Final = f"fp32 without TF32 (since Ampere: {_CUDNN})"
UNKNOWN_TYPE: Final = "the type is not known"


def why_not(dtype: str | None, sizes: Mapping[str, int], *, cudnn: bool = False) -> str:
    """Reason why a matrix kernel may not use tensor cores.

    Parameters
    ----------
    dtype : str or None
        Type of the operands.
    sizes : mapping of str to int
        The dimensions that must be aligned, by their names in params: M, N, K; C, K.
    cudnn : bool, optional
        Whether cuDNN's TF32 switch applies (convolutions, RNNs) instead of that for products.

    Returns
    -------
    str
        One clause, by the rules of NVIDIA's guides. Newer libraries can pad and use tensor cores
        anyway, so show it only for kernels that do not. `for_gpus` adapts it to a GPU.
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
    """Reason by a kernel's own name, for names that denote fp32 products.

    A heuristic on names in NVIDIA's libraries (sgemm, scudnn), except those with 16-bit operands
    (`fp16_sgemm_fp16`). For other names the type is unknown.
    """
    found = _SINGLE_NAME.search(name[:_LONGEST])
    if found is None:
        return UNKNOWN_TYPE
    return _SINGLE_CUDNN if found[1] == "scudnn" else SINGLE


def reason_of_types(call: Call) -> str:
    """Reason for a product of unknown cost, by the types of its first two tensors."""
    tensors = [arg.value for arg in call.args if isinstance(arg.value, Tensor)]
    operands = [tensor for tensor in tensors if tensor.shape][:2]
    types = {canonical_type(tensor.dtype) for tensor in operands}
    if len(types) != 1:
        return UNKNOWN_TYPE
    return why_not(types.pop(), {}, cudnn="conv" in call.op)


# Characters searched in a kernel's name, which can be 100 kB long.
_LONGEST: Final = 600
_SINGLE_NAME: Final = regex(r"(?<![a-z])(?<!fp16_)(sgemm|scudnn|gemmSN_)(?!_fp16)")


class Fp32(Enum):
    """A GPU's hardware for products of fp32 matrices."""

    NOTHING = "no tensor cores"
    HALF = "tensor cores for fp16, without TF32"  # NVIDIA before compute capability 8.0
    AMD_HALF = "matrix cores for 16-bit types, without TF32"
    AMD_TF32 = "TF32 in products, not in MIOpen's convolutions"
    TF32 = "TF32"


# By the GPU's name; the first match wins. Sources: NVIDIA, CUDA GPUs by compute capability (tensor
# cores since 7.0 except the GTX 16 and small T series, TF32 since 8.0); AMD, CDNA 1 to 4 ISA guides
# (MFMA instructions; XF32 only in CDNA 3).
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
_COMPILED: Final = tuple((unit, regex(words, re.IGNORECASE)) for unit, words in _UNITS)


def fp32_unit(name: str) -> Fp32 | None:
    """The hardware for fp32 products of the GPU of that name; None if unknown."""
    return next((unit for unit, words in _COMPILED if words.search(name)), None)


def for_gpus(reason: str, names: Iterable[str]) -> str:
    """Adapt a reason to the GPUs of a capture: the remedy depends on the hardware.

    Parameters
    ----------
    reason : str
        From `why_not`.
    names : iterable of str
        Names of the GPUs. If their hardware is unknown or differs, the reason is returned
        unchanged.
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
