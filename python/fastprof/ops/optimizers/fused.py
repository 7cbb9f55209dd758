"""FLOPs and bytes of optimizer steps over many parameters in one call.

Optimizers of torch.optim have no formula: the operators that their step calls are counted, fused
ones here and operators over lists in `foreach`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import SQUARE_ROOT
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.parameters import Number, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements
from fastprof.ops.traffic import moved, texts

Flag = bool | Unknown | None
Rate = Tensor | Number | Unknown | None

_DECAY: Final = 2  # parameter * weight_decay, added to the gradient or subtracted
_AVERAGE: Final = 3  # beta * average + (1 - beta) * new
_ADAM: Final = (
    _AVERAGE  # of the gradient
    + 1  # gradient squared
    + _AVERAGE  # of its square
    + SQUARE_ROOT
    + 2  # root / correction + epsilon
    + 3  # parameter - step * average / that
)
_ADAGRAD: Final = 2 + SQUARE_ROOT + 1 + 3  # sum + g * g; root + epsilon; parameter - rate * g / it


def step(
    flops: int, lists: Sequence[Tensors], read: Sequence[Tensors], extra: Tensors, *, exact: bool
) -> tuple[Cost, str]:
    """A step over parameters: `flops` for each element of each.

    Parameters
    ----------
    flops : int
        FLOPs per element.
    lists : sequence of tuple of Tensor
        Tensors read and written: parameters first, then state of the same shapes.
    read : sequence of tuple of Tensor
        Tensors only read: gradients, of the same shapes.
    extra : tuple of Tensor
        Other tensors that are read.
    exact : bool
        Whether everything that `flops` depends on is known.

    Raises
    ------
    CannotModel
        When the shapes do not fit.
    """
    parameters = lists[0]
    shapes = [tensor.shape for tensor in parameters]
    for others in (*lists[1:], *read):
        if [tensor.shape for tensor in others] != shapes:
            raise CannotModel("the lists differ in shape")
    count = sum(map(elements, shapes))
    written = [each for one in lists for each in one]
    only_read = [each for one in read for each in one]
    touched = add_known(moved(*written), moved(*written), moved(*only_read, *extra))
    return Cost(flops * count, touched, exact), texts(*parameters)


def _adam(
    decoupled: bool,
    lists: tuple[Tensors, Tensors, Tensors, Tensors, Tensors, Tensors],
    weight_decay: Number | Unknown,
    maximize: Flag,
    grad_scale: Tensor | None,
) -> tuple[Cost, str]:
    parameters, gradients, averages, squares, maxima, steps = lists
    decays = decoupled if isinstance(weight_decay, Unknown) else bool(weight_decay)
    flops = _ADAM + (_DECAY if decays else 0) + bool(maxima) + (maximize is True)
    state = [parameters, averages, squares, *([maxima] if maxima else [])]
    read = [gradients]
    if grad_scale is not None:  # gradients are unscaled in place
        flops, state, read = flops + 1, [*state, gradients], []
    known = not isinstance(weight_decay, Unknown) and not isinstance(maximize, Unknown)
    return step(flops, state, read, steps, exact=known)


@operators("""
    (parameters*, gradients*, averages*, squares*, maxima*?, steps*, lr=rate, _, _,
        weight_decay, _, _, maximize, grad_scale, found_inf): _fused_adam _fused_adam_
""")
def fused_adam(
    parameters: Tensors,
    gradients: Tensors,
    averages: Tensors,
    squares: Tensors,
    maxima: Tensors = (),
    steps: Tensors = (),
    rate: Rate = None,
    weight_decay: Number | Unknown = 0.0,
    maximize: Flag = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> tuple[Cost, str]:
    """Adam: m and v averages of g and g^2, p -= rate m / (sqrt(v) / correction + epsilon).

    FLOPs: 32 for each element: 3 for m, 4 for v, 22 for the denominator, 3 for p; 2 more with
        weight decay, 1 each with amsgrad, a negated gradient and a gradient to unscale.
    Bytes: parameters and both averages (with amsgrad also maxima) read and written, gradients read,
        and written if unscaled; the steps read.

    Weight decay and maximize are counted if recorded as used; if not recorded, the cost is an
    estimate. Formula of torch's fused kernel.
    """
    del rate, found_inf
    lists = (parameters, gradients, averages, squares, maxima, steps)
    return _adam(False, lists, weight_decay, maximize, grad_scale)


@operators("""
    (parameters*, gradients*, averages*, squares*, maxima*?, steps*, lr=rate, _, _,
        weight_decay, _, _, maximize, grad_scale, found_inf): _fused_adamw _fused_adamw_
