"""Steps that take far longer or shorter than the others, alone or as a group, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.idle_windows import gaps_of_steps
from fastprof.analysis.keys import key_of
from fastprof.analysis.steps_sums import HOST_TIMES
from fastprof.analysis.steps_windows import Lane, Windows
from fastprof.model.arrays import Bools, Int64
from fastprof.model.columns import Values
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["LARGE", "PARTS", "Outlier", "far_steps", "outliers_of"]

PARTS: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")

_LEAST: Final = 3  # steps
_SHARE: Final = 0.1  # of the median
_DEVIATIONS: Final = 5  # median absolute deviations
_MOST_SHARE: Final = 1 / 3  # of the steps; more are no exceptions
_MOST_OPS: Final = 3
LARGE: Final = 0.05  # parts of a difference below this share are not shown


class Outlier(NamedTuple):
    """Steps that differ, on one GPU: one outlier, or all slow steps.

    Parameters
    ----------
    rows : int64, of the windows
    over_ns : their mean wall less that of the other counted steps
    changes : the same for each of PARTS, which add up to `over_ns`, and for HOST_TIMES and kernels
        where they are known
    ops : GPU time of the operators (kernels without operators) that differ most, less its mean
    causes : the parts of the change of idle_ns, if that is large and launches are recorded
    """

    rows: Int64
    over_ns: float
    changes: dict[str, float]
    ops: dict[str, float]
    causes: dict[str, float]


def far_steps(wall: Int64, counted: Bools) -> tuple[Bools, Bools]:
    """Which steps of a GPU are outliers, and which are slow; see `steps_columns.DESCRIPTION`.

    wall : [rows] ns, -1 if unknown
    counted : [rows] the steps that give the median
    """
    known = wall[counted]
    none = np.zeros(len(wall), bool)
    if len(known) < _LEAST:
        return none, none
    median = np.median(known)
    off = np.abs(wall - median)
    is_far = off > max(_SHARE * median, _DEVIATIONS * np.median(np.abs(known - median)))
    is_far &= counted
    if is_far.sum() <= _MOST_SHARE * len(known):
        return is_far, none
    return none, is_far & (wall > median)


def outliers_of(
    profile: Profile,
    steps: StepsOfKernels,
    windows: Windows,
    columns: Mapping[str, Int64],
    far: tuple[Bools, Bools],
    most: int,
) -> list[Outlier]:
    """The outliers that differ most from the mean of the other counted steps, and the slow steps.

    Parameters
    ----------
    columns : PARTS, HOST_TIMES and kernels, int64 [rows]; -1 if unknown
    far : bool [rows] each, see `far_steps`
    most : how many
    """
    outlier, slow = far
    differences: list[Outlier] = []
    for lane, rows in windows.by_lane():
        normal = rows[windows.is_counted[rows] & ~outlier[rows] & ~slow[rows]]
        groups = [rows[slow[rows]]] if slow[rows].any() else rows[outlier[rows]][:, np.newaxis]
        if not len(normal) or not len(groups):
            continue
        over = np.array([windows.wall[group].mean() for group in groups])
        over -= windows.wall[normal].mean()
        ops = _Ops(profile, lane, windows, rows, normal)
        for place in np.argsort(-np.abs(over), kind="stable")[:most].tolist():
            group, more = groups[place], float(over[place])
            changes = _changes(columns, group, normal)
            causes: dict[str, float] = {}
            has_causes = len(profile.api) > 0 and lane.selected is lane.work
            if has_causes and abs(changes["idle_ns"]) >= LARGE * abs(more):
                causes = _idle_changes(gaps_of_steps(profile, steps).by_window, group, normal)
            differences.append(Outlier(group, more, changes, ops.changes(group), causes))
    return sorted(differences, key=lambda outlier: -abs(outlier.over_ns))[:most]


def _changes(columns: Mapping[str, Int64], rows: Int64, normal: Int64) -> dict[str, float]:
    names = (*PARTS, *HOST_TIMES, "kernels")
    return {
        name: float(columns[name][rows].mean() - columns[name][normal].mean())
        for name in names
        if (columns[name][rows] >= 0).all()
    }


def _idle_changes(by_window: Int64, rows: Int64, normal: Int64) -> dict[str, float]:
    """By cause, the idle time less the mean of the other steps, the largest first."""
    over = by_window[rows].mean(axis=0) - by_window[normal].mean(axis=0)
    changes = dict(zip(CAUSES, over.tolist(), strict=True))
    names = sorted(changes, key=lambda name: -abs(changes[name]))
    return {name: changes[name] for name in names if changes[name]}


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

    def changes(self, rows: Int64) -> dict[str, float]:
        """The largest differences of the mean of some rows from that of the others, by name."""
        over = self._sums(rows) / len(rows) - self._mean
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
