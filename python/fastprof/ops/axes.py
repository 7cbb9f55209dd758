"""Dimension arguments, and FLOPs of elementary functions.

One arithmetic operation, comparison, rounding or bit operation on an element is one FLOP. The
functions below take tens of GPU instructions, depending on type, compiler flags and range. They
count 20, PyProf's estimate, for comparable numbers. Composite functions count their formula: a
sigmoid is 1 / (1 + exp(-x)), hence `EXPONENTIAL + 2` (the sign is free).
"""

from __future__ import annotations

from typing import Final, TypeAlias

from fastprof.model.call import Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.parameters import Ints
from fastprof.ops.tensor import elements

# An argument dim=: one or several dimensions, None for all, or unknown.
Dims: TypeAlias = Ints | Unknown | None


def axis(rank: int, dim: int) -> int:
    """Nonnegative index of a dimension. A 0-dim tensor counts as having one dimension.

    Raises CannotModel when the dimension does not exist.
    """
    size = max(rank, 1)
    if not -size <= dim < size:
        raise CannotModel(f"dimension {dim} does not exist in rank {rank}")
    return dim % size


def axes(rank: int, dim: Dims) -> frozenset[int] | None:
    """The dimensions in an argument: all for None and an empty tuple; None if unknown."""
    if isinstance(dim, Unknown):
        return None
    if dim is None or dim == ():
        return frozenset(range(rank))
    named = (dim,) if isinstance(dim, int) else dim
    result = frozenset(axis(rank, number) for number in named)
    if len(result) != len(named):
        raise CannotModel(f"repeated dimension in {named}")
    return result


def left(shape: tuple[int, ...], dim: Dims) -> int | None:
    """Number of elements after reducing the dimensions; None if they are unknown."""
    if isinstance(dim, Unknown):
        return 1 if not shape else None
    reduced = axes(len(shape), dim)
    return elements(size for i, size in enumerate(shape) if i not in (reduced or ()))


def row_length(shape: tuple[int, ...], dim: int | Unknown | None) -> int:
    """Size along a dimension: all elements for None, the last dimension if unknown."""
    if dim is None:
        return elements(shape)
    place = axis(len(shape), -1 if isinstance(dim, Unknown) else dim)
    return shape[place] if shape else 1


def replaced(shape: tuple[int, ...], dim: int | Unknown, size: int) -> int | None:
    """Number of elements if the size along `dim` is `size`; None if `dim` is unknown."""
    if isinstance(dim, Unknown):
        return size if len(shape) < 2 else None
    place = axis(len(shape), dim)
    return size * elements(other for i, other in enumerate(shape) if i != place)


EXPONENTIAL: Final = 20
LOGARITHM: Final = 20
POWER: Final = 20
SQUARE_ROOT: Final = 20  # also its reciprocal
TRIGONOMETRIC: Final = 20  # also hyperbolic and inverse
ERROR_FUNCTION: Final = 20
GAMMA: Final = 20
SIGMOID: Final = EXPONENTIAL + 2
