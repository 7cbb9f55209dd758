"""Mixtures of experts: selecting experts, ordering tokens by expert, and summing the results."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM, SIGMOID, SQUARE_ROOT
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.losses.softmax import FORWARD as SOFTMAX
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts


@operators("""
    (weights, ids, sources, scores, _, bias): _moe_C::topk_softmax
    (weights, ids, scores, _, _, bias): sgl_kernel::topk_softmax
    (weights, ids, sources, scores, ...): aiter::topk_softmax aiter::topk_softmax_asm
        vllm::rocm_aiter_topk_softmax
""")
def topk_softmax(
    weights: Tensor,
    ids: Tensor,
    scores: Tensor,
    sources: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Cost, str]:
    """The k experts of each token with the greatest softmax of its scores [tokens, experts].

    FLOPs: 25 per score (softmax 24, compared 1), 26 with a bias.
    Bytes: scores and bias read; weights, indices and other requested outputs written.

    Signatures: vLLM csrc/moe/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc, aiter
    aiter/ops/moe_op.py.
    """
    return _chosen(scores, SOFTMAX, bias, (weights, ids, sources))


@operators("""
    (weights, ids, sources, scores, _, bias): _moe_C::topk_sigmoid
    (weights, ids, scores, _, bias): sgl_kernel::topk_sigmoid
    (weights, ids, scores): aiter::topk_sigmoid vllm::rocm_aiter_topk_sigmoid
""")
def topk_sigmoid(
    weights: Tensor,
    ids: Tensor,
    scores: Tensor,
    sources: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Cost, str]:
    """The k experts of each token with the greatest sigmoid of its scores [tokens, experts].

    FLOPs: 23 per score (sigmoid 22, compared 1), 24 with a bias.
    Bytes: scores and bias read; weights, indices and other requested outputs written.

    Signatures: those of topk_softmax.
    """
    return _chosen(scores, SIGMOID, bias, (weights, ids, sources))


@operators("""
    (weights, ids, sources, scores, _, _, bias, ...): _moe_C::topk_softplus_sqrt
        _moe_C::topk_softplus_sqrt_fast
    (weights, ids, scores, bias, ...): aiter::topk_softplus aiter::topk_gating
""")
def topk_softplus_sqrt(
    weights: Tensor,
    ids: Tensor,
    scores: Tensor,
    sources: Tensor | None = None,
    bias: Tensor | None = None,
) -> tuple[Cost, str]:
    """The k experts of each token with the greatest sqrt(log(1 + e^score)) of its scores.

    FLOPs: 62 per score (exponential, logarithm and square root 60, added 1, compared 1), 63 with a
    bias.
    Bytes: scores and bias read; weights, indices and other requested outputs written.

    Signatures: vLLM csrc/libtorch_stable/moe/torch_bindings.cpp, aiter aiter/ops/topk.py.
    """
    return _chosen(scores, EXPONENTIAL + LOGARITHM + SQUARE_ROOT + 1, bias, (weights, ids, sources))


@operators("""
    (scores, _, _, k, _, _, bias, _): _moe_C::grouped_topk
    (scores, bias, _, _, k, ...): _moe_C::grouped_topk sgl_kernel::moe_fused_gate
    (scores, bias, k, ...): sgl_kernel::kimi_k2_moe_fused_gate
    (scores, weights, ids, ...): aiter::grouped_topk vllm::rocm_aiter_grouped_topk
    (scores, bias, weights, ids, ...): aiter::biased_grouped_topk_hip aiter::biased_grouped_topk
        aiter::moe_fused_gate vllm::rocm_aiter_biased_grouped_topk
    (scores, bias, _, _, k, _): trtllm::noaux_tc_op
