"""Gated activations of serving stacks, with and without quantisation."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import ERROR_FUNCTION, SIGMOID, TRIGONOMETRIC
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.libraries.serving.quantisation import SCALE, SEARCH
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

_SILU: Final = SIGMOID + 2  # a times its sigmoid, times the other half
_GELU: Final = ERROR_FUNCTION + 5  # like torch's gelu (24), times the other half
_GELU_TANH: Final = TRIGONOMETRIC + 8  # like torch's gelu by tanh (28)


table_row("""
    silu(a) b: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 24 per element of the result (silu 23, times b 1).
    Bytes: x read, the result written.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc, aiter
    aiter/ops/activation.py, FlashInfer flashinfer/activation.py.
    (out, x): _C::silu_and_mul _C::mul_and_silu sgl_kernel::silu_and_mul aiter::silu_and_mul
        flashinfer::silu_and_mul
    (x): trtllm::flashinfer_silu_and_mul
""")("x, out?", lambda x, out: _gate(x, out, _SILU))

table_row("""
    gelu(a) b: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 25 per element of the result (gelu 24, times b 1).
    Bytes: x read, the result written.

    Signatures: those of silu_and_mul.
    (out, x): _C::gelu_and_mul sgl_kernel::gelu_and_mul aiter::gelu_and_mul flashinfer::gelu_and_mul
""")("x, out?", lambda x, out: _gate(x, out, _GELU))

table_row("""
    gelu(a) b with gelu by tanh: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 29 per element of the result (gelu by tanh 28, times b 1).
    Bytes: x read, the result written.

    Signatures: those of silu_and_mul.
    (out, x): _C::gelu_tanh_and_mul sgl_kernel::gelu_tanh_and_mul aiter::gelu_tanh_and_mul
        flashinfer::gelu_tanh_and_mul
    (x): trtllm::flashinfer_gelu_tanh_and_mul
""")("x, out?", lambda x, out: _gate(x, out, _GELU_TANH + 1))

table_row("""
    (a or 0, by a threshold) b: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 2 per element of the result.
    Bytes: x read, the result written.

    Signature: vLLM csrc/torch_bindings.cpp.
    (out, x): _C::fatrelu_and_mul
""")("x, out?", lambda x, out: _gate(x, out, 2))

table_row("""
    a sigmoid(alpha a) (b + 1) with clamped a and b: x[.., 2 d] contains both.
    FLOPs: 29 per element of the result (limits 3, alpha 1, silu 23, b + 1 1, times b 1).
    Bytes: x read, the result written.

    Signatures: vLLM csrc/torch_bindings.cpp. The multiplication by alpha and the addition of 1,
    absent in silu_and_mul_with_clamp, are also counted for it.
    (out, x): _C::swigluoai_and_mul _C::silu_and_mul_with_clamp
""")("x, out?", lambda x, out: _gate(x, out, _SILU + 5))

table_row("""
    gelu of x[..] by tanh.
    FLOPs: 28 per element.
    Bytes: x read, the result written.

    Signatures: vLLM csrc/torch_bindings.cpp, aiter aiter/ops/activation.py.
    (out, x): _C::gelu_new _C::gelu_fast aiter::gelu_fast
""")("x, out?", lambda x, out: _plain(x, out, _GELU_TANH))

table_row("""
    x sigmoid(1.702 x) of x[..].
    FLOPs: 24 per element (factor 1, sigmoid 22, times x 1).
    Bytes: x read, the result written.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension_rocm.cc.
    (out, x): _C::gelu_quick sgl_kernel::gelu_quick
""")("x, out?", lambda x, out: _plain(x, out, SIGMOID + 2))


@operators("""
    (out, x, scale): _C::silu_and_mul_quant aiter::scaled_silu_and_mul
    (x, scale, ...): trtllm::silu_and_mul
""")
def silu_and_mul_quant(
    x: Tensor, scale: Tensor | None = None, out: Tensor | None = None
) -> tuple[Cost, str]:
    """silu(a) b quantised by a given scale: x[.., 2 d] contains a and b.

    FLOPs: 27 per element of the result (silu 23, times b 1, quantising 3), 24 without a scale.
    Bytes: x and scale read, the result written: one byte per element if the call does not pass it
    and there is a scale.

    Signatures: vLLM csrc/torch_bindings.cpp, aiter aiter/ops/activation.py, TensorRT-LLM
    tensorrt_llm/_torch/custom_ops/torch_custom_ops.py.
    """
    half = _half(x)
    if out is None:
        out = Tensor(half.shape, x.dtype if scale is None else "float8_e4m3fn")
    flops = elements(half.shape) * (_SILU + (SCALE if scale is not None else 0))
    return Cost(flops, moved(x, scale, out)), texts(x)


@operators("""
    (out, x, scales, _, limit, _): _C::silu_and_mul_per_block_quant
    (out, scales, x, limit): _C::silu_and_mul_nvfp4_quant
    (x, _): vllm::rocm_aiter_act_mul_and_fp8_group_quant
""")
def silu_and_mul_per_block_quant(
    x: Tensor,
    out: Tensor | None = None,
    scales: Tensor | None = None,
    limit: Tensor | None = None,
) -> tuple[Cost, str]:
    """silu(a) b quantised by computed group scales: x[.., 2 d] contains a and b.

    FLOPs: 29 per element (silu 23, times b 1, magnitude compared 2, quantising 3).
    Bytes: x read, the result and the scales written; if the call does not pass the result, a byte
    per element is assumed, and the scales are not counted.

    Signatures: vLLM csrc/torch_bindings.cpp and vllm/_aiter_ops.py.
    """
    half = _half(x)
    written = fresh(half, dtype="float8_e4m3fn") if out is None else out
    flops = elements(half.shape) * (_SILU + SEARCH + SCALE)
    return Cost(flops, moved(x, limit, written, scales)), texts(x)


@operators("""
    (x, starts, out, scales): _C::persistent_masked_m_silu_mul_quant
    (out, scales, x, limit, starts, ...): _C::silu_and_mul_scaled_fp4_experts_quant
        sgl_kernel::silu_and_mul_scaled_fp4_experts_quant
    (out, scales, x, starts, ...): _C::silu_and_mul_mxfp4_experts_quant
""")
def persistent_masked_m_silu_mul_quant(
    x: Tensor, starts: Tensor, out: Tensor, scales: Tensor, limit: Tensor | None = None
) -> tuple[Cost, str]:
    """silu(a) b of the experts' rows x[.., 2 d], quantised by computed scales.

    FLOPs: 29 per element of the result, an upper bound: the number of rows is a tensor value.
    Bytes: x read, the result and the scales written, an upper bound.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc.
    """
    flops = elements(_half(x).shape) * (_SILU + SEARCH + SCALE)
    return Cost(flops, moved(x, starts, limit, out, scales), exact=False), texts(x)


def _half(x: Tensor) -> Tensor:
    if not x.shape or x.shape[-1] % 2:
        raise CannotModel(f"{x.shape} has no two halves")
    return Tensor((*x.shape[:-1], x.shape[-1] // 2), x.dtype)


def _gate(x: Tensor, out: Tensor | None, flops: int) -> tuple[Cost, str]:
    half = _half(x)
    if out is not None and elements(out.shape) != elements(half.shape):
        raise CannotModel(f"{out.shape} is not half of {x.shape}")
    return Cost(elements(half.shape) * flops, moved(x, out or half)), texts(x)


def _plain(x: Tensor, out: Tensor | None, flops: int) -> tuple[Cost, str]:
    return Cost(elements(x.shape) * flops, moved(x, out or x)), texts(x)
