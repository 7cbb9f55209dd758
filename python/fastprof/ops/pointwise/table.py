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

    Names are shared by Python and ATen, "-" for none. Numbers are sums of products of numbers and
    constants of `_CONSTANTS`. Options:

    - `of`: the operands, by default self; `needed`: how many of them
    - `output`: a member of `Output`, by default PROMOTED
    - `complex`: FLOPs of complex elements
    - `gradient`: FLOPs of one that reads a saved tensor, by default those of forward; `passed`: of
      one that does not; `gradient of zeros`; `no gradient`
    - `python`, `aten`: names of one of them; `special`: of torch.special, which ATen prefixes;
      `stems`: "add" stands for __add__, __radd__, __iadd__ and iadd
    - `in_place`: the names with an in-place form ("_" at the end), by default all;
      `never in place`
    """
    return tuple(map(_row, re.sub(r"\n +", " ", cleandoc(text)).splitlines()))


def _row(line: str) -> PointwiseRow:
    heads, _, rest = line.partition(": ")
    text, number, *options = rest.split("; ")
    given = dict(option.split(" ", 1) for option in options)
    flops, names = _number(number), heads.replace("-", "")
    python, aten, stems, special = (
        given.get(key, "").split() for key in ("python", "aten", "stems", "special")
    )
    gradient: Gradient | None = saved(flops)
    if "passed" in given:
        gradient = passed(_number(given["passed"]))
    elif given.get("gradient") == "of zeros":
        gradient = ZEROED
    elif "gradient" in given:
        gradient = saved(_number(given["gradient"]))
    elif "no" in given:
        gradient = NONE
    in_place = given.get("in_place", "" if "never" in given else names)
    written = tuple(f"{name}_" for name in in_place.split())
    listed = dict.fromkeys([*names.split(), *python, *special])
    listed |= dict.fromkeys(form.format(stem) for stem in stems for form in ("__{}__", "__r{}__"))
    operands = tuple(given.get("of", "self").split())
    count = sum(operand != "_" for operand in operands)
    operator = Operator(
        flops,
        operands,
        Output[given.get("output", "PROMOTED")],
        gradient,
        _number(given["needed"]) if "needed" in given else count,
        _number(given["complex"]) if "complex" in given else None,
    )
    return PointwiseRow(
        tuple(listed),
        (*names.split(), *aten, *(f"special_{name}" for name in special)),
        (*written, *(form.format(stem) for stem in stems for form in ("__i{}__", "i{}"))),
        (*written, *(f"__i{name[2:]}" for name in aten if name[0] == "_")),
        text,
        operator,
    )


def _number(text: str) -> int:
    terms = (term.split(" * ") for term in text.split(" + "))
    return sum(prod(_CONSTANTS.get(name) or int(name) for name in term) for term in terms)
