"""FLOPs and bytes of distances between vectors, and distance-based losses."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import POWER, SQUARE_ROOT
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.losses.elementwise import Reduce, Reduced, Reduction
from fastprof.ops.normalisation.unit_norm import norm_of
from fastprof.ops.registry import operators
from fastprof.ops.tensor import broadcast, elements, result_type
from fastprof.ops.traffic import fresh, moved, texts

# Three sums of products and a quotient: x y, x x, y y; product of norms, limit, root, division.
DOTS: Final = 6
QUOTIENT: Final = SQUARE_ROOT + 3
COSINE_BACKWARD: Final = (
    8  # dx = (y - x c) k and dy = (x - y c) k, each 4 with the scaling by dloss
)


def _paired(x: Tensor, y: Tensor) -> tuple[int, ...]:
    shape = broadcast(x.shape, y.shape)
    if not shape:
        raise CannotModel("no vectors to compare")
    return shape


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    if not -len(shape) <= dim < len(shape):
        raise CannotModel(f"no dimension {dim} in {shape}")
    place = dim % len(shape)
    return shape[:place] + shape[place + 1 :]


@operators("""
    (x, x2=y, dim, _): torch.cosine_similarity
    (x, y, dim, _): aten::cosine_similarity
""")
def cosine_similarity(
    x: Tensor, y: Tensor, dim: int | Unknown = 1, *, direction: str
) -> tuple[Cost, str]:
    """x . y / max(|x| |y|, eps) along one dimension.

    FLOPs: 6 per element (three sums of products), 23 for each pair (product, limit, root,
    division); backward 8 per element.
    Bytes: x and y read, the similarities written. Backward reads dloss, x and y, writes dx and dy.

    Counted as one kernel; torch uses several.
    """
    shape = _paired(x, y)
    if isinstance(dim, Unknown):
        raise CannotModel("the dimension is not in the capture")
    pairs = _without(shape, dim)
    found = Tensor(pairs, result_type((x, y)))
    if direction == "bprop":
        moves = moved(found, x, y, fresh(x), fresh(y))
        return Cost(elements(shape) * COSINE_BACKWARD, moves), texts(x, y)
    flops = elements(shape) * DOTS + elements(pairs) * QUOTIENT
    return Cost(flops, moved(x, y, found)), texts(x, y)


@operators("""
    (x, input2=y, target, _, reduction, reduce): cosine_embedding_loss
    (x, y, target, _, _, reduce, reduction): torch.cosine_embedding_loss
""")
def cosine_embedding_loss(
    x: Tensor,
    y: Tensor,
    target: Tensor,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """1 - cos(x, y) where t = 1, max(0, cos(x, y) - margin) where t = -1, for rows of x[n, d].

    FLOPs: 6 per element, 29 for each row (cosine 23, two branches 3, two comparisons, added), 1
    more if reduced; backward 8 per element.
    Bytes: x, y and t read, the loss written: one number, or all of them. Backward reads dloss, x, y
    and t, writes dx and dy.

    Counted as one kernel; torch uses several.
    """
    shape = _paired(x, y)
    rows = shape[:-1]
    reduced = Reduced.read(reduction, reduce)
    loss, params = reduced.loss(rows, result_type((x, y))), texts(x, y, target)
    if direction == "bprop":
        moves = moved(loss, x, y, target, fresh(x), fresh(y))
        return Cost(elements(shape) * COSINE_BACKWARD, moves, reduced.exact), params
    flops = elements(shape) * DOTS + elements(rows) * (QUOTIENT + 6 + reduced.added)
    return Cost(flops, moved(x, y, target, loss), reduced.exact), params


@operators("""
    (x, x2=y, p, ...): torch.pairwise_distance
    (x, y, p, ...): aten::pairwise_distance
""")
def pairwise_distance(
    x: Tensor, y: Tensor, p: float | Unknown = 2.0, *, direction: str
) -> tuple[Cost, str]:
    """(sum of |x - y + eps|^p)^(1/p) along the last dimension.

    FLOPs: 4 per element (subtracted, eps added, squared, added), 20 for each pair; backward 4
    (difference 2, scaled, times dloss). For p other than 0, 1, 2 and infinity, the power is 20.
    Bytes: x and y read, the distances written. Backward reads dloss, distances, x and y, writes dx
    and dy.

    Counted as one kernel; torch uses one for the difference and one for the norm. If not recorded,
    p is assumed to be 2 (not exact).
    """
    shape = _paired(x, y)
    norm, exact = norm_of(p), not isinstance(p, Unknown)
    found = Tensor(shape[:-1], result_type((x, y)))
    if direction == "bprop":
        flops = 4 + (POWER if norm.element > POWER else 0)
        moves = moved(found, found, x, y, fresh(x), fresh(y))
        return Cost(elements(shape) * flops, moves, exact), texts(x, y)
    flops = elements(shape) * (2 + norm.element) + elements(shape[:-1]) * norm.root
    return Cost(flops, moved(x, y, found), exact), texts(x, y)


@operators("""
    (anchor=x, positive, negative, _, p, _, swap, reduction, reduce): torch.triplet_margin_loss
    (anchor=x, positive, negative, _, p, _, swap, _, reduce, reduction):
        torch.triplet_margin_loss
    (x, positive, negative, _, p, _, swap, reduction, reduce): aten::triplet_margin_loss
""")
def triplet_margin_loss(
    x: Tensor,
    positive: Tensor,
    negative: Tensor,
    p: float | Unknown = 2.0,
    swap: bool | Unknown = False,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """max(0, d(x, positive) - d(x, negative) + margin) with pairwise distances, for each row.

    FLOPs: those of two pairwise distances (three with swap, and a minimum), 3 for each row, 1 more
    if reduced; backward those of the distances' backward passes.
    Bytes: x, positive and negative read, the loss written: one number, or all of them. Backward
    reads dloss and the three, writes their gradients.

    Counted as one kernel; torch uses several. If not recorded,  swap is assumed to be off (not
    exact).
    """
    pairs = [(x, positive), (x, negative)]
    if swap is True:
        pairs.append((positive, negative))
    costs = [pairwise_distance(*pair, p, direction=direction)[0] for pair in pairs]
    flops = add_known(*(cost.flops for cost in costs))
    rows = _paired(x, positive)[:-1]
    reduced = Reduced.read(reduction, reduce)
    exact = all(cost.exact for cost in costs) and reduced.exact and not isinstance(swap, Unknown)
    operands = (x, positive, negative)
    loss = reduced.loss(rows, result_type(operands))
    if direction == "bprop":
        moves = moved(loss, *operands, *map(fresh, operands))
        return Cost(flops, moves, exact), texts(*operands)
    per_row = 3 + reduced.added + (swap is True)
    flops = add_known(flops, elements(rows) * per_row)
    return Cost(flops, moved(*operands, loss), exact), texts(*operands)
