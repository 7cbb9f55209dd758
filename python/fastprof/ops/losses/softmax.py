"""FLOPs and bytes of softmax and its logarithm."""

from __future__ import annotations

from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.arithmetic import EXPONENTIAL
from fastprof.ops.cost import CannotModel, Cost
from fastprof.ops.dtypes import Dtype, named
from fastprof.ops.registry import operators
from fastprof.ops.tensor import canonical_type, elements, is_floating
from fastprof.ops.traffic import fresh, moved, texts

# FLOPs per element. Per-row operations (a logarithm) are not counted.
FORWARD: Final = EXPONENTIAL + 4  # compared, max subtracted, exponential, added, divided
LOG_BACKWARD: Final = EXPONENTIAL + 3  # dy added; exponential, times sum, subtracted
BACKWARD: Final = 4  # dy y added; subtracted, times y


# torch.nn.functional has a stack level before the type: an integer in the position of `dtype`.
@operators("""
    (x, dim=_, dtype_or_level, dtype): torch.softmax
    (x, _, half_to_float): _softmax
    (x, _, dtype): aten::softmax aten::special_softmax
""")
def softmax(
    x: Tensor,
    dtype_or_level: Dtype = None,
    dtype: Dtype = None,
    half_to_float: bool | Unknown = False,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """exp(x - max) / sum of exp(x - max) along one dimension.

    FLOPs: 24 per element (maximum 1, subtracted 1, exponential 20, added 1, divided 1); backward 4
    (dy y added 2, subtracted 1, times y 1).
    Bytes: x read, y written, each in its own type. Backward reads dy and y, writes dx.

    PyProf counts 3 tensors forward and 5 backward, for a kernel that rereads long rows.
    """
    y, exact = _output(x, dtype if dtype is not None else dtype_or_level, half_to_float)
    if direction == "bprop":
        return Cost(elements(x.shape) * BACKWARD, moved(y, y, fresh(x)), exact), texts(x)
    return Cost(elements(x.shape) * FORWARD, moved(x, y), exact), texts(x)


@operators("""
    (x, dim=_, dtype_or_level, dtype): torch.log_softmax
    (x, _, half_to_float): _log_softmax
    (x, _, dtype): aten::log_softmax aten::special_log_softmax
""")
def log_softmax(
    x: Tensor,
    dtype_or_level: Dtype = None,
    dtype: Dtype = None,
    half_to_float: bool | Unknown = False,
    *,
    direction: str,
) -> tuple[Cost, str]:
    """x - max - log(sum of exp(x - max)) along one dimension.

    FLOPs: 24 per element (maximum 1, subtracted 1, exponential 20, added 1, logarithm subtracted
    1); backward 23 (dy added 1, exponential 20, times sum 1, subtracted 1).
    Bytes: x read, y written, each in its own type. Backward reads dy and y, writes dx.

    PyProf counts 3 tensors forward and 5 backward, for a kernel that rereads long rows.
    """
    y, exact = _output(x, dtype if dtype is not None else dtype_or_level, half_to_float)
    if direction == "bprop":
        return Cost(elements(x.shape) * LOG_BACKWARD, moved(y, y, fresh(x)), exact), texts(x)
    return Cost(elements(x.shape) * FORWARD, moved(x, y), exact), texts(x)


@operators("(x, dim=_, dtype_or_level, dtype): torch.softmin")
def softmin(
    x: Tensor, dtype_or_level: Dtype = None, dtype: Dtype = None, *, direction: str
) -> tuple[Cost, str]:
    """softmax(-x): a negation, then a softmax.

    FLOPs: 25 per element; backward 5.
    Bytes: those of both: x read, -x written and read, y written; backward dy and y read, a gradient
    written, read and written.
    """
    cost, params = softmax(x, dtype_or_level, dtype, direction=direction)
    return cost + Cost(elements(x.shape), moved(x, fresh(x))), params


@operators("(x, _, dtype): _safe_softmax")
def safe_softmax(x: Tensor, dtype: Dtype = None, *, direction: str) -> tuple[Cost, str]:
    """A softmax that is 0 for rows of minus infinity.

    FLOPs: 26 per element (softmax 24, compared, all of a row); backward 4.
    Bytes: as softmax.
    """
    cost, params = softmax(x, dtype=dtype, direction=direction)
    masked = 2 * elements(x.shape) if direction == "fprop" else 0
    return cost + Cost(masked, 0), params


@operators("(x, mask, ...): _masked_softmax")
def masked_softmax(x: Tensor, mask: Tensor, *, direction: str) -> tuple[Cost, str]:
    """A softmax over the elements that are not masked.

    FLOPs: as softmax, including masked elements.
    Bytes: as softmax, and the mask read.
    """
    cost, params = softmax(x, direction=direction)
    return cost + Cost(0, moved(mask)), f"{params};{texts(mask)}"


def _output(x: Tensor, dtype: Dtype, half_to_float: bool | Unknown) -> tuple[Tensor, bool]:
    # y, and whether its type is certain.
    if isinstance(dtype, Unknown):
        return fresh(x), False
    if half_to_float is True:
        return fresh(x, dtype="float32"), True
    name = named(dtype)
    unsure = isinstance(half_to_float, Unknown) and canonical_type(x.dtype) in (
        "float16",
        "bfloat16",
    )
    return fresh(x, dtype=name if is_floating(name) else None), not unsure


def _gradient(
    flops: int, gradient: Tensor, y: Tensor, dtype: Dtype, x: Tensor | None
) -> tuple[Cost, str]:
    if gradient.shape != y.shape:
        raise CannotModel(f"gradient {gradient.shape} does not fit {y.shape}")
    dx = fresh(y, dtype=named(dtype) if x is None else x.dtype)
    exact = not isinstance(dtype, Unknown)
    return Cost(elements(y.shape) * flops, moved(gradient, y, dx), exact), texts(gradient, y)


@operators("""
    (gradient, y, _, dtype): _softmax_backward_data
    (gradient, y, _, x): _softmax_backward_data
""")
def softmax_backward_data(
    gradient: Tensor, y: Tensor, dtype: Dtype = None, x: Tensor | None = None
) -> tuple[Cost, str]:
    """dx = (dy - sum of dy y) * y of a softmax.

    FLOPs: 4 per element.
    Bytes: dy and y read, dx written in the input's type.
    """
    return _gradient(BACKWARD, gradient, y, dtype, x)


@operators("""
    (gradient, y, _, dtype): _log_softmax_backward_data
    (gradient, y, _, x): _log_softmax_backward_data
""")
def log_softmax_backward_data(
    gradient: Tensor, y: Tensor, dtype: Dtype = None, x: Tensor | None = None
) -> tuple[Cost, str]:
    """dx = dy - exp(y) * sum of dy of a log_softmax.

    FLOPs: 23 per element (20 for the exponential).
    Bytes: dy and y read, dx written in the input's type.
    """
    return _gradient(LOG_BACKWARD, gradient, y, dtype, x)


@operators("(gradient, y, mask, ...): _masked_softmax_backward")
def masked_softmax_backward(gradient: Tensor, y: Tensor, mask: Tensor) -> tuple[Cost, str]:
    """dx = (dy - sum of dy y) * y of a masked softmax.

    FLOPs: 4 per element, including masked elements.
    Bytes: dy, y and the mask read, dx written.
    """
    cost, params = _gradient(BACKWARD, gradient, y, None, None)
    return cost + Cost(0, moved(mask)), f"{params};{texts(mask)}"
