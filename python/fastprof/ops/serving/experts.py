"""Mixtures of experts: all products of a layer in one or two calls."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Work
from fastprof.ops.registry import operators
from fastprof.ops.serving.expert_sizes import Count, float_type, layer, numbers, one_product, width
from fastprof.ops.tensor import elements


@operators("""
    (x, w1, w2, weights, ids, ...): vllm::inplace_fused_experts vllm::outplace_fused_experts
        vllm::fused_experts vllm::rocm_aiter_fused_moe vllm::rocm_aiter_asm_moe_tkw1
        vllm::rocm_aiter_asm_moe vllm::rocm_aiter_ck_moe sglang::inplace_fused_experts
        sglang::outplace_fused_experts aiter::fused_moe_ aiter::ck_moe
    (out, x, w1, w2, _order, _weights, _experts, _valid, k, ...): aiter::fmoe aiter::fmoe_g1u1
        aiter::fmoe_g1u1_tkw1 aiter::fmoe_g1u1_a16 aiter::fmoe_int8_g1u0
        aiter::fmoe_int8_g1u0_a16 aiter::fmoe_fp8_blockscale_g1u1
    (x, ids, weights, w1, _bias, w2, ...): trtllm::fused_moe
    (out, x, ids, weights, w1, _bias, w2, _bias, ...): flashinfer::cutlass_fused_moe
    (out, x, ids, weights, w1, w2, ...): flashinfer::cutlass_fused_moe_sm80
        flashinfer::cutlass_fused_moe_sm90 flashinfer::cutlass_fused_moe_sm100
""")
def whole_layer(
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    ids: Tensor | None = None,
    weights: Tensor | None = None,
    k: Count | None = None,
    out: Tensor | None = None,
    _order: Tensor | None = None,
    _weights: Tensor | None = None,
    _experts: Tensor | None = None,
    _valid: Tensor | None = None,
    _bias: Tensor | None = None,
) -> Work:
    """Each token x[t, h] through k of e experts: w1 [e, 2 i, h], activation, w2 [e, h, i], summed.

    FLOPs: 2 t k (2 i h + h i), the products of k experts for each token: an upper bound if experts
        are on other devices. Activations, scales and sums are not counted.
    Bytes: x, weights and experts of tokens read, the output written; w1 and w2 of min(e, t k)
        experts, an upper bound.

    An estimate. The numbers per element of packed weights follow from h. Signatures: vLLM
    vllm/model_executor/layers/fused_moe/fused_moe.py and vllm/_aiter_ops.py, SGLang
    python/sglang/srt/layers/moe/fused_moe_triton/fused_moe.py, aiter aiter/fused_moe.py and
    aiter/ops/moe_op.py, FlashInfer flashinfer/fused_moe/core.py, TensorRT-LLM
    tensorrt_llm/_torch/custom_ops/torch_custom_ops.py.
    """
    tokens = elements(x.shape[:-1])
    chosen = ids.shape[-1] if ids is not None and ids.shape else k
    if not isinstance(chosen, int):
        raise CannotModel("the number of experts per token is not in the capture")
    written = Tensor((tokens, width(w2, x)), float_type(x)) if out is None else out
    return layer(x, w1, w2, tokens * chosen, (x, ids, weights, written))


@operators("""
    (scores, bias, x, x_scale, w1, w1_scale, w2, w2_scale, experts, k, ...):
        sglang::trtllm_fp8_block_scale_moe_wrapper flashinfer::trtllm_fp8_block_scale_moe
        trtllm::fp8_block_scale_moe_runner
    (scores, _ids, _weights, bias, x, x_scale, w1, w1_scale, w2, w2_scale, _out, experts, k,
        ...): flashinfer::trtllm_fp8_block_scale_moe
    (scores, _ids, _weights, bias, x, x_scale, w1, w1_scale, _more, _more, _more, _more, w2,
        w2_scale, _more, _more, _more, _more, experts, k, ...):
        flashinfer::trtllm_fp4_block_scale_moe
    (scores, bias, x, x_scale, w1, w1_scale, _more, _more, _more, _more, w2, w2_scale, _more,
        experts, k, ...): trtllm::mxe4m3_mxe2m1_block_scale_moe_runner
    (scores, bias, x, w1, w1_scale, w2, w2_scale, experts, k, ...):
        vllm::flashinfer_fused_moe_blockscale_fp8
    (scores, bias, x, w1, w2, experts, k, ...): vllm::flashinfer_fused_moe_bf16
    (scores, bias, x, x_scale, w1, w2, w1_scale, w2_scale, _more, experts, k, ...):
        vllm::fi_trtllm_fp8_per_tensor_moe
