"""Pointwise operators outside the table: with a string argument, with halves, with two outputs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastprof.model.call import Tensor, Unknown
from fastprof.ops.axes import ERROR_FUNCTION, EXPONENTIAL, GAMMA, SIGMOID, TRIGONOMETRIC
from fastprof.ops.cost import Answer, CannotModel, Cost
from fastprof.ops.dtypes import is_floating, result_type
from fastprof.ops.pointwise.formula import Argument, known, pointwise
from fastprof.ops.pointwise.functions import DIVISION
from fastprof.ops.pointwise.table import NONE, Operator, Output, saved
from fastprof.ops.registry import operators
from fastprof.ops.table import Traffic, table_row
from fastprof.ops.tensor import elements, fresh, moved, texts


@operators("""
    a / b, elementwise: integers give float32, or integers if the result is rounded.
    FLOPs: 1 for each element of the output, 11 if complex; backward the same.
    Bytes: each operand read at its own size, the output written; backward gradients and a saved
    tensor. Unknown for integers if the capture does not record whether the result is rounded.
    (left, other, rounding_mode, ...): torch.div torch.divide torch.true_divide
    (left, other): torch.truediv torch.__truediv__ torch.__rtruediv__ torch.__div__
        torch.__rdiv__ aten::true_divide
    (left, other, rounding_mode): aten::div aten::divide
""")
def divide(
    left: Argument, other: Argument, rounding_mode: str | Unknown | None = None, *, direction: str
) -> Answer:
    operands = known(left, other)
    output = Output.FLOAT if rounding_mode is None else Output.PROMOTED
    cost, text = pointwise(replace(DIVISION, output=output), operands, direction)
    if isinstance(rounding_mode, Unknown) and not is_floating(result_type(operands)):
        cost = Cost(cost.flops, None)
    return cost, text


@operators("""
    a / b in place of a.
    FLOPs: 1 for each element, 11 if complex; backward the same.
    Bytes: each operand read at its own size, the first written; backward gradients and a saved
    tensor.
    (left, other, ...): div_ divide_ true_divide_ torch.__itruediv__ torch.__idiv__
        torch.itruediv
""")
def div(left: Tensor, other: Argument, *, direction: str) -> Answer:
    return pointwise(replace(DIVISION, output=Output.FIRST), known(left, other), direction)


# 0.5 x (1 + erf(x / sqrt 2)), and 0.5 x (1 + tanh(c (x + 0.044715 x^3))).
_GELU: Final = ERROR_FUNCTION + 4
_GELU_TANH: Final = TRIGONOMETRIC + 8
# dy (cdf + x pdf), with the exponential of the density; and by the derivative of the tanh.
_GELU_GRADIENT: Final = ERROR_FUNCTION + EXPONENTIAL + 9
_GELU_TANH_GRADIENT: Final = TRIGONOMETRIC + 17
_APPROXIMATE: Final = {"none": (_GELU, _GELU_GRADIENT), "tanh": (_GELU_TANH, _GELU_TANH_GRADIENT)}


@operators("""
    x [..] times the normal distribution function of x, or its approximation by tanh.
    FLOPs: 24 for each element, 28 by tanh; backward 49, 37 by tanh.
    Bytes: x read, the output written; backward gradients and x.

    torch ranges do not record which; the first is assumed, and the cost is an estimate.
    (*): aten::gelu aten::gelu_
    (x, approximate): torch.gelu torch.gelu_
""")
def gelu(x: Tensor, approximate: str | Unknown = "none", *, direction: str) -> Answer:
    flops, gradient = _of_gelu(approximate)
    operator = Operator(flops, ("x",), Output.PROMOTED, saved(gradient), 1, None)
    return _estimate(pointwise(operator, [x], direction), approximate)


@operators("""
    dy times the derivative of gelu at x.
    FLOPs: 49 for each element, 37 by tanh.
    Bytes: dy and x read, the gradient written.

    torch ranges do not record which; the first is assumed, and the cost is an estimate.
    (gradient, x, approximate): aten::gelu_backward
    (gradient, x): aten::infinitely_differentiable_gelu_backward
