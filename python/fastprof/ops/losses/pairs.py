"""FLOPs and bytes of losses of probabilities and of margins between inputs."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM, SIGMOID
from fastprof.ops.cost import Cost
from fastprof.ops.losses.elementwise import (
    Reduce,
    Reduced,
    Reduction,
    elementwise_loss,
    elementwise_loss_gradient,
)
from fastprof.ops.registry import operators
from fastprof.ops.traffic import present

LOG_SIGMOID: Final = EXPONENTIAL + LOGARITHM + 1
Flag = bool | Unknown


@operators("""
    (x, target, weight, reduction, reduce): torch.binary_cross_entropy
    (x, target, weight, _, reduce, reduction): torch.binary_cross_entropy
    (x, target, weight, reduction): aten::binary_cross_entropy
""")
def binary_cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """(t - 1) log(1 - x) - t log(x), elementwise, reduced or not.

    FLOPs: 46 per element (two logarithms 40, two limits 2, the rest 4), 1 more if reduced and 1
    with a weight; backward 6 ((x - t) dloss / max((1 - x) x, eps)) and 1 with a weight.
    Bytes: x, t and weight read, the loss written: one number, or all of them. Backward reads dloss,
    x, t and weight, writes dx.
    """
    operands = present(x, target, weight)
    more = len(operands) - 2
    reduced = Reduced.read(reduction, reduce)
    return elementwise_loss(2 * LOGARITHM + 6 + more, operands, reduced, 6 + more, direction)


@operators("(gradient, x, target, weight, ...): binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    gradient: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None
) -> tuple[Cost, str]:
    """dx = (x - t) dloss / max((1 - x) x, eps).

    FLOPs: 6 per element, 1 more with a weight.
    Bytes: dloss, x, t and weight read, dx written.
    """
    operands = present(x, target, weight)
    return elementwise_loss_gradient(4 + len(operands), gradient, operands)


@operators("""
    (x, target, weight, pos_weight, reduction, reduce): torch.binary_cross_entropy_with_logits
    (x, target, weight, _, reduce, reduction, pos_weight):
        torch.binary_cross_entropy_with_logits
    (x, target, weight, pos_weight, reduction): aten::binary_cross_entropy_with_logits
""")
def binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """(1 - t) x - log(sigmoid(x)), elementwise, reduced or not.

    FLOPs: 44 per element (exponential and logarithm 40, the rest 4), 1 more if reduced, 1 with a
    weight, 4 for the weight of positives; backward 24 (sigmoid 22, minus t, times dloss) and 1 and
    4 for those weights.
    Bytes: x, t and weights read, the loss written: one number, or all of them. Backward reads
    dloss, x, t and weights, writes dx.

    Counted as one kernel; torch uses several.
    """
    more = (weight is not None) + 4 * (pos_weight is not None)
    return elementwise_loss(
        LOG_SIGMOID + 3 + more,
        present(x, target, weight, pos_weight),
        Reduced.read(reduction, reduce),
        SIGMOID + 2 + more,
        direction,
    )


@operators("""
    (x, target, reduction, log_target, reduce): torch.kl_div
    (x, target, _, reduce, reduction, log_target): torch.kl_div
    (x, target, reduction, log_target): aten::kl_div
""")
def kl_div(
    x: Tensor,
    target: Tensor,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    log_target: Flag = False,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """t (log(t) - x), elementwise, reduced or not; t is exp(t) with log_target.

    FLOPs: 23 per element (logarithm 20, two products, subtracted), 22 with log_target, 1 more if
    reduced; backward 1 (t dloss), 21 with log_target.
    Bytes: x and t read, the loss written: one number, or all of them. Backward reads dloss and t,
    writes dx.

    If not recorded,  log_target is assumed to be off (not exact).
    """
    reduced = Reduced.read(reduction, reduce)
    reduced = reduced._replace(exact=reduced.exact and not isinstance(log_target, Unknown))
    logarithmic = log_target is True
    forward, backward = (EXPONENTIAL + 2, EXPONENTIAL + 1) if logarithmic else (LOGARITHM + 3, 1)
    if direction == "bprop":  # x itself is not read
        return elementwise_loss(0, (target,), reduced, backward, direction, (x,))
    return elementwise_loss(forward, (x, target), reduced, backward, direction)


@operators("""
    (x, target, log_input, full, _, reduction, reduce): torch.poisson_nll_loss
    (x, target, log_input, full, _, _, reduce, reduction): torch.poisson_nll_loss
    (x, target, log_input, full, _, reduction): aten::poisson_nll_loss
