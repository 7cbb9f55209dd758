"""Optimizer steps of apex over lists of tensors: FusedAdam, FusedSGD, FusedLAMB, ...

Arguments are those of apex's csrc/amp_C_frontend.cpp, in which one argument contains all lists.
FLOPs follow its kernels, csrc/multi_tensor_*.cu.
"""

from __future__ import annotations

from typing import Any, Final

from fastprof.model.call import Tensor
from fastprof.ops.axes import SQUARE_ROOT
from fastprof.ops.cost import Answer, CannotModel, Cost, add_known
from fastprof.ops.dtypes import canonical_type
from fastprof.ops.optimizers import step
from fastprof.ops.parameters import Number, Tensors
from fastprof.ops.registry import operators
from fastprof.ops.table import table_row
from fastprof.ops.tensor import elements, moved, texts

Lists = tuple[Tensors, ...]

# Averages of the gradient and of its square, root + epsilon, division, decay * parameter added,
# parameter - step * that.
ADAM: Final = 3 + 4 + SQUARE_ROOT + 1 + 1 + 2 + 2
_DECAY: Final = 2  # decay * parameter, added
_AVERAGE: Final = 3  # beta * average + (1 - beta) * new
_UPDATE: Final = 2  # parameter - rate * update
_ADAGRAD: Final = _DECAY + 2 + SQUARE_ROOT + 1 + 1 + _UPDATE
_NOVOGRAD: Final = 2 + 1 + _DECAY + _AVERAGE + 1 + _UPDATE
_LAMB: Final = 1 + 2 + ADAM + 2 * 2
_CAPTURABLE: Final = 1 + 2 + ADAM


def split(lists: Lists | None, flat: Lists) -> Lists:
    """The lists of a call, passed as one argument or recorded flattened.

    Raises CannotModel when the argument has another number of lists.
    """
    if lists is None:
        return flat
    if len(lists) != len(flat):
        raise CannotModel(f"expected {len(flat)} lists, found {len(lists)}")
    return lists


class OptimizerStep:
    """The cost of a step over lists, which a call passes one by one or as `lists`.

    Parameters
    ----------
    flops : int
        FLOPs for each element.
    lists : str
        The lists in their order.
    written : str
        Those that are read and written, the parameters first; the others are read (or written).
    others : str
        Further tensors that are read.
    """

    def __init__(self, flops: int, lists: str, written: str, others: str = "") -> None:
        self.flops, self.lists = flops, lists.split()
        self.written, self.others = written.split(), others.split()
        self.names = ("lists", *self.lists, *self.others)

    def __call__(self, **given: Any) -> Answer:
        """The cost and the params of a call."""
        flat = split(given["lists"], tuple(given[name] for name in self.lists))
        lists = dict(zip(self.lists, flat, strict=True))
        written = [lists[name] for name in self.written]
        read = [tensors for name, tensors in lists.items() if name not in self.written]
        extra = tuple(given[name] for name in self.others)
        return step(self.flops, written, read, extra, exact=True)


@operators("""
    Adam for one parameter, with its half-precision copy or an empty tensor.
    FLOPs: 34 for each element: 1 to unscale the gradient, 3 and 4 for the averages, 21 for the
        denominator, 3 for the update with weight decay, 2 for the parameter.
    Bytes: parameter and both averages read and written, gradient read; the copy written if the
        types of gradient and parameter differ.

    Bytes are PyProf's, which counts 0 FLOPs.
    (parameter, copy, average, square, gradient, ...): fused_adam_cuda.adam
""")
def fused_adam_cuda_adam(
    parameter: Tensor, copy: Tensor, average: Tensor, square: Tensor, gradient: Tensor
) -> Answer:
    if copy.shape not in (parameter.shape, (0,)):
        raise CannotModel(f"a copy of {copy.shape} does not fit {parameter.shape}")
    state = [(parameter,), (average,), (square,)]
    cost, text = step(1 + ADAM, state, [(gradient,)], (), exact=True)
    mixed = canonical_type(parameter.dtype) != canonical_type(gradient.dtype)
    return Cost(cost.flops, add_known(cost.bytes, moved(gradient) if mixed else 0)), text


table_row("""
    Adam or AdamW of apex's FusedAdam for lists of parameters.
    FLOPs: 35 for each element: 3 and 4 for the averages, 2 to correct them, 21 for the
        denominator, 1 for the update, 2 for the weight decay, 2 for the parameter.
    Bytes: parameters and both averages read and written, gradients read.
    (_, flag, gradients*, parameters*, averages*, squares*, _, _, _, _, _, _, _, _):
        amp_C.multi_tensor_adam
    (_, flag, lists, _, _, _, _, _, _, _, _): amp_C.multi_tensor_adam
""")(
    "gradients*?, parameters*?, averages*?, squares*?, lists**?, flag?",
    OptimizerStep(2 + ADAM, "gradients parameters averages squares", "parameters averages squares"),
)


table_row("""
    The tensors of a list times a number, into another list.
    FLOPs: 2 for each element: a product, and a check for infinities.
    Bytes: sources read, results written.
    (_, flag, sources*, results*, _): amp_C.multi_tensor_scale
    (_, flag, lists, _): amp_C.multi_tensor_scale
""")("sources*?, results*?, lists**?, flag?", OptimizerStep(2, "sources results", ""))


