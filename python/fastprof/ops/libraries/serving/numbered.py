"""SGLang's profiler operators, which wrap functions and have numbered names.

`sglang_profiler::rmsnorm_rmsnorm2d_fwd_3` is the fourth wrapper, around `rmsnorm2d_fwd` of a module
`rmsnorm`. Its arguments are the function's tensors in order, without non-tensors.
"""

from __future__ import annotations

from typing import Final

from fastprof.ops.registry import generated

FUNCTIONS: Final = (
    "attention_paged_attention_ragged",
    "fp8_utils_gemm_a8w8_blockscale",
    "fused_moe_triton_kernels_invoke_fused_moe_kernel",
    "gemm_a8w8_blockscale_gemm_a8w8_blockscale",
    "gemm_kernels_flydsl_hgemm",
    "memory_pool__set_kv_buffer_impl",
    "rmsnorm_rms_norm",
    "rmsnorm_rmsnorm2d_fwd",
    "rmsnorm_rmsnorm2d_fwd_with_add",
)

for _each in FUNCTIONS:
    generated(rf"sglang_profiler::{_each}_\d+", f"sglang_profiler::{_each}")
