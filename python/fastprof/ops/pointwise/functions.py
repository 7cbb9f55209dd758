"""FLOPs of elementwise functions and activations."""

from __future__ import annotations

from typing import Final

from fastprof.ops.axes import (
    ERROR_FUNCTION,
    EXPONENTIAL,
    GAMMA,
    LOGARITHM,
    SIGMOID,
    SQUARE_ROOT,
    TRIGONOMETRIC,
)
from fastprof.ops.pointwise.table import (
    BOTH,
    COMPLEX_DIVISION,
    COMPLEX_EXPONENTIAL,
    COMPLEX_LOGARITHM,
    HYPOTENUSE,
    NONE,
    Output,
    PointwiseRow,
    passed,
    row,
)

_COMPLEX_SINE: Final = 4 * TRIGONOMETRIC + 2  # sin a cosh b + i cos a sinh b

FUNCTIONS: Final = (
    row(
        "abs absolute",
        "|a|",
        1,
        output=Output.MAGNITUDE,
        python="__abs__",
        gradient=2,
        complex_flops=HYPOTENUSE,
    ),
    row(
        "sqrt",
        "root of a",
        SQUARE_ROOT,
        output=Output.FLOAT,
        gradient=2,
        complex_flops=HYPOTENUSE + 2 * (2 + SQUARE_ROOT),
    ),
    row(
        "rsqrt",
        "1 / root of a",
        SQUARE_ROOT,
        output=Output.FLOAT,
        gradient=4,
        complex_flops=HYPOTENUSE + 2 * (2 + SQUARE_ROOT) + 6,
    ),
    row(
        "exp",
        "e^a",
        EXPONENTIAL,
        output=Output.FLOAT,
        gradient=1,
        complex_flops=COMPLEX_EXPONENTIAL,
    ),
    row(
        "exp2 expm1",
        "2^a, e^a - 1",
        EXPONENTIAL,
        output=Output.FLOAT,
        gradient=2,
        special="exp2 expm1",
    ),
    row(
        "log",
        "log(a)",
        LOGARITHM,
        output=Output.FLOAT,
        gradient=1,
        complex_flops=COMPLEX_LOGARITHM,
    ),
    row(
        "log2 log10 log1p",
        "log of another base, log(1 + a)",
        LOGARITHM,
        output=Output.FLOAT,
        gradient=2,
        special="log1p",
    ),
    row(
        "sin cos sinh cosh",
        "sine and so on",
        TRIGONOMETRIC,
        output=Output.FLOAT,
        gradient=TRIGONOMETRIC + 1,
        complex_flops=_COMPLEX_SINE,
    ),
    row(
        "tan tanh",
        "tangent",
        TRIGONOMETRIC,
        output=Output.FLOAT,
        gradient=3,
        complex_flops=2 * _COMPLEX_SINE + COMPLEX_DIVISION,
    ),
    row(
        "atan arctan atanh arctanh",
        "inverse tangent",
        TRIGONOMETRIC,
        output=Output.FLOAT,
        gradient=3,
    ),
    row(
        "asin acos asinh acosh arcsin arccos arcsinh arccosh",
        "inverse sine and so on",
        TRIGONOMETRIC,
        output=Output.FLOAT,
        gradient=3 + SQUARE_ROOT,
    ),
    row(
        "sinc",
        "sin(pi a) / (pi a)",
        TRIGONOMETRIC + 2,
        output=Output.FLOAT,
        gradient=2 * TRIGONOMETRIC + 6,
        special="sinc",
    ),
    row(
        "erf erfc erfinv",
        "error function",
        ERROR_FUNCTION,
        output=Output.FLOAT,
        gradient=EXPONENTIAL + 3,
        special="erf erfc erfinv erfcx",
    ),
    row(
        "",
        "normal distribution",
        ERROR_FUNCTION + 3,
        output=Output.FLOAT,
        gradient=EXPONENTIAL + 3,
        special="ndtr ndtri log_ndtr",
    ),
    row("", "-a log(a)", LOGARITHM + 2, output=Output.FLOAT, special="entr"),
    row(
        "digamma lgamma mvlgamma",
        "gamma function's logarithm, its derivative",
        GAMMA,
        output=Output.FLOAT,
        gradient=GAMMA + 1,
        special="digamma psi gammaln multigammaln",
    ),
    row(
        "igamma igammac",
        "incomplete gamma function",
        GAMMA,
        BOTH,
        Output.FLOAT,
        special="gammainc gammaincc zeta",
    ),
    row(
        "i0",
        "Bessel function",
        GAMMA,
        output=Output.FLOAT,
        gradient=GAMMA + 1,
        special="i0 i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0"
        " modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0"
        " scaled_modified_bessel_k1 spherical_bessel_j0 airy_ai",
    ),
    row(
        "sigmoid",
        "1 / (1 + e^-a)",
        SIGMOID,
        output=Output.FLOAT,
        gradient=3,
        special="expit",
        complex_flops=COMPLEX_EXPONENTIAL + 1 + 6,
    ),
    row(
        "logit", "log(a / (1 - a))", LOGARITHM + 2, output=Output.FLOAT, gradient=3, special="logit"
    ),
    row(
        "angle",
        "angle of a complex number, 0 or pi for a real one",
        1,
        output=Output.MAGNITUDE,
        gradient=5,
        complex_flops=TRIGONOMETRIC,
        in_place=False,
    ),
    row("conj_physical", "complex conjugate", 0, gradient=passed(0), complex_flops=1),
    row("complex", "a + i b: data movement", 0, "self imag", Output.COMPLEX, in_place=False),
    row(
        "polar",
        "a (cos b + i sin b)",
        2 * TRIGONOMETRIC + 2,
        "self angle",
        Output.COMPLEX,
        gradient=6,
        in_place=False,
    ),
)


