"""FLOPs and bytes of softmax, and of losses over classes: cross entropy, margins and CTC."""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, SIGMOID
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import Dtype, canonical_type, is_floating, named
from fastprof.ops.losses.distances import LOG_SIGMOID, Reduce, Reduced
from fastprof.ops.parameters import Flag, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements, fresh, moved, present, same_shape, texts

# FLOPs per element. Per-row operations (a logarithm) are not counted.
SOFTMAX: Final = EXPONENTIAL + 4  # compared, max subtracted, exponential, added, divided
LOG_BACKWARD: Final = EXPONENTIAL + 3  # dy added; exponential, times sum, subtracted
BACKWARD: Final = 4  # dy y added; subtracted, times y


# torch.nn.functional has a stack level before the type: an integer in the position of `dtype`.
@operators("""
    exp(x - max) / sum of exp(x - max) along one dimension.
    FLOPs: 24 per element (maximum 1, subtracted 1, exponential 20, added 1, divided 1); backward 4
    (dy y added 2, subtracted 1, times y 1).
    Bytes: x read, y written, each in its own type. Backward reads dy and y, writes dx.

    PyProf counts 3 tensors forward and 5 backward, for a kernel that rereads long rows.
    (x, dim=_, dtype_or_level, dtype): torch.softmax
    (x, _, half_to_float): _softmax
    (x, _, dtype): aten::softmax aten::special_softmax
""")
def softmax(
    x: Tensor,
    dtype_or_level: Dtype = None,
    dtype: Dtype = None,
    half_to_float: Flag = False,
    *,
    backward: int = BACKWARD,
    direction: str,
) -> Answer:
    y, exact = _output(x, dtype_or_level if dtype is None else dtype, half_to_float)
    if direction == "bprop":
        return Cost(elements(x.shape) * backward, moved(y, y, fresh(x)), exact), texts(x)
    return Cost(elements(x.shape) * SOFTMAX, moved(x, y), exact), texts(x)


table_row("""
    x - max - log(sum of exp(x - max)) along one dimension.
    FLOPs: 24 per element (maximum 1, subtracted 1, exponential 20, added 1, logarithm subtracted
    1); backward 23 (dy added 1, exponential 20, times sum 1, subtracted 1).
    Bytes: x read, y written, each in its own type. Backward reads dy and y, writes dx.
    (x, dim=_, dtype_or_level, dtype): torch.log_softmax
    (x, _, half_to_float): _log_softmax
    (x, _, dtype): aten::log_softmax aten::special_log_softmax
""")(softmax, backward=LOG_BACKWARD)


@operators("""
    softmax(-x): a negation, then a softmax.
    FLOPs: 25 per element; backward 5.
    Bytes: those of both: x read, -x written and read, y written; backward dy and y read, a gradient
    written, read and written.
    (x, dim=_, dtype_or_level, dtype): torch.softmin
""")
def softmin(
    x: Tensor, dtype_or_level: Dtype = None, dtype: Dtype = None, *, direction: str
) -> Answer:
    cost, params = softmax(x, dtype_or_level, dtype, direction=direction)
    return cost + Cost(elements(x.shape), moved(x, fresh(x))), params


@operators("""
    A softmax that is 0 for rows of minus infinity.
    FLOPs: 26 per element (softmax 24, compared, all of a row); backward 4.
    Bytes: as softmax.
    (x, _, dtype): _safe_softmax
""")
def safe_softmax(x: Tensor, dtype: Dtype = None, *, direction: str) -> Answer:
    cost, params = softmax(x, dtype=dtype, direction=direction)
    masked = 2 * elements(x.shape) if direction == "fprop" else 0
    return cost + Cost(masked, 0), params


@operators("""
    A softmax over the elements that are not masked.
    FLOPs: as softmax, including masked elements.
    Bytes: as softmax, and the mask read.
    (x, mask, ...): _masked_softmax
""")
def masked_softmax(x: Tensor, mask: Tensor, *, direction: str) -> Answer:
    cost, params = softmax(x, direction=direction)
    return cost + Cost(0, moved(mask)), f"{params};{texts(mask)}"


