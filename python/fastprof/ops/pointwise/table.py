"""The table of pointwise operators: FLOPs per element, operands, result, backward."""

from __future__ import annotations

import re
from enum import Enum
from inspect import cleandoc
from math import prod
from typing import Final

from fastprof._system.classes import dataclass
from fastprof.ops import axes
from fastprof.ops.axes import EXPONENTIAL, LOGARITHM, SQUARE_ROOT, TRIGONOMETRIC


class Output(Enum):
    """Type and shape of the output."""

    PROMOTED = "the broadcast operands' common type"
    FLOAT = "the broadcast operands' common type, float32 if it is not a float"
    DOUBLE = "float64, or complex128, over the broadcast operands"
    BOOL = "bool over the broadcast operands"
    MAGNITUDE = "the broadcast operands' common type, its real type if complex"
    COMPLEX = "the complex type of the broadcast operands' common type"
    FIRST = "in place of the first operand"
    PER_CHANNEL = "the first operand's shape and type; the second has one value per channel"


@dataclass(frozen=True, slots=True)
class Gradient:
    """The backward pass: FLOPs per element, and tensors of the output's size moved."""

    flops: int
    moved: int


@dataclass(frozen=True, slots=True)
class Operator:
    """A pointwise operator.

    Parameters
    ----------
    flops : int
        FLOPs for one element of the output.
    operands : tuple of str
        Keyword names of the numeric operands, in order of position; "_" for another argument.
    output : Output
        Shape and type of the output.
    gradient : Gradient or None
        None if there is no backward pass.
    needed : int
        Number of required operands.
    complex_flops : int or None
        FLOPs for one complex element; None if unknown.
    """

    flops: int
    operands: tuple[str, ...]
    output: Output
    gradient: Gradient | None
    needed: int
    complex_flops: int | None


@dataclass(frozen=True, slots=True)
class PointwiseRow:
    """Operators with the same cost.

    Parameters
    ----------
    python, aten : tuple of str
        Functions and methods, and ATen operators.
    python_in_place, aten_in_place : tuple of str
        Those that write to their first operand.
    text : str
        A description of the operation.
    operator : Operator
        Its cost.
    """

    python: tuple[str, ...]
    aten: tuple[str, ...]
    python_in_place: tuple[str, ...]
    aten_in_place: tuple[str, ...]
    text: str
    operator: Operator


def row(
    names: str,
    text: str,
    flops: int,
    operands: str = "self",
    output: Output = Output.PROMOTED,
    *,
    gradient: Gradient | int | None = -1,
    python: str = "",
    aten: str = "",
    stems: str = "",
    special: str = "",
    in_place: bool | str = True,
    needed: int | None = None,
    complex_flops: int | None = None,
) -> PointwiseRow:
    """A row of a table, its names and operands as text.

    `names` are shared by Python and ATen, `python` and `aten` belong to one of them. A stem "add"
    denotes __add__, __radd__, __iadd__ and iadd. ATen prefixes the names of torch.special.
    `in_place` lists the names with an in-place form ("_" at the end), or whether all have one. An
    int `gradient` is the FLOPs of a gradient that reads a saved tensor, by default those of
    forward.
    """
    if isinstance(gradient, int):
        gradient = saved(flops if gradient < 0 else gradient)
    if isinstance(in_place, bool):
        in_place = names if in_place else ""
    written = tuple(f"{name}_" for name in in_place.split())
    stem = stems.split()
    listed = dict.fromkeys([*names.split(), *python.split(), *special.split()])
    listed |= dict.fromkeys(form.format(text) for text in stem for form in ("__{}__", "__r{}__"))
    in_aten = [*names.split(), *aten.split(), *(f"special_{name}" for name in special.split())]
    parameters = tuple(operands.split())
    count = sum(parameter != "_" for parameter in parameters)
    operator = Operator(
        flops, parameters, output, gradient, count if needed is None else needed, complex_flops
    )
    return PointwiseRow(
        python=tuple(listed),
        aten=tuple(in_aten),
        python_in_place=(
            *written,
            *(form.format(text) for text in stem for form in ("__i{}__", "i{}")),
        ),
        aten_in_place=(*written, *(f"__i{name[2:]}" for name in aten.split() if name[0] == "_")),
        text=text,
        operator=operator,
    )


def saved(flops: int) -> Gradient:
    """Gradient and a saved tensor read, gradient written."""
    return Gradient(flops, 3)


def passed(flops: int) -> Gradient:
    """Gradient read, gradient written."""
    return Gradient(flops, 2)


ZEROED: Final = Gradient(0, 1)  # zeros written
NONE: Final = None

HYPOTENUSE: Final = 3 + SQUARE_ROOT
COMPLEX_DIVISION: Final = 11
# Names of numbers in tables, with those of `fastprof.ops.axes`.
_CONSTANTS: Final = {
    **{key: value for key, value in vars(axes).items() if isinstance(value, int)},
    "HYPOTENUSE": HYPOTENUSE,
    "COMPLEX_DIVISION": COMPLEX_DIVISION,
    "COMPLEX_ROOT": HYPOTENUSE + 2 * (2 + SQUARE_ROOT),
    "COMPLEX_SINE": 4 * TRIGONOMETRIC + 2,  # sin a cosh b + i cos a sinh b
    "COMPLEX_EXPONENTIAL": EXPONENTIAL + 2 * TRIGONOMETRIC + 2,  # e^a (cos b + i sin b)
    "COMPLEX_LOGARITHM": HYPOTENUSE + LOGARITHM + TRIGONOMETRIC,
}


def rows(text: str) -> tuple[PointwiseRow, ...]:
    """The rows of a table, `names: what they compute; FLOPs; option; option`, on indented lines.

    "-" in place of names shared by Python and ATen: there are none. Numbers are sums of products of
    numbers and constants of `_CONSTANTS`. Options are arguments of `row`,
    with the words `of` (the operands), `complex` (FLOPs of complex elements), `gradient` (FLOPs of
    one that reads a saved tensor) or `passed` (of one that does not), `gradient of zeros`,
    `no gradient` and `never in place`.
    """
    return tuple(map(_row, re.sub(r"\n +", " ", cleandoc(text)).splitlines()))


def _row(line: str) -> PointwiseRow:
    names, _, rest = line.partition(": ")
    text, flops, *options = rest.split("; ")
    given = dict(option.split(" ", 1) for option in options)
    gradient: Gradient | int | None = _number(given.get("gradient", "-1").replace("of zeros", "0"))
    if "passed" in given:
        gradient = passed(_number(given["passed"]))
    elif given.get("gradient") == "of zeros":
        gradient = ZEROED
    elif "no" in given:
        gradient = NONE
    return row(
        names.replace("-", ""),
        text,
        _number(flops),
        given.get("of", "self"),
        Output[given.get("output", "PROMOTED")],
        gradient=gradient,
        in_place=given.get("in_place", "never" not in given),
        needed=_number(given["needed"]) if "needed" in given else None,
        complex_flops=_number(given["complex"]) if "complex" in given else None,
        **{key: given[key] for key in ("python", "aten", "stems", "special") if key in given},
    )


def _number(text: str) -> int:
    terms = (term.split(" * ") for term in text.split(" + "))
    return sum(prod(_CONSTANTS.get(name) or int(name) for name in term) for term in terms)
