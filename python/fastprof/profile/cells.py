"""Cells: kernels of equal configuration, call paths and cost, which agree in all but numbers.

A trace of a million kernels has a few thousand cells. Reports group cells, not kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._cells import refine
from fastprof._core._groups import sum_where
from fastprof._core._pools import alike
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, RepeatedInts, SharedValues, Values
from fastprof.model.trace import Trace
from fastprof.profile import gpu_work
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.costs import Costs
from fastprof.profile.lookups import Lookups

SUMS: Final = ("sil", "flops", "bytes")
# The columns in which all kernels of a cell agree; of SUMS, they agree in whether it is known.
OF_CELLS: Final = frozenset(
    {
        *("op", "mod", "params", "tc", "compute_type", "helper"),
        *("name", "kernel", "class", "kind", "copy_direction", "copy_memory", "grid"),
        *("device", "stream", "context"),
        *("layer", "trace", "line", "library_line", "dir", "phase", "annotation"),
    }
)


@dataclass(frozen=True, eq=False)
class KernelCells:
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

    @computed_once
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
    result = np.zeros(len(flags[0]), np.uint8)
    for i, flag in enumerate(flags):
        result |= flag.view(np.uint8) << np.uint8(i)
    return result.astype(np.int32)


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


def cells_of_columns(column: Callable[[str], Column], names: Collection[str]) -> KernelCells:
    """The cells of kernels whose columns `names` are known."""
    known = [np.asarray(column(name).values) >= 0 for name in SUMS]
    some = [column(name) for name in names if name in OF_CELLS]
    of_kernel, first = numbered([bits(*known), *map(_ids, some)], len(known[0]))

    def cell_column(name: str) -> Column:
        values = column(name)
        if name in SUMS and isinstance(values, Ints):
            return Ints(sums(values.values, of_kernel, first))
        return picked(values, first)

    return KernelCells(of_kernel, first, cell_column)


def _ids(column: Column) -> Int32:
    """Equal for rows with equal values."""
    if isinstance(column, SharedValues):
        return column.rows
    if isinstance(column, Values | RepeatedInts):
        return column.ids
    return alike([np.ascontiguousarray(column.values)])[0]


def partition(lookups: Lookups) -> tuple[Int32, Int32]:
    """The cell of each kernel, and the first kernel of each cell.

    The costs come last: another thread may compute them.
    """
    return numbered(_factors(lookups), len(lookups.trace.kernels))


def _factors(lookups: Lookups) -> Iterator[Int32]:
    trace = lookups.trace
    kernels, in_engine = trace.kernels, lookups.attribution.in_engine
    yield kernels.config
    paths = Lookups(trace, lookups.attribution, lookups.lines)  # its arrays are released here
    paths.tree_without_user_ranges = lookups.tree_without_user_ranges
    yield paths.own_paths.place
    yield paths.meaning_paths.place
    yield paths.direction
    del paths
    flags = [kernels.launch >= 0, lookups.frame >= 0, kernels.duration >= 0]
    flags += [] if in_engine is None else [in_engine]
    if any(gpu_work.launches_graph(name) for name in trace.strings):
        flags += [gpu_work.in_graphs(trace)[0]]
    yield bits(*flags)
    yield lookups.costs.cell
    yield bits(*lookups.known, lookups.calls.backward)


def lookups_of_cells(lookups: Lookups, of_kernel: Int32, first: Int32) -> Lookups:
    """Lookups of a trace with one kernel for each cell: its first, with the numbers of all.

    Only for columns of `cells.OF_CELLS` and `cells.SUMS`, and for coverage.
    """
    trace, attribution = lookups.trace, lookups.attribution
    kernels = trace.kernels
    arrays = {
        field.name: getattr(kernels, field.name)[first]
        for field in fields(kernels)
        if isinstance(getattr(kernels, field.name), np.ndarray)
    }
    time = sums(kernels.duration, of_kernel, first)
    in_engine, replay = attribution.in_engine, attribution.replay_of_kernel
    cells = _LookupsOfCells(
        lookups,
        of_kernel,
        first,
        replace(trace, kernels=replace(kernels, **{**arrays, "duration": time})),
        replace(
            attribution,
            frame_of_kernel=attribution.frame_of_kernel[first],
            launch_frame_of_kernel=attribution.launch_frame_of_kernel[first],
            replay_of_kernel=None if replay is None else replay[first],
            in_engine=None if in_engine is None else in_engine[first],
        ),
    )
    cells.tree_without_user_ranges = lookups.tree_without_user_ranges
    return cells


class _LookupsOfCells(Lookups):
    """Lookups of cells, whose FLOPs and bytes are sums."""

    def __init__(
        self,
        whole: Lookups,
        of_kernel: Int32,
        first: Int32,
        trace: Trace,
        attribution: Attribution,
    ) -> None:
        super().__init__(trace, attribution, whole.lines)
        self._whole, self._of_kernel, self._first = whole, of_kernel, first

    @computed_once
    def costs(self) -> Costs:
        """The costs of the first kernel of each cell, without FLOPs and bytes."""
        return self._whole.costs.at(self._first)

    @computed_once
    def flops(self) -> Ints:
        """The sum over the kernels of each cell; -1 if unknown."""
        return Ints(sums(self._whole.flops.values, self._of_kernel, self._first))

    @computed_once
    def bytes(self) -> Ints:
        """As `flops`."""
        return Ints(sums(self._whole.bytes.values, self._of_kernel, self._first))
