"""The type of a kernel's arithmetic, and why it did not use tensor cores, with the remedy.

The type of a product is that of its operands: the accumulator is wider. With tensor cores, NVIDIA
GPUs multiply fp32 as tf32; AMD's matrix cores multiply fp32.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from fastprof._system.regex import regex
from fastprof.model.call import Call, Tensor
from fastprof.ops.dtypes import canonical_type, item_size, short_type
from fastprof.ops.kernels import classify

COMPUTE_TYPES: Final = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
"""All types, in the order of the columns of `of_name`."""

_PRODUCTS: Final = frozenset({"gemm", "convolution", "attention"})
# Characters searched in a name, which can be 100 kB long.
_LONGEST_TYPE: Final = 600

# Types of products in lower-case kernel names: operands before accumulators; the first match wins.
# nvjet: one letter per operand. Tensile (Cijk): operands, output, accumulator. TensorRT-LLM (bmm_,
# gemm_): output, then both operands, of which the wider is the type; the accumulator.
# Each match of a pattern contains one of the words before it: most names contain none.
_OF_PRODUCT: Final = tuple(
    (name, tuple(words.split()), regex(pattern))
    for name, words, pattern in (
        (
            "bf16",
            "bfloat16",
            r"(?:bmm|gemm)_[a-z0-9]+_[a-z0-9]*bfloat16|fmhasm\d+\w*kernel_q(?:kv)?bfloat16",
        ),
        (
            "fp16",
            "fp16",
            r"(?:bmm|gemm)_[a-z0-9]+_[a-z0-9]*fp16_fp32|fmhasm\d+\w*kernel_q(?:kv)?fp16",
        ),
        (
            "fp4",
            "e2m1 nvjet xf4 nvf4 fp4 a4w4",
            r"(?:mx)?e2m1(?:mx)?e2m1|nvjet_(?:sm\d+_)?oo|xf4_\w*xf4_|nvf4|afp4_?wfp4|a4w4|nvfp4_gemm",
        ),
        (
            "fp8",
            "e4m3 e5m2 fp8 f8f8 float8 nvjet cijk",
            r"e4m3|e5m2|fp8(?!kv)|f8f8|float8|nvjet_(?:sm\d+_)?q|cijk_\w+?_[fb]8",
        ),
        (
            "bf16",
            "bf16 bfloat16 nvjet cijk ushort",
            r"bf16|bfloat16|nvjet_(?:sm\d+_)?t|cijk_[a-z]+_[a-z]+_b[bs_]*s_|ushort",
        ),
        (
            "fp16",
            "fp16 float16 f16 half 884 1688 16816 hgemm hcudnn nvjet cijk",
            # cuDNN's generated attention has f16 in its name for bf16 too.
            r"fp16|float16|(?<!wgmma_)(?<![a-z])f16|f16f16|half|[sh]884(?:gemm|cudnn)"
            r"|h(?:1688|16816)|hgemm|hcudnn|nvjet_(?:sm\d+_)?h|cijk_[a-z]+_[a-z]+_h[hs]*_",
        ),
        (
            "tf32",
            "tf32 tfloat32 xf32 1688 nvjet cijk",
            r"tf32|tfloat32|xf32|s1688(?:gemm|cudnn|[fdw](?:prop|grad))|nvjet_(?:sm\d+_)?s"
            r"|cijk_[a-z]+_[a-z]+_s_mx_",
        ),
        (
            "fp64",
            "gemm d884 f64f64 nvjet double cijk",
            r"(?<![a-z])[dz]gemm|d884|f64f64|nvjet_(?:sm\d+_)?d|<(?:int, ?)*double\b"
            r"|cijk_[a-z]+_[a-z]+_[dz]b_",
        ),
        (
            "int8",
            "int8 i8i8 i8i32 _i8_ gemm cudnn cijk",
            r"(?<!u)int8|i8i8|i8i32|_i8_|(?<![a-z])i\d{3,6}(?:gemm|cudnn)|icudnn|cijk_\w+_i8",
        ),
        (
            "fp32",
            "gemm scudnn f32f32 fp32 _f32 float cijk",
            r"(?<![a-z])(?:[sc]|gc)gemm|_[sc]gemm|scudnn|f32f32|fp32|_f32|<(?:int, ?)*float\b"
            r"|cijk_[a-z]+_[a-z]+_[sc]_?b_",
        ),
    )
)
# Template arguments, for operators without types. Scalar parameters of fp32 kernels are double.
_OF_ARGUMENTS: Final = tuple(
    (name, tuple(words.split()), regex(pattern))
    for name, words, pattern in (
        ("bf16", "BFloat16 bfloat16", r"BFloat16|bfloat16"),
        ("fp16", "Half half", r"c10::Half|__half|half_t"),
        ("fp32", "float", r"\bfloat\b"),
        ("fp64", "double", r"\bdouble\b"),
    )
)
_TypeOfNames = tuple[str, tuple[str, ...], "re.Pattern[str]"]
_AMD: Final = regex(r"cijk_|gtcx|mfma|xdl|_mi\d+x\d+", re.IGNORECASE)

_OF_TENSOR: Final = {
    "float64": "fp64",
    "complex128": "fp64",
    "float32": "fp32",
    "complex64": "fp32",
    "tf32": "tf32",
    "float16": "fp16",
    "complex32": "fp16",
    "bfloat16": "bf16",
    "int8": "int8",
    "qint8": "int8",
    "quint8": "int8",
    "float4_e2m1fn_x2": "fp4",
} | {f"float8_{form}": "fp8" for form in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz")}


def name_types(name: str) -> list[str | None]:
    """The compute type of a kernel, by the type of its operator.

    Parameters
    ----------
    name : str
        The kernel's full name.

    Returns
    -------
    list of str or None, [1 + len(COMPUTE_TYPES)]
        The compute type if the operator's type is unknown, then for each operator type in the order
        of `COMPUTE_TYPES`. None: unknown, or the kernel is a copy or memset of the driver. All are
        equal if the name determines the type.
    """
    info, name = classify(name), name[:_LONGEST_TYPE]
    if info.kind in ("memcpy", "memset"):
        return [None] * (1 + len(COMPUTE_TYPES))
    product = info.kind in _PRODUCTS
    result = _first(_OF_PRODUCT, name.lower()) if product and not info.auxiliary else None
    types: list[str | None] = (
        [result] * (1 + len(COMPUTE_TYPES))
        if result
        else [_first(_OF_ARGUMENTS, name), *(COMPUTE_TYPES if product else _OF_OTHERS)]
    )
    if info.tensor_core and not _AMD.search(name):
        return ["tf32" if kind == "fp32" else kind for kind in types]
    return types


# Kernels that are not products do integer arithmetic on int8.
_OF_OTHERS: Final = tuple(None if name == "int8" else name for name in COMPUTE_TYPES)


def _first(patterns: tuple[_TypeOfNames, ...], name: str) -> str | None:
    for result, words, pattern in patterns:
        if any(word in name for word in words) and pattern.search(name):
            return result
    return None


def call_type(call: Call) -> str | None:
    """The compute type of a call: that of its first floating-point tensor, else int8.

    Tensors without dimensions are converted to the type of the others and count last.
    """
    tensors = sorted(_tensors(call), key=lambda tensor: not tensor.shape)
    types = [_OF_TENSOR.get(canonical_type(tensor.dtype) or "") for tensor in tensors]
    floating = (kind for kind in types if kind not in (None, "int8"))
    return next(floating, "int8" if "int8" in types else None)


def _tensors(call: Call) -> Iterator[Tensor]:
    for arg in call.args:
        values = arg.value if isinstance(arg.value, tuple | list) else (arg.value,)
        yield from (tensor for tensor in values if isinstance(tensor, Tensor))


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
    result = _SINGLE_NAME.search(name[:_LONGEST])
    if result is None:
        return UNKNOWN_TYPE
    return _SINGLE_CUDNN if result[1] == "scudnn" else SINGLE


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