""")
def grouped_topk(
    scores: Tensor,
    bias: Tensor | None = None,
    k: int | Unknown | None = None,
    weights: Tensor | None = None,
    ids: Tensor | None = None,
) -> tuple[Cost, str]:
    """The k best experts of each token from its best groups: scores [tokens, experts].

    FLOPs: 25 per score (sigmoid 22, bias 1, compared 2: for the group, for the expert).
    Bytes: scores and bias read; weights and indices written, of 4 bytes each if the call does not
    pass them.

    Signatures: vLLM csrc/libtorch_stable/moe/torch_bindings.cpp, SGLang
    sgl-kernel/csrc/common_extension.cc, aiter aiter/ops/topk.py, TensorRT-LLM
    cpp/tensorrt_llm/thop/noAuxTcOp.cpp. An estimate: an argument may replace the sigmoid by a
    softmax.
    """
    tokens = elements(scores.shape[:-1])
    if weights is None or ids is None:
        chosen = Tensor((tokens, k), "float32") if isinstance(k, int) else None
        if chosen is None:
            raise CannotModel("the number of selected experts is not in the capture")
        weights, ids = chosen, Tensor(chosen.shape, "int32")
    flops = elements(scores.shape) * (SIGMOID + 3)
    return Cost(flops, moved(scores, bias, weights, ids), exact=False), texts(scores)


table_row("""
    Tokens ordered by expert, each expert's padded to complete blocks.
    FLOPs: 0: only positions are counted and summed.
    Bytes: experts of tokens (and weights) read, the order, the expert of each block and totals
    written, a buffer cleared; an upper bound: tensors have the worst-case size.

    Signatures: vLLM csrc/moe/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc, aiter
    aiter/ops/moe_op.py and aiter/ops/moe_sorting.py.
    (ids, _, _, sorted_ids, experts, total, more): _moe_C::moe_align_block_size
    (ids, _, _, sorted_ids, experts, total): _moe_C::sgl_moe_align_block_size
    (_, _, ids, sorted_ids, experts, total): _moe_C::batched_moe_align_block_size
    (ids, _, _, sorted_ids, experts, total, more, _): sgl_kernel::moe_align_block_size
    (ids, _, _, sorted_ids, experts, more, total): aiter::moe_align_block_size
    (ids, weights, sorted_ids, sorted_weights, experts, total, buffer, _, _, more, ...):
        aiter::moe_sorting_fwd aiter::moe_sorting_opus_fwd
""")(
    "ids, sorted_ids, experts, total, weights?, sorted_weights?, buffer?, more?",
    Traffic(0, "ids weights sorted_ids sorted_weights experts total buffer more", exact=False),
)

table_row("""
    The number of tokens per expert, and the permutations between token and expert order.
    FLOPs: 0: only positions are counted and summed.
    Bytes: experts of tokens read, all tables written.

    Signatures: vLLM csrc/libtorch_stable/torch_bindings.cpp, SGLang
    sgl-kernel/csrc/common_extension.cc.
    (ids, tables**): _C::get_cutlass_moe_mm_data _C::get_cutlass_moe_mm_problem_sizes
        _C::get_cutlass_moe_mm_problem_sizes_from_expert_offsets sgl_kernel::prepare_moe_input
        sgl_kernel::get_cutlass_w4a8_moe_mm_data
    (table, more, others, ids, ...): _C::get_cutlass_batched_moe_mm_data
        _C::get_cutlass_pplx_moe_mm_data
""")("ids, tables*?, table?, more?, others?", Traffic(0, "ids table more others tables"))

table_row("""
    Rows of x[tokens, d], repeated for each of their experts, in expert order.
    FLOPs: 0.
    Bytes: each row read once for each expert and written, experts read, starts and orders written.

    Signatures: vLLM csrc/moe/torch_bindings.cpp. An upper bound: the output may have more rows than
    are selected.
    (x, ids, sources, more, _, _, _, out, starts, inverse, order): _moe_C::moe_permute
    (x, weights, ids, sources, _, _, out, starts, order): _moe_C::moe_permute
    (x, ids, sources, more, _, _, _, _, out, starts, inverse, order, experts): _moe_C::moe_permute
    (x, ids, sources, more, _, _, _, out, starts, inverse, order, ...):
        _moe_C::moe_permute_with_scratch
