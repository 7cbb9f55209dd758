"""Sampling the next token: penalties, masks, cut-offs and draws over logits or probabilities."""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import Cost
from fastprof.ops.losses.softmax import FORWARD as SOFTMAX
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, texts

table_row("""
    Logits [rows, tokens] of earlier tokens, divided or multiplied in place.
    FLOPs: 3 per element (masks joined 1, compared 1, scaled 1).
    Bytes: logits read and written, masks and penalties read.

    Signature: vLLM csrc/torch_bindings.cpp.
    (logits, of_prompt, of_output, penalties): _C::apply_repetition_penalties_
""")(
    "logits, of_prompt, of_output, penalties",
    Traffic(3, "logits logits of_prompt of_output penalties"),
)

table_row("""
    Logits [rows, tokens] set to minus infinity in place if a bit is not set.
    FLOPs: 0.
    Bytes: bits read, logits written, an upper bound: only masked logits are written.

    Signature: SGLang sgl-kernel/csrc/common_extension.cc.
    (logits, bits, rows): sgl_kernel::apply_token_bitmask_inplace_cuda
""")("logits, bits, rows?", Traffic(0, "logits bits rows", exact=False))

table_row("""
    Probabilities of logits [rows, tokens], divided by temperatures first.
    FLOPs: 25 per element (divided 1, softmax 24).
    Bytes: logits read, probabilities written in float32.

    Signature: FlashInfer flashinfer/sampling.py.
    (_workspace, logits, temperatures, ...): flashinfer::softmax flashinfer::blackwell_softmax
""")(
    "logits, temperatures?, _workspace?", Traffic(SOFTMAX + 1, "logits temperatures logits:float32")
)

table_row("""
    Rows of x[rows, tokens] without elements beyond a computed cut-off.
    FLOPs: 3 per element (compared 1, added 1, scaled 1), for one pass.
    Bytes: x read twice (searched, written), the result written.

    An estimate: the search takes several passes, possibly from cache. Signatures: SGLang
    sgl-kernel/csrc/common_extension.cc, FlashInfer flashinfer/sampling.py.
    (x, out, limits, _): sgl_kernel::top_k_renorm_probs sgl_kernel::top_p_renorm_probs
        sgl_kernel::top_k_mask_logits
    (x, limits, ...): flashinfer::top_k_renorm_probs flashinfer::top_p_renorm_probs
        flashinfer::top_k_mask_logits
""")("x, out?, limits?", Traffic(3, "x x limits out/x:float32", exact=False))


@operators("""
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
def min_p_sampling_from_probs(
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


table_row("""
    Indices of the highest scores of each row of x[rows, keys], between its start and end.
    FLOPs: a comparison for each element, an upper bound: rows may be shorter.
    Bytes: x, starts and ends read, the indices written, an upper bound.

    Signatures: vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel/csrc/common_extension_rocm.cc, aiter
    aiter/ops/topk.py, TensorRT-LLM tensorrt_llm/_torch/custom_ops/cpp_custom_ops.py.
    (x, starts, ends, out, ...): _C::top_k_per_row_prefill aiter::_top_k_per_row_prefill
    (x, _, ends, out, ...): _C::top_k_per_row_decode aiter::_top_k_per_row_decode
    (x, ends, out, ...): _C::persistent_topk sgl_kernel::fast_topk_transform_fused
        sgl_kernel::fast_topk_transform_ragged_fused trtllm::indexer_topk_decode
    (x, out, ends, ...): sgl_kernel::fast_topk
    (x, starts, ends, out, _): trtllm::indexer_topk_prefill
""")("x, ends, out, starts?", Traffic(1, "x starts ends out", exact=False))