""")
def gelu_backward(gradient: Tensor, x: Tensor, approximate: str | Unknown = "none") -> Answer:
    flops = _of_gelu(approximate)[1]
    operator = Operator(flops, ("gradient", "x"), Output.PROMOTED, NONE, 2, None)
    return _estimate(pointwise(operator, [gradient, x], "fprop"), approximate)


def _of_gelu(approximate: str | Unknown) -> tuple[int, int]:
    name = "none" if isinstance(approximate, Unknown) else approximate
    if name not in _APPROXIMATE:
        raise CannotModel(f"unknown approximation {name!r} of gelu")
    return _APPROXIMATE[name]


def _estimate(answer: Answer, approximate: str | Unknown) -> Answer:
    cost, text = answer
    return replace(cost, exact=not isinstance(approximate, Unknown)), text


_GLU: Final = SIGMOID + 1
_GLU_GRADIENT: Final = SIGMOID + 5


@operators("""
    First half of x along a dimension times the sigmoid of the second: half of x's elements.
    FLOPs: 23 for each element of the output; backward 27.
    Bytes: x read, the output written; backward x and the output's gradient read and x's gradient
    written.
    (x, ...): glu
""")
def glu(x: Tensor, *, direction: str) -> Answer:
    half = _half(x)
    output = fresh(x, (half,))
    if direction == "bprop":
        return Cost(half * _GLU_GRADIENT, moved(x, output, x)), texts(x)
    return Cost(half * _GLU, moved(x, output)), texts(x)


@operators("""
    Gradient of glu at x, of x's size.
    FLOPs: 27 for each element of the output's gradient.
    Bytes: x and the output's gradient read, x's gradient written.
    (gradient, x, ...): aten::glu_backward
""")
def glu_backward(gradient: Tensor, x: Tensor) -> Answer:
    if elements(gradient.shape) != _half(x):
        raise CannotModel(f"{gradient.shape} is not half of {x.shape}")
    return Cost(_half(x) * _GLU_GRADIENT, moved(gradient, x, fresh(x))), texts(gradient, x)


def _half(x: Tensor) -> int:
    if not x.shape or elements(x.shape) % 2:
        raise CannotModel(f"{x.shape} has no halves")
    return elements(x.shape) // 2


table_row("""
    dy or slope dy, and dy a or 0: the gradient of the slope before summation.
    FLOPs: 3 for each element: a comparison, two multiplications.
    Bytes: dy, x and the slopes read, both gradients of x's size written.
    (gradient, x, weight): aten::_prelu_kernel_backward
""")("gradient, x, weight", Traffic(3, "gradient x weight x' x'", "gradient x weight", of="x"))


_POLYGAMMA: Final = Operator(GAMMA, ("x",), Output.FLOAT, saved(GAMMA + 1), 1, None)


table_row("""
    Derivative of a given order of the digamma function, elementwise.
    FLOPs: 20 for each element; backward 21.
    Bytes: x read, the output written; backward gradients and x.
    (_, x, ...): polygamma aten::special_polygamma
    (x, ...): polygamma_
    (x, _): torch.polygamma
""")("x", lambda x, direction: pointwise(_POLYGAMMA, [x], direction))


table_row("""
    Mantissa, of x's type, and exponent, int32, of each element.
    FLOPs: 2 for each element.
    Bytes: x read, both written.
    (x, ...): frexp
""")("x", Traffic(2, "x x' x:int32"))


table_row("""
    +x: x itself.
    FLOPs: 0.
    Bytes: 0, forward and backward: no kernel runs.
    (x): positive torch.pos torch.__pos__
""")("x", Traffic(0, "", "x"), both=True)
