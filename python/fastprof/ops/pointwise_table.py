"""The pointwise operators: for each name, FLOPs for an element, operands, result, backward."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from fastprof.ops.arithmetic import (
    ERROR_FUNCTION,
    EXPONENTIAL,
    GAMMA,
    LOGARITHM,
    POWER,
    SIGMOID,
    SQUARE_ROOT,
    TRIGONOMETRIC,
)

__all__ = ["OPERATORS", "ZEROED", "Operator", "Output"]


class Output(Enum):
    """Type and shape of the output."""

    PROMOTED = "broadcast operands, their common type"
    FLOAT = "broadcast operands, their common type or float32 where that is no float"
    BOOL = "broadcast operands, bool"
    FIRST = "in place of the first operand, which the others broadcast to"
    PER_CHANNEL = "shape and type of the first operand, the second has one value a channel"


# Tensors of the output's size that the backward pass moves; None: there is no backward pass.
SAVED: Final = 3  # gradient and a saved tensor read, gradient written
PASSED: Final = 2  # gradient read, gradient written
ZEROED: Final = 1  # zeros written, no arithmetic
NONE: Final = None


@dataclass(frozen=True, slots=True)
class Operator:
    """What is known of one pointwise operator.

    Parameters
    ----------
    flops : int
        FLOPs for one element of the output, forward and backward.
    operands : tuple of tuple of str
        Keyword names of the numeric operands, in order of position.
    output : Output
        Shape and type of the output.
    backward : int or None
        Tensors of the output's size that the backward pass moves, None when there is none.
    needed : int
        How many of the operands must be given.
    """

    flops: int
    operands: tuple[tuple[str, ...], ...]
    output: Output
    backward: int | None
    needed: int


_FIRST: Final = ("input", "self")
_UNARY: Final = (_FIRST,)
_BINARY: Final = (_FIRST, ("other",))


def _operator(
    flops: int,
    operands: tuple[tuple[str, ...], ...] = _UNARY,
    output: Output = Output.PROMOTED,
    backward: int | None = SAVED,
    needed: int | None = None,
) -> Operator:
    return Operator(flops, operands, output, backward, len(operands) if needed is None else needed)


# (names, stems of Python operators, operator). A stem "add" stands for __add__, __radd__ and
# __iadd__; a name stands for itself and the in-place name_. What selects by comparing (relu,
# clamp, maximum, where) masks the gradient by a saved tensor in its backward pass.
_ROWS: Final = (
    ("add sub subtract rsub", "add sub", _operator(1, _BINARY, backward=PASSED)),
    ("mul multiply", "mul", _operator(1, _BINARY)),
    ("div divide true_divide truediv", "truediv div", _operator(1, _BINARY, Output.FLOAT)),
    ("floor_divide floordiv", "floordiv", _operator(1, _BINARY, backward=NONE)),
    ("remainder fmod mod", "mod", _operator(1, _BINARY, backward=PASSED)),
    ("pow", "pow", _operator(POWER, (_FIRST, ("exponent",)))),
    ("atan2 arctan2", "", _operator(TRIGONOMETRIC, _BINARY, Output.FLOAT)),
    ("maximum minimum fmax fmin", "", _operator(1, _BINARY)),
    (
        "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift",
        "and or xor lshift rshift",
        _operator(1, _BINARY, backward=NONE),
    ),
    ("bitwise_not __invert__", "", _operator(1, backward=NONE)),
    (
        "eq ne lt le gt ge not_equal less less_equal greater greater_equal logical_and logical_or"
        " logical_xor __eq__ __ne__ __lt__ __le__ __gt__ __ge__",
        "",
        _operator(1, _BINARY, Output.BOOL, NONE),
    ),
    (
        "logical_not isnan isinf isfinite isposinf isneginf signbit",
        "",
        _operator(1, output=Output.BOOL, backward=NONE),
    ),
    # Ternary: input + value * tensor1 * tensor2, start + weight * (end - start). A where only
    # selects: data movement.
    ("addcmul addcdiv", "", _operator(3, (_FIRST, ("tensor1",), ("tensor2",)))),
    ("lerp", "", _operator(3, (_FIRST, ("end",), ("weight",)))),
    ("where", "", _operator(0, (("condition",), _FIRST, ("other",)))),
    ("clamp clip", "", _operator(2, (_FIRST, ("min",), ("max",)), needed=1)),
    ("clamp_min", "", _operator(1, (_FIRST, ("min",)))),
    ("clamp_max", "", _operator(1, (_FIRST, ("max",)))),
    # Unary.
    ("neg negative __neg__", "", _operator(1, backward=PASSED)),
    ("abs absolute __abs__ square", "", _operator(1)),
    ("reciprocal", "", _operator(1, output=Output.FLOAT)),
    ("ceil floor round trunc fix sign", "", _operator(1, backward=ZEROED)),
    ("frac", "", _operator(1, backward=PASSED)),
    ("sqrt rsqrt", "", _operator(SQUARE_ROOT, output=Output.FLOAT)),
    ("exp exp2 expm1", "", _operator(EXPONENTIAL, output=Output.FLOAT)),
    ("log log2 log10 log1p", "", _operator(LOGARITHM, output=Output.FLOAT)),
    (
        "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh arcsin arccos arctan"
        " arcsinh arccosh arctanh",
        "",
        _operator(TRIGONOMETRIC, output=Output.FLOAT),
    ),
    ("erf erfc erfinv", "", _operator(ERROR_FUNCTION, output=Output.FLOAT)),
    ("digamma lgamma mvlgamma", "", _operator(GAMMA, output=Output.FLOAT)),
    ("sigmoid", "", _operator(SIGMOID, output=Output.FLOAT)),
    # Activations: comparisons and arithmetic of the formula; slopes and limits are no operands.
    ("relu threshold", "", _operator(1)),
    ("relu6 hardtanh leaky_relu rrelu hardshrink softshrink", "", _operator(2)),
    ("prelu", "", _operator(2, (_FIRST, ("weight",)), Output.PER_CHANNEL)),
    ("hardsigmoid", "", _operator(4)),  # clamp(x + 3, 0, 6) / 6
    ("softsign", "", _operator(3)),  # x / (1 + |x|)
    ("elu", "", _operator(EXPONENTIAL + 2)),  # x or alpha * (exp(x) - 1)
    ("celu selu", "", _operator(EXPONENTIAL + 3)),
    ("softplus", "", _operator(EXPONENTIAL + LOGARITHM + 1)),  # log(1 + exp(x))
    ("logsigmoid log_sigmoid", "", _operator(EXPONENTIAL + LOGARITHM + 1)),
    ("tanhshrink", "", _operator(TRIGONOMETRIC + 1)),  # x - tanh(x)
)


def _expand() -> dict[str, Operator]:
    # Rows to one entry a name.
    table: dict[str, Operator] = {}
    for names, stems, operator in _ROWS:
        in_place = replace(operator, output=Output.FIRST)
        entries = [(name, operator) for name in names.split()]
        entries += [(f"{name}_", in_place) for name in names.split() if not name.endswith("_")]
        for stem in stems.split():
            entries += [(f"__{stem}__", operator), (f"__r{stem}__", operator)]
            entries.append((f"__i{stem}__", in_place))
        for name, entry in entries:
            if name in table:
                raise ValueError(f"pointwise operator {name!r} is listed twice")
            table[name] = entry
    return table


OPERATORS: Final = _expand()
