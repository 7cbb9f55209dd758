"""FLOPs of activation functions and of their gradient operators."""

from __future__ import annotations

from typing import Final

from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM, SIGMOID, TRIGONOMETRIC
from fastprof.ops.pointwise.table import NONE, Output, Row, row

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


def _backward(name: str, text: str, flops: int, operands: str = _SAVED) -> Row:
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
