"""Mixtures of experts: selecting them, ordering tokens, products [e, n, k], and summing.

Signatures of the operators: vLLM csrc/libtorch_stable/torch_bindings.cpp,
csrc/moe/torch_bindings.cpp, csrc/libtorch_stable/moe/torch_bindings.cpp,
vllm/model_executor/layers/fused_moe/fused_moe.py, vllm/_aiter_ops.py,
vllm/model_executor/layers/fused_moe/flashinfer_trtllm_moe.py; SGLang
sgl-kernel/csrc/common_extension.cc, python/sglang/srt/layers/moe/fused_moe_triton/fused_moe.py,
python/sglang/srt/layers/moe/moe_runner/flashinfer_trtllm.py; aiter aiter/fused_moe.py,
aiter/ops/moe_op.py, aiter/ops/topk.py, aiter/ops/moe_sorting.py; FlashInfer
flashinfer/fused_moe/core.py; TensorRT-LLM tensorrt_llm/_torch/custom_ops/torch_custom_ops.py,
cpp/tensorrt_llm/thop/fp8BlockScaleMoe.cpp, cpp/tensorrt_llm/thop/noAuxTcOp.cpp,
tensorrt_llm/_torch/custom_ops/cpp_custom_ops.py.
"""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, SIGMOID, SQUARE_ROOT
from fastprof.ops.cost import Answer, CannotModel, Cost, Part, Work, add_known
from fastprof.ops.dtypes import canonical_type, short_type
from fastprof.ops.libraries.serving.products import packed_float4
from fastprof.ops.losses.cross_entropy import SOFTMAX
from fastprof.ops.parameters import Int, Size, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, fresh, moved, texts
from fastprof.ops.tensor_cores import why_not


def width(w2: Tensor, x: Tensor) -> int:
    """h: the second size of w2 [e, h, i] if it matches x, possibly packed."""
    if len(w2.shape) == 3 and x.shape and w2.shape[1] % max(x.shape[-1], 1) == 0:
        return w2.shape[1]
    return x.shape[-1] if x.shape else 0


def float_type(x: Tensor) -> str | None:
    """The accumulation type: x's, or bfloat16 if x has 8 or 4 bits."""
    name = canonical_type(x.dtype)
    return name if name in ("float16", "bfloat16", "float32") else "bfloat16"


def _packing(w1: Tensor | None, w2: Tensor | None, x: Tensor | None) -> int:
    # Numbers per element of the weights: h over the last size of w1 [e, n, h]; h is the second size
    # of w2 [e, h, i], or x's if x is not packed.
    wide = None
    if w2 is not None and len(w2.shape) == 3:
        wide = w2.shape[1]
    elif x is not None and x.shape:
        wide = x.shape[-1]
    if wide and w1 is not None and len(w1.shape) == 3:
        if wide in w1.shape[1:]:
            return 1
        if w1.shape[-1] and wide % w1.shape[-1] == 0 and wide // w1.shape[-1] in (2, 4, 8):
            return wide // w1.shape[-1]
        raise CannotModel(f"weights {w1.shape} do not fit a width of {wide}")
    weight = w1 or w2
    packed = weight is not None and (canonical_type(weight.dtype) or "").startswith("float4")
    return 2 if packed else 1


def numbers(w1: Tensor | None, w2: Tensor | None, x: Tensor | None) -> int:
    """Numbers per expert in w1 if x is given, else in w2."""
    weight = w1 if x is not None else w2
    if weight is None or len(weight.shape) < 3 or not weight.shape[0]:
        raise CannotModel("no weights of experts")
    return elements(weight.shape[1:]) * _packing(w1, w2, x)


def _read(weight: Tensor, rows: int) -> int | None:
    # Bytes of the matrices of the selectable experts.
    total, experts = moved(weight), weight.shape[0] if weight.shape else 0
    if total is None or not experts:
        return total
    return total // experts * min(experts, rows)