def _output(x: Tensor, dtype: Dtype, half_to_float: Flag) -> tuple[Tensor, bool]:
    # y, and whether its type is certain.
    if isinstance(dtype, Unknown):
        return fresh(x), False
    if half_to_float is True:
        return fresh(x, dtype="float32"), True
    name = named(dtype)
    half = canonical_type(x.dtype) in ("float16", "bfloat16")
    unsure = isinstance(half_to_float, Unknown) and half
    return fresh(x, dtype=name if is_floating(name) else None), not unsure


def _gradient(
    gradient: Tensor, y: Tensor, dtype: Dtype = None, x: Tensor | None = None, *, flops: int
) -> Answer:
    same_shape(gradient, y)
    dx = fresh(y, dtype=named(dtype) if x is None else x.dtype)
    exact = not isinstance(dtype, Unknown)
    return Cost(elements(y.shape) * flops, moved(gradient, y, dx), exact), texts(gradient, y)


table_row("""
    dx = (dy - sum of dy y) * y of a softmax.
    FLOPs: 4 per element.
    Bytes: dy and y read, dx written in the input's type.
    (gradient, y, _, dtype): _softmax_backward_data
    (gradient, y, _, x): _softmax_backward_data
""")(_gradient, flops=BACKWARD)

table_row("""
    dx = dy - exp(y) * sum of dy of a log_softmax.
    FLOPs: 23 per element (20 for the exponential).
    Bytes: dy and y read, dx written in the input's type.
    (gradient, y, _, dtype): _log_softmax_backward_data
    (gradient, y, _, x): _log_softmax_backward_data
""")(_gradient, flops=LOG_BACKWARD)


@operators("""
    dx = (dy - sum of dy y) * y of a masked softmax.
    FLOPs: 4 per element, including masked elements.
    Bytes: dy, y and the mask read, dx written.
    (gradient, y, mask, ...): _masked_softmax_backward
""")
def masked_softmax_backward(gradient: Tensor, y: Tensor, mask: Tensor) -> Answer:
    cost, params = _gradient(gradient, y, flops=BACKWARD)
    return cost + Cost(0, moved(mask)), f"{params};{texts(mask)}"


def _targets(x: Tensor) -> tuple[int, ...]:
    # Shape of the class indices of x[n, c, ..] or x[c].
    if not x.shape:
        raise CannotModel("scores without a dimension of classes")
    return (x.shape[0], *x.shape[2:]) if len(x.shape) > 1 else ()


def _weighted(x: Tensor, weight: Tensor | None) -> None:
    classes = x.shape[:2][-1:]
    if weight is not None and (elements(weight.shape),) != classes:
        raise CannotModel(f"weight {weight.shape} does not fit the classes of {x.shape}")


def _picks(x: Tensor, target: Tensor, weight: Tensor | None) -> int:
    # Number of targets.
    if target.shape != _targets(x):
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    _weighted(x, weight)
    return elements(target.shape)


@operators("""
    -x[n, t[n], ..] of log probabilities x[n, c, ..] and class indices t[n, ..].
    FLOPs: 1 per target if reduced, and 2 for a weight (product, weights added), 1 if not reduced;
    backward 1 per target and 1 with a weight.
    Bytes: t and the picked elements of x read, weight read, the loss written: one number and the
    sum of weights, or all of them. Backward reads dloss, t and weight and writes all of dx, mostly
    zeros.

    Ignored targets are unknown and count like the others.
    (x, target, weight, reduction, _, reduce): torch.nll_loss torch.nll_loss2d torch.nll_loss_nd
        torch.nll_loss_forward torch.nll_loss2d_forward
    (x, target, weight, _, _, reduce, reduction): torch.nll_loss
    (x, target, weight, reduction, _): aten::nll_loss aten::nll_loss2d aten::nll_loss_nd
        aten::nll_loss_forward aten::nll_loss2d_forward
""")
def nll_loss(
    x: Tensor, target: Tensor, reduce: Reduce, weight: Tensor | None = None, *, direction: str
) -> Answer:
    count, more = _picks(x, target, weight), int(weight is not None)
    reduced = reduce.read()
    picked = fresh(x, target.shape)
    loss, params = reduced.loss(target.shape, x.dtype), texts(x, target, weight)
    total = fresh(x, ()) if reduced.added else None
    if direction == "bprop":
        moves = moved(loss, target, weight, total, fresh(x))
        return Cost(count * (1 + more), moves, reduced.exact), params
    flops = count * (reduced.added + more * (1 + reduced.added))
    return Cost(flops, moved(target, picked, weight, loss, total), reduced.exact), params


