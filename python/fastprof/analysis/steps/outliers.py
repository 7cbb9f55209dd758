"""Steps that take far longer or shorter than the others, alone or as a group, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fastprof._core._groups import sum_where
from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.cells import cells_of
from fastprof.analysis.grouping import Floats64, group
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.idle.gaps import gaps_of_steps
from fastprof.analysis.keys import key_of
from fastprof.analysis.steps.windows import HOST_TIMES, ProcessLane, Windows
from fastprof.model.arrays import Bools, Int64, unique
from fastprof.model.columns import Values
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels

PARTS: Final = ("compute_ns", "exposed_communication_ns", "exposed_copy_ns", "idle_ns")

LEAST_STEPS: Final = 3  # steps
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
    if len(known) < LEAST_STEPS:
        return none, none
    median = np.median(known)
    off = np.abs(wall - median)
    is_far = off > max(_SHARE * median, _DEVIATIONS * np.median(np.abs(known - median)))
    is_far &= counted
    if is_far.sum() <= _MOST_SHARE * len(known):
        return is_far, none
    return none, is_far & (wall > median)


def outliers_of(
    profile: ProfileData,
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
    found = sorted(_differences(windows, far, most), key=lambda each: -abs(each.over_ns))[:most]
    return [_explained(profile, steps, windows, columns, each) for each in found]


class _Difference(NamedTuple):
    """Steps that differ, and the normal ones of their lane: rows of the windows."""

    over_ns: float
    rows: Int64
    normal: Int64


def _differences(windows: Windows, far: tuple[Bools, Bools], most: int) -> Iterator[_Difference]:
    """The largest differences of each lane."""
    outlier, slow = far
    every, bounds = windows.in_lanes()
    for lane in unique(windows.lane[outlier | slow]).tolist():
        rows = every[bounds[lane] : bounds[lane + 1]]
        normal = rows[windows.is_counted[rows] & ~outlier[rows] & ~slow[rows]]
        groups = [rows[slow[rows]]] if slow[rows].any() else rows[outlier[rows]][:, np.newaxis]
        if not len(normal) or not len(groups):
            continue
        over = np.array([windows.wall[group].mean() for group in groups])
        over -= windows.wall[normal].mean()
        for place in np.argsort(-np.abs(over), kind="stable")[:most].tolist():
            yield _Difference(float(over[place]), groups[place], normal)


def _explained(
    profile: ProfileData,
    steps: StepsOfKernels,
    windows: Windows,
    columns: Mapping[str, Int64],
    found: _Difference,
) -> Outlier:
    """Which parts, operators and causes make the difference."""
    over, rows, normal = found
    changes = _changes(columns, rows, normal)
    lane = windows.lanes[int(windows.lane[rows[0]])]
    causes: dict[str, float] = {}
    has_causes = len(profile.api) > 0 and lane.selected is lane.work
    if has_causes and abs(changes["idle_ns"]) >= LARGE * abs(over):
        inside = gaps_of_steps(profile, steps)
        causes = _idle_changes(inside.by_window(rows), inside.by_window(normal))
    ops = _op_changes(profile, windows, lane, rows, normal)
    return Outlier(rows, over, changes, ops, causes)


def _changes(columns: Mapping[str, Int64], rows: Int64, normal: Int64) -> dict[str, float]:
    names = (*PARTS, *HOST_TIMES, "kernels")
    return {
        name: float(columns[name][rows].mean() - columns[name][normal].mean())
        for name in names
        if (columns[name][rows] >= 0).all()
    }


def _idle_changes(own: Int64, others: Int64) -> dict[str, float]:
    """By cause, the idle time less the mean of the other steps, the largest first."""
    over = own.mean(axis=0) - others.mean(axis=0)
    changes = dict(zip(CAUSES, over.tolist(), strict=True))
    names = sorted(changes, key=lambda name: -abs(changes[name]))
    return {name: changes[name] for name in names if changes[name]}


def _op_changes(
    profile: ProfileData, windows: Windows, lane: ProcessLane, rows: Int64, normal: Int64
) -> dict[str, float]:
    """The largest differences of the GPU time of operators, by name; by the start of kernels."""
    names, work = _names(profile), lane.selected
    ids = take(names.ids, work.rows)
    number = np.repeat(windows.lane[rows[:1]], len(work))
    row = windows.row_of(number, work.start)

    def mean(wanted: Int64) -> Floats64:
        inside = np.zeros(len(windows), bool)
        inside[wanted] = True
        kernels = take(inside, row, False).view(np.uint8)
        sums = sum_where(ids, work.end - work.start, kernels, len(names.values))
        return sums.astype(np.float64) / len(wanted)

    over = mean(rows) - mean(normal)
    largest = np.argsort(-np.abs(over), kind="stable")[:_MOST_OPS].tolist()
    return {names.values[each]: float(over[each]) for each in largest if over[each]}


def _names(profile: ProfileData) -> Values:
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