""")
def poisson_nll_loss(
    x: Tensor,
    target: Tensor,
    log_input: Flag = True,
    full: Flag = False,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """exp(x) - t x, or x - t log(x + eps) without log_input; with full, Stirling's term.

    FLOPs: 22 per element, 23 without log_input (exponential or logarithm 20), 47 more with full (t
    log(t) - t + log(2 pi t) / 2 where t > 1), 1 more if reduced; backward 22 (exp(x) - t, times
    dloss), 4 without log_input.
    Bytes: x and t read, the loss written: one number, or all of them. Backward reads dloss, x and
    t, writes dx.

    Counted as one kernel; torch uses several. If not recorded,  log_input is assumed to be on and
    full off (not exact).
    """
    reduced = Reduced.read(reduction, reduce)
    sure = not isinstance(log_input, Unknown) and not isinstance(full, Unknown)
    forward, backward = (EXPONENTIAL + 2, EXPONENTIAL + 2) if log_input else (LOGARITHM + 3, 4)
    if full is True:
        forward += 2 * LOGARITHM + 7
    reduced = reduced._replace(exact=reduced.exact and sure)
    return elementwise_loss(forward, (x, target), reduced, backward, direction)


@operators("(x, target, variance, full, _, reduction): torch.gaussian_nll_loss")
def gaussian_nll_loss(
    x: Tensor,
    target: Tensor,
    variance: Tensor | float,
    full: Flag = False,
    reduction: Reduction = "mean",
    *,
    direction: str,
) -> tuple[Cost, str]:
    """(log(max(v, eps)) + (x - t)^2 / v) / 2, elementwise, reduced or not.

    FLOPs: 26 per element (logarithm 20, limit 1, the rest 5), 1 more with full, 1 more if reduced;
    backward 8 (dx 3, dv 5).
    Bytes: x, t and v read, the loss written: one number, or all of them. Backward reads dloss, x, t
    and v, writes dx and dv.

    Counted as one kernel; torch uses several. A v with one dimension less than x (one variance per
    row) is expanded by a dimension of size 1.
    """
    operands = present(x, target)
    if isinstance(variance, Tensor):
        shape = variance.shape
        if shape != x.shape and shape == x.shape[:-1]:
            variance = Tensor((*shape, 1), variance.dtype)
        operands = (*operands, variance)
    reduced = Reduced.read(reduction)
    reduced = reduced._replace(exact=reduced.exact and not isinstance(full, Unknown))
    gradients = (x, *operands[2:])
    forward = LOGARITHM + 6 + (full is True)
    return elementwise_loss(forward, operands, reduced, 8, direction, gradients)


@operators("""
    (x, input2=other, target, _, reduction, reduce): torch.margin_ranking_loss
    (x, other, target, _, _, reduce, reduction): torch.margin_ranking_loss
    (x, other, target, _, reduction): aten::margin_ranking_loss
""")
def margin_ranking_loss(
    x: Tensor,
    other: Tensor,
    target: Tensor,
    reduction: Reduction = "mean",
    reduce: Reduce = None,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """max(0, margin - t (x - y)), elementwise, reduced or not.

    FLOPs: 4 per element (subtracted, product, added, maximum), 1 more if reduced; backward 3
    (compared, times t, times dloss).
    Bytes: x, y and t read, the loss written: one number, or all of them. Backward reads dloss, x, y
    and t, writes dx and dy.

    Counted as one kernel; torch uses several.
    """
    reduced = Reduced.read(reduction, reduce)
    return elementwise_loss(4, (x, other, target), reduced, 3, direction, (x, other))
