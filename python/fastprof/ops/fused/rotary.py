"""Fused rotary position embeddings.

Sources: flash_attn/layers/rotary.py in Dao-AILab/flash-attention; src/liger_kernel/ops/rope.py and
similar files in linkedin/Liger-Kernel; apex/transformer/functional/fused_rope.py in NVIDIA/apex;
transformer_engine/pytorch/attention/rope.py in NVIDIA/TransformerEngine;
unsloth/kernels/rope_embedding.py in unslothai/unsloth.
"""

from __future__ import annotations

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import TRIGONOMETRIC
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, texts

Answer = tuple[Cost, str]


@operators("""
    (x, cosines, sines, ...): aten::ApplyRotaryEmb aten::Fast_RoPE_Embedding
        aten::FusedRoPECachedFunc
""")
def rotated(x: Tensor, cosines: Tensor, sines: Tensor, *, direction: str) -> Answer:
    """Pairs of elements of x[.., d] rotated by the angles of their positions.

    FLOPs: 3 for each rotated element (two products, a sum); backward the same.
    Bytes: x, cosines and sines read, x written; backward the same of its gradient.

    The cosines' last dimension determines the number of rotated elements: all if it is d or d / 2.
    """
    del direction
    return _turned((x,), cosines, sines)


@operators("""
    (query, key, cosines, sines, ...): aten::LigerRopeFunction aten::LigerQwen2VLMRopeFunction
        aten::Fast_RoPE_Embedding_QK
""")
def rotated_pair(
    query: Tensor, key: Tensor, cosines: Tensor, sines: Tensor, *, direction: str
) -> Answer:
    """Pairs of elements of queries and keys [.., d] rotated by the angles of their positions.

    FLOPs: 3 for each element (two products, a sum); backward the same.
    Bytes: queries, keys, cosines and sines read, queries and keys written; backward the same of
        their gradients.
    """
    del direction
    return _turned((query, key), cosines, sines)


def _turned(tensors: Tensors, cosines: Tensor, sines: Tensor) -> Answer:
    count = 0
    for each in tensors:
        if not each.shape or not cosines.shape:
            raise CannotModel(f"{each.shape} cannot be rotated by {cosines.shape}")
        size, width = each.shape[-1], cosines.shape[-1]
        share = width if width == size else min(2 * width, size)
        count += elements(each.shape[:-1]) * share
    moves = add_known(moved(*tensors, cosines, sines), moved(*tensors))
    return Cost(3 * count, moves), texts(*tensors)


@operators("(packed, cosines, sines, ...): aten::ApplyRotaryEmbQKV_ aten::ApplyRotaryEmbKV_")
def packed(packed: Tensor, cosines: Tensor, sines: Tensor, *, direction: str) -> Answer:
    """Queries and keys in [b, s, 3, h, d] rotated in place, or keys in [b, s, 2, h, d].

    FLOPs: 3 for each rotated element (two products, a sum); backward the same.
    Bytes: rotated elements read and written, cosines and sines read; values are not touched.
    """
    del direction
    shape = packed.shape
    if len(shape) != 5 or shape[2] not in (2, 3) or not cosines.shape:
        raise CannotModel(f"shape {shape} is not [b, s, 2 or 3, h, d]")
    part = Tensor((*shape[:2], shape[2] - 1, *shape[3:]), packed.dtype)
    return _turned((part,), cosines, sines)


@operators("""
    (x, angles, others**): aten::FusedRoPEFunc
    (x, starts, angles, others**): aten::FusedRoPETHDFunc
    (x, _, _, angles, others**): aten::FusedRoPE2DFunc
    (x, second, angles, others**): aten::LigerLlama4RopeFunction
""")
def by_angles(
    x: Tensor,
    angles: Tensor,
    starts: Tensor | None = None,
    second: Tensor | None = None,
    others: Tensors = (),
    *,
    direction: str,
) -> Answer:
    """Pairs of elements of x[.., h, d] rotated by angles [s, .., r], r of the d elements.

    FLOPs: 3 for each rotated element (two products, a sum), and 40 for each angle (cosine and sine)
        if the call does not pass cosines and sines; backward the same.
    Bytes: x, angles (and the other tensors) read, x written; backward the same of its gradient.
    """
    del direction
    if not angles.shape or not x.shape:
        raise CannotModel(f"{x.shape} cannot be rotated by {angles.shape}")
    tensors = (x,) if second is None else (x, second)
    width = min(angles.shape[-1], x.shape[-1])
    if others or second is not None:  # tables of cosines and sines, half as wide
        width = x.shape[-1]
    count = sum(elements(each.shape[:-1]) * width for each in tensors)
    tables = [each for each in others if each.shape]
    functions = 0 if tables or second is not None else 2 * TRIGONOMETRIC * elements(angles.shape)
    moves = moved(*tensors, *tensors, angles, starts, *tables)
    return Cost(3 * count + functions, moves), texts(*tensors)
