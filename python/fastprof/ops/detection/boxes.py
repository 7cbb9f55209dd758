"""Boxes that overlap, to FLOPs and bytes. Schema: torchvision, csrc/ops/nms.cpp."""

from __future__ import annotations

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import op
from fastprof.ops.traffic import moved, texts

__all__ = ["nms"]

# Corners of the intersection 4, its sides 2, not below nothing 2, its area 1, the union 2, the
# ratio 1, the comparison 1.
_PAIR = 13


@op(None, aten=("torchvision::nms(boxes, scores, ...)",))
def nms(boxes: Tensor, scores: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> tuple[Cost, str]:
    """Non-maximum suppression: boxes [n, 4] that overlap no better one -> their places [kept].

    FLOPs: 13 for each of n (n - 1) / 2 pairs (corners of the intersection 4, sides 2, not below
    nothing 2, area 1, union 2, ratio 1, comparison 1), 3 for the area of each box.
    Bytes: boxes and scores read, the places written: all, where the size of the result is unknown.

    An estimate: a bad box is compared with none, and sorting the scores is left out.
    """
    if len(boxes.shape) != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise CannotModel(f"no boxes of {boxes.shape} with scores of {scores.shape}")
    n = boxes.shape[0]
    kept = result.shape if isinstance(result, Tensor) else (n,)
    moves = moved(boxes, scores, Tensor(kept, "int64"))
    return Cost(_PAIR * n * (n - 1) // 2 + 3 * n, moves, False), texts(boxes, scores)