def layer(x: Tensor, w1: Tensor, w2: Tensor, rows: int, touched: tuple[Tensor | None, ...]) -> Work:
    """Both products for a number of rows."""
    if min(len(w1.shape), len(w2.shape)) < 3 or w1.shape[0] != w2.shape[0] or not w1.shape[0]:
        raise CannotModel(f"{w1.shape} and {w2.shape} are not weights of experts")
    packing = _packing(w1, w2, x)
    one = (elements(w1.shape[1:]) + elements(w2.shape[1:])) * packing
    read = add_known(_read(w1, rows), _read(w2, rows))
    return _work(x, w1, Cost(2 * rows * one, add_known(moved(*touched), read), False), (w1, w2))


def one_product(
    x: Tensor, weight: Tensor, rows: int, numbers: int, touched: tuple[Tensor | None, ...]
) -> Work:
    """One product of a number of rows with matrices of a number of elements."""
    total = add_known(moved(*touched), _read(weight, rows))
    return _work(x, weight, Cost(2 * rows * numbers, total, False), (weight,))


def grouped(
    x: Tensor, weight: Tensor, out: Tensor, more: tuple[Tensor | None, ...], packing: int
) -> Work:
    """One product whose rows and columns are those of the output."""
    if not out.shape or not x.shape:
        raise CannotModel(f"cannot multiply {x.shape} and {weight.shape}")
    rows = elements(out.shape[:-1])
    numbers = out.shape[-1] * x.shape[-1] * packing
    return one_product(x, weight, rows, numbers, (x, *more, out))


def _work(x: Tensor, weight: Tensor, cost: Cost, weights: tuple[Tensor, ...]) -> Work:
    size = weight.shape[-1] if weight.shape else 0
    reason = why_not(x.dtype if short_type(x.dtype) != "uint8" else weight.dtype, {"K": size})
    return Work((Part("main", cost, texts(x, *weights), no_tensor_cores=reason),))


@operators("""
    Rows of x[.., k], each with its expert's matrix: the output is [rows, n].
    FLOPs: 2 rows n k, the rows being the output's.
    Bytes: x, scales, zeros and bias read, the output written; matrices of the selectable experts,
        an upper bound.

    An estimate: rows may include padding.
    (out, x, weight, x_scale, w_scale, ...): _C::cutlass_moe_mm
        _C|sgl_kernel::cutlass_w4a8_moe_mm
    (x, weight, x_scale, w_scale, out, ...): _C::cutlass_mxfp8_grouped_mm
    (out, _table, _table, _table, _table, _table, x, weight, x_scale, w_scale, ...):
        sgl_kernel::fp8_blockwise_scaled_grouped_mm
    (x, out, weight, w_scale, zeros, ...): _moe_C::moe_wna16_gemm
    (x, weight, bias, out, x_scale, w_scale, zeros, ...):
        sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel
    (x, weight, _table, _table, _table, _, columns, k, tokens): _C::ggml_moe_a8
    (x, weight, _table, k, _, columns, tokens): _C::ggml_moe_a8_vec
""")
def cutlass_moe_mm(
    x: Tensor,
    weight: Tensor,
    out: Tensor | None = None,
    columns: Size = None,
    k: Size = None,
    tokens: Size = None,
    *,
    read: Tensors,
) -> Work:
    if out is None:
        if not (isinstance(columns, int) and isinstance(k, int) and isinstance(tokens, int)):
            raise CannotModel("the sizes of the product are not in the capture")
        out = Tensor((tokens * k, columns), x.dtype)
    return grouped(x, weight, out, read, 1)


@operators("""
    Rows of x[.., k / 2], float4 in pairs, each with its expert's matrix: output [rows, n].
    FLOPs: 2 rows n k: an element contains two numbers.
    Bytes: x and scales read, the output written; matrices of the selectable experts, an upper
        bound.

    An estimate: rows may include padding.
    (out, x, weight, x_scale, w_scale, ...): _C|sgl_kernel::cutlass_fp4_group_mm
        _C::cutlass_mxfp4_group_mm
""")
def cutlass_fp4_group_mm(x: Tensor, weight: Tensor, out: Tensor, *, read: Tensors) -> Work:
    return grouped(packed_float4(x), packed_float4(weight), out, read, 2)


