"""Fused norms and softmax, some with a residual, a gate or a mask.

Sources: apex/transformer/functional/fused_softmax.py in NVIDIA/apex, the same in
megatron/core/fusions/fused_softmax.py of NVIDIA/Megatron-LM and in
transformer_engine/pytorch/softmax.py of NVIDIA/TransformerEngine;
src/liger_kernel/ops/softmax.py in linkedin/Liger-Kernel.

Sources: apex/normalization/fused_layer_norm.py and apex/contrib/layer_norm in NVIDIA/apex;
src/liger_kernel/ops in linkedin/Liger-Kernel; transformer_engine/pytorch/module in
NVIDIA/TransformerEngine; flash_attn/ops/triton/layer_norm.py in Dao-AILab/flash-attention;
mamba_ssm/ops/triton/layer_norm.py and layernorm_gated.py in state-spaces/mamba;
unsloth/kernels in unslothai/unsloth.
"""

from __future__ import annotations

from typing import Any

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.losses.softmax import BACKWARD, FORWARD
from fastprof.ops.normalisation.layer_norm import group_norm, layer_norm, rms_norm
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, texts

# Fused norms, some with a residual or a gate, as autograd functions and operators.


table_row("""
    (x - mean) / sqrt(var + eps) * weight[d] + bias[d] of rows x[.., d].
    FLOPs: as layer_norm: 8 per element; backward 13.
    Bytes: as layer_norm: x read once, y written; backward dy and x read, dx written.
    (x, weight, bias, ...): aten::FusedLayerNormAffineFunction
        aten::FusedLayerNormAffineMixedDtypesFunction aten::FastLayerNormFN
        aten::LigerLayerNormFunction aten::Fast_Layernorm aten::_LayerNorm
        tex_ts::layernorm_fwd_fp8_inf_ts tex_ts::layernorm_fwd_inf_ts
""")(
    "x, weight, bias?",
    lambda x, weight, bias, direction: layer_norm(x, None, weight, bias, direction=direction),
)


@operators("""
    (x, weight, ...): aten::FusedRMSNormAffineFunction
        aten::FusedRMSNormAffineMixedDtypesFunction aten::LigerRMSNormFunction
        aten::Fast_RMS_Layernorm aten::_RMSNorm tex_ts::rmsnorm_fwd_fp8_inf_ts
        tex_ts::rmsnorm_fwd_inf_ts
""")
def root(x: Tensor, weight: Tensor | None = None, *, direction: str) -> Answer:
    """x / sqrt(mean(x^2) + eps) * weight[d] of rows x[.., d].

    FLOPs: as rms_norm: 4 per element; backward 9.
    Bytes: as rms_norm: x read once, y written; backward dy and x read, dx written.
    """
    if weight is None:
        return _plain(x, rms_norm, direction)
    return rms_norm(x, None, weight, direction=direction)


table_row("""
    Rows normalised without a weight. A row is assumed to be the last dimension.
    FLOPs: as layer_norm: 6 per element; backward 9. An RMS norm has 3 and 6: an estimate.
    Bytes: as layer_norm.
    (x, ...): aten::FusedLayerNormFunction aten::FusedRMSNormFunction
""")("x", lambda x, direction: _plain(x, layer_norm, direction))


def _plain(x: Tensor, norm: Any, direction: str) -> Answer:
    # The normalized shape is a torch.Size, which captures of autograd functions do not record.
    if not x.shape:
        raise CannotModel("a tensor without dimensions has no rows")
    cost, params = norm(x, x.shape[-1:], direction=direction)
    return Cost(cost.flops, cost.bytes, exact=False), params


@operators("(x, weight, bias, _, groups, ...): aten::LigerGroupNormFunction")
def liger_group_norm_function(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    groups: int | Unknown = Unknown.UNKNOWN,
    *,
    direction: str,
) -> Answer:
    """x[n, c, ..] normalised for each n and group of channels, * weight[c] + bias[c].

    FLOPs: as group_norm: 8 per element; backward 13.
    Bytes: as group_norm: x read twice, y written; backward dy and x read twice, dx written.
    """
    return group_norm(x, groups, weight, bias, direction=direction)