@operators("""
    dx[n, c, ..] of a negative log likelihood: dloss where the target is, zeros elsewhere.
    FLOPs: 1 per target, 1 more with a weight.
    Bytes: dloss, t, weight and the sum of weights read, all of dx written.
    (gradient, x, target, weight, _, _, total): nll_loss_backward nll_loss2d_backward
""")
def nll_loss_backward(
    gradient: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, *, read: Tensors
) -> Answer:
    flops = _picks(x, target, weight) * (1 + (weight is not None))
    moves = moved(gradient, target, weight, *read, fresh(x))
    return Cost(flops, moves), texts(x, target, weight)


@operators("""
    log_softmax of scores x[n, c, ..], then nll_loss with class indices t[n, ..] or
    probabilities t[n, c, ..].
    FLOPs: those of both: 24 per element and 1 per target; backward 23 and 1. Probabilities: 2 per
    element (product, added) and 1 with a weight in place of nll_loss, backward the same. Label
    smoothing: 1 more per element (added), 1 with a weight, 4 per target; backward 1.
    Bytes: those of both, including log probabilities written and read in between, and read once
    more for label smoothing.

    torch has one kernel for each. If not recorded,  no smoothing is assumed (not exact).
    (x, target, weight, reduction, _, label_smoothing): cross_entropy_loss
    (x, target, weight, _, _, reduce, reduction, label_smoothing): torch.cross_entropy
""")
def cross_entropy(
    x: Tensor,
    target: Tensor,
    reduce: Reduce,
    weight: Tensor | None = None,
    label_smoothing: float | Unknown = 0.0,
    *,
    direction: str,
) -> Answer:
    known = not isinstance(label_smoothing, Unknown)
    cost, _ = softmax(x, backward=LOG_BACKWARD, direction=direction)
    spread = target.shape == x.shape and (len(x.shape) > 1 or is_floating(target.dtype))
    if spread:
        cost += _probabilities(x, target, weight, reduce.read(), direction)
    else:
        cost += nll_loss(x, target, reduce, weight, direction=direction)[0]
    if not isinstance(label_smoothing, Unknown) and label_smoothing > 0:
        # The mean of all classes' log probabilities is part of the loss: a (1 - s) + s / c b.
        cost += Cost(elements(x.shape), moved(fresh(x)))
        if direction == "fprop":
            of_weight = elements(x.shape) * (weight is not None)
            cost += Cost(of_weight + 4 * elements(_targets(x)), moved(weight))
    return cost + Cost(0, 0, known), texts(x, target, weight)


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


@operators("""
    -(t log(sigmoid(x)) + (1 - t) log(sigmoid(-x))), its mean over the classes of x[.., c].
    FLOPs: 87 per element (two logarithms of a sigmoid 82, the rest 4, summed 1), 1 more with a
    weight; backward 24 (sigmoid 22, minus t, times dloss) and 1 with a weight.
    Bytes: x, t and weight read, the loss written: one number, or one for each row. Backward reads
    dloss, x, t and weight, writes dx.

    Counted as one kernel; torch uses several.
    (x, target, weight, reduction, reduce): torch.multilabel_soft_margin_loss
    (x, target, weight, _, reduce, reduction): torch.multilabel_soft_margin_loss
""")
def multilabel_soft_margin_loss(
    x: Tensor, target: Tensor, reduce: Reduce, weight: Tensor | None = None, *, direction: str
) -> Answer:
    operands = present(x, target, weight)
    more = len(operands) - 2
    reduced = reduce.read()
    return _by_row(2 * LOG_SIGMOID + 5 + more, operands, reduced, SIGMOID + 2 + more, direction)