@operators("""
    Each row of x[m, k] times the packed matrices of its experts, with the sizes as arguments.
    FLOPs: 2 m n k for each expert of a row.
    Bytes: x, scales, zeros and bias read, the output written; matrices of the selectable experts,
        an upper bound.

    An estimate: experts may be on other devices.
    (x, out, weight, bias, scales, more, more, zeros, more, more, _workspace, _order, _experts,
        _valid, weights, _, k, _, _, rows, columns, inner, ...): _moe_C::moe_wna16_marlin_gemm
    (x, out, weight, bias, scales, more, zeros, more, more, _workspace, _order, _experts,
        _valid, weights, _, k, _, _, _, rows, columns, inner, ...):
        _moe_C::moe_wna16_marlin_gemm
    (x, out, weight, scales, zeros, more, more, _workspace, _order, _experts, _valid, weights,
        _, k, _, _, _, rows, columns, inner, ...): _moe_C|sgl_kernel::moe_wna16_marlin_gemm
""")
def moe_wna16_marlin_gemm(
    x: Tensor,
    weight: Tensor,
    k: Int,
    rows: Int,
    columns: Int,
    inner: Int,
    out: Tensor | None = None,
    more: Tensor | None = None,
    *,
    read: Tensors,
) -> Work:
    sizes = [size for size in (k, rows, columns, inner) if isinstance(size, int)]
    if len(sizes) < 4:
        raise CannotModel("the sizes of the product are not in the capture")
    taken, width, depth = sizes[0] * sizes[1], sizes[2], sizes[3]
    written = Tensor((taken, width), x.dtype) if out is None else out
    return one_product(x, weight, taken, width * depth, (x, *read, written))


@operators("""
    Each token x[t, h] through k of e experts: w1 [e, 2 i, h], activation, w2 [e, h, i], summed.
    FLOPs: 2 t k (2 i h + h i), the products of k experts for each token: an upper bound if experts
        are on other devices. Activations, scales and sums are not counted.
    Bytes: x, weights and experts of tokens read, the output written; w1 and w2 of min(e, t k)
        experts, an upper bound.

    An estimate. The numbers per element of packed weights follow from h.
    (x, w1, w2, weights, ids, ...): vllm|sglang::inplace_fused_experts
        vllm|sglang::outplace_fused_experts vllm::fused_experts vllm::rocm_aiter_fused_moe
        vllm::rocm_aiter_asm_moe_tkw1 vllm::rocm_aiter_asm_moe vllm::rocm_aiter_ck_moe
        aiter::fused_moe_ aiter::ck_moe
    (out, x, w1, w2, _order, _weights, _experts, _valid, k, ...): aiter::fmoe aiter::fmoe_g1u1
        aiter::fmoe_g1u1_tkw1 aiter::fmoe_g1u1_a16 aiter::fmoe_int8_g1u0
        aiter::fmoe_int8_g1u0_a16 aiter::fmoe_fp8_blockscale_g1u1
    (x, ids, weights, w1, _bias, w2, ...): trtllm::fused_moe
    (out, x, ids, weights, w1, _bias, w2, _bias, ...): flashinfer::cutlass_fused_moe
    (out, x, ids, weights, w1, w2, ...): flashinfer::cutlass_fused_moe_sm80
        flashinfer::cutlass_fused_moe_sm90 flashinfer::cutlass_fused_moe_sm100
""")
def inplace_fused_experts(
    x: Tensor,
    w1: Tensor,
    w2: Tensor,
    ids: Tensor | None = None,
    k: Size = None,
    out: Tensor | None = None,
    *,
    read: Tensors,
) -> Work:
    tokens = elements(x.shape[:-1])
    chosen = ids.shape[-1] if ids is not None and ids.shape else k
    if not isinstance(chosen, int):
        raise CannotModel("the number of experts per token is not in the capture")
    written = Tensor((tokens, width(w2, x)), float_type(x)) if out is None else out
    return layer(x, w1, w2, tokens * chosen, (x, ids, *read, written))


