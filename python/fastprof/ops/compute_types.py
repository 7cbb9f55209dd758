"""The type of a kernel's arithmetic, from its name or from its operator's tensors.

The type of a product is that of its operands: the accumulator is wider. With tensor cores, NVIDIA
GPUs multiply fp32 as tf32; AMD's matrix cores multiply fp32.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from fastprof._system.regex import regex
from fastprof.model.call import Call, Tensor
from fastprof.ops.kernels import classify
from fastprof.ops.tensor import canonical_type

COMPUTE_TYPES: Final = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
"""All types, in the order of the columns of `of_name`."""

_PRODUCTS: Final = frozenset({"gemm", "convolution", "attention"})
# Characters searched in a name, which can be 100 kB long.
_LONGEST: Final = 600

# Types of products in lower-case kernel names: operands before accumulators; the first match wins.
# nvjet: one letter per operand. Tensile (Cijk): operands, output, accumulator. TensorRT-LLM (bmm_,
# gemm_): output, then both operands, of which the wider is the type; the accumulator.
_OF_PRODUCT: Final = tuple(
    (name, regex(pattern))
    for name, pattern in (
        ("bf16", r"(?:bmm|gemm)_[a-z0-9]+_[a-z0-9]*bfloat16|fmhasm\d+\w*kernel_q(?:kv)?bfloat16"),
        ("fp16", r"(?:bmm|gemm)_[a-z0-9]+_[a-z0-9]*fp16_fp32|fmhasm\d+\w*kernel_q(?:kv)?fp16"),
        (
            "fp4",
            r"(?:mx)?e2m1(?:mx)?e2m1|nvjet_(?:sm\d+_)?oo|xf4_\w*xf4_|nvf4|afp4_?wfp4|a4w4|nvfp4_gemm",
        ),
        ("fp8", r"e4m3|e5m2|fp8(?!kv)|f8f8|float8|nvjet_(?:sm\d+_)?q|cijk_\w+?_[fb]8"),
        ("bf16", r"bf16|bfloat16|nvjet_(?:sm\d+_)?t|cijk_[a-z]+_[a-z]+_b[bs_]*s_|ushort"),
        (
            "fp16",
            # cuDNN's generated attention has f16 in its name for bf16 too.
            r"fp16|float16|(?<!wgmma_)(?<![a-z])f16|f16f16|half|[sh]884(?:gemm|cudnn)"
            r"|h(?:1688|16816)|hgemm|hcudnn|nvjet_(?:sm\d+_)?h|cijk_[a-z]+_[a-z]+_h[hs]*_",
        ),
        (
            "tf32",
            r"tf32|tfloat32|xf32|s1688(?:gemm|cudnn|[fdw](?:prop|grad))|nvjet_(?:sm\d+_)?s"
            r"|cijk_[a-z]+_[a-z]+_s_mx_",
        ),
        (
            "fp64",
            r"(?<![a-z])[dz]gemm|d884|f64f64|nvjet_(?:sm\d+_)?d|<(?:int, ?)*double\b"
            r"|cijk_[a-z]+_[a-z]+_[dz]b_",
        ),
        ("int8", r"(?<!u)int8|i8i8|i8i32|_i8_|(?<![a-z])i\d{3,6}(?:gemm|cudnn)|icudnn|cijk_\w+_i8"),
        (
            "fp32",
            r"(?<![a-z])(?:[sc]|gc)gemm|_[sc]gemm|scudnn|f32f32|fp32|_f32|<(?:int, ?)*float\b"
            r"|cijk_[a-z]+_[a-z]+_[sc]_?b_",
        ),
    )
)
# Template arguments, for operators without types. Scalar parameters of fp32 kernels are double.
_OF_ARGUMENTS: Final = tuple(
    (name, regex(pattern))
    for name, pattern in (
        ("bf16", r"BFloat16|bfloat16"),
        ("fp16", r"c10::Half|__half|half_t"),
        ("fp32", r"\bfloat\b"),
        ("fp64", r"\bdouble\b"),
    )
)
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
    info, name = classify(name), name[:_LONGEST]
    if info.kind in ("memcpy", "memset"):
        return [None] * (1 + len(COMPUTE_TYPES))
    product = info.kind in _PRODUCTS
    found = _first(_OF_PRODUCT, name.lower()) if product and not info.auxiliary else None
    types: list[str | None] = (
        [found] * (1 + len(COMPUTE_TYPES))
        if found
        else [_first(_OF_ARGUMENTS, name), *(COMPUTE_TYPES if product else _OF_OTHERS)]
    )
    if info.tensor_core and not _AMD.search(name):
        return ["tf32" if kind == "fp32" else kind for kind in types]
    return types


# Kernels that are not products do integer arithmetic on int8.
_OF_OTHERS: Final = tuple(None if name == "int8" else name for name in COMPUTE_TYPES)


def _first(patterns: tuple[tuple[str, re.Pattern[str]], ...], name: str) -> str | None:
    return next((found for found, pattern in patterns if pattern.search(name)), None)


def call_type(call: Call) -> str | None:
    """The compute type of a call: that of its first floating-point tensor, else int8.

    Tensors without dimensions are converted to the type of the others and count last.
    """
    tensors = sorted(_tensors(call), key=lambda each: not each.shape)
    types = [_OF_TENSOR.get(canonical_type(tensor.dtype) or "") for tensor in tensors]
    floating = (kind for kind in types if kind not in (None, "int8"))
    return next(floating, "int8" if "int8" in types else None)


def _tensors(call: Call) -> Iterator[Tensor]:
    for arg in call.args:
        values = arg.value if isinstance(arg.value, tuple | list) else (arg.value,)
        yield from (tensor for tensor in values if isinstance(tensor, Tensor))