""")(
    "x, ids, out, starts, sources?, weights?, more?, inverse?, order?, experts?",
    Traffic(
        0, "out out ids sources weights more starts inverse order experts", "x ids", exact=False
    ),
)


@operators("""
    (x, out): _moe_C::moe_sum aiter::moe_sum sgl_kernel::moe_sum
    (x, out, _): sgl_kernel::moe_sum_reduce
""")
def moe_sum(x: Tensor, out: Tensor) -> tuple[Cost, str]:
    """The results of k experts for each token, x[tokens, k, d], summed to [tokens, d].

    FLOPs: k - 1 per element of the sum.
    Bytes: x read, the sum written.

    Signatures: vLLM csrc/moe/torch_bindings.cpp, aiter aiter/ops/moe_op.py, SGLang
    sgl-kernel/csrc/common_extension.cc.
    """
    added = elements(x.shape) - elements(out.shape)
    if added < 0:
        raise CannotModel(f"a sum {out.shape} does not fit {x.shape}")
    return Cost(added, moved(x, out)), texts(x)


@operators("""
    (x, weights, order, starts, _, out): _moe_C::moe_unpermute
    (x, weights, order, starts, _, _, out): _moe_C::moe_unpermute
    (x, weights, ids, order, starts, _, _, out): _moe_C::moe_unpermute
    (x, out, order, weights): sgl_kernel::apply_shuffle_mul_sum
    (x, order, weights): trtllm::moe_unpermute
""")
def moe_unpermute(
    x: Tensor,
    order: Tensor,
    weights: Tensor | None = None,
    out: Tensor | None = None,
    starts: Tensor | None = None,
    ids: Tensor | None = None,
) -> tuple[Cost, str]:
    """The results of experts, x[rows, d] in expert order, weighted and summed per token.

    FLOPs: 2 per used element: k rows for each token, weighted and added.
    Bytes: the rows, weights and orders read, the sums written.

    Signatures: vLLM csrc/moe/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension.cc,
    TensorRT-LLM tensorrt_llm/_torch/custom_ops/cpp_custom_ops.py.
    """
    width = x.shape[-1] if x.shape else 0
    taken = Tensor((elements(order.shape), width), x.dtype)
    if out is None:
        out = Tensor((*order.shape[:1], width), x.dtype)
    flops = 2 * elements(taken.shape)
    return Cost(flops, moved(taken, order, weights, starts, ids, out)), texts(x)


@operators("""
    (x, order, out): _moe_C::shuffle_rows _C::shuffle_rows sgl_kernel::shuffle_rows
    (x, _scales, _limits, order, ...): trtllm::moe_permute
""")
def shuffle_rows(
    x: Tensor,
    order: Tensor,
    out: Tensor | None = None,
    _scales: Tensor | None = None,
    _limits: Tensor | None = None,
) -> tuple[Cost, str]:
    """Rows of x[tokens, d] in a given order.

    FLOPs: 0.
    Bytes: one row per entry of the order read and written, the order read.

    Signatures: vLLM csrc/libtorch_stable/moe/torch_bindings.cpp, SGLang
    sgl-kernel/csrc/common_extension.cc, TensorRT-LLM
    tensorrt_llm/_torch/custom_ops/cpp_custom_ops.py.
    """
    width = x.shape[-1] if x.shape else 0
    written = fresh(x, (elements(order.shape), width)) if out is None else out
    return Cost(0, moved(fresh(x, written.shape), order, written)), texts(x, order)


def _chosen(
    scores: Tensor, flops: int, bias: Tensor | None, written: tuple[Tensor | None, ...]
) -> tuple[Cost, str]:
    each = flops + 1 + (bias is not None)
    return Cost(elements(scores.shape) * each, moved(scores, bias, *written)), texts(scores)
