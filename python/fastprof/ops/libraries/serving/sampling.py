"""Sampling the next token, gated activations, and state-space layers of serving stacks.

Signatures of the operators: vLLM csrc/torch_bindings.cpp, vllm/_aiter_ops.py; SGLang
sgl-kernel/csrc/common_extension.cc, sgl-kernel/csrc/common_extension_rocm.cc; FlashInfer
flashinfer/sampling.py, flashinfer/activation.py; aiter aiter/ops/sample.py, aiter/ops/topk.py,
aiter/ops/activation.py; TensorRT-LLM tensorrt_llm/_torch/custom_ops/cpp_custom_ops.py,
tensorrt_llm/_torch/custom_ops/torch_custom_ops.py, cpp/tensorrt_llm/thop/causalConv1dOp.cpp.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import ERROR_FUNCTION, EXPONENTIAL, LOGARITHM, SIGMOID, TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.libraries.mamba import Scan
from fastprof.ops.libraries.serving.products import SCALE, SEARCH
from fastprof.ops.losses.cross_entropy import SOFTMAX
from fastprof.ops.parameters import Flag, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, fresh, moved, texts

table_row("""
    Logits [rows, tokens] of earlier tokens, divided or multiplied in place.
    FLOPs: 3 per element (masks joined 1, compared 1, scaled 1).
    Bytes: logits read and written, masks and penalties read.
    (logits, of_prompt, of_output, penalties): _C::apply_repetition_penalties_
""")(
    "logits, of_prompt, of_output, penalties",
    Traffic(3, "logits logits of_prompt of_output penalties"),
)

table_row("""
    Logits [rows, tokens] set to minus infinity in place if a bit is not set.
    FLOPs: 0.
    Bytes: bits read, logits written, an upper bound: only masked logits are written.
    (logits, bits, rows): sgl_kernel::apply_token_bitmask_inplace_cuda
""")("logits, bits, rows?", Traffic(0, "logits bits rows", exact=False))

table_row("""
    Probabilities of logits [rows, tokens], divided by temperatures first.
    FLOPs: 25 per element (divided 1, softmax 24).
    Bytes: logits read, probabilities written in float32.
    (_workspace, logits, temperatures, ...): flashinfer::softmax flashinfer::blackwell_softmax
""")(
    "logits, temperatures?, _workspace?", Traffic(SOFTMAX + 1, "logits temperatures logits:float32")
)

table_row("""
    Rows of x[rows, tokens] without elements beyond a computed cut-off.
    FLOPs: 3 per element (compared 1, added 1, scaled 1), for one pass.
    Bytes: x read twice (searched, written), the result written.

    An estimate: the search takes several passes, possibly from cache.
    (x, out, limits, _): sgl_kernel::top_k_renorm_probs sgl_kernel::top_p_renorm_probs
        sgl_kernel::top_k_mask_logits
    (x, limits, ...): flashinfer::top_k_renorm_probs flashinfer::top_p_renorm_probs
        flashinfer::top_k_mask_logits
""")("x, out?, limits?", Traffic(3, "x x limits out/x:float32", exact=False))


@operators("""
    A token of each row of x[rows, tokens], drawn by its probabilities or the most likely.
    FLOPs: 2 per element (added or scaled 1, compared 1), for one pass.
    Bytes: x and limits read, an index per row written (4 bytes if the call does not pass it).

    An estimate: a rejected draw takes another pass.
    (x, out, rows, limits, ...): sgl_kernel::min_p_sampling_from_probs
        sgl_kernel::top_p_sampling_from_probs
    (x, out, rows, limits, _, more_limits, ...): sgl_kernel::top_k_top_p_sampling_from_probs
    (x, rows, ...): flashinfer::sampling_from_logits flashinfer::sampling_from_probs
    (x, rows, limits, ...): flashinfer::top_p_sampling_from_probs
        flashinfer::top_k_sampling_from_probs flashinfer::min_p_sampling_from_probs
    (x, rows, limits, _, more_limits, ...): flashinfer::top_k_top_p_sampling_from_probs
    (out, x): aiter::greedy_sample
    (out, x, limits, ...): aiter::random_sample aiter::mixed_sample
    (out, x, more_limits, limits, ...): aiter::random_sample_outer_exponential
        aiter::mixed_sample_outer_exponential
