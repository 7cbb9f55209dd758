"""The operators, kernels and layers of experts.

Sources of names: vLLM vllm/model_executor/layers/fused_moe, SGLang python/sglang/srt/layers/moe,
TensorRT-LLM cpp/tensorrt_llm/kernels, DeepGEMM, DeepEP csrc/kernels, torch `_grouped_mm`,
transformers src/transformers/models/mixtral, Megatron-LM megatron/core/transformer/moe.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from fastprof._system.regex import regex

PRODUCTS, ROUTING, EXCHANGE, OTHER = range(4)
WHOLE: Final = 4  # of an operator: a layer of experts, of which kernels tell the part

_OPERATORS: Final = (
    (EXCHANGE, regex(r"(?:\w*::)?(?:deep_ep_)?(?:dispatch|combine)(?:_\w+)?\Z")),
    (ROUTING, regex(
        r"(?:\w*::)*\w*(?:topk_softmax|topk_sigmoid|topk_softplus|grouped_topk|moe_fused_gate"
        r"|moe_align_block_size|moe_permute|moe_unpermute|moe_sum|moe_sorting|permute_tokens"
        r"|noaux_tc_op|shuffle_rows)\w*\Z"
    )),
    (PRODUCTS, regex(
        r"(?:\w*::)*(?:_grouped_mm|_scaled_grouped_mm\w*|grouped_mm|grouped_gemm|gmm"
        r"|\w*moe_mm|\w*group(?:ed)?_(?:mm|gemm)\w*|moe_wna16\w*|\w*m_grouped\w*)\Z"
    )),
    (WHOLE, regex(
        r"(?:\w*::)*\w*(?:fused_experts|fused_moe|moe_forward|block_scale_moe|fmoe|ck_moe)\w*\Z"
    )),
)  # fmt: skip
_KERNELS: Final = (
    (EXCHANGE, regex(r".*\bdeep_ep::\w*.*(?:dispatch|combine)|.*\b(?:intranode|internode)::")),
    (ROUTING, regex(
        r".*(?:moe::dev::routing|moe::dev::finalize|moe_align_block_size|topkGating|topk_gating"
        r"|count_and_sort_expert|expandInputRows|finalizeMoeRouting|moe_sum|moe_permute"
        r"|moe_unpermute|topk_softmax|grouped_topk)"
    )),
    (PRODUCTS, regex(
        r".*(?:fused_moe_kernel|moe_wna16|MoeFCGemm|moe_gemm|m_grouped|GroupProblemShape)"
    )),
)  # fmt: skip
_EXPERT: Final = regex(r"(?:(.*?)[:.])?experts[.\[](\d+)\]?(?:[:.].*)?\Z")
# Modules of one class for each expert, which torch.profiler numbers over all layers.
_EXPERT_CLASS: Final = regex(r"(.*):(\w*(?:BlockSparseTop2MLP|Expert(?!s)\w*)_\d+)(?::.*)?\Z")


@lru_cache(maxsize=4096)
def part_of_operator(name: str) -> int | None:
    """The part that an operator of experts does, or WHOLE; None for other operators."""
    return next((part for part, form in _OPERATORS if form.match(name)), None)


def part_of_kernel(name: str) -> int | None:
    """The part that a kernel of experts does, by its name; None for other kernels."""
    return next((part for part, form in _KERNELS if form.match(name)), None)


@lru_cache(maxsize=4096)
def is_of_experts(name: str) -> bool:
    """Whether an operator or kernel multiplies the rows of experts, however many there are."""
    parts = part_of_operator(name), part_of_kernel(name)
    return PRODUCTS in parts or WHOLE in parts


@lru_cache(maxsize=4096)
def expert_of(layer: str) -> tuple[str, str] | None:
    """The layer of experts and the expert that a layer is, or is inside; None for other layers."""
    match = _EXPERT.match(layer) or _EXPERT_CLASS.match(layer)
    return None if match is None else (match[1] or "experts", match[2])
