"""The calls whose kernels are in the cells of a profile."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof._core._groups import distinct_ids
from fastprof._core._pools import pairs
from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import SEVERAL, Grouping
from fastprof.model.arrays import Int32, Int64
from fastprof.profile.profile import Profile, cells

__all__ = ["CallsOfCells", "calls_of_cells"]


class CallsOfCells(NamedTuple):
    """The calls of the cells of a profile, of which groups of cells make their counts.

    Parameters
    ----------
    own : int64 [cells], how many calls have kernels in this cell only
    cell, call : int32 [pairs], the cells of each other call
    begun : int64 [cells], how many calls have their first kernel in this cell
    """

    own: Int64
    cell: Int32
    call: Int32
    begun: Int64

    def of_groups(self, groups: Grouping) -> Int64:
        """[groups] The number of distinct calls; groups : of the cells."""
        others = Grouping(groups.ids[self.cell], groups.n).distinct_counts(self.call)
        return groups.stats(self.own).sum + others


def calls_of_cells(profile: Profile) -> CallsOfCells:
    """The calls of the cells of a profile that has the column `call`."""
    base, call = cells(profile), numbers(profile, "call")
    n_calls = int(call.max(initial=-1)) + 1
    own, home = distinct_ids(base.of_kernel, call, len(base), n_calls)
    rows = np.flatnonzero(take(home == SEVERAL, call, False))
    _, first = pairs(base.of_kernel[rows], call[rows])
    cell, others = base.of_kernel[rows[first]], call[rows[first]]
    first_cell = np.full(n_calls, -1, np.int32)
    first_cell[others[::-1]] = cell[::-1]  # the last one assigned is that of the first kernel
    begun = own + np.bincount(first_cell + 1, minlength=len(base) + 1)[1:]
    return CallsOfCells(own, cell, others, begun)
