"""FLOPs and bytes of non-maximum suppression. Schema: torchvision, csrc/ops/nms.cpp."""

from __future__ import annotations

from fastprof.model.call import UNKNOWN, Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.registry import operators
from fastprof.ops.traffic import moved, texts

# Corners of the intersection 4, its sides 2, clamped at zero 2, its area 1, the union 2, the ratio
# 1, the comparison 1.
_PAIR = 13


@operators("(boxes, scores, ...): torchvision::nms")
def nms(boxes: Tensor, scores: Tensor, *, result: Tensor | Unknown = UNKNOWN) -> tuple[Cost, str]:
    """Non-maximum suppression: indices [kept] of the boxes [n, 4] without a better overlapping box.

    FLOPs: 13 for each of n (n - 1) / 2 pairs (corners of the intersection 4, sides 2, clamped at
    zero 2, area 1, union 2, ratio 1, comparison 1), 3 for the area of each box.
    Bytes: boxes and scores read, the indices written (all n if the size of the result is unknown).

    An estimate: suppressed boxes are not compared further, and sorting is not counted.
    """
    if len(boxes.shape) != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise CannotModel(f"boxes {boxes.shape} do not fit scores {scores.shape}")
    n = boxes.shape[0]
    kept = result.shape if isinstance(result, Tensor) else (n,)
    moves = moved(boxes, scores, Tensor(kept, "int64"))
    return Cost(_PAIR * n * (n - 1) // 2 + 3 * n, moves, False), texts(boxes, scores)
