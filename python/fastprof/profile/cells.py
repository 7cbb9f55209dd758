"""Cells: kernels that agree in all but their numbers.

A trace of a million kernels has a few thousand cells. Reports group cells, not kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._cells import refine
from fastprof._core._groups import sum_where
from fastprof._core._pools import alike
from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, RepeatedInts, SharedValues, Values

SUMS: Final = ("sil", "flops", "bytes")
# The columns in which all kernels of a cell agree; of SUMS, they agree in whether it is known.
OF_CELLS: Final = frozenset(
    {
        *("op", "mod", "params", "tc", "compute_type", "helper"),
        *("name", "kernel", "class", "kind", "copy_direction", "copy_memory", "grid"),
        *("device", "stream", "context"),
        *("layer", "trace", "line", "library_line", "dir", "phase"),
    }
)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of the kernels of a profile.

    Parameters
    ----------
    of_kernel : int32 [kernels], the cell of each; cells are in order of their first kernel
    first : int32 [cells], the first kernel of each
    column : a column of `OF_CELLS`, or of `SUMS`: sums over the kernels of each cell, -1 if unknown
    """

    of_kernel: Int32
    first: Int32
    column: Callable[[str], Column]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def kernels(self) -> Int64:
        """[cells] The number of kernels."""
        return np.bincount(self.of_kernel, minlength=len(self)).astype(np.int64)


def numbered(factors: Iterable[Int32], n_kernels: int) -> tuple[Int32, Int32]:
    """The number of each distinct combination of factors, and its first row.

    factors : each [kernels]; combinations are in order of their first row
    """
    of_kernel, first = np.zeros(n_kernels, np.int32), np.zeros(min(n_kernels, 1), np.int32)
    for factor in factors:
        n_ids = int(factor.max(initial=-1)) + 1
        of_kernel, first = refine(of_kernel, len(first), factor, n_ids)
    return of_kernel, first


def bits(*flags: Bools) -> Int32:
    """[kernels] Flags as one number: bit i for flag i, at most 8."""
    found = np.zeros(len(flags[0]), np.uint8)
    for i, flag in enumerate(flags):
        found |= flag.view(np.uint8) << np.uint8(i)
    return found.astype(np.int32)


def sums(values: npt.NDArray[Any], of_kernel: Int32, first: Int32) -> Int64:
    """[cells] The sum of a column of `SUMS`; -1 if unknown."""
    numbers = np.ascontiguousarray(values, np.int64)
    return np.where(numbers[first] >= 0, sum_where(of_kernel, numbers, None, len(first)), -1)


def picked(column: Column, rows: npt.NDArray[Any]) -> Column:
    """Some rows of a column of `OF_CELLS`, or of a key."""
    if isinstance(column, Values):
        return column.take(rows)
    if isinstance(column, RepeatedInts):
        return RepeatedInts(column.ids[rows], column.distinct, column.none)
    if isinstance(column, Ints):
        return Ints(column.values[rows], column.none)
    raise TypeError("expected numbers or texts, found lists of numbers")


def cells_of_columns(column: Callable[[str], Column], names: Collection[str]) -> Cells:
    """The cells of kernels whose columns `names` are known."""
    known = [np.asarray(column(name).values) >= 0 for name in SUMS]
    some = [column(name) for name in names if name in OF_CELLS]
    of_kernel, first = numbered([bits(*known), *map(_ids, some)], len(known[0]))

    def of_cells(name: str) -> Column:
        values = column(name)
        if name in SUMS and isinstance(values, Ints):
            return Ints(sums(values.values, of_kernel, first))
        return picked(values, first)

    return Cells(of_kernel, first, of_cells)


def _ids(column: Column) -> Int32:
    """Equal for rows with equal values."""
    if isinstance(column, SharedValues):
        return column.rows
    if isinstance(column, Values | RepeatedInts):
        return column.ids
    return alike([np.ascontiguousarray(column.values)])[0]
