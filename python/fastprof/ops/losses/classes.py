"""FLOPs and bytes of losses over the classes of a row."""

from __future__ import annotations

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import SIGMOID
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.losses.elementwise import Reduce, Reduced, Reduction
from fastprof.ops.losses.pairs import LOG_SIGMOID
from fastprof.ops.registry import operators
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import fresh, moved, present, texts


@operators("""
    (x, target, weight, reduction, reduce): torch.multilabel_soft_margin_loss
    (x, target, weight, _, reduce, reduction): torch.multilabel_soft_margin_loss
""")
def multilabel_soft_margin_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """-(t log(sigmoid(x)) + (1 - t) log(sigmoid(-x))), its mean over the classes of x[.., c].

    FLOPs: 87 per element (two logarithms of a sigmoid 82, the rest 4, summed 1), 1 more with a
    weight; backward 24 (sigmoid 22, minus t, times dloss) and 1 with a weight.
    Bytes: x, t and weight read, the loss written: one number, or one for each row. Backward reads
    dloss, x, t and weight, writes dx.

    Counted as one kernel; torch uses several.
    """
    operands = present(x, target, weight)
    more = len(operands) - 2
    reduced = Reduced.read(reduction, reduce)
    return _by_row(2 * LOG_SIGMOID + 5 + more, operands, reduced, SIGMOID + 2 + more, direction)


def _by_row(
    forward: int, operands: tuple[Tensor, ...], reduced: Reduced, backward: int, direction: str
) -> tuple[Cost, str]:
    # A loss that adds up the classes of x[.., c] in any case.
    x = operands[0]
    loss = reduced.loss(x.shape[:-1], x.dtype)
    count, params = elements(x.shape), texts(*operands)
    if direction == "bprop":
        return Cost(count * backward, moved(loss, *operands, fresh(x)), reduced.exact), params
    return Cost(count * forward, moved(*operands, loss), reduced.exact), params


@operators("""
    (x, target, p, _, weight, reduction, reduce): torch.multi_margin_loss
    (x, target, p, _, weight, _, reduce, reduction): torch.multi_margin_loss
    (x, target, p, _, weight, reduction): aten::multi_margin_loss
""")
def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    p: float | Unknown = 1,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Sum over the classes j of x[.., c] of max(0, margin - x_t + x_j)^p / c.

    FLOPs: 4 per element (margin 2, maximum, summed), 1 more with p = 2, 1 with a weight; backward
    the same.
    Bytes: x, t and weight read, the loss written: one number, or one for each row. Backward reads
    dloss, x, t and weight, writes dx.
    """
    flops = 4 + (p == 2) + (weight is not None)
    reduced = Reduced.read(reduction, reduce)
    reduced = reduced._replace(exact=reduced.exact and not isinstance(p, Unknown))
    return _by_row(flops, present(x, target, weight), reduced, flops, direction)


@operators("(gradient, x, target, p, _, weight, ...): multi_margin_loss_backward")
def multi_margin_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    p: float | Unknown = 1,
    weight: Tensor | None = None,
) -> tuple[Cost, str]:
    """dx of a multi_margin_loss.

    FLOPs: 4 per element (margin 2, compared, summed), 1 more with p = 2, 1 with a weight.
    Bytes: dloss, x, t and weight read, dx written.
    """
    operands = present(x, target, weight)
    flops = 4 + (p == 2) + (weight is not None)
    moves = moved(gradient, *operands, fresh(x))
    return Cost(elements(x.shape) * flops, moves, not isinstance(p, Unknown)), texts(*operands)


@operators("""
    (x, target, reduction, reduce): multilabel_margin_loss
    (x, target, _, reduce, reduction): torch.multilabel_margin_loss
    (x, target, reduction, ...): multilabel_margin_loss_forward
""")
def multilabel_margin_loss(
    x: Tensor,
    target: Tensor,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """Sum over targets i and other classes j of x[.., c] of max(0, 1 - (x_i - x_j)) / c.

    FLOPs: unknown: they depend on the number of targets in each row.
    Bytes: x and t read, the marks of targets and the loss written: one number, or one for each row.
    Backward reads dloss, x, t and marks, writes dx.
    """
    if x.shape != target.shape:
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    reduced = Reduced.read(reduction, reduce)
    loss, marks = reduced.loss(x.shape[:-1], x.dtype), fresh(x)
    written = (fresh(x),) if direction == "bprop" else ()
    return Cost(None, moved(loss, x, target, marks, *written), reduced.exact), texts(x, target)


@operators("(gradient, x, target, reduction, marks): multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    marks: Tensor,
    reduction: Reduction = "mean",
) -> tuple[Cost, str]:
    """dx of a multilabel_margin_loss.

    FLOPs: unknown: they depend on the number of targets in each row.
    Bytes: dloss, x, t and the marks of targets read, dx written.
    """
    if x.shape != target.shape:
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    return Cost(None, moved(gradient, x, target, marks, fresh(x))), texts(x, target)
