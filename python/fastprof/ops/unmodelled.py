"""Known operators without a formula, with the reason."""

from __future__ import annotations

from typing import Final

_INSIDE: Final = "it runs torch operators, which are counted themselves"
_RANKS: Final = "the number of ranks that share keys and values is not recorded"
ROUTED: Final = "it depends on values: the router decides how much goes to each device"
_MISSES: Final = "it depends on values: the number of rows missing from the cache"
_SPARSE: Final = "it depends on values: the number of elements kept"
_SILENT: Final = (
    "its kernels are launched by functions of a compiled module, which torch does not record:"
    " the capture contains the step without parameters"
)
_FUSER: Final = "the list of fused operations is not recorded"
_CLOSED: Final = "it has no public source"

# Reason -> names with namespace; autograd functions have aten, as in calls.
_OF_TRAINING: Final = {
    _INSIDE: (
        "aten::All2All_Pooled_Req aten::All2All_Pooled_Wait aten::All2All_Seq_Req "
        "aten::All2All_Seq_Req_Wait aten::ReduceScatter_Req aten::ReduceScatter_Wait "
        "aten::_VocabParallelCrossEntropy aten::LoRA_MLP aten::LoRA_QKV aten::LoRA_W"
    ),
    _RANKS: (
        "aten::AttnFuncWithCPAndKVP2P aten::AttnFuncWithCPAndKVAllGather "
        "aten::AttnFuncWithCPAndQKVOA2A"
    ),
    ROUTED: "aten::FusedDispatch aten::FusedCombine aten::HybridEPDispatch aten::HybridEPCombine",
    _MISSES: (
        "fbgemm::lru_cache_populate fbgemm::lfu_cache_populate fbgemm::lxu_cache_flush "
        "fbgemm::lxu_cache_lookup fbgemm::ssd_cache_populate_actions"
    ),
    _SPARSE: (
        "aten::LigerSparsemaxFunction xformers::sparse24_apply "
        "xformers::sparse24_sparsify_both_ways"
    ),
    _SILENT: "aten::DeepSpeedTransformerFunction",
    _FUSER: "aten::_OperationFuserAutogradFunction",
    _CLOSED: "fb::to_dense_representation fb::rms_norm fb::convex_sum",
}

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
        "vllm::moe_forward vllm::moe_forward_shared vllm::unified_mla_attention "
        "vllm::unified_mla_attention_with_output vllm::gdn_attention vllm::gdn_attention_core "
        "vllm::kda_attention vllm::linear_attention vllm::mamba_mixer vllm::mamba_mixer2 "
        "vllm::plamo2_mamba_mixer vllm::short_conv aiter::linear_attention_with_output_base "
        "aiter::maybe_dual_stream_forward"
    ),
    _LENGTHS: (
        "trtllm::attention trtllm::attention_inplace trtllm::attn_custom_op_inplace "
        "trtllm::mla_custom_op_inplace"
    ),
    _KEPT: (
        "vllm::sparse_attn_indexer vllm::rocm_aiter_sparse_attn_indexer aiter::indexer_score_topk "
        "aiter::v4_attention_with_output _vllm_fa2_C::fwd_sparse _vllm_fa2_C::varlen_fwd_sparse "
        "_C::convert_vertical_slash_indexes _flashmla_C::sparse_prefill_fwd "
        "sgl_kernel::fwd_sparse sgl_kernel::varlen_fwd_sparse sgl_kernel::sparse_prefill_fwd"
    ),
    ROUTED: "trtllm::mnnvl_moe_alltoallv trtllm::moe_a2a_combine trtllm::moe_a2a_dispatch",
    _COMPILED: "aten::CompiledFunction aten::CompiledFxGraph",
    _WRAPPED: "torch::__getattr__",
    _TILED: "vllm::fused_marlin_moe",
    _ADAPTED: "vllm::lora_expand vllm::lora_shrink",
    _PLANNED: (
        "_C::advance_step_flashattn _C::advance_step_flashinfer _flashmla_C::get_mla_metadata "
        "_vllm_fa3_C::get_scheduler_metadata aiter::get_mla_metadata_v1 aiter::get_pa_metadata_v1"
    ),
}

TRAINING: Final = {name: reason for reason, names in _OF_TRAINING.items() for name in names.split()}
_SERVING: Final = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
UNMODELLED: Final = _SERVING | TRAINING