@operators("""
    (x, weight, bias, third, others**): aten::LayerNormFn
    (x, third, weight, others**): aten::LigerFusedAddRMSNormFunction
    (x, third, weight, bias, others**): aten::DropoutAddLayerNormFn
""")
def layer_norm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    third: Tensor | None = None,
    others: Tensors = (),
    *,
    direction: str,
) -> Answer:
    """norm(x + residual) * weight (+ bias), or norm(x) gated by a tensor; rows of x.

    FLOPs: those of an RMS norm without a bias, of a layer norm with one; 1 more per element with a
        residual, forward and backward.
    Bytes: those of the norm; with a residual it read and the sum written, backward its gradient
        read and written.

    An estimate with a third tensor: it may be a gate (24 FLOPs per element), which has the same
    shape.
    """
    del others
    if bias is None:
        cost, params = rms_norm(x, None, weight, direction=direction)
    else:
        cost, params = layer_norm(x, None, weight, bias, direction=direction)
    if third is None:
        return cost, params
    if elements(third.shape) != elements(x.shape):
        raise CannotModel(f"a residual of {third.shape} does not fit {x.shape}")
    flops = None if cost.flops is None else cost.flops + elements(x.shape)
    moves = add_known(cost.bytes, moved(third, fresh(third)))
    return Cost(flops, moves, exact=False), params


@operators("(x, alpha, gamma, beta): aten::LigerDyTFunction")
def liger_dy_t_function(
    x: Tensor, alpha: Tensor, gamma: Tensor, beta: Tensor | None = None, *, direction: str
) -> Answer:
    """tanh(alpha * x) * gamma[d] + beta[d].

    FLOPs: 23 per element (product 1, tanh 20, weight 1, bias 1); backward 30 (tanh again 21, its
        derivative 2, times dy and weight 2, of alpha 2, of the weight 2, of the bias 1).
    Bytes: x, weight and bias read, y written; backward dy, x and weight read, dx and the gradients
        of weight and bias written.
    """
    vectors = moved(alpha, gamma, beta)
    if direction == "bprop":
        flops = elements(x.shape) * (TRIGONOMETRIC + 10)
        return Cost(flops, add_known(moved(x, x, x), vectors, vectors)), texts(x, gamma)
    flops = elements(x.shape) * (TRIGONOMETRIC + 2 + (beta is not None))
    return Cost(flops, add_known(moved(x, x), vectors)), texts(x, gamma)


@operators("(x, weight, bias, ...): aten::LigerPolyNormFunction")
def liger_poly_norm_function(x: Tensor, weight: Tensor, bias: Tensor, *, direction: str) -> Answer:
    """w0 norm(x^3) + w1 norm(x^2) + w2 norm(x) + b of rows x[.., d], norms by the root mean square.

    FLOPs: 17 per element (powers 2, three norms 9, weights and sums 6); backward 35.
    Bytes: x read, y and three statistics per row written; backward dy, x and statistics read, dx
        written.
    """
    rows = elements(x.shape[:-1])
    statistics = moved(Tensor((3 * rows,), "float32"))
    tensors = (x, x) if direction == "fprop" else (x, x, x)
    flops = elements(x.shape) * (17 if direction == "fprop" else 35)
    return Cost(flops, add_known(moved(*tensors, weight, bias), statistics)), texts(x)


table_row("""
    softmax(scale * x) of scores x[.., s, t] at or below the diagonal, 0 above.
    FLOPs: 25 per element (softmax 24, scaling 1); backward 5. Masked elements count too.
    Bytes: x read, y written; backward dy and y read, dx written.
    (x, ...): aten::ScaledUpperTriangMaskedSoftmax aten::ScaledAlignedCausalMaskedSoftmax
""")("x", lambda x, direction: _softmax(x, None, 1, direction))

table_row("""
    softmax(scale * x) of scores x[b, h, s, t] with a mask [b, 1, s, t].
    FLOPs: 26 per element (softmax 24, scaling 1, mask 1); backward 5.
    Bytes: x and mask read, y written; backward dy and y read, dx written.
    (x, mask, ...): aten::ScaledMaskedSoftmax aten::GenericScaledMaskedSoftmax
""")("x, mask?", lambda x, mask, direction: _softmax(x, mask, 1, direction))

table_row("""
    softmax(scale * x) of scores x[.., s, t].
    FLOPs: 25 per element (softmax 24, scaling 1); backward 5.
    Bytes: x read, y written; backward dy and y read, dx written.
    (x, ...): aten::ScaledSoftmax
""")("x", lambda x, direction: _softmax(x, None, 1, direction))

table_row("""
    softmax(x) of rows x[.., n].
    FLOPs: 24 per element; backward 4.
    Bytes: x read, y written; backward dy and y read, dx written.
    (x, ...): aten::LigerSoftmaxFunction
""")("x", lambda x, direction: _softmax(x, None, 0, direction))


def _softmax(x: Tensor, mask: Tensor | None, scaling: int, direction: str) -> Answer:
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count * (BACKWARD + scaling), moved(x, x, x)), texts(x, mask)
    flops = count * (FORWARD + scaling + (mask is not None))
    return Cost(flops, add_known(moved(x, x), moved(mask))), texts(x, mask)
