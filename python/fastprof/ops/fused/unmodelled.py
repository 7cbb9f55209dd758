"""Operators of training packages that have no formula, with the reason."""

from __future__ import annotations

from typing import Final

__all__ = ["UNMODELLED"]

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

# Reason -> names, with their namespace where they have one.
_BY_REASON: Final = {
    _INSIDE: (
        "All2All_Pooled_Req",
        "All2All_Pooled_Wait",
        "All2All_Seq_Req",
        "All2All_Seq_Req_Wait",
        "ReduceScatter_Req",
        "ReduceScatter_Wait",
        "_VocabParallelCrossEntropy",
        "LoRA_MLP",
        "LoRA_QKV",
        "LoRA_W",
    ),
    _RANKS: (
        "AttnFuncWithCPAndKVP2P",
        "AttnFuncWithCPAndKVAllGather",
        "AttnFuncWithCPAndQKVOA2A",
    ),
    _ROUTED: ("FusedDispatch", "FusedCombine", "HybridEPDispatch", "HybridEPCombine"),
    _MISSES: (
        "fbgemm::lru_cache_populate",
        "fbgemm::lfu_cache_populate",
        "fbgemm::lxu_cache_flush",
        "fbgemm::lxu_cache_lookup",
        "fbgemm::ssd_cache_populate_actions",
    ),
    _SPARSE: (
        "LigerSparsemaxFunction",
        "xformers::sparse24_apply",
        "xformers::sparse24_sparsify_both_ways",
    ),
    _SILENT: (
        "Optimizer.step#FusedAdam.step",
        "Optimizer.step#FusedLAMB.step",
        "Optimizer.step#FusedSGD.step",
        "DeepSpeedTransformerFunction",
    ),
    _FUSER: ("_OperationFuserAutogradFunction",),
    _CLOSED: ("fb::to_dense_representation", "fb::rms_norm", "fb::convex_sum"),
}

UNMODELLED: Final = {name: reason for reason, names in _BY_REASON.items() for name in names}
