"""Operators of training packages that have no formula, with the reason."""

from __future__ import annotations

from typing import Final

__all__ = ["TRAINING"]

_INSIDE: Final = "operators of torch run inside of it, which tell their own sizes and are counted"
_RANKS: Final = "how many ranks share the keys and values is in an object, which no capture holds"
_ROUTED: Final = "how much goes to which device is decided by the router, as values"
_MISSES: Final = "how many rows are not in the cache yet is a matter of values"
_SPARSE: Final = "how much is kept is a matter of values"
_SILENT: Final = (
    "its kernels are launched by functions of a compiled module, of which torch records nothing:"
    " the capture has the step without parameters"
)
_FUSER: Final = "which operations it runs as one is in an object, which no capture holds"
_CLOSED: Final = "it has no public source"

# Reason -> names, with their namespace; that of autograd functions is aten, as in calls.
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
    _ROUTED: (
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