# FLOPs of activation functions and of their gradient operators.

_SAVED: Final = "grad_output self"

# Activations. Slopes and limits are not operands.
ACTIVATIONS: Final = (
    row("relu threshold", "a or 0, a or a value, by a limit", 1),
    row("relu6 hardtanh", "a between two limits", 2),
    row("leaky_relu rrelu", "a or slope a", 2),
    row("hardshrink softshrink", "a, or 0 between two limits", 2, in_place=False),
    row(
        "prelu",
        "a or slope a, one slope per channel",
        2,
        "self weight",
        Output.PER_CHANNEL,
        in_place=False,
    ),
    row("_prelu_kernel", "a or slope a", 2, "self weight", in_place=False),
    row("hardsigmoid", "clamp(a + 3, 0, 6) / 6", 4, gradient=3),
    row("hardswish", "a clamp(a + 3, 0, 6) / 6", 5, gradient=5),
    row("silu", "a / (1 + e^-a)", SIGMOID + 1, gradient=SIGMOID + 5),
    row(
        "mish",
        "a tanh(log(1 + e^a))",
        EXPONENTIAL + LOGARITHM + 1 + TRIGONOMETRIC + 1,
        gradient=EXPONENTIAL + LOGARITHM + 1 + TRIGONOMETRIC + SIGMOID + 6,
    ),
    row("", "a / (1 + |a|)", 3, python="softsign"),
    row("elu", "a or alpha (e^a - 1)", EXPONENTIAL + 2, gradient=EXPONENTIAL + 3),
    row("celu selu", "scaled elu", EXPONENTIAL + 3, gradient=EXPONENTIAL + 3),
    row(
        "softplus",
        "log(1 + e^a)",
        EXPONENTIAL + LOGARITHM + 1,
        gradient=EXPONENTIAL + 3,
        in_place=False,
    ),
    row(
        "log_sigmoid",
        "-log(1 + e^-a)",
        EXPONENTIAL + LOGARITHM + 1,
        gradient=EXPONENTIAL + 7,
        python="logsigmoid",
        aten="log_sigmoid_forward",
        in_place=False,
    ),
    row("", "a - tanh(a)", TRIGONOMETRIC + 1, python="tanhshrink"),
    row("rrelu_with_noise", "a or noise a", 2, "self noise", gradient=1),
)


def _backward(name: str, text: str, flops: int, operands: str = _SAVED) -> PointwiseRow:
    return row("", text, flops, operands, gradient=NONE, aten=f"{name}_backward")


GRADIENTS: Final = (
    _backward("threshold", "dy where a is above a limit", 1),
    _backward("hardtanh", "dy where a is between two limits", 2),
    _backward("leaky_relu", "dy or slope dy", 2),
    _backward("rrelu_with_noise", "dy or noise dy", 1, "grad_output _self noise"),
    _backward("hardshrink", "dy, or 0 between two limits", 2, "grad_out self"),
    _backward("softshrink", "dy, or 0 between two limits", 2),
    _backward("hardsigmoid", "dy / 6 between two limits", 3),
    _backward("hardswish", "dy (a / 3 + 1/2) between two limits", 5),
    _backward("silu", "dy s (1 + a (1 - s)), s the sigmoid of a", SIGMOID + 5),
    _backward("mish", "dy times the derivative of mish",
              EXPONENTIAL + LOGARITHM + 1 + TRIGONOMETRIC + SIGMOID + 6),
    _backward("elu", "dy or dy alpha e^a", EXPONENTIAL + 3, "grad_output _ _ _ _ self_or_result"),
    _backward("softplus", "dy e^a / (1 + e^a)", EXPONENTIAL + 3),
    _backward("log_sigmoid", "dy (1 - sigmoid of a)", EXPONENTIAL + 7),
    _backward("sigmoid", "dy (1 - y) y", 3, "grad_output output"),
    _backward("tanh", "dy (1 - y^2)", 3, "grad_output output"),
    _backward("logit", "dy / (a (1 - a))", 3),
)  # fmt: skip
