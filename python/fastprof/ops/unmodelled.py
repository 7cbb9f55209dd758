"""Known operators without a formula, with the reason."""

from __future__ import annotations

from typing import Final

from fastprof.ops.unmodelled_training import ROUTED, TRAINING

_LAYER: Final = (
    "the call refers to a layer by name and does not contain its weights and state; operators"
    " inside it that contain them are counted"
)
_LENGTHS: Final = "it depends on values: the lengths of the sequences and their caches"
_KEPT: Final = "sparse attention: it depends on values, the number of keys per query"
_TILED: Final = "the layout of the weights does not determine the sizes of the experts"
_ADAPTED: Final = "it depends on values: the tokens with an adapter, and their adapters' ranks"
_COMPILED: Final = (
    "a function from torch.compile: its kernels are defined in generated code, and no operator"
    " around them records sizes"
)
_WRAPPED: Final = "a PyProf marker around the call of an attribute, without arguments"
_PLANNED: Final = "it plans the work of another operator, depending on values"

# Reason -> names with namespace.
_BY_REASON: Final = {
    _LAYER: (
        "vllm::moe_forward",
        "vllm::moe_forward_shared",
        "vllm::unified_mla_attention",
        "vllm::unified_mla_attention_with_output",
        "vllm::gdn_attention",
        "vllm::gdn_attention_core",
        "vllm::kda_attention",
        "vllm::linear_attention",
        "vllm::mamba_mixer",
        "vllm::mamba_mixer2",
        "vllm::plamo2_mamba_mixer",
        "vllm::short_conv",
        "aiter::linear_attention_with_output_base",
        "aiter::maybe_dual_stream_forward",
    ),
    _LENGTHS: (
        "trtllm::attention",
        "trtllm::attention_inplace",
        "trtllm::attn_custom_op_inplace",
        "trtllm::mla_custom_op_inplace",
    ),
    _KEPT: (
        "vllm::sparse_attn_indexer",
        "vllm::rocm_aiter_sparse_attn_indexer",
        "aiter::indexer_score_topk",
        "aiter::v4_attention_with_output",
        "_vllm_fa2_C::fwd_sparse",
        "_vllm_fa2_C::varlen_fwd_sparse",
        "_C::convert_vertical_slash_indexes",
        "_flashmla_C::sparse_prefill_fwd",
        "sgl_kernel::fwd_sparse",
        "sgl_kernel::varlen_fwd_sparse",
        "sgl_kernel::sparse_prefill_fwd",
    ),
    ROUTED: (
        "trtllm::mnnvl_moe_alltoallv",
        "trtllm::moe_a2a_combine",
        "trtllm::moe_a2a_dispatch",
    ),
    _COMPILED: ("aten::CompiledFunction", "aten::CompiledFxGraph"),
    _WRAPPED: ("torch::__getattr__",),
    _TILED: ("vllm::fused_marlin_moe",),
    _ADAPTED: ("vllm::lora_expand", "vllm::lora_shrink"),
    _PLANNED: (
        "_C::advance_step_flashattn",
        "_C::advance_step_flashinfer",
        "_flashmla_C::get_mla_metadata",
        "_vllm_fa3_C::get_scheduler_metadata",
        "aiter::get_mla_metadata_v1",
        "aiter::get_pa_metadata_v1",
    ),
}

_SERVING: Final = {name: reason for reason, names in _BY_REASON.items() for name in names}
UNMODELLED: Final = _SERVING | TRAINING
