"""Steps that take far longer or shorter than the others, and what differs in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.idle_windows import idle_by_window
from fastprof.analysis.keys import key_of
from fastprof.analysis.steps_idle import idle_changes
from fastprof.analysis.steps_sums import HOST_TIMES
from fastprof.analysis.steps_windows import Lane, Windows
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.profile.profile import Profile

__all__ = ["LARGE", "PARTS", "Outlier", "is_outlier", "outliers_of"]

PARTS: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")

_LEAST: Final = 3  # steps
_SHARE: Final = 0.1  # of the median
_DEVIATIONS: Final = 5  # median absolute deviations
_MOST_OPS: Final = 3
LARGE: Final = 0.05  # parts of a difference below this share are not shown


class Outlier(NamedTuple):
    """A step that differs, on one GPU.

    Parameters
    ----------
    row : of the windows
    over_ns : wall less the mean of the other averaged steps
    changes : the same for each of PARTS, which add up to `over_ns`, and for HOST_TIMES and kernels
        where they are known
    ops : GPU time of the operators (kernels without operators) that differ most, less its mean
    causes : the parts of the change of idle_ns, if that is large and launches are recorded
    """

    row: int
    over_ns: float
    changes: dict[str, float]
    ops: dict[str, float]
    causes: dict[str, float]


def is_outlier(wall: Int64, averaged: Bools) -> Bools:
    """Whether each step of a GPU is an outlier; see `steps_columns.DESCRIPTION`.

    wall : [rows] ns, -1 if unknown
    averaged : [rows] the steps that give the median
    """
    known = wall[averaged]
    if len(known) < _LEAST:
        return np.zeros(len(wall), bool)
    median = np.median(known)
    off = np.abs(wall - median)
    is_far = off > max(_SHARE * median, _DEVIATIONS * np.median(np.abs(known - median)))
    # The end of the capture may cut a step that is not averaged.
    found: Bools = (wall >= 0) & is_far & (averaged | (wall > median))
    return found


def outliers_of(
    profile: Profile,
    windows: Windows,
    columns: Mapping[str, Int64],
    averaged: Bools,
    outlier: Bools,
    most: int,
) -> list[Outlier]:
    """The outliers that differ most from the mean of the other steps.

    Parameters
    ----------
    columns : PARTS, HOST_TIMES and kernels, int64 [rows]; -1 if unknown
    averaged, outlier : bool [rows]
    most : how many
    """
    found, by_window = [], None
    for lane, rows in windows.by_lane():
        normal = rows[averaged[rows] & ~outlier[rows]]
        own = rows[outlier[rows]]
        if not len(normal) or not len(own):
            continue
        over = windows.wall[own] - windows.wall[normal].mean()
        largest = np.argsort(-np.abs(over), kind="stable")[:most]
        ops = _Ops(profile, lane, windows, rows, normal)
        for row, more in zip(own[largest].tolist(), over[largest].tolist(), strict=True):
            changes = _changes(columns, row, normal)
            found.append(Outlier(row, more, changes, ops.changes(row), {}))
            has_causes = len(profile.api) > 0 and lane.selected is lane.work
            if has_causes and abs(changes["idle_ns"]) >= LARGE * abs(more):
                by_window = idle_by_window(profile, windows) if by_window is None else by_window
                causes = idle_changes(by_window, row, normal, changes["idle_ns"])
                found[-1] = found[-1]._replace(causes=causes)
    return sorted(found, key=lambda each: -abs(each.over_ns))[:most]


def _changes(columns: Mapping[str, Int64], row: int, normal: Int64) -> dict[str, float]:
    names = (*PARTS, *HOST_TIMES, "kernels")
    return {
        name: float(columns[name][row] - columns[name][normal].mean())
        for name in names
        if columns[name][row] >= 0
    }


class _Ops:
    """The GPU time of each operator in the windows of a lane, by the start of its kernels."""

    def __init__(
        self, profile: Profile, lane: Lane, windows: Windows, rows: Int64, normal: Int64
    ) -> None:
        """Add up the rows that others are compared with.

        rows, normal : of the windows: all of the lane, those to compare with
        """
        self._names = _names(profile)
        self._ids = take(self._names.ids, lane.selected.rows)
        self._time = lane.selected.end - lane.selected.start
        self._row, self._n_rows = windows.row_of(lane.selected.start, rows), len(windows)
        self._mean = self._sums(normal) / len(normal)

    def _sums(self, rows: Int64) -> Floats64:
        wanted = np.zeros(self._n_rows, bool)
        wanted[rows] = True
        kernels = take(wanted, self._row, False).view(np.uint8)
        sums = sum_where(self._ids, self._time, kernels, len(self._names.values))
        return sums.astype(np.float64)

    def changes(self, row: int) -> dict[str, float]:
        """The largest differences of a row from the mean, by name."""
        over = self._sums(np.array([row])) - self._mean
        largest = np.argsort(-np.abs(over), kind="stable")[:_MOST_OPS].tolist()
        return {self._names.values[each]: float(over[each]) for each in largest if over[each]}


def _names(profile: Profile) -> Values:
    """[kernels] Direction and operator; the kernel's name in files without operators."""
    cells = cells_of(profile)
    op, direction = key_of(cells, "op"), key_of(cells, "dir")
    if not op.values:
        return key_of(profile, "kernel")
    pairs = group([op, direction], len(cells))
    names = []
    for row in pairs.first.tolist():
        name, way = op.at(row), direction.at(row)
        names.append("work without operator" if name is None else f"{name} {way or ''}".rstrip())
    return Values(cells.grouped(pairs).ids, names)
