"""Optimizer steps of apex over lists, other than Adam: FusedSGD, FusedLAMB, ...

Arguments are those of apex's csrc/amp_C_frontend.cpp, in which one argument contains all lists.
FLOPs follow its kernels, csrc/multi_tensor_*.cu.
"""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import SQUARE_ROOT
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.optimizers.apex import ADAM, Lists, split
from fastprof.ops.optimizers.fused import step
from fastprof.ops.parameters import Number, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import canonical_type, elements
from fastprof.ops.traffic import moved, texts

_DECAY: Final = 2  # decay * parameter, added
_AVERAGE: Final = 3  # beta * average + (1 - beta) * new
_UPDATE: Final = 2  # parameter - rate * update
_ADAGRAD: Final = _DECAY + 2 + SQUARE_ROOT + 1 + 1 + _UPDATE
_NOVOGRAD: Final = 2 + 1 + _DECAY + _AVERAGE + 1 + _UPDATE
_LAMB: Final = 1 + 2 + ADAM + 2 * 2
_CAPTURABLE: Final = 1 + 2 + ADAM


@operators("""
    (_, flag, tensors*, weight_decay, momentum, _, _, nesterov, first, _, _):
        amp_C.multi_tensor_sgd
    (_, flag, lists, weight_decay, momentum, _, _, nesterov, first, _, _):
        amp_C.multi_tensor_sgd
""")
def multi_tensor_sgd(
    weight_decay: Number,
    momentum: Number,
    nesterov: Number = False,
    first: Number = False,
    tensors: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """Gradient descent of apex's FusedSGD: lists of gradients, parameters, velocities and copies.

    FLOPs: 2 for each element; 2 more with weight decay, 3 with momentum (none in the first step), 2
        with nesterov.
    Bytes: gradients read, parameters read and written, with momentum velocities too; copies in
        half precision written.

    Copies exist if the types differ; the kernel has no other case.
    """
    del flag
    if lists is None:
        count = 4 if len({canonical_type(each.dtype) for each in tensors}) > 1 else 3
        length, left = divmod(len(tensors), count)
        if left:
            raise CannotModel(f"{len(tensors)} tensors do not form {count} lists of equal length")
        lists = tuple(tensors[start * length : (start + 1) * length] for start in range(count))
    if len(lists) not in (3, 4):
        raise CannotModel(f"expected 3 lists, or 4, found {len(lists)}")
    gradients, parameters, velocities, *copies = lists
    flops = _UPDATE + (_DECAY if weight_decay else 0)
    if momentum:
        flops += (0 if first else _AVERAGE) + (2 if nesterov else 0)
    state = [parameters, *([velocities] if momentum else [])]
    return step(flops, state, [gradients, *copies], (), exact=True)


@operators("""
    (_, flag, gradients*, parameters*, averages*, squares*, rate, _, _, _, taken, _, _, _,
        scale): amp_C.multi_tensor_adam_capturable
    (_, flag, lists, rate, _, _, _, taken, _, _, _, scale): amp_C.multi_tensor_adam_capturable
""")
def multi_tensor_adam_capturable(
    rate: Tensor,
    taken: Tensor,
    scale: Tensor,
    gradients: Tensors = (),
    parameters: Tensors = (),
    averages: Tensors = (),
    squares: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """Capturable Adam of apex's FusedAdam, for CUDA graphs: its scalars are on the device.

    FLOPs: 36 for each element: 1 to unscale the gradient, 35 as `multi_tensor_adam`.
    Bytes: parameters, both averages and the gradients, unscaled in place, read and written; rate,
        steps taken and scale read.
    """
    del flag
    gradients, parameters, averages, squares = split(
        lists, (gradients, parameters, averages, squares)
    )
    state = [parameters, averages, squares, gradients]
    return step(_CAPTURABLE, state, [], (rate, taken, scale), exact=True)


@operators("""
    (_, flag, gradients*, parameters*, averages*, squares*, masters*, rate, _, _, _, taken, _,
        _, _, scale): amp_C.multi_tensor_adam_capturable_master
    (_, flag, lists, rate, _, _, _, taken, _, _, _, scale):
        amp_C.multi_tensor_adam_capturable_master
""")
def multi_tensor_adam_capturable_master(
    rate: Tensor,
    taken: Tensor,
    scale: Tensor,
    gradients: Tensors = (),
    parameters: Tensors = (),
    averages: Tensors = (),
    squares: Tensors = (),
    masters: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """`multi_tensor_adam_capturable` for parameters with a master of higher precision.

    FLOPs: 36 for each element.
    Bytes: masters, both averages and the gradients, unscaled in place, read and written;
        parameters written; rate, steps taken and scale read.
    """
    del flag
    gradients, parameters, averages, squares, masters = split(
        lists, (gradients, parameters, averages, squares, masters)
    )
    state = [masters, averages, squares, gradients]
    return step(_CAPTURABLE, state, [parameters], (rate, taken, scale), exact=True)


@operators("""
    (_, flag, gradients*, parameters*, sums*, _, _, _, _): amp_C.multi_tensor_adagrad
    (_, flag, lists, _, _, _, _): amp_C.multi_tensor_adagrad
""")
def multi_tensor_adagrad(
    gradients: Tensors = (),
    parameters: Tensors = (),
    sums: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """Adagrad of apex's FusedAdagrad for lists of parameters.

    FLOPs: 28 for each element: 2 for the weight decay, 2 for the sum of squares, 21 for the
        denominator, 1 for the quotient, 2 for the parameter.
    Bytes: parameters and sums read and written, gradients read.
    """
    del flag
    gradients, parameters, sums = split(lists, (gradients, parameters, sums))
    return step(_ADAGRAD, [parameters, sums], [gradients], (), exact=True)


@operators("""
    (_, flag, gradients*, parameters*, averages*, norms, _, _, _, _, _, _, _, _, _, _):
        amp_C.multi_tensor_novograd
    (_, flag, lists, norms, _, _, _, _, _, _, _, _, _, _): amp_C.multi_tensor_novograd
""")
def multi_tensor_novograd(
    norms: Tensor,
    gradients: Tensors = (),
    parameters: Tensors = (),
    averages: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """NovoGrad of apex's FusedNovoGrad: each gradient divided by the running norm of its
    parameter's gradients.

    FLOPs: 11 for each element: 2 for the norm, 1 for the quotient, 2 for the weight decay, 3 for
        the average and 1 to correct it, 2 for the parameter.
    Bytes: parameters and averages read and written, gradients read; the norms read and written.

    The arithmetic on the norms themselves, a few operations per parameter, is not counted.
    """
    del flag
    gradients, parameters, averages = split(lists, (gradients, parameters, averages))
    if elements(norms.shape) != len(parameters):
        raise CannotModel(f"{norms.shape} norms do not fit {len(parameters)} parameters")
    return step(_NOVOGRAD, [parameters, averages], [gradients], (norms, norms), exact=True)


@operators("""
    (_, flag, gradients*, parameters*, averages*, squares*, _, _, _, _, _, _, _, _, _, norm, _,
        _): amp_C.multi_tensor_lamb
    (_, flag, lists, _, _, _, _, _, _, _, _, _, norm, _, _): amp_C.multi_tensor_lamb
""")
def multi_tensor_lamb(
    norm: Tensor,
    gradients: Tensors = (),
    parameters: Tensors = (),
    averages: Tensors = (),
    squares: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """LAMB of apex's FusedLAMB: Adam's update, scaled by the norms of parameter and update.

    FLOPs: 40 for each element: 1 to clip the gradient, 35 as Adam, 4 for both norms.
    Bytes: parameters, both averages and the gradients, which become the updates, read and written;
        the norm of all gradients read.

    The kernels read parameters and updates more than once, for their norms; bytes count each tensor
    once.
    """
    del flag
    gradients, parameters, averages, squares = split(
        lists, (gradients, parameters, averages, squares)
    )
    state = [parameters, averages, squares, gradients]
    return step(_LAMB, state, [], (norm,), exact=True)


@operators("""
    (_, flag, left*, right*, results*, _, _, _): amp_C.multi_tensor_axpby
    (_, flag, lists, _, _, _): amp_C.multi_tensor_axpby
""")
def multi_tensor_sum(
    left: Tensors = (),
    right: Tensors = (),
    results: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """a x + b y for the tensors of two lists, into a third.

    FLOPs: 4 for each element: two products, a sum, and a check for infinities.
    Bytes: both lists read, results written.
    """
    del flag
    left, right, results = split(lists, (left, right, results))
    shapes = [each.shape for each in left]
    if any([each.shape for each in other] != shapes for other in (right, results)):
        raise CannotModel("the lists differ in shape")
    return Cost(4 * sum(map(elements, shapes)), moved(*left, *right, *results)), texts(*left)
