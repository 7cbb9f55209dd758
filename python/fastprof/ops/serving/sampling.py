"""Sampling the next token: penalties, masks, cut-offs and draws over logits or probabilities."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.cost import Cost
from fastprof.ops.losses.softmax import FORWARD as SOFTMAX
from fastprof.ops.registry import op
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts


@op(None, aten=("_C::apply_repetition_penalties_(logits, of_prompt, of_output, penalties)",))
def penalised(
    logits: Tensor, of_prompt: Tensor, of_output: Tensor, penalties: Tensor
) -> tuple[Cost, str]:
    """Logits [rows, tokens] of earlier tokens, divided or multiplied in place.

    FLOPs: 3 per element (masks joined 1, compared 1, scaled 1).
    Bytes: logits read and written, masks and penalties read.

    Signature: vLLM csrc/torch_bindings.cpp.
    """
    touched = moved(logits, logits, of_prompt, of_output, penalties)
    return Cost(3 * elements(logits.shape), touched), texts(logits)


@op(
    None,
    aten=("sgl_kernel::apply_token_bitmask_inplace_cuda(logits, bits, rows)",),
)
def masked(logits: Tensor, bits: Tensor, rows: Tensor | None = None) -> tuple[Cost, str]:
    """Logits [rows, tokens] set to minus infinity in place if a bit is not set.

    FLOPs: 0.
    Bytes: bits read, logits written, an upper bound: only masked logits are written.

    Signature: SGLang sgl-kernel/csrc/common_extension.cc.
    """
    return Cost(0, moved(logits, bits, rows), exact=False), texts(logits)


@op(
    None,
    aten=(
        "flashinfer::softmax(_workspace, logits, temperatures, ...)",
        "flashinfer::blackwell_softmax(_workspace, logits, temperatures, ...)",
    ),
)
def softmax(
    logits: Tensor, temperatures: Tensor | None = None, _workspace: Tensor | None = None
) -> tuple[Cost, str]:
    """Probabilities of logits [rows, tokens], divided by temperatures first.

    FLOPs: 25 per element (divided 1, softmax 24).
    Bytes: logits read, probabilities written in float32.

    Signature: FlashInfer flashinfer/sampling.py.
    """
    written = fresh(logits, dtype="float32")
    flops = (SOFTMAX + 1) * elements(logits.shape)
    return Cost(flops, moved(logits, temperatures, written)), texts(logits)


_LIMITS: Final = "(x, out, limits, _)"


@op(
    None,
    aten=(
        f"sgl_kernel::top_k_renorm_probs{_LIMITS}",
        f"sgl_kernel::top_p_renorm_probs{_LIMITS}",
        f"sgl_kernel::top_k_mask_logits{_LIMITS}",
        "flashinfer::top_k_renorm_probs(x, limits, ...)",
        "flashinfer::top_p_renorm_probs(x, limits, ...)",
        "flashinfer::top_k_mask_logits(x, limits, ...)",
    ),
)
def cut_off(x: Tensor, out: Tensor | None = None, limits: Tensor | None = None) -> tuple[Cost, str]:
    """Rows of x[rows, tokens] without elements beyond a computed cut-off.

    FLOPs: 3 per element (compared 1, added 1, scaled 1), for one pass.
    Bytes: x read twice (searched, written), the result written.

    An estimate: the search takes several passes, possibly from cache. Signatures: SGLang
    sgl-kernel/csrc/common_extension.cc, FlashInfer flashinfer/sampling.py.
    """
    written = fresh(x, dtype="float32") if out is None else out
    return Cost(3 * elements(x.shape), moved(x, x, limits, written), exact=False), texts(x)


_DRAWN: Final = "(x, out, rows, limits, ...)"
_TWO: Final = "rows, limits, _, more_limits, ...)"


@op(
    None,
    aten=(
        f"sgl_kernel::min_p_sampling_from_probs{_DRAWN}",
        f"sgl_kernel::top_p_sampling_from_probs{_DRAWN}",
        f"sgl_kernel::top_k_top_p_sampling_from_probs(x, out, {_TWO}",
        "flashinfer::sampling_from_logits(x, rows, ...)",
        "flashinfer::sampling_from_probs(x, rows, ...)",
        "flashinfer::top_p_sampling_from_probs(x, rows, limits, ...)",
        "flashinfer::top_k_sampling_from_probs(x, rows, limits, ...)",
        "flashinfer::min_p_sampling_from_probs(x, rows, limits, ...)",
        f"flashinfer::top_k_top_p_sampling_from_probs(x, {_TWO}",
        "aiter::greedy_sample(out, x)",
        "aiter::random_sample(out, x, limits, ...)",
        "aiter::mixed_sample(out, x, limits, ...)",
        "aiter::random_sample_outer_exponential(out, x, more_limits, limits, ...)",
        "aiter::mixed_sample_outer_exponential(out, x, more_limits, limits, ...)",
    ),
)
def drawn(
    x: Tensor,
    out: Tensor | None = None,
    rows: Tensor | None = None,
    limits: Tensor | None = None,
    more_limits: Tensor | None = None,
) -> tuple[Cost, str]:
    """A token of each row of x[rows, tokens], drawn by its probabilities or the most likely.

    FLOPs: 2 per element (added or scaled 1, compared 1), for one pass.
    Bytes: x and limits read, an index per row written (4 bytes if the call does not pass it).

    An estimate: a rejected draw takes another pass. Signatures: SGLang
    sgl-kernel/csrc/common_extension.cc, FlashInfer flashinfer/sampling.py, aiter
    aiter/ops/sample.py.
    """
    written = Tensor(x.shape[:1], "int32") if out is None else out
    touched = moved(x, rows, limits, more_limits, written)
    return Cost(2 * elements(x.shape), touched, exact=False), texts(x)


_ROWS: Final = "(x, starts, ends, out, ...)"


@op(
    None,
    aten=(
        f"_C::top_k_per_row_prefill{_ROWS}",
        f"aiter::_top_k_per_row_prefill{_ROWS}",
        "_C::top_k_per_row_decode(x, _, ends, out, ...)",
        "aiter::_top_k_per_row_decode(x, _, ends, out, ...)",
        "_C::persistent_topk(x, ends, out, ...)",
        "sgl_kernel::fast_topk(x, out, ends, ...)",
        "sgl_kernel::fast_topk_transform_fused(x, ends, out, ...)",
        "sgl_kernel::fast_topk_transform_ragged_fused(x, ends, out, ...)",
        "trtllm::indexer_topk_prefill(x, starts, ends, out, _)",
        "trtllm::indexer_topk_decode(x, ends, out, ...)",
    ),
)
def best_of_rows(
    x: Tensor, ends: Tensor, out: Tensor, starts: Tensor | None = None
) -> tuple[Cost, str]:
    """Indices of the highest scores of each row of x[rows, keys], between its start and end.

    FLOPs: a comparison for each element, an upper bound: rows may be shorter.
    Bytes: x, starts and ends read, the indices written, an upper bound.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension_rocm.cc, aiter
    aiter/ops/topk.py, TensorRT-LLM tensorrt_llm/_torch/custom_ops/cpp_custom_ops.py.
    """
    return Cost(elements(x.shape), moved(x, starts, ends, out), exact=False), texts(x)
