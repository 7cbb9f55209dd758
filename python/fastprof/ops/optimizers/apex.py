"""FLOPs and bytes of the optimizer steps of NVIDIA's apex, one of them known to PyProf."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor
from fastprof.ops.arithmetic import SQUARE_ROOT
from fastprof.ops.cost import CannotModel, Cost, add_known
from fastprof.ops.optimizers.fused import step
from fastprof.ops.parameters import Tensors
from fastprof.ops.registry import operators
from fastprof.ops.tensor import canonical_type, elements
from fastprof.ops.traffic import moved, texts

Lists = tuple[Tensors, ...]

# Averages of the gradient and of its square, root + epsilon, division, decay * parameter added,
# parameter - step * that.
ADAM: Final = 3 + 4 + SQUARE_ROOT + 1 + 1 + 2 + 2


@operators("(parameter, copy, average, square, gradient, ...): fused_adam_cuda.adam")
def fused_adam(
    parameter: Tensor, copy: Tensor, average: Tensor, square: Tensor, gradient: Tensor
) -> tuple[Cost, str]:
    """Adam for one parameter, with its half-precision copy or an empty tensor.

    FLOPs: 34 for each element: 1 to unscale the gradient, 3 and 4 for the averages, 21 for the
        denominator, 3 for the update with weight decay, 2 for the parameter.
    Bytes: parameter and both averages read and written, gradient read; the copy written if the
        types of gradient and parameter differ.

    Bytes are PyProf's, which counts 0 FLOPs.
    """
    if copy.shape not in (parameter.shape, (0,)):
        raise CannotModel(f"a copy of {copy.shape} does not fit {parameter.shape}")
    state = [(parameter,), (average,), (square,)]
    cost, text = step(1 + ADAM, state, [(gradient,)], (), exact=True)
    mixed = canonical_type(parameter.dtype) != canonical_type(gradient.dtype)
    return Cost(cost.flops, add_known(cost.bytes, moved(gradient) if mixed else 0)), text


@operators("""
    (_, flag, gradients*, parameters*, averages*, squares*, _, _, _, _, _, _, _, _):
        amp_C.multi_tensor_adam
    (_, flag, lists, _, _, _, _, _, _, _, _): amp_C.multi_tensor_adam
""")
def multi_tensor_adam(
    gradients: Tensors = (),
    parameters: Tensors = (),
    averages: Tensors = (),
    squares: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """Adam or AdamW of apex's FusedAdam for lists of parameters.

    FLOPs: 35 for each element: 3 and 4 for the averages, 2 to correct them, 21 for the
        denominator, 1 for the update, 2 for the weight decay, 2 for the parameter.
    Bytes: parameters and both averages read and written, gradients read.
    """
    del flag
    gradients, parameters, averages, squares = split(
        lists, (gradients, parameters, averages, squares)
    )
    return step(2 + ADAM, [parameters, averages, squares], [gradients], (), exact=True)


@operators("""
    (_, flag, sources*, results*, _): amp_C.multi_tensor_scale
    (_, flag, lists, _): amp_C.multi_tensor_scale
""")
def multi_tensor_scale(
    sources: Tensors = (),
    results: Tensors = (),
    lists: Lists | None = None,
    flag: Tensor | None = None,
) -> tuple[Cost, str]:
    """The tensors of a list times a number, into another list.

    FLOPs: 2 for each element: a product, and a check for infinities.
    Bytes: sources read, results written.
    """
    del flag
    sources, results = split(lists, (sources, results))
    if [each.shape for each in sources] != [each.shape for each in results]:
        raise CannotModel("the lists differ in shape")
    count = sum(elements(each.shape) for each in sources)
    return Cost(2 * count, moved(*sources, *results)), texts(*sources)


@operators("""
    (_, flag, tensors*, _): amp_C.multi_tensor_l2norm amp_C.multi_tensor_l2norm_mp
    (_, flag, lists, _): amp_C.multi_tensor_l2norm amp_C.multi_tensor_l2norm_mp
""")
def multi_tensor_norm(
    tensors: Tensors = (), lists: Lists | None = None, flag: Tensor | None = None
) -> tuple[Cost, str]:
    """The norm of all the tensors of a list together.

    FLOPs: 2 for each element, a square and a sum, and 20 for the root.
    Bytes: each tensor read, one float32 number written.

    Optional per-tensor norms are not counted.
    """
    del flag
    (tensors,) = split(lists, (tensors,))
    count = sum(elements(each.shape) for each in tensors)
    written = moved(Tensor((), "float32"))
    return Cost(2 * count + SQUARE_ROOT, add_known(moved(*tensors), written)), texts(*tensors)


def split(lists: Lists | None, flat: Lists) -> Lists:
    """The lists of a call, passed as one argument or recorded flattened.

    Raises
    ------
    CannotModel
        When the argument has another number of lists.
    """
    if lists is None:
        return flat
    if len(lists) != len(flat):
        raise CannotModel(f"expected {len(flat)} lists, found {len(lists)}")
    return lists
