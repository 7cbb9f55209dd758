"""Dimension arguments to sizes: what is reduced, and what is left."""

from __future__ import annotations

from typing import TypeAlias

from fastprof.model.call import Unknown
from fastprof.ops.cost import CannotModel
from fastprof.ops.parameters import Ints
from fastprof.ops.tensor import elements

__all__ = ["Dims", "axes", "axis", "left", "replaced", "row_length"]

# An argument dim=: one or several, None for all of them, or not known.
Dims: TypeAlias = Ints | Unknown | None


def axis(rank: int, dim: int) -> int:
    """Index of a dimension, counted from the front. A tensor without dimensions has one.

    Raises
    ------
    CannotModel
        When there is no such dimension.
    """
    size = max(rank, 1)
    if not -size <= dim < size:
        raise CannotModel(f"no dimension {dim} among {rank}")
    return dim % size


def axes(rank: int, dim: Dims) -> frozenset[int] | None:
    """Dimensions that an argument names: all for None and for an empty list, None if unknown."""
    if isinstance(dim, Unknown):
        return None
    if dim is None or dim == ():
        return frozenset(range(rank))
    named = (dim,) if isinstance(dim, int) else dim
    found = frozenset(axis(rank, each) for each in named)
    if len(found) != len(named):
        raise CannotModel(f"dimensions {named} come twice")
    return found


def left(shape: tuple[int, ...], dim: Dims) -> int | None:
    """Elements that are left when the dimensions are reduced, None if they are not known."""
    if isinstance(dim, Unknown):
        return 1 if not shape else None
    reduced = axes(len(shape), dim)
    return elements(size for i, size in enumerate(shape) if i not in (reduced or ()))


def row_length(shape: tuple[int, ...], dim: int | Unknown | None) -> int:
    """Size along a dimension: all elements for None, the last dimension when it is not known."""
    if dim is None:
        return elements(shape)
    place = axis(len(shape), -1 if isinstance(dim, Unknown) else dim)
    return shape[place] if shape else 1


def replaced(shape: tuple[int, ...], dim: int | Unknown, size: int) -> int | None:
    """Elements of a tensor whose size along `dim` is another one, None if `dim` is not known."""
    if isinstance(dim, Unknown):
        return size if len(shape) < 2 else None
    place = axis(len(shape), dim)
    return size * elements(other for i, other in enumerate(shape) if i != place)