""")
def min_p_sampling_from_probs(x: Tensor, out: Tensor | None = None, *, read: Tensors) -> Answer:
    written = Tensor(x.shape[:1], "int32") if out is None else out
    return Cost(2 * elements(x.shape), moved(x, *read, written), exact=False), texts(x)


table_row("""
    Indices of the highest scores of each row of x[rows, keys], between its start and end.
    FLOPs: a comparison for each element, an upper bound: rows may be shorter.
    Bytes: x, starts and ends read, the indices written, an upper bound.
    (x, starts, ends, out, ...): _C::top_k_per_row_prefill aiter::_top_k_per_row_prefill
    (x, _, ends, out, ...): _C::top_k_per_row_decode aiter::_top_k_per_row_decode
    (x, ends, out, ...): _C::persistent_topk sgl_kernel::fast_topk_transform_fused
        sgl_kernel::fast_topk_transform_ragged_fused trtllm::indexer_topk_decode
    (x, out, ends, ...): sgl_kernel::fast_topk
    (x, starts, ends, out, _): trtllm::indexer_topk_prefill
""")("x, ends, out, starts?", Traffic(1, "x starts ends out", exact=False))


_SILU: Final = SIGMOID + 2  # a times its sigmoid, times the other half
_GELU: Final = ERROR_FUNCTION + 5  # like torch's gelu (24), times the other half
_GELU_TANH: Final = TRIGONOMETRIC + 8  # like torch's gelu by tanh (28)


table_row("""
    silu(a) b: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 24 per element of the result (silu 23, times b 1).
    Bytes: x read, the result written.
    (out, x): _C|sgl_kernel|aiter|flashinfer::silu_and_mul _C::mul_and_silu
    (x): trtllm::flashinfer_silu_and_mul
""")("x, out?", lambda x, out: _gate(x, out, _SILU))

table_row("""
    gelu(a) b: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 25 per element of the result (gelu 24, times b 1).
    Bytes: x read, the result written.
    (out, x): _C|sgl_kernel|aiter|flashinfer::gelu_and_mul
""")("x, out?", lambda x, out: _gate(x, out, _GELU))

table_row("""
    gelu(a) b with gelu by tanh: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 29 per element of the result (gelu by tanh 28, times b 1).
    Bytes: x read, the result written.
    (out, x): _C|sgl_kernel|aiter|flashinfer::gelu_tanh_and_mul
    (x): trtllm::flashinfer_gelu_tanh_and_mul
""")("x, out?", lambda x, out: _gate(x, out, _GELU_TANH + 1))

table_row("""
    (a or 0, by a threshold) b: x[.., 2 d] contains a and b, the result is [.., d].
    FLOPs: 2 per element of the result.
    Bytes: x read, the result written.
    (out, x): _C::fatrelu_and_mul
""")("x, out?", lambda x, out: _gate(x, out, 2))

table_row("""
    a sigmoid(alpha a) (b + 1) with clamped a and b: x[.., 2 d] contains both.
    FLOPs: 29 per element of the result (limits 3, alpha 1, silu 23, b + 1 1, times b 1).
    Bytes: x read, the result written.

    The multiplication by alpha and the addition of 1, absent in silu_and_mul_with_clamp, are also
    counted for it.
    (out, x): _C::swigluoai_and_mul _C::silu_and_mul_with_clamp
""")("x, out?", lambda x, out: _gate(x, out, _SILU + 5))

table_row("""
    gelu of x[..] by tanh.
    FLOPs: 28 per element.
    Bytes: x read, the result written.
    (out, x): _C::gelu_new _C|aiter::gelu_fast
