"""FLOPs and bytes of cross entropy and negative log likelihood."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.losses.elementwise import Reduce, Reduced, Reduction
from fastprof.ops.losses.softmax import log_softmax
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements, is_floating
from fastprof.ops.traffic import fresh, moved, texts


def _targets(x: Tensor) -> tuple[int, ...]:
    # Shape of the class indices of x[n, c, ..] or x[c].
    if not x.shape:
        raise CannotModel("scores without a dimension of classes")
    return (x.shape[0], *x.shape[2:]) if len(x.shape) > 1 else ()


def _weighted(x: Tensor, weight: Tensor | None) -> None:
    classes = x.shape[:2][-1:]
    if weight is not None and (elements(weight.shape),) != classes:
        raise CannotModel(f"weight {weight.shape} does not fit the classes of {x.shape}")


@operators("""
    (x, target, weight, reduction, _, reduce): torch.nll_loss torch.nll_loss2d torch.nll_loss_nd
        torch.nll_loss_forward torch.nll_loss2d_forward
    (x, target, weight, _, _, reduce, reduction): torch.nll_loss
    (x, target, weight, reduction, _): aten::nll_loss aten::nll_loss2d aten::nll_loss_nd
        aten::nll_loss_forward aten::nll_loss2d_forward
""")
def nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """-x[n, t[n], ..] of log probabilities x[n, c, ..] and class indices t[n, ..].

    FLOPs: 1 per target if reduced, and 2 for a weight (product, weights added), 1 if not reduced;
    backward 1 per target and 1 with a weight.
    Bytes: t and the picked elements of x read, weight read, the loss written: one number and the
    sum of weights, or all of them. Backward reads dloss, t and weight and writes all of dx, mostly
    zeros.

    Ignored targets are unknown and count like the others.
    """
    if target.shape != _targets(x):
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    _weighted(x, weight)
    reduced = Reduced.read(reduction, reduce)
    picked = fresh(x, target.shape)
    loss, params = reduced.loss(target.shape, x.dtype), texts(x, target, weight)
    count, more = elements(target.shape), int(weight is not None)
    total = fresh(x, ()) if reduced.added else None
    if direction == "bprop":
        moves = moved(loss, target, weight, total, fresh(x))
        return Cost(count * (1 + more), moves, reduced.exact), params
    flops = count * (reduced.added + more * (1 + reduced.added))
    return Cost(flops, moved(target, picked, weight, loss, total), reduced.exact), params


@operators("(gradient, x, target, weight, _, _, total): nll_loss_backward nll_loss2d_backward")
def nll_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    total: Tensor | None = None,
) -> tuple[Cost, str]:
    """dx[n, c, ..] of a negative log likelihood: dloss where the target is, zeros elsewhere.

    FLOPs: 1 per target, 1 more with a weight.
    Bytes: dloss, t, weight and the sum of weights read, all of dx written.
    """
    if target.shape != _targets(x):
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    _weighted(x, weight)
    flops = elements(target.shape) * (1 + (weight is not None))
    moves = moved(gradient, target, weight, total, fresh(x))
    return Cost(flops, moves), texts(x, target, weight)


@operators("""
    (x, target, weight, reduction, _, label_smoothing): cross_entropy_loss
    (x, target, weight, _, _, reduce, reduction, label_smoothing): torch.cross_entropy
""")
def cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    label_smoothing: float | Unknown = 0.0,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """log_softmax of scores x[n, c, ..], then nll_loss with class indices t[n, ..] or
    probabilities t[n, c, ..].

    FLOPs: those of both: 24 per element and 1 per target; backward 23 and 1. Probabilities: 2 per
    element (product, added) and 1 with a weight in place of nll_loss, backward the same. Label
    smoothing: 1 more per element (added), 1 with a weight, 4 per target; backward 1.
    Bytes: those of both, including log probabilities written and read in between, and read once
    more for label smoothing.

    torch has one kernel for each. If not recorded,  no smoothing is assumed (not exact).
    """
    smooth = isinstance(label_smoothing, float | int) and label_smoothing > 0
    unsure = isinstance(label_smoothing, Unknown)
    cost, _ = log_softmax(x, direction=direction)
    spread = target.shape == x.shape and (len(x.shape) > 1 or is_floating(target.dtype))
    if spread:
        cost += _probabilities(x, target, weight, Reduced.read(reduction, reduce), direction)
    else:
        cost += nll_loss(x, target, weight, reduction, reduce, direction=direction)[0]
    if smooth:
        cost += _smoothing(x, weight, direction)
    cost = Cost(cost.flops, cost.bytes, cost.exact and not unsure)
    return cost, texts(x, target, weight)


def _probabilities(
    x: Tensor, target: Tensor, weight: Tensor | None, reduced: Reduced, direction: str
) -> Cost:
    # -(sum over classes of x t w): all elements are read, and dx has the same size.
    _weighted(x, weight)
    flops = elements(x.shape) * (2 + (weight is not None))
    loss = reduced.loss(_targets(x), x.dtype)
    if direction == "bprop":
        return Cost(flops, moved(loss, target, weight, fresh(x)), reduced.exact)
    return Cost(flops, moved(fresh(x), target, weight, loss), reduced.exact)


def _smoothing(x: Tensor, weight: Tensor | None, direction: str) -> Cost:
    # The mean of all classes' log probabilities is part of the loss: a (1 - s) + s / c b.
    if direction == "bprop":
        return Cost(elements(x.shape), moved(fresh(x)))
    targets = elements(_targets(x))
    flops = elements(x.shape) * (1 + (weight is not None)) + 4 * targets
    return Cost(flops, moved(fresh(x), weight))