""")
def fused_adamw(
    parameters: Tensors,
    gradients: Tensors,
    averages: Tensors,
    squares: Tensors,
    maxima: Tensors = (),
    steps: Tensors = (),
    rate: Rate = None,
    weight_decay: Number | Unknown = 0.01,
    maximize: Flag = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> tuple[Cost, str]:
    """AdamW: Adam after p -= rate weight_decay p.

    FLOPs: 34 for each element, 32 without weight decay: Adam's; 1 more each with amsgrad, a
        negated gradient and a gradient to unscale.
    Bytes: parameters and both averages (with amsgrad also maxima) read and written, gradients read,
        and written if unscaled; the steps read.

    If not recorded, weight decay is assumed to be used, as by default, and the cost is an estimate.
    Formula of torch's fused kernel.
    """
    del rate, found_inf
    lists = (parameters, gradients, averages, squares, maxima, steps)
    return _adam(True, lists, weight_decay, maximize, grad_scale)


@operators("""
    (parameters*, gradients*, momentum_buffer_list=velocities*?, weight_decay, _, lr=rate, _,
        nesterov, maximize, is_first_step=first, grad_scale, found_inf): _fused_sgd _fused_sgd_
""")
def fused_sgd(
    parameters: Tensors,
    gradients: Tensors,
    velocities: Tensors = (),
    weight_decay: Number | Unknown = 0.0,
    rate: Rate = None,
    nesterov: Flag = False,
    maximize: Flag = False,
    first: Flag = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> tuple[Cost, str]:
    """Gradient descent: p -= rate g, with momentum v = momentum v + (1 - dampening) g instead of g.

    FLOPs: 2 for each element; 3 more with momentum (none in its first step), 2 with nesterov, 2
        with weight decay, 1 each for a negated gradient and one to unscale.
    Bytes: parameters and velocities read and written, gradients read, and written if unscaled.

    Options that are not recorded are assumed to be off, and the cost is an estimate. Formula of
    torch's fused kernel.
    """
    del rate, found_inf
    flops, known = 2, True
    for flag, cost in ((weight_decay, _DECAY), (nesterov, 2), (maximize, 1)):
        unknown = isinstance(flag, Unknown)
        known, flops = known and not unknown, flops + (0 if unknown or not flag else cost)
    if velocities:
        known = known and not isinstance(first, Unknown)
        flops += 0 if first is True else _AVERAGE
    state, read = [parameters, *([velocities] if velocities else [])], [gradients]
    if grad_scale is not None:
        flops, state, read = flops + 1, [*state, gradients], []
    return step(flops, state, read, (), exact=known)


@operators("""
    (parameters*, gradients*, sums*, steps*, lr=rate, _, weight_decay, _, maximize, grad_scale,
        found_inf): _fused_adagrad _fused_adagrad_
""")
def fused_adagrad(
    parameters: Tensors,
    gradients: Tensors,
    sums: Tensors,
    steps: Tensors = (),
    rate: Rate = None,
    weight_decay: Number | Unknown = 0.0,
    maximize: Flag = False,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> tuple[Cost, str]:
    """Adagrad: s += g^2, p -= rate g / (sqrt(s) + epsilon).

    FLOPs: 26 for each element; 2 more with weight decay, 1 each for a negated gradient and one to
        unscale.
    Bytes: parameters and sums read and written, gradients read, and written if unscaled; the steps
        read.

    Options that are not recorded are assumed to be off, and the cost is an estimate.
    """
    del rate, found_inf
    unknown = isinstance(weight_decay, Unknown) or isinstance(maximize, Unknown)
    decays = not isinstance(weight_decay, Unknown) and bool(weight_decay)
    flops = _ADAGRAD + (_DECAY if decays else 0) + (maximize is True)
    state, read = [parameters, sums], [gradients]
    if grad_scale is not None:
        flops, state, read = flops + 1, [*state, gradients], []
    return step(flops, state, read, steps, exact=not unknown)


table_row("""
    Gradients checked for infinities and unscaled in place (torch.amp's GradScaler).
    FLOPs: 2 for each element: a check and a product.
    Bytes: gradients read and written.
    (gradients*, found_inf, inv_scale): _amp_foreach_non_finite_check_and_unscale
        _amp_foreach_non_finite_check_and_unscale_ _amp_non_finite_check_and_unscale_
""")(
    "gradients*, found_inf~, inv_scale~", lambda gradients: step(2, [gradients], [], (), exact=True)
)


@operators("(scale, growth_tracker, found_inf, ...): _amp_update_scale _amp_update_scale_")
def amp_update_scale(scale: Tensor, growth_tracker: Tensor, found_inf: Tensor) -> Cost:
    """The loss scale increased or decreased (torch.amp's GradScaler).

    FLOPs: 3: a check, a count and a product.
    Bytes: three numbers read, two written.
    """
    return Cost(3, moved(scale, growth_tracker, found_inf, scale, growth_tracker))