@operators("""
    Experts selected by scores [t, e], and each token x[t, h] through k of them, summed.
    FLOPs: 2 t k (2 i h + h i), times the share of experts on this device; selection, activations,
        scales and sums are not counted.
    Bytes: x, scores and scales read, the output written in bfloat16; weights of the selectable
        experts, an upper bound.

    An estimate.
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
def trtllm_fp8_block_scale_moe_wrapper(
    x: Tensor, w1: Tensor, w2: Tensor, k: Int, experts: Size = None, *, read: Tensors
) -> Work:
    if isinstance(k, Unknown):
        raise CannotModel("the number of experts per token is not in the capture")
    tokens = elements(x.shape[:-1])
    rows = tokens * k
    here = w1.shape[0] if w1.shape else 0
    if isinstance(experts, int) and 0 < here < experts:
        rows = -(-rows * here // experts)
    out = Tensor((tokens, width(w2, x)), "bfloat16")
    return layer(x, w1, w2, rows, (x, *read, out))


@operators("""
    Each token x[t, h] times w1 of k experts, with the activation: the output is [t, k, i].
    FLOPs: 2 t k numbers of w1 of one expert, activation not counted.
    Bytes: x read, the output written, w1 of the selectable experts, an upper bound.

    An estimate: experts may be on other devices.
    (x, w1, w2, _order, _experts, _valid, out, k, ...): aiter::ck_moe_stage1
        aiter::ck_moe_stage1_fwd
    (x, w1, w2, _order, _experts, _valid, out, _, ...): aiter::moe_stage1_g1u1
    (x, w1, out, _order, _experts, _valid, k, ...): aiter::moe_cktile2stages_gemm1_ck
        aiter::moe_cktile2stages_gemm1
""")
def ck_moe_stage1(
    x: Tensor, w1: Tensor, out: Tensor, k: Size = None, w2: Tensor | None = None
) -> Work:
    tokens = elements(x.shape[:-1])
    if isinstance(k, int):
        rows = tokens * k
    elif len(out.shape) == 3:
        rows = elements(out.shape[:-1])
    else:
        raise CannotModel("the number of experts per token is not in the capture")
    return one_product(x, w1, rows, numbers(w1, w2, x), (x, out))


@operators("""
    The activations of k experts for each token, x[t, k, i], times their w2, summed to [t, h].
    FLOPs: 2 t k numbers of w2 of one expert, sum not counted.
    Bytes: x read, the output written, w2 of the selectable experts, an upper bound.

    An estimate: experts may be on other devices.
    (x, w1, w2, _order, _experts, _valid, out, k, ...): aiter::ck_moe_stage2
        aiter::ck_moe_stage2_fwd
    (x, w2, out, _order, _experts, _valid, k, ...): aiter::moe_cktile2stages_gemm2_ck
        aiter::moe_cktile2stages_gemm2
""")
def ck_moe_stage2(
    x: Tensor, w2: Tensor, out: Tensor, k: Size = None, w1: Tensor | None = None
) -> Work:
    rows = elements(x.shape[:-1])
    return one_product(x, w2, rows, numbers(w1, w2, None), (x, out))


def _chosen(
    weights: Tensor,
    ids: Tensor,
    scores: Tensor,
    sources: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    flops: int,
) -> Answer:
    # FLOPs of the function of each score, before it is compared.
    each = flops + 1 + (bias is not None)
    moves = moved(scores, bias, weights, ids, sources)
    return Cost(elements(scores.shape) * each, moves), texts(scores)


table_row("""
    The k experts of each token with the greatest softmax of its scores [tokens, experts].

    FLOPs: 25 per score (softmax 24, compared 1), 26 with a bias.
    Bytes: scores and bias read; weights, indices and other requested outputs written.
    (weights, ids, sources, scores, _, bias): _moe_C::topk_softmax
    (weights, ids, scores, _, _, bias): sgl_kernel::topk_softmax
    (weights, ids, sources, scores, ...): aiter::topk_softmax aiter::topk_softmax_asm
        vllm::rocm_aiter_topk_softmax
""")(_chosen, flops=SOFTMAX)

table_row("""
    The k experts of each token with the greatest sigmoid of its scores [tokens, experts].

    FLOPs: 23 per score (sigmoid 22, compared 1), 24 with a bias.
    Bytes: scores and bias read; weights, indices and other requested outputs written.
    (weights, ids, sources, scores, _, bias): _moe_C::topk_sigmoid
    (weights, ids, scores, _, bias): sgl_kernel::topk_sigmoid
    (weights, ids, scores): aiter::topk_sigmoid vllm::rocm_aiter_topk_sigmoid
""")(_chosen, flops=SIGMOID)

table_row("""
    The k experts of each token with the greatest sqrt(log(1 + e^score)) of its scores.

    FLOPs: 62 per score (exponential, logarithm and square root 60, added 1, compared 1), 63 with a
    bias.
    Bytes: scores and bias read; weights, indices and other requested outputs written.
    (weights, ids, sources, scores, _, _, bias, ...): _moe_C::topk_softplus_sqrt
        _moe_C::topk_softplus_sqrt_fast
    (weights, ids, scores, bias, ...): aiter::topk_softplus aiter::topk_gating
""")(_chosen, flops=EXPONENTIAL + LOGARITHM + SQUARE_ROOT + 1)


@operators("""
    The k best experts of each token from its best groups: scores [tokens, experts].
    FLOPs: 25 per score (sigmoid 22, bias 1, compared 2: for the group, for the expert).
    Bytes: scores and bias read; weights and indices written, of 4 bytes each if the call does not
    pass them.

    An estimate: an argument may replace the sigmoid by a softmax.
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
    k: Size = None,
    weights: Tensor | None = None,
    ids: Tensor | None = None,
) -> Answer:
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

    An upper bound: the output may have more rows than are selected.
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
    The results of k experts for each token, x[tokens, k, d], summed to [tokens, d].
    FLOPs: k - 1 per element of the sum.
    Bytes: x read, the sum written.
    (x, out): _moe_C|aiter|sgl_kernel::moe_sum
    (x, out, _): sgl_kernel::moe_sum_reduce