def _by_row(
    forward: int, operands: tuple[Tensor, ...], reduced: Reduced, backward: int, direction: str
) -> Answer:
    # A loss that adds up the classes of x[.., c] in any case.
    x = operands[0]
    loss = reduced.loss(x.shape[:-1], x.dtype)
    count, params = elements(x.shape), texts(*operands)
    if direction == "bprop":
        return Cost(count * backward, moved(loss, *operands, fresh(x)), reduced.exact), params
    return Cost(count * forward, moved(*operands, loss), reduced.exact), params


@operators("""
    Sum over the classes j of x[.., c] of max(0, margin - x_t + x_j)^p / c.
    FLOPs: 4 per element (margin 2, maximum, summed), 1 more with p = 2, 1 with a weight; backward
    the same.
    Bytes: x, t and weight read, the loss written: one number, or one for each row. Backward reads
    dloss, x, t and weight, writes dx.
    (x, target, p, _, weight, reduction, reduce): torch.multi_margin_loss
    (x, target, p, _, weight, _, reduce, reduction): torch.multi_margin_loss
    (x, target, p, _, weight, reduction): aten::multi_margin_loss
""")
def multi_margin_loss(
    x: Tensor,
    target: Tensor,
    reduce: Reduce,
    p: float | Unknown = 1,
    weight: Tensor | None = None,
    *,
    direction: str,
) -> Answer:
    flops = 4 + (p == 2) + (weight is not None)
    reduced = reduce.read(p)
    return _by_row(flops, present(x, target, weight), reduced, flops, direction)


@operators("""
    dx of a multi_margin_loss.
    FLOPs: 4 per element (margin 2, compared, summed), 1 more with p = 2, 1 with a weight.
    Bytes: dloss, x, t and weight read, dx written.
    (gradient, x, target, p, _, weight, ...): multi_margin_loss_backward
""")
def multi_margin_loss_backward(
    gradient: Tensor,
    x: Tensor,
    target: Tensor,
    p: float | Unknown = 1,
    weight: Tensor | None = None,
) -> Answer:
    operands = present(x, target, weight)
    flops = 4 + (p == 2) + (weight is not None)
    moves = moved(gradient, *operands, fresh(x))
    return Cost(elements(x.shape) * flops, moves, not isinstance(p, Unknown)), texts(*operands)


@operators("""
    Sum over targets i and other classes j of x[.., c] of max(0, 1 - (x_i - x_j)) / c.
    FLOPs: unknown: they depend on the number of targets in each row.
    Bytes: x and t read, the marks of targets and the loss written: one number, or one for each row.
    Backward reads dloss, x, t and marks, writes dx.
    (x, target, reduction, reduce): multilabel_margin_loss
    (x, target, _, reduce, reduction): torch.multilabel_margin_loss
    (x, target, reduction, ...): multilabel_margin_loss_forward
""")
def multilabel_margin_loss(x: Tensor, target: Tensor, reduce: Reduce, *, direction: str) -> Answer:
    if x.shape != target.shape:
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    reduced = reduce.read()
    written = (fresh(x), fresh(x)) if direction == "bprop" else (fresh(x),)  # marks, gradient
    moves = moved(reduced.loss(x.shape[:-1], x.dtype), x, target, *written)
    return Cost(None, moves, reduced.exact), texts(x, target)


@operators("""
    dx of a multilabel_margin_loss.
    FLOPs: unknown: they depend on the number of targets in each row.
    Bytes: dloss, x, t and the marks of targets read, dx written.
    (gradient, x, target, reduction, marks): multilabel_margin_loss_backward
""")
def multilabel_margin_loss_backward(
    gradient: Tensor, x: Tensor, target: Tensor, marks: Tensor, reduce: Reduce
) -> Answer:
    if x.shape != target.shape:
        raise CannotModel(f"targets {target.shape} do not fit {x.shape}")
    return Cost(None, moved(gradient, x, target, marks, fresh(x))), texts(x, target)


