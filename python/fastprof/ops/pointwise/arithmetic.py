"""FLOPs of elementwise arithmetic, comparisons and bit operations."""

from __future__ import annotations

from typing import Final

from fastprof.ops.arithmetic import EXPONENTIAL, LOGARITHM, POWER, TRIGONOMETRIC
from fastprof.ops.pointwise.table import (
    BOTH,
    COMPLEX_DIVISION,
    COMPLEX_EXPONENTIAL,
    COMPLEX_LOGARITHM,
    HYPOTENUSE,
    NONE,
    ZEROED,
    Operator,
    Output,
    passed,
    row,
    saved,
)

__all__ = ["ARITHMETIC", "DIVISION", "LOGIC"]


DIVISION: Final = Operator(1, ("self", "other"), Output.FLOAT, saved(1), 2, COMPLEX_DIVISION)

# Operators that select by comparison (relu, clamp, maximum) mask the gradient by a saved tensor.
ARITHMETIC: Final = (
    row(
        *("add sub subtract", "a + b, a - b", 1, BOTH),
        gradient=passed(1),
        stems="add sub",
        complex_flops=2,
    ),
    row("rsub", "b - a", 1, BOTH, gradient=passed(1), complex_flops=2, in_place=False),
    row("mul multiply", "a b", 1, BOTH, stems="mul", complex_flops=6),
    row(
        *("floor_divide", "floor(a / b)", 1, BOTH),
        gradient=NONE,
        python="floordiv",
        stems="floordiv",
    ),
    row(
        *("remainder fmod", "remainder of a / b", 1, BOTH),
        gradient=passed(1),
        python="mod",
        stems="mod",
    ),
    row(
        "pow",
        "a^b",
        POWER,
        "self exponent",
        gradient=POWER + 2,
        stems="pow",
        complex_flops=COMPLEX_EXPONENTIAL + 6 + COMPLEX_LOGARITHM,
    ),
    row(
        "float_power",
        "a^b in float64",
        POWER,
        "self exponent",
        Output.DOUBLE,
        gradient=POWER + 2,
        complex_flops=COMPLEX_EXPONENTIAL + 6 + COMPLEX_LOGARITHM,
    ),
    row("atan2 arctan2", "angle of (b, a)", TRIGONOMETRIC, BOTH, Output.FLOAT, gradient=5),
    row("hypot", "sqrt(a^2 + b^2)", HYPOTENUSE, BOTH, Output.FLOAT, gradient=2),
    row("copysign", "|a| with the sign of b", 1, BOTH, Output.FLOAT),
    row("nextafter", "next number after a towards b", 1, BOTH, gradient=NONE),
    row("heaviside", "0, b or 1 by the sign of a", 2, "self values", gradient=NONE),
    row("ldexp", "a 2^b", POWER + 1, BOTH, Output.FLOAT, gradient=1),
    row("xlogy", "a log(b)", LOGARITHM + 1, BOTH, Output.FLOAT, special="xlogy"),
    row("", "a log(1 + b)", LOGARITHM + 2, BOTH, Output.FLOAT, special="xlog1py"),
    row(
        "logaddexp logaddexp2",
        "log(e^a + e^b)",
        EXPONENTIAL + LOGARITHM + 4,
        BOTH,
        gradient=EXPONENTIAL + 2,
        in_place=False,
    ),
    row("maximum minimum fmax fmin", "larger or smaller of a and b", 1, BOTH, in_place=False),
    row("addcmul", "a + value b c", 3, "self tensor1 tensor2", complex_flops=6 + 6 + 2),
    row(
        "addcdiv",
        "a + value b / c",
        3,
        "self tensor1 tensor2",
        complex_flops=COMPLEX_DIVISION + 6 + 2,
    ),
    row("lerp", "a + weight (b - a)", 3, "self end weight", complex_flops=2 + 6 + 2),
    row(
        "where",
        "a or b by a condition: data movement",
        0,
        "condition self other",
        complex_flops=0,
        in_place=False,
    ),
    row("clamp clip", "a between two limits", 2, "self min max", needed=1),
    row("clamp_min", "larger of a and a limit", 1, "self min"),
    row("clamp_max", "smaller of a and a limit", 1, "self max"),
    row("neg negative", "-a", 1, gradient=passed(1), complex_flops=2, python="__neg__"),
    row("square", "a^2", 1, gradient=2, complex_flops=6),
    row("reciprocal", "1 / a", 1, output=Output.FLOAT, gradient=3, complex_flops=6),
    row("frac", "a - trunc(a)", 1, gradient=passed(1)),
    row(
        "ceil floor round trunc fix sign",
        "rounded, or its sign",
        1,
        gradient=ZEROED,
        special="round",
    ),
    row("sgn", "a / |a|", 1, gradient=ZEROED, complex_flops=HYPOTENUSE + 2),
    row("nan_to_num", "a, or numbers in place of NaN and infinities", 3),
    row("deg2rad rad2deg", "angle in another unit", 1, output=Output.FLOAT, gradient=passed(1)),
)

LOGIC: Final = (
    row(
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
        "bits of a and b",
        1,
        BOTH,
        gradient=NONE,
        python="and_ or_ xor lshift rshift",
        aten="__and__ __or__ __xor__ __lshift__ __rshift__",
        stems="and or xor lshift rshift",
    ),
    row("bitwise_not", "bits of a", 1, gradient=NONE, python="__invert__ inv invert"),
    row(
        "eq ne not_equal",
        "a = b",
        1,
        BOTH,
        Output.BOOL,
        gradient=NONE,
        python="__eq__ __ne__",
        complex_flops=2,
    ),
    row(
        "lt le gt ge less less_equal greater greater_equal logical_and logical_or logical_xor",
        "a < b and so on",
        1,
        BOTH,
        Output.BOOL,
        gradient=NONE,
        python="__lt__ __le__ __gt__ __ge__",
    ),
    row(
        "logical_not isnan isinf isfinite isposinf isneginf signbit isreal",
        "a property of a",
        1,
        output=Output.BOOL,
        gradient=NONE,
        in_place="logical_not",
        complex_flops=2,
    ),
    row(
        "isclose",
        "|a - b| <= atol + rtol |b|, or a = b",
        7,
        BOTH,
        Output.BOOL,
        gradient=NONE,
        in_place=False,
    ),
)