""")
def chosen_and_done(
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    k: Count,
    scores: Tensor | None = None,
    bias: Tensor | None = None,
    x_scale: Tensor | None = None,
    w1_scale: Tensor | None = None,
    w2_scale: Tensor | None = None,
    experts: Count | None = None,
    _more: Tensor | None = None,
    _ids: Tensor | None = None,
    _weights: Tensor | None = None,
    _out: Tensor | None = None,
) -> Work:
    """Experts selected by scores [t, e], and each token x[t, h] through k of them, summed.

    FLOPs: 2 t k (2 i h + h i), times the share of experts on this device; selection, activations,
        scales and sums are not counted.
    Bytes: x, scores and scales read, the output written in bfloat16; weights of the selectable
        experts, an upper bound.

    An estimate. Signatures: FlashInfer flashinfer/fused_moe/core.py, vLLM
    vllm/model_executor/layers/fused_moe/flashinfer_trtllm_moe.py, TensorRT-LLM
    cpp/tensorrt_llm/thop/fp8BlockScaleMoe.cpp, SGLang
    python/sglang/srt/layers/moe/moe_runner/flashinfer_trtllm.py.
    """
    if isinstance(k, Unknown):
        raise CannotModel("the number of experts per token is not in the capture")
    tokens = elements(x.shape[:-1])
    rows = tokens * k
    here = w1.shape[0] if w1.shape else 0
    if isinstance(experts, int) and 0 < here < experts:
        rows = -(-rows * here // experts)
    out = Tensor((tokens, width(w2, x)), "bfloat16")
    return layer(x, w1, w2, rows, (x, scores, bias, x_scale, w1_scale, w2_scale, out))


@operators("""
    (x, w1, w2, _order, _experts, _valid, out, k, ...): aiter::ck_moe_stage1
        aiter::ck_moe_stage1_fwd
    (x, w1, w2, _order, _experts, _valid, out, _, ...): aiter::moe_stage1_g1u1
    (x, w1, out, _order, _experts, _valid, k, ...): aiter::moe_cktile2stages_gemm1_ck
        aiter::moe_cktile2stages_gemm1
""")
def first_products(
    x: Tensor,
    w1: Tensor,
    out: Tensor,
    k: Count | None = None,
    w2: Tensor | None = None,
    _order: Tensor | None = None,
    _experts: Tensor | None = None,
    _valid: Tensor | None = None,
) -> Work:
    """Each token x[t, h] times w1 of k experts, with the activation: the output is [t, k, i].

    FLOPs: 2 t k numbers of w1 of one expert, activation not counted.
    Bytes: x read, the output written, w1 of the selectable experts, an upper bound.

    An estimate: experts may be on other devices. Signatures: aiter aiter/ops/moe_op.py.
    """
    tokens = elements(x.shape[:-1])
    if isinstance(k, int):
        rows = tokens * k
    elif len(out.shape) == 3:
        rows = elements(out.shape[:-1])
    else:
        raise CannotModel("the number of experts per token is not in the capture")
    return one_product(x, w1, rows, numbers(w1, w2, x), (x, out))


@operators("""
    (x, w1, w2, _order, _experts, _valid, out, k, ...): aiter::ck_moe_stage2
        aiter::ck_moe_stage2_fwd
    (x, w2, out, _order, _experts, _valid, k, ...): aiter::moe_cktile2stages_gemm2_ck
        aiter::moe_cktile2stages_gemm2
""")
def second_products(
    x: Tensor,
    w2: Tensor,
    out: Tensor,
    k: Count | None = None,
    w1: Tensor | None = None,
    _order: Tensor | None = None,
    _experts: Tensor | None = None,
    _valid: Tensor | None = None,
) -> Work:
    """The activations of k experts for each token, x[t, k, i], times their w2, summed to [t, h].

    FLOPs: 2 t k numbers of w2 of one expert, sum not counted.
    Bytes: x read, the output written, w2 of the selectable experts, an upper bound.

    An estimate: experts may be on other devices. Signatures: aiter aiter/ops/moe_op.py.
    """
    del k
    rows = elements(x.shape[:-1])
    return one_product(x, w2, rows, numbers(w1, w2, None), (x, out))
