"""FLOPs and bytes of elementwise losses, with and without reduction."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.table import table_row
from fastprof.ops.tensor import broadcast, elements, fresh, moved, present, result_type, texts

# The argument `reduction` of a loss: additions and output size.

# Python calls record "mean"; ATen calls record its number: 0 none, 1 mean, 2 sum. The legacy
# argument reduce=False of torch 0.4 is reduction="none".
_KEPT = ("none", 0)
_ADDED = ("mean", "sum", "batchmean", 1, 2)


class Reduce(NamedTuple):
    """The arguments of a call."""

    reduction: str | int | Unknown = "mean"
    reduce: bool | None = None

    def read(self, *others: object) -> Reduced:
        """The reduction of a loss; an unknown value among its other arguments makes it inexact.

        Raises CannotModel when the reduction is invalid.
        """
        if isinstance(self.reduction, Unknown):
            return Reduced(1, False)
        if self.reduction not in (*_KEPT, *_ADDED):
            raise CannotModel(f"expected reduction none, mean or sum, found {self.reduction!r}")
        kept = self.reduction in _KEPT or self.reduce is False
        return Reduced(0 if kept else 1, Unknown.UNKNOWN not in others)


class Reduced(NamedTuple):
    """The reduction of the elementwise losses.

    `added` is the FLOPs per element: 1 if reduced, else 0. `exact` is False if the reduction is not
    recorded; torch's default, a mean, is then assumed.
    """

    added: int
    exact: bool

    def loss(self, shape: tuple[int, ...], dtype: str | None) -> Tensor:
        """The loss that is written, and whose gradient is read."""
        return Tensor(() if self.added else shape, dtype)


# Arguments of the operator, of its Python binding, and of the function, which has legacy arguments
# before reduction.
_PLAIN: Final = (
    "x, target, reduction",
    "x, target, reduction, reduce, weight",
    "x, target, _, reduce, reduction, weight",
)
_SCALED: Final = (
    "x, target, reduction, _",
    "x, target, reduction, _, weight, reduce",
    "x, target, _, reduce, reduction, _",
)
_MARGIN: Final = (
    "x, target, _, reduction",
    "x, target, _, reduction, reduce",
    "x, target, _, _, reduce, reduction",
)


class _Loss(NamedTuple):
    """FLOPs per element forward and backward, and the formulas that they come from."""

    forward: int
    backward: int
    what: str
    forward_text: str
    backward_text: str
    arguments: tuple[str, str, str] = _PLAIN


_PAIRS: Final = {
    "mse_loss": _Loss(
        2, 3, "(x - t)^2", "subtracted, squared", "difference, times 2/n, times dloss"
    ),
    "l1_loss": _Loss(2, 3, "|x - t|", "subtracted, magnitude", "difference, sign, times dloss"),
    "smooth_l1_loss": _Loss(
        6,
        6,
        "(x - t)^2 / (2 beta) where |x - t| < beta, else |x - t| - beta / 2",
        "subtracted, magnitude, compared, 3 of the square",
        "difference, 2 comparisons, 3 products",
        _SCALED,
    ),
    "huber_loss": _Loss(
        5,
        5,
        "(x - t)^2 / 2 where |x - t| < delta, else delta (|x - t| - delta / 2)",
        "subtracted, magnitude, compared, 2 of the square",
        "difference, 2 comparisons, 2 products",
        _SCALED,
    ),
    "soft_margin_loss": _Loss(
        EXPONENTIAL + LOGARITHM + 2,
        EXPONENTIAL + 5,
        "log(1 + exp(-t x))",
        "product, exponential, 1 added, logarithm",
        "product, exponential, 1 added, times t, divided, times dloss",
    ),
    "hinge_embedding_loss": _Loss(
        5,
        3,
        "x where t = 1, max(0, margin - x) where t = -1",
        "subtracted, maximum, 2 comparisons, added",
        "3 comparisons",
        _MARGIN,
    ),
}


def elementwise_loss(
    forward: int,
    operands: tuple[Tensor, ...],
    reduced: Reduced,
    backward: int,
    direction: str,
    gradients: tuple[Tensor, ...] | None = None,
) -> Answer:
    """Cost of a loss over operands that broadcast.

    Parameters
    ----------
    forward, backward : int
        FLOPs for one element of the broadcast operands.
    operands : tuple of Tensor
        All tensors that are read; the first is the prediction.
    reduced : Reduced
        The reduction of the elementwise losses.
    direction : str
        "fprop" or "bprop".
    gradients : tuple of Tensor, optional
        Operands with a gradient; default: the first.
    """
    shape = broadcast(*(tensor.shape for tensor in operands))
    loss = reduced.loss(shape, result_type(operands[:2]))
    params = texts(*operands)
    if direction == "bprop":
        wanted = operands[:1] if gradients is None else gradients
        moves = moved(loss, *operands, *map(fresh, wanted))
        return Cost(elements(shape) * backward, moves, reduced.exact), params
    flops = elements(shape) * (forward + reduced.added)
    return Cost(flops, moved(*operands, loss), reduced.exact), params


def loss_gradient(
    gradient: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, *, flops: int
) -> Answer:
    """Cost of an operator that computes the gradient of x from dloss; 1 FLOP more with a weight."""
    operands = present(x, target, weight)
    shape = broadcast(*(tensor.shape for tensor in operands))
    if broadcast(gradient.shape, shape) != shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {shape}")
    moves = moved(gradient, *operands, fresh(x))
    return Cost(elements(shape) * (flops + len(operands) - 2), moves), texts(gradient, *operands)


def weighted_loss(
    x: Tensor,
    target: Tensor,
    reduce: Reduce,
    weight: Tensor | None = None,
    *,
    forward: int,
    backward: int,
    direction: str,
) -> Answer:
    """Cost of a loss of x and a target; 1 FLOP more with a weight, forward and backward."""
    more = int(weight is not None)
    reduced = reduce.read()
    operands = present(x, target, weight)
    return elementwise_loss(forward + more, operands, reduced, backward + more, direction)


def _register(name: str, loss: _Loss) -> None:
    operator, binding, function = loss.arguments
    table_row(f"""
        {loss.what}, elementwise, reduced or not.
        FLOPs: {loss.forward} per element ({loss.forward_text}), 1 more if reduced and 1 with a
        weight; backward {loss.backward} ({loss.backward_text}) and 1 with a weight.
        Bytes: x, t and weight read, the loss written: one number, or all of them. Backward reads
        dloss, x, t and weight, writes dx.

        The target is assumed to need no gradient. An unknown reduction counts as a sum (not exact).
        ({binding}): torch.{name}
        ({function}): torch.{name}
        ({operator}): aten::{name}
    """)(weighted_loss, forward=loss.forward, backward=loss.backward)
    if name != "hinge_embedding_loss":  # built of others
        table_row(f"""
            dx of {loss.what}.
            FLOPs: {loss.backward} per element ({loss.backward_text}).
            Bytes: dloss, x and t read, dx written.
            (gradient, x, target, ...): {name}_backward
        """)(loss_gradient, flops=loss.backward)


for _name, _loss in _PAIRS.items():
    _register(_name, _loss)