@operators("""
    The norm of all the tensors of a list together.
    FLOPs: 2 for each element, a square and a sum, and 20 for the root.
    Bytes: each tensor read, one float32 number written.

    Optional per-tensor norms are not counted.
    (_, flag, tensors*, _): amp_C.multi_tensor_l2norm amp_C.multi_tensor_l2norm_mp
    (_, flag, lists, _): amp_C.multi_tensor_l2norm amp_C.multi_tensor_l2norm_mp
""")
def multi_tensor_l2norm(
    tensors: Tensors = (), lists: Lists | None = None, flag: Tensor | None = None
) -> Answer:
    (tensors,) = split(lists, (tensors,))
    count = sum(elements(tensor.shape) for tensor in tensors)
    written = moved(Tensor((), "float32"))
    return Cost(2 * count + SQUARE_ROOT, add_known(moved(*tensors), written)), texts(*tensors)


@operators("""
    Gradient descent of apex's FusedSGD: lists of gradients, parameters, velocities and copies.
    FLOPs: 2 for each element; 2 more with weight decay, 3 with momentum (none in the first step), 2
        with nesterov.
    Bytes: gradients read, parameters read and written, with momentum velocities too; copies in
        half precision written.

    Copies exist if the types differ; the kernel has no other case.
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
) -> Answer:
    if lists is None:
        count = 4 if len({canonical_type(tensor.dtype) for tensor in tensors}) > 1 else 3
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


table_row("""
    Capturable Adam of apex's FusedAdam, for CUDA graphs: its scalars are on the device.
    FLOPs: 36 for each element: 1 to unscale the gradient, 35 as `multi_tensor_adam`.
    Bytes: parameters, both averages and the gradients, unscaled in place, read and written; rate,
        steps taken and scale read.
    (_, flag, gradients*, parameters*, averages*, squares*, rate, _, _, _, taken, _, _, _,
        scale): amp_C.multi_tensor_adam_capturable
    (_, flag, lists, rate, _, _, _, taken, _, _, _, scale): amp_C.multi_tensor_adam_capturable
""")(
    "rate, taken, scale, gradients*?, parameters*?, averages*?, squares*?, lists**?, flag?",
    OptimizerStep(
        _CAPTURABLE,
        "gradients parameters averages squares",
        "parameters averages squares gradients",
        "rate taken scale",
    ),
)


table_row("""
    `multi_tensor_adam_capturable` for parameters with a master of higher precision.
    FLOPs: 36 for each element.
    Bytes: masters, both averages and the gradients, unscaled in place, read and written;
        parameters written; rate, steps taken and scale read.
    (_, flag, gradients*, parameters*, averages*, squares*, masters*, rate, _, _, _, taken, _,
        _, _, scale): amp_C.multi_tensor_adam_capturable_master
    (_, flag, lists, rate, _, _, _, taken, _, _, _, scale):
        amp_C.multi_tensor_adam_capturable_master
""")(
    "rate, taken, scale, gradients*?, parameters*?, averages*?, squares*?, masters*?, lists**?,"
    " flag?",
    OptimizerStep(
        _CAPTURABLE,
        "gradients parameters averages squares masters",
        "masters averages squares gradients",
        "rate taken scale",
    ),
)


table_row("""
    Adagrad of apex's FusedAdagrad for lists of parameters.
    FLOPs: 28 for each element: 2 for the weight decay, 2 for the sum of squares, 21 for the
        denominator, 1 for the quotient, 2 for the parameter.
    Bytes: parameters and sums read and written, gradients read.
    (_, flag, gradients*, parameters*, sums*, _, _, _, _): amp_C.multi_tensor_adagrad
    (_, flag, lists, _, _, _, _): amp_C.multi_tensor_adagrad
""")(
    "gradients*?, parameters*?, sums*?, lists**?, flag?",
    OptimizerStep(_ADAGRAD, "gradients parameters sums", "parameters sums"),
)


@operators("""
    NovoGrad of apex's FusedNovoGrad: each gradient divided by the running norm of its
    parameter's gradients.
    FLOPs: 11 for each element: 2 for the norm, 1 for the quotient, 2 for the weight decay, 3 for
        the average and 1 to correct it, 2 for the parameter.
    Bytes: parameters and averages read and written, gradients read; the norms read and written.

    The arithmetic on the norms themselves, a few operations per parameter, is not counted.
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
) -> Answer:
    gradients, parameters, averages = split(lists, (gradients, parameters, averages))
    if elements(norms.shape) != len(parameters):
        raise CannotModel(f"{norms.shape} norms do not fit {len(parameters)} parameters")
    return step(_NOVOGRAD, [parameters, averages], [gradients], (norms, norms), exact=True)


table_row("""
    LAMB of apex's FusedLAMB: Adam's update, scaled by the norms of parameter and update.
    FLOPs: 40 for each element: 1 to clip the gradient, 35 as Adam, 4 for both norms.
    Bytes: parameters, both averages and the gradients, which become the updates, read and written;
        the norm of all gradients read.

    The kernels read parameters and updates more than once, for their norms; bytes count each tensor
    once.
    (_, flag, gradients*, parameters*, averages*, squares*, _, _, _, _, _, _, _, _, _, norm, _,
        _): amp_C.multi_tensor_lamb
    (_, flag, lists, _, _, _, _, _, _, _, _, _, norm, _, _): amp_C.multi_tensor_lamb
""")(
    "norm, gradients*?, parameters*?, averages*?, squares*?, lists**?, flag?",
    OptimizerStep(
        _LAMB,
        "gradients parameters averages squares",
        "parameters averages squares gradients",
        "norm",
    ),
)


table_row("""
    a x + b y for the tensors of two lists, into a third.
    FLOPs: 4 for each element: two products, a sum, and a check for infinities.
    Bytes: both lists read, results written.
    (_, flag, left*, right*, results*, _, _, _): amp_C.multi_tensor_axpby
    (_, flag, lists, _, _, _): amp_C.multi_tensor_axpby
""")("left*?, right*?, results*?, lists**?, flag?", OptimizerStep(4, "left right results", ""))