# One step of the recursion, log(e^a + e^b + e^c) + p: maximum 2, subtracted and exponential of
# three, added 2, logarithm, maximum and p added 2.
STEP: Final = 3 * (EXPONENTIAL + 1) + LOGARITHM + 6
# alpha + beta of a state summed for its class: sum, maximum, two exponentials, logarithm, 4 more.
COLLECTED: Final = 2 * EXPONENTIAL + LOGARITHM + 6
# dx = (exp(p) - exp(collected + loss - p)) dloss
GRADIENT: Final = 2 * EXPONENTIAL + 4


def _states(x: Tensor, targets: Tensor) -> tuple[int, int]:
    # Batch size n, and states of one step of the recursion: 2 s + 1 per target of s labels.
    batched = len(x.shape) == 3
    if len(x.shape) not in (2, 3) or len(targets.shape) not in (1, 2):
        raise CannotModel(f"log probabilities {x.shape} do not fit targets {targets.shape}")
    batch = x.shape[1] if batched else 1
    return batch, 2 * elements(targets.shape) + batch


@operators("""
    Loss[n] of log probabilities x[t, n, c] and targets[n, s], by the forward variables.
    FLOPs: 89 for each of t (2 s + 1) states of each n; backward 155 (89 for the backward variables,
    66 to combine both), and 44 per element of x.
    Bytes: x and targets read, the variables and the loss written. Backward reads dloss, x, targets
    and variables, writes the backward variables and dx.

    Full lengths are assumed, because actual lengths are not recorded (not exact, an upper bound).
    Formulas: Graves et al., Connectionist Temporal Classification, section 4.
    (x, targets, input_lengths, target_lengths, ...): ctc_loss _ctc_loss
""")
def ctc_loss(
    x: Tensor,
    targets: Tensor,
    input_lengths: Any = None,
    target_lengths: Any = None,
    *,
    direction: str,
) -> Answer:
    batch, states = _states(x, targets)
    steps = x.shape[0] * states
    variables, loss = fresh(x, (steps,)), fresh(x, (batch,))
    if direction == "bprop":
        return Cost(*_ctc_gradient(loss, x, targets, variables, steps), False), texts(x, targets)
    moves = moved(x, targets, variables, loss)
    return Cost(steps * STEP, moves, exact=False), texts(x, targets)


@operators("""
    Loss[n] of log probabilities x[t, n, c] and its gradient, which cuDNN computes together.
    FLOPs: 244 for each of t (2 s + 1) states of each n, and 44 per element of x.
    Bytes: x and targets read, the loss and the gradient written.

    Full lengths are assumed (not exact, an upper bound).
    (x, targets, input_lengths, target_lengths, ...): _cudnn_ctc_loss miopen_ctc_loss
""")
def cudnn_ctc_loss(
    x: Tensor, targets: Tensor, input_lengths: Any = None, target_lengths: Any = None
) -> Answer:
    batch, states = _states(x, targets)
    steps = x.shape[0] * states
    flops = steps * (2 * STEP + COLLECTED) + elements(x.shape) * GRADIENT
    moves = moved(x, targets, fresh(x, (batch,)), fresh(x))
    return Cost(flops, moves, exact=False), texts(x, targets)


@operators("""
    dx[t, n, c] of a CTC loss, by the backward variables.
    FLOPs: 155 for each of t (2 s + 1) states of each n, and 44 per element of x.
    Bytes: dloss, x, targets and the forward variables read, backward variables and dx written.

    Full lengths are assumed (not exact, an upper bound).
    (gradient, x, targets, input_lengths, target_lengths, loss, variables, ...):
        _ctc_loss_backward
""")
def ctc_loss_backward(
    gradient: Tensor,
    x: Tensor,
    targets: Tensor,
    variables: Tensor,
    loss: Tensor | None = None,
    input_lengths: Any = None,
    target_lengths: Any = None,
) -> Answer:
    _, states = _states(x, targets)
    flops, moves = _ctc_gradient(gradient, x, targets, variables, x.shape[0] * states)
    return Cost(flops, moves, exact=False), texts(x, targets)


def _ctc_gradient(
    gradient: Tensor, x: Tensor, targets: Tensor, variables: Tensor, steps: int
) -> tuple[int, int | None]:
    flops = steps * (STEP + COLLECTED) + elements(x.shape) * GRADIENT
    return flops, moved(gradient, x, targets, variables, fresh(variables), fresh(x))
