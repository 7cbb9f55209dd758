"""Collectives of serving stacks, with and without a fused norm: one device's own memory.

SGLang's profiler wraps functions in operators with numbers: `sglang_profiler::
rmsnorm_rmsnorm2d_fwd_3` is the fourth wrapper, around `rmsnorm2d_fwd` of a module `rmsnorm`. Its
arguments are the function's tensors in order, without non-tensors.

Signatures of the operators: vLLM csrc/torch_bindings.cpp, vllm/distributed/parallel_state.py,
vllm/compilation/passes/fusion/allreduce_rms_fusion.py; SGLang sgl-kernel/csrc/common_extension.cc,
python/sglang/srt/distributed/parallel_state.py, python/sglang/srt/layers/flashinfer_comm_fusion.py;
aiter aiter/ops/custom_all_reduce.py, aiter/dist/parallel_state.py; TensorRT-LLM
cpp/tensorrt_llm/thop/allreduceOp.cpp, cpp/tensorrt_llm/thop/allgatherOp.cpp.
"""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.parameters import Size, Tensors
from fastprof.ops.registry import generated, operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, fresh, moved, texts

_NORM: Final = 4  # squares added 2, scaling 1, weight 1
_QUANTISED: Final = 5  # magnitude compared 2, times scale 1, limits 2


table_row("""
    The sum of tensors over all ranks, on each of them, by the stack's own kernel or by NCCL.
    FLOPs: one for each element, an estimate: a rank adds n - 1 numbers for its share, or for all.
    Bytes: the tensor read, the sum written.
    (_, x, out, _, _): _C_custom_ar|sgl_kernel::all_reduce
        _C_custom_ar|sgl_kernel|aiter::qr_all_reduce sgl_kernel::mscclpp_allreduce
    (_, x, out): _C_custom_ar|sgl_kernel::all_reduce_reg
        sgl_kernel::deterministic_all_reduce_reg
    (_, x, _buffer, out): _C_custom_ar|sgl_kernel::all_reduce_unreg
        sgl_kernel::deterministic_all_reduce_unreg
    (_, x, out, ...): aiter::all_reduce
    (x, ...): aiter::all_reduce_ vllm::all_reduce vllm::all_reduce_symmetric_with_copy
        vllm|sglang::inplace_all_reduce vllm|sglang::outplace_all_reduce
    (x, _): trtllm::userbuffers_allreduce_finalize
""")("x, out?, _buffer?", Traffic(1, "x out/x'", exact=False))


@operators("""
    The sum of x[.., d] over all ranks, the residual added to it, and the RMS norm of that.
    FLOPs: per element one (the sum, an estimate as in all_reduce), one more for the residual, 4 for
    the norm, 5 if quantised; without residual and weight the sum alone.
    Bytes: x, residual, weight, scale and bias read, norm, new residual and quantised result
    written.
    (x, residual, weight, ...): sglang::flashinfer_allreduce_residual_rmsnorm
        vllm::rocm_aiter_fused_allreduce_rmsnorm aiter::fused_allreduce_rmsnorm_
    (x, residual, weight, _, _, _, _, _, _, _, _, _, out, quantised, scales, scale):
        vllm::flashinfer_trtllm_fused_allreduce_norm
    (x, residual, weight, _, _, _, _, _, _, _, _, out, quantised, scales, scale):
        vllm::flashinfer_trtllm_fused_allreduce_norm
    (x, residual, weight, _, _, _, _, _, _, out, quantised, scales, scale, ...):
        vllm::flashinfer_trtllm_fused_allreduce_norm
    (_, x, residual, residual_out, out, weight, ...): aiter::fused_allreduce_rmsnorm
        aiter::fused_allreduce_rmsnorm_pad
    (_, x, residual, residual_out, out, scales, weight, ...):
        aiter::fused_allreduce_rmsnorm_quant aiter::fused_allreduce_rmsnorm_quant_per_group
        aiter::fused_allreduce_rmsnorm_mxfp4_quant
    (x, weight, _workspace, _, _, _): _C::minimax_allreduce_rms
    (x, residual, weight, scale, bias, _workspace, ...): trtllm::allreduce
        trtllm::autotuned_allreduce trtllm::allreduce_pg
    (x, weight, residual, ...): trtllm::mnnvl_fusion_allreduce
    (x, weight, _workspace, ...): trtllm::minimax_allreduce_rms
""")
def flashinfer_allreduce_residual_rmsnorm(
    x: Tensor,
    residual: Tensor | None = None,
    weight: Tensor | None = None,
    out: Tensor | None = None,
    residual_out: Tensor | None = None,
    quantised: Tensor | None = None,
    scales: Tensor | None = None,
    *,
    read: Tensors,
) -> Answer:
    normed = weight is not None
    smaller = quantised is not None or scales is not None
    each = 1 + (residual is not None) + (_NORM if normed else 0) + (_QUANTISED if smaller else 0)
    written = [fresh(x) if out is None and quantised is None else out, quantised, scales]
    if residual is not None:
        written.append(fresh(residual))
    touched = moved(x, residual, weight, *read, *written)
    return Cost(elements(x.shape) * each, touched, exact=False), texts(x, weight)


class GroupSize(NamedTuple):
    """The arguments of a call that tell the number of ranks."""

    ranks: Size = None
    group: tuple[int, ...] | Unknown | None = None

    @property
    def known(self) -> int | None:
        """The number of ranks, if recorded."""
        if isinstance(self.group, tuple):
            return len(self.group)
        return self.ranks if isinstance(self.ranks, int) else None


@operators("""
    The tensors of all n ranks, concatenated, on each of them.
    FLOPs: 0.
    Bytes: the tensor read, n times the same amount written.
    (_, x, out, _): aiter::all_gather_reg
    (_, x, _buffer, out, ...): aiter::all_gather_unreg
    (out, x, ...): sglang::reg_all_gather_into_tensor
    (x, _, ranks, ...): vllm::all_gather
    (x, _, group, ...): trtllm::allgather
""")
def gathered_ranks(x: Tensor, ranks: GroupSize, out: Tensor | None = None) -> Answer:
    count = ranks.known
    if out is None and count is None:
        raise CannotModel("the number of ranks is not in the capture")
    written = [x] * (count or 0) if out is None else [out]
    return Cost(0, moved(x, *written)), texts(x)


@operators("""
    The sum of tensors over all n ranks, an n-th of it on each of them.
    FLOPs: n - 1 for each element of the piece.
    Bytes: the tensor read, the piece written.
    (_, x, out, ...): aiter::reduce_scatter
    (x, _, ranks, ...): vllm::reduce_scatter
    (x, _, group, ...): trtllm::reducescatter
""")
def aiter_reduce_scatter(x: Tensor, ranks: GroupSize, out: Tensor | None = None) -> Answer:
    count = ranks.known
    if out is None:
        if not count or elements(x.shape) % count:
            raise CannotModel("the number of ranks is not in the capture, or does not divide")
        out = Tensor((elements(x.shape) // count,), x.dtype)
    added = elements(x.shape) - elements(out.shape)
    if added < 0:
        raise CannotModel(f"a piece {out.shape} is larger than {x.shape}")
    return Cost(added, moved(x, out)), texts(x)


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
