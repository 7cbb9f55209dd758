"""The cells of a profile as rows of reports, in place of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof._system.threads import computed_once
from fastprof.analysis.grouping import Grouping, numbers
from fastprof.analysis.key_names import ALIASES
from fastprof.analysis.keys import key_of
from fastprof.analysis.registry import Where
from fastprof.analysis.selection import keys_in
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.columns import Column, Ints, Values
from fastprof.model.metadata import About
from fastprof.model.trace import NO_TIME
from fastprof.profile.cells import OF_CELLS, SUMS, numbered, picked, sums
from fastprof.profile.data import ProfileData, inside_part

Ideals = TypeVar("Ideals")

# Of a profile, and windows of its steps. With more, threads take turns: each takes hundreds of
# bytes of memory for a cell, and Python does most of the work, which they do not share.
FEW_CELLS: Final = 20_000

# Keys in which the kernels of a cell may differ.
_WITHIN_CELLS: Final = frozenset(
    {
        *("process", "thread", "launch", "range", "step"),
        *("collective", "process_group", "group_size", "message_bytes", "message_type"),
        *("size", "size_class"),
        *("stage", "batch", "tokens", "requests"),
    }
)


class ReportCells:
    """Kernels that agree in all grouping keys in use, with some columns of a Profile.

    Its columns are those in which all kernels of a cell agree, and the sums `sil`, `flops` and
    `bytes` over the kernels of each cell, -1 if unknown.

    Attributes
    ----------
    profile : Profile
    about : About
    names : list of str
        The columns of the profile.
    of_kernel : int32 [kernels]
        The cell of each; cells are in order of their first kernel.
    first : int32 [cells]
        The first kernel of each.
    is_inside : bool [cells] or None
        Whether the kernels are in the part of `Profile.trim`; None without one.
    """

    def __init__(
        self,
        profile: ProfileData,
        of_kernel: Int32,
        first: Int32,
        keys: Mapping[str, Values] | None = None,
    ) -> None:
        """Wrap a refinement of the cells of the profile.

        keys : further keys in which the kernels of a cell agree, each [kernels]
        """
        self.profile, self.of_kernel, self.first = profile, of_kernel, first
        self._keys: Mapping[str, Values] = keys or {}
        inside = inside_part(profile)
        # The kernels of a cell agree in it: `cells_of` refines them.
        self.is_inside: Bools | None = None if inside is None else inside[first]
        self.about: About = profile.about
        self.names: list[str] = profile.names
        self._base = profile.source.cells
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_coarsest(self) -> bool:
        """Whether these are the cells of the profile, not refined."""
        return len(self) == len(self._base)

    def column(self, name: str) -> Column:
        """A column [cells].

        Raises
        ------
        LookupError
            The kernels of a cell may differ in it.
        """
        if name not in self._columns:
            self._columns[name] = self._make(name)
        return self._columns[name]

    def _make(self, name: str) -> Column:
        if name not in SUMS and name not in OF_CELLS:
            raise LookupError(f"the kernels of a cell may differ in the column {name}")
        if self.is_coarsest:
            return self._base.column(name)
        if name in SUMS:
            return Ints(sums(numbers(self.profile, name), self.of_kernel, self.first))
        return picked(self._base.column(name), self._base.of_kernel[self.first])

    def own_key(self, name: str) -> Values | None:
        """[cells] A key of `_WITHIN_CELLS`; None for other keys, which columns tell.

        Raises
        ------
        LookupError
            The cells are not refined by it: their kernels may differ.
        """
        if name not in _WITHIN_CELLS:
            return None
        if name not in self._keys:
            raise LookupError(f"the kernels of a cell may differ in {name}: refine the cells by it")
        return self.picked(self._keys[name])

    @computed_once
    def kernels(self) -> Int64:
        """[cells] The number of kernels."""
        if self.is_coarsest:
            return self._base.kernels
        return np.bincount(self.of_kernel, minlength=len(self)).astype(np.int64)

    def refined(self, factors: Iterable[Int32]) -> ReportCells:
        """Cells whose kernels also agree in some numbers, each [kernels]."""
        finer = numbered([self.of_kernel, *factors], len(self.of_kernel))
        return ReportCells(self.profile, *finer, self._keys)

    def picked(self, key: Values) -> Values:
        """[cells] A key [kernels] of which the cells are a refinement."""
        return Values(key.ids[self.first], key.values)

    def grouped(self, groups: Grouping) -> Grouping:
        """Groups of cells as groups of kernels."""
        return Grouping(take(groups.ids, self.of_kernel), groups.n)

    def launched(self, times: Int64) -> Int64:
        """[cells] The first of the times of each cell's kernels; times: [kernels]."""
        return Grouping(self.of_kernel, len(self)).stats(times, NO_TIME).min

    def with_ideals(self, ideals_of: Callable[[ReportCells], Ideals]) -> Ideals:
        """The ideal times of the cells."""
        return ideals_of(self)

    def notes_on_parts(self, rows: Bools | None = None) -> list[str]:
        """How much of the time of some cells is shared among parts of kernels; none here."""
        return []

    def flags(self, of_cells: Bools) -> Bools:
        """[kernels] The flag of each kernel's cell."""
        return take(of_cells, self.of_kernel, False)

    def sum_where(self, values: npt.NDArray[Any], mask: Bools) -> Int64:
        """[cells] Sums of the positive numbers of some kernels; values, mask: [kernels]."""
        result = np.ascontiguousarray(values, np.int64)
        return sum_where(self.of_kernel, result, mask.view(np.uint8), len(self))


def cells_of(
    profile: ProfileData, by: Sequence[str] = (), where: Where | None = None
) -> ReportCells:
    """The cells whose kernels agree in all keys but those of times.

    by, where : further keys in use
    """
    base = profile.source.cells
    names = {ALIASES.get(name, name) for name in (*by, *keys_in(where))} & _WITHIN_CELLS
    keys = {name: key_of(profile, name) for name in sorted(names)}
    inside = inside_part(profile)
    if not keys and inside is None:
        return ReportCells(profile, base.of_kernel, base.first)
    factors = [base.of_kernel, *(key.ids for key in keys.values())]
    factors += [] if inside is None else [inside.astype(np.int32)]
    return ReportCells(profile, *numbered(factors, len(profile)), keys)
