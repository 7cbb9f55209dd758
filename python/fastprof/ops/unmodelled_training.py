"""Operators of training packages without a formula, with the reason."""

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
_BY_REASON: Final = {
    _INSIDE: (
        "aten::All2All_Pooled_Req",
        "aten::All2All_Pooled_Wait",
        "aten::All2All_Seq_Req",
        "aten::All2All_Seq_Req_Wait",
        "aten::ReduceScatter_Req",
        "aten::ReduceScatter_Wait",
        "aten::_VocabParallelCrossEntropy",
        "aten::LoRA_MLP",
        "aten::LoRA_QKV",
        "aten::LoRA_W",
    ),
    _RANKS: (
        "aten::AttnFuncWithCPAndKVP2P",
        "aten::AttnFuncWithCPAndKVAllGather",
        "aten::AttnFuncWithCPAndQKVOA2A",
    ),
    ROUTED: (
        "aten::FusedDispatch",
        "aten::FusedCombine",
        "aten::HybridEPDispatch",
        "aten::HybridEPCombine",
    ),
    _MISSES: (
        "fbgemm::lru_cache_populate",
        "fbgemm::lfu_cache_populate",
        "fbgemm::lxu_cache_flush",
        "fbgemm::lxu_cache_lookup",
        "fbgemm::ssd_cache_populate_actions",
    ),
    _SPARSE: (
        "aten::LigerSparsemaxFunction",
        "xformers::sparse24_apply",
        "xformers::sparse24_sparsify_both_ways",
    ),
    _SILENT: ("aten::DeepSpeedTransformerFunction",),
    _FUSER: ("aten::_OperationFuserAutogradFunction",),
    _CLOSED: ("fb::to_dense_representation", "fb::rms_norm", "fb::convex_sum"),
}

TRAINING: Final = {name: reason for reason, names in _BY_REASON.items() for name in names}