""")("x, out?", lambda x, out: _plain(x, out, _GELU_TANH))

table_row("""
    x sigmoid(1.702 x) of x[..].
    FLOPs: 24 per element (factor 1, sigmoid 22, times x 1).
    Bytes: x read, the result written.
    (out, x): _C|sgl_kernel::gelu_quick
""")("x, out?", lambda x, out: _plain(x, out, SIGMOID + 2))


@operators("""
    silu(a) b quantised by a given scale: x[.., 2 d] contains a and b.
    FLOPs: 27 per element of the result (silu 23, times b 1, quantising 3), 24 without a scale.
    Bytes: x and scale read, the result written: one byte per element if the call does not pass it
    and there is a scale.
    (out, x, scale): _C::silu_and_mul_quant aiter::scaled_silu_and_mul
    (x, scale, ...): trtllm::silu_and_mul
""")
def silu_and_mul_quant(x: Tensor, scale: Tensor | None = None, out: Tensor | None = None) -> Answer:
    half = _half(x)
    if out is None:
        out = Tensor(half.shape, x.dtype if scale is None else "float8_e4m3fn")
    flops = elements(half.shape) * (_SILU + (SCALE if scale is not None else 0))
    return Cost(flops, moved(x, scale, out)), texts(x)


@operators("""
    silu(a) b quantised by computed group scales: x[.., 2 d] contains a and b.
    FLOPs: 29 per element (silu 23, times b 1, magnitude compared 2, quantising 3).
    Bytes: x read, the result and the scales written; if the call does not pass the result, a byte
    per element is assumed, and the scales are not counted.
    (out, x, scales, _, limit, _): _C::silu_and_mul_per_block_quant
    (out, scales, x, limit): _C::silu_and_mul_nvfp4_quant
    (x, _): vllm::rocm_aiter_act_mul_and_fp8_group_quant
""")
def silu_and_mul_per_block_quant(x: Tensor, out: Tensor | None = None, *, read: Tensors) -> Answer:
    half = _half(x)
    written = fresh(half, dtype="float8_e4m3fn") if out is None else out
    flops = elements(half.shape) * (_SILU + SEARCH + SCALE)
    return Cost(flops, moved(x, *read, written)), texts(x)


@operators("""
    silu(a) b of the experts' rows x[.., 2 d], quantised by computed scales.
    FLOPs: 29 per element of the result, an upper bound: the number of rows is a tensor value.
    Bytes: x read, the result and the scales written, an upper bound.
    (x, starts, out, scales): _C::persistent_masked_m_silu_mul_quant
    (out, scales, x, limit, starts, ...): _C|sgl_kernel::silu_and_mul_scaled_fp4_experts_quant
    (out, scales, x, starts, ...): _C::silu_and_mul_mxfp4_experts_quant
""")
def persistent_masked_m_silu_mul_quant(
    x: Tensor, starts: Tensor, out: Tensor, scales: Tensor, limit: Tensor | None = None
) -> Answer:
    flops = elements(_half(x).shape) * (_SILU + SEARCH + SCALE)
    return Cost(flops, moved(x, starts, limit, out, scales), exact=False), texts(x)


def _half(x: Tensor) -> Tensor:
    if not x.shape or x.shape[-1] % 2:
        raise CannotModel(f"{x.shape} has no two halves")
    return Tensor((*x.shape[:-1], x.shape[-1] // 2), x.dtype)


def _gate(x: Tensor, out: Tensor | None, flops: int) -> Answer:
    half = _half(x)
    if out is not None and elements(out.shape) != elements(half.shape):
        raise CannotModel(f"{out.shape} is not half of {x.shape}")
    return Cost(elements(half.shape) * flops, moved(x, out or half)), texts(x)


def _plain(x: Tensor, out: Tensor | None, flops: int) -> Answer:
    return Cost(elements(x.shape) * flops, moved(x, out or x)), texts(x)


# For each element of the state: exp(delta A) 21, delta B u 2, the state 2, C times it added 2.
_STATE: Final = EXPONENTIAL + 1 + 2 + 2 + 2


@operators("""
    The selective scan of Mamba over u [d, tokens] or [batch, d, tokens], with states of n.
    FLOPs: 27 n per element of u (exp(delta A) 21, delta B u 2, state 2, C times state 2), and 2 for
    the skip D, 23 for the gate z, 1 for the bias, 41 for the softplus of delta, if present.
    Bytes: u, delta, A, B, C, D, z, bias read, the result written over u (over z if present), the
    state of each sequence read and written.
    (u, delta, a, b, c, d, z, bias, softplus, starts, slots, flags, states, ...):
        _C::selective_scan_fwd
