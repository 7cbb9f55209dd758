"""The rows of a comparison: what makes the change of a step, with standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.analysis.diff.columns import COLUMNS
from fastprof.analysis.diff.side import Side, values_of
from fastprof.analysis.diff.waterfall import (
    CALLS,
    STEPS,
    Half,
    Reasons,
    Waterfall,
    labels,
    noise_of,
)
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.key_names import heading_of
from fastprof.analysis.summary.measures import shown
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints
from fastprof.model.table import ColumnData, Floats, Table

NONE: Final = np.iinfo(np.int64).min  # unknown: changes are negative, too

Line = dict[str, Any]
RowKey = tuple[str | None, ...]


@dataclass()
class _Sums:
    """The sums of the groups that a line shows, of one side: ns of a step, calls and kernels."""

    own_ns: int = 0
    gpu_ns: int = 0
    clocks_ns: int = 0
    calls: int = 0
    kernels: int = 0
    n_windows: int = 1

    @property
    def calls_of_step(self) -> float:
        return self.calls / self.n_windows


@dataclass()
class _Line:
    """A line: its sums on both sides, and the change of each row of the waterfall in it, ns."""

    before: _Sums = field(default_factory=_Sums)
    after: _Sums = field(default_factory=_Sums)
    changes: dict[int, int] = field(default_factory=dict)
    error: float = nan

    @property
    def clocks_ns(self) -> int:
        return self.before.clocks_ns + self.after.clocks_ns

    @property
    def delta(self) -> int:
        return self.after.own_ns - self.before.own_ns - self.clocks_ns

    @property
    def count_ns(self) -> int:
        """The change from more or fewer calls, ns: by the mean time of a call on both sides."""
        sides = [sums for sums in (self.before, self.after) if sums.calls]
        if not sides:
            return 0
        mean = sum(side.own_ns / side.calls_of_step for side in sides) / len(sides)
        return round((self.after.calls_of_step - self.before.calls_of_step) * mean)


def rows_table(waterfall: Waterfall, by: Sequence[str]) -> Table:
    """A line for each part and value of the keys, the largest change first."""
    grouped, reasons = _grouped(waterfall, by), Reasons(waterfall)
    lines = [
        {**dict(zip(("part", *by), key, strict=True)), **_of_groups(line, reasons, waterfall.unit)}
        for key, line in grouped.items()
    ]
    if waterfall.unit != CALLS:
        lines += _of_idle(waterfall)
    if waterfall.clocks is not None:
        delta = sum(line.clocks_ns for line in grouped.values())
        why = f"kernels take {waterfall.clocks.factor:.3f} times as long"
        lines.append({"part": "clocks", "delta_ns": delta, "why": why})
    total = sum(line.get("delta_ns") or 0 for line in lines)
    for mapping in lines:
        change = mapping.get("delta_ns")
        mapping["share"] = change / total if total and change is not None else None
    lines.sort(key=lambda mapping: _order(mapping, by))
    return _table(lines, by, waterfall, total)


def _order(line: Line, by: Sequence[str]) -> tuple[Any, ...]:
    """The largest change first, then the most time."""
    most = max(line.get(name) or 0 for name in ("gpu_before_ns", "gpu_after_ns", "after_ns"))
    return -abs(line.get("delta_ns") or 0), -most, [line.get(name) or "" for name in ("part", *by)]


def _grouped(waterfall: Waterfall, by: Sequence[str]) -> dict[RowKey, _Line]:
    lines: dict[RowKey, _Line] = {}
    keys = [labels(waterfall, name) for name in ("part", *by)]
    before, after = ([*zip(*members, strict=True)] for members in zip(*keys, strict=True))
    for key, row, sums in _groups(waterfall.before, before):
        line = lines.setdefault(key, _Line())
        _add(line.before, sums)
        line.changes[row] = line.changes.get(row, 0) - sums.own_ns - sums.clocks_ns
    for key, row, sums in _groups(waterfall.after, after):
        line = lines.setdefault(key, _Line())
        _add(line.after, sums)
        line.changes[row] = line.changes.get(row, 0) + sums.own_ns - sums.clocks_ns
    if waterfall.unit == STEPS:
        _add_errors(waterfall, lines, (before, after))
    return lines


def _add_errors(
    waterfall: Waterfall, lines: dict[RowKey, _Line], keys: Sequence[Sequence[RowKey]]
) -> None:
    place = {key: i for i, key in enumerate(lines)}
    of_sides = [
        errors(half.side, np.array([place[key] for key in own], np.int64), len(place))
        for half, own in zip(waterfall.halves, keys, strict=True)
    ]
    for line, error in zip(lines.values(), np.hypot(*of_sides).tolist(), strict=True):
        line.error = error


def _groups(half: Half, keys: Sequence[RowKey]) -> Iterable[tuple[RowKey, int, _Sums]]:
    """The groups of a side: key, row of the waterfall, sums."""
    side = half.side
    columns = (half.own_ns, half.gpu_ns, half.clocks_ns, side.calls, side.kernels)
    values = zip(*(column.tolist() for column in columns), strict=True)
    for key, row, (own, gpu, clocks, calls, kernels) in zip(
        keys, half.row.tolist(), values, strict=True
    ):
        yield key, row, _Sums(own, gpu, clocks, calls, kernels, side.n_windows)


def _add(sums: _Sums, more: _Sums) -> None:
    sums.own_ns += more.own_ns
    sums.gpu_ns += more.gpu_ns
    sums.clocks_ns += more.clocks_ns
    sums.calls += more.calls
    sums.kernels += more.kernels
    sums.n_windows = more.n_windows


def _of_groups(line: _Line, reasons: Reasons, unit: str) -> Line:
    before, after = line.before, line.after
    calls = (before.calls_of_step, after.calls_of_step)
    noise = noise_of(line.error, before.own_ns, after.own_ns)
    why = reasons.of(line.changes, abs(line.delta) <= noise, calls)
    is_compared = unit != CALLS or reasons.is_compared(line.changes)
    return {
        "before_ns": before.own_ns if is_compared else None,
        "after_ns": after.own_ns if is_compared else None,
        "delta_ns": line.delta if is_compared else None,
        "error_ns": line.error,
        "count_ns": line.count_ns if unit != CALLS else None,
        "gpu_before_ns": before.gpu_ns,
        "gpu_after_ns": after.gpu_ns,
        "calls_before": calls[0],
        "calls_after": calls[1],
        "kernels_before": before.kernels / before.n_windows,
        "kernels_after": after.kernels / after.n_windows,
        "why": why,
    }


def _of_idle(waterfall: Waterfall) -> Iterable[Line]:
    error = [nan] * len(CAUSES)
    if waterfall.unit == STEPS:
        error = np.hypot(*(idle_errors(half.side) for half in waterfall.halves)).tolist()
    times = zip(CAUSES, *(half.idle_ns.tolist() for half in waterfall.halves), error, strict=True)
    for name, before, after, error_ns in times:
        if before or after:
            why = "more" if after > before else "less"
            if abs(after - before) <= noise_of(error_ns, before, after):
                why = "same"
            yield {
                "part": f"idle: {name}",
                "before_ns": before,
                "after_ns": after,
                "delta_ns": after - before,
                "error_ns": error_ns,
                "why": why,
            }


def _table(lines: Sequence[Line], by: Sequence[str], waterfall: Waterfall, total: int) -> Table:
    headings = [COLUMNS[0], *map(heading_of, by), *COLUMNS[1:]]
    if not any(line.get("delta_ns") for line in lines):
        headings = [replace(heading, same_unit="") for heading in headings]
    columns = {heading.key: _column(heading.key, by, lines) for heading in headings}
    before, after = waterfall.wall_ns
    totals = {"before_ns": before, "after_ns": after, "delta_ns": total}
    return Table(columns, shown(headings, columns), total=totals if waterfall.unit != CALLS else {})


def _column(name: str, by: Sequence[str], lines: Sequence[Line]) -> ColumnData:
    values = [line.get(name) for line in lines]
    if name in by or name in ("part", "why"):
        return values_of(values)
    if name.endswith("_ns") and name != "error_ns":
        return Ints(
            np.array([NONE if value is None else value for value in values], np.int64), NONE
        )
    return Floats(np.array([np.nan if value is None else value for value in values], np.float64))


_LEAST: Final = 2  # degrees of freedom: three steps of one GPU

Floats64 = npt.NDArray[np.float64]


def errors(side: Side, line: Int64, n_lines: int) -> Floats64:
    """The standard error of the mean busy time of lines in a window, ns [lines].

    NaN if there are fewer than three steps. Windows of a GPU are compared with each other only.

    line : int64 [groups], the line of each group
    """
    n = side.n_windows
    places, place = np.unique(line[side.group] * n + side.window, return_inverse=True)
    times = np.bincount(place, side.own_ns, len(places))
    of_line, window = np.divmod(places, n)
    lane, sizes = _lanes(side)
    n_lanes = len(sizes)
    pairs, pair = np.unique(of_line * n_lanes + lane[window], return_inverse=True)
    n_windows, known = sizes[pairs % n_lanes], np.bincount(pair)
    mean = np.bincount(pair, times) / n_windows
    squares = np.bincount(pair, (times - mean[pair]) ** 2)
    squares += (n_windows - known) * mean**2  # windows that a line has no work in
    of_lines = np.bincount(pairs // n_lanes, squares, n_lines)
    return _error(of_lines.astype(np.float64, copy=False), n, n_lanes)


def idle_errors(side: Side) -> Floats64:
    """The standard error of the mean idle time by cause, ns [causes]; see `errors`."""
    lane, sizes = _lanes(side)
    means = [np.bincount(lane, times) / sizes for times in side.idle.T]
    squares = [
        ((times - mean[lane]) ** 2).sum() for times, mean in zip(side.idle.T, means, strict=True)
    ]
    return _error(np.array(squares), side.n_windows, len(sizes))


def _lanes(side: Side) -> tuple[Int64, Int64]:
    """The number of the GPU of each window, and the windows of each."""
    columns = [side.windows[name] for name in ("rank", "pid", "device")]
    _, lane, sizes = np.unique(
        np.stack(columns, axis=1), axis=0, return_inverse=True, return_counts=True
    )
    return lane.reshape(-1), sizes


def _error(squares: Floats64, n: int, n_lanes: int) -> Floats64:
    degrees = n - n_lanes
    if degrees < _LEAST:
        return np.full(len(squares), np.nan)
    return np.asarray(np.sqrt(squares / degrees / n))
