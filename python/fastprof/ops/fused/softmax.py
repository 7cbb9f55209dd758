"""Fused scaling, masking and softmax of attention scores.

Sources: apex/transformer/functional/fused_softmax.py in NVIDIA/apex, the same in
megatron/core/fusions/fused_softmax.py of NVIDIA/Megatron-LM and in
transformer_engine/pytorch/softmax.py of NVIDIA/TransformerEngine;
src/liger_kernel/ops/softmax.py in linkedin/Liger-Kernel.
"""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.cost import Cost, add_known
from fastprof.ops.losses.softmax import BACKWARD, FORWARD
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, texts

Answer = tuple[Cost, str]


@operators("(x, ...): aten::ScaledUpperTriangMaskedSoftmax aten::ScaledAlignedCausalMaskedSoftmax")
def causal(x: Tensor, *, direction: str) -> Answer:
    """softmax(scale * x) of scores x[.., s, t] at or below the diagonal, 0 above.

    FLOPs: 25 per element (softmax 24, scaling 1); backward 5. Masked elements count too.
    Bytes: x read, y written; backward dy and y read, dx written.
    """
    return _softmax(x, None, 1, direction)


@operators("(x, mask, ...): aten::ScaledMaskedSoftmax aten::GenericScaledMaskedSoftmax")
def masked(x: Tensor, mask: Tensor | None = None, *, direction: str) -> Answer:
    """softmax(scale * x) of scores x[b, h, s, t] with a mask [b, 1, s, t].

    FLOPs: 26 per element (softmax 24, scaling 1, mask 1); backward 5.
    Bytes: x and mask read, y written; backward dy and y read, dx written.
    """
    return _softmax(x, mask, 1, direction)


@operators("(x, ...): aten::ScaledSoftmax")
def scaled(x: Tensor, *, direction: str) -> Answer:
    """softmax(scale * x) of scores x[.., s, t].

    FLOPs: 25 per element (softmax 24, scaling 1); backward 5.
    Bytes: x read, y written; backward dy and y read, dx written.
    """
    return _softmax(x, None, 1, direction)


@operators("(x, ...): aten::LigerSoftmaxFunction")
def unscaled(x: Tensor, *, direction: str) -> Answer:
    """softmax(x) of rows x[.., n].

    FLOPs: 24 per element; backward 4.
    Bytes: x read, y written; backward dy and y read, dx written.
    """
    return _softmax(x, None, 0, direction)


def _softmax(x: Tensor, mask: Tensor | None, scaling: int, direction: str) -> Answer:
    count = elements(x.shape)
    if direction == "bprop":
        return Cost(count * (BACKWARD + scaling), moved(x, x, x)), texts(x, mask)
    flops = count * (FORWARD + scaling + (mask is not None))
    return Cost(flops, add_known(moved(x, x), moved(mask))), texts(x, mask)