""")
def selective_scan_fwd(
    scan: Scan, states: Tensor, softplus: Flag = True, slots: Tensor | None = None, *, read: Tensors
) -> Answer:
    u, a, d, z = scan.u, scan.a, scan.d, scan.z
    if len(a.shape) != 2 or len(u.shape) < 2 or a.shape[0] != u.shape[-2]:
        raise CannotModel(f"states of {a.shape} do not fit {u.shape}")
    each = _STATE * a.shape[1]
    each += 2 * (d is not None) + (SIGMOID + 1) * (z is not None) + (scan.bias is not None)
    each += (EXPONENTIAL + LOGARITHM + 1) * (softplus is not False)
    of_states = _states(states, slots, u.shape[0] if len(u.shape) == 3 else 1)
    written = u if z is None else z
    touched = moved(*scan, slots, *read, written, of_states, of_states)
    cost = Cost(each * elements(u.shape), touched, not isinstance(softplus, Unknown))
    return cost, texts(u, a)


@operators("""
    Each channel of x [d, tokens] or [batch, d, tokens] convolved with its w weights [d, w].
    FLOPs: 2 w per element; bias and SiLU are not counted.
    Bytes: x, weight and bias read, the result written over x, the last w - 1 of each sequence read
    and written.
    (x, weight, bias, states, starts, slots, flags, ...):
        _C|sgl_kernel|trtllm::causal_conv1d_fwd
""")
def causal_conv1d_fwd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    states: Tensor | None = None,
    starts: Tensor | None = None,
    slots: Tensor | None = None,
    flags: Tensor | None = None,
) -> Answer:
    _fits(x, weight, -2)
    of_states = None if states is None else _states(states, slots, _sequences(x, starts))
    touched = moved(x, x, weight, bias, starts, slots, flags, of_states, of_states)
    return Cost(2 * weight.shape[-1] * elements(x.shape), touched), texts(x, weight)


@operators("""
    The next outputs of each channel, x [batch, d] or [batch, d, s], convolved with w weights.
    FLOPs: 2 w per element; bias and SiLU are not counted.
    Bytes: x, weight and bias read, the result written over x, the last w - 1 of each sequence read
    and written.
    (x, states, weight, bias, _, lengths, slots, _): _C|sgl_kernel|trtllm::causal_conv1d_update
""")
def causal_conv1d_update(
    x: Tensor, states: Tensor, weight: Tensor, slots: Tensor | None = None, *, read: Tensors
) -> Answer:
    _fits(x, weight, 1)
    of_states = _states(states, slots, x.shape[0])
    touched = moved(x, x, weight, *read, slots, of_states, of_states)
    return Cost(2 * weight.shape[-1] * elements(x.shape), touched), texts(x, weight)


def _fits(x: Tensor, weight: Tensor, axis: int) -> None:
    if len(x.shape) < 2 or len(weight.shape) != 2 or x.shape[axis] != weight.shape[0]:
        raise CannotModel(f"weights {weight.shape} do not fit {x.shape}")


def _sequences(x: Tensor, starts: Tensor | None) -> int:
    if starts is not None and starts.shape:
        return starts.shape[0] - 1
    return x.shape[0] if len(x.shape) == 3 else 1


def _states(states: Tensor, slots: Tensor | None, sequences: int) -> Tensor:
    # The states of all sequences in a cache [slots, ..].
    count = slots.shape[0] if slots is not None and slots.shape else sequences
    if not states.shape:
        raise CannotModel("no states")
    return Tensor((min(count, states.shape[0]), *states.shape[1:]), states.dtype)