""")
def moe_sum(x: Tensor, out: Tensor) -> Answer:
    added = elements(x.shape) - elements(out.shape)
    if added < 0:
        raise CannotModel(f"a sum {out.shape} does not fit {x.shape}")
    return Cost(added, moved(x, out)), texts(x)


@operators("""
    The results of experts, x[rows, d] in expert order, weighted and summed per token.
    FLOPs: 2 per used element: k rows for each token, weighted and added.
    Bytes: the rows, weights and orders read, the sums written.
    (x, weights, order, starts, _, out): _moe_C::moe_unpermute
    (x, weights, order, starts, _, _, out): _moe_C::moe_unpermute
    (x, weights, ids, order, starts, _, _, out): _moe_C::moe_unpermute
    (x, out, order, weights): sgl_kernel::apply_shuffle_mul_sum
    (x, order, weights): trtllm::moe_unpermute
""")
def moe_unpermute(x: Tensor, order: Tensor, out: Tensor | None = None, *, read: Tensors) -> Answer:
    width = x.shape[-1] if x.shape else 0
    taken = Tensor((elements(order.shape), width), x.dtype)
    if out is None:
        out = Tensor((*order.shape[:1], width), x.dtype)
    flops = 2 * elements(taken.shape)
    return Cost(flops, moved(taken, order, *read, out)), texts(x)


@operators("""
    Rows of x[tokens, d] in a given order.
    FLOPs: 0.
    Bytes: one row per entry of the order read and written, the order read.
    (x, order, out): _moe_C|_C|sgl_kernel::shuffle_rows
    (x, _scales, _limits, order, ...): trtllm::moe_permute
""")
def shuffle_rows(x: Tensor, order: Tensor, out: Tensor | None = None) -> Answer:
    width = x.shape[-1] if x.shape else 0
    written = fresh(x, (elements(order.shape), width)) if out is None else out
    return Cost(0, moved(fresh(x, written.shape), order, written)), texts(x, order)
