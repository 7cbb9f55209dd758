"""The chart of one step: the work of each stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from fastprof.analysis import keys
from fastprof.analysis.columns import numbers
from fastprof.analysis.grouping import group
from fastprof.analysis.plot.style import COLOURS, GREY, axes_of, dressed
from fastprof.analysis.steps.windows import Windows, windows_of
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.quantity import quantity
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT: Final = 0.8  # of the bars of a stream
_LEAST_ROWS: Final = 3
_MOST_BARS: Final = 5000


def timeline(
    profile: ProfileData, ax: Axes | None = None, step: int | None = None, steps: str | None = None
) -> Axes:
    """See `Plots.timeline`.

    Raises
    ------
    ReportError
        The file has no times or no GPU work, or there is no such step.
    """
    found = profile.find_steps(steps)
    windows = windows_of(profile, found)
    if not len(windows):
        raise ReportError("no times of GPU work in the file: use the original trace of a GPU run")
    number = _median(windows, found) if step is None else step
    rows = np.flatnonzero((found.number[windows.step] == number) & windows.is_known)
    if not len(rows):
        known = ", ".join(map(str, np.unique(found.number).tolist()[:10]))
        raise ReportError(f"step: expected one of {known}, found {number}")
    axes = axes_of(ax)
    first, last = int(windows.start[rows].min()), int(windows.end[rows].max())
    start = numbers(profile, "start")
    end = start + np.maximum(numbers(profile, "sil"), 0)
    _draw(axes, profile, (start < last) & (end > first), first)
    name = "capture" if found.source == "none" else f"step {number}"
    dressed(axes, f"{name}, {quantity(last - first, 'ns')}", "time (ms)", "")
    axes.grid(False, axis="y")
    axes.set_xlim(0, (last - first) / 1e6)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8, frameon=False)
    return axes


def _median(windows: Windows, steps: StepsOfKernels) -> int:
    """The number of the counted step whose length is nearest to the median."""
    rows = np.flatnonzero(windows.is_counted)
    wall = windows.wall[rows]
    nearest = np.abs(wall - np.median(wall)).argmin() if len(rows) else 0
    return int(steps.number[windows.step[rows[nearest] if len(rows) else 0]])


def _draw(axes: Axes, profile: ProfileData, shown: Bools, first: int) -> None:
    """Bars of some kernels, a row per stream, coloured by kind."""
    rows = np.flatnonzero(shown)
    start = (numbers(profile, "start")[rows] - first) / 1e6
    length = np.maximum(numbers(profile, "sil")[rows], 0)
    device, stream = (keys.key_of(profile, name) for name in ("device", "stream"))
    groups = group([device, stream], len(profile))
    of_row, used = groups.ids[rows], np.unique(groups.ids[rows])
    order = sorted(used.tolist(), key=lambda each: _place(device, stream, int(groups.first[each])))
    lane = {each: i for i, each in enumerate(order)}
    kind = keys.key_of(profile, "kind")
    ns = np.bincount(kind.ids[rows] + 1, length, len(kind.values) + 1)
    closest = np.ptp(start) / _MOST_BARS if len(rows) > _MOST_BARS else 0.0
    heaviest = [each for each in np.argsort(-ns, kind="stable").tolist() if ns[each] > 0]
    for place, each in enumerate(heaviest):
        named = place < len(COLOURS)
        label = (kind.values[each - 1] if each else "unknown") if named else None
        of_kind = kind.ids[rows] == each - 1
        for number in np.unique(of_row[of_kind]).tolist():
            own = np.flatnonzero(of_kind & (of_row == number))
            axes.broken_barh(
                list(map(tuple, _bars(start[own], length[own] / 1e6, closest).tolist())),
                (lane[number] - _HEIGHT / 2, _HEIGHT),
                facecolors=COLOURS[place] if named else GREY,
                linewidth=0,
                label=label,
            )
            label = None
    if len(heaviest) > len(COLOURS):
        axes.bar(0, 0, color=GREY, label="other kinds")
    several = len({device.at(int(groups.first[each])) for each in order}) > 1
    names = [_name(device, stream, int(groups.first[each]), several) for each in order]
    axes.set_yticks(range(len(order)), names)
    axes.set_ylim(max(len(order), _LEAST_ROWS) - 0.5, -0.5)


def _bars(
    start: npt.NDArray[np.float64], length: npt.NDArray[np.float64], closest: float
) -> npt.NDArray[np.float64]:
    """float64 [bars, 2] Start and length; neighbours nearer than `closest` are one bar."""
    if not closest:
        return np.stack([start, length], axis=1)
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate((start + length)[order])
    first = np.flatnonzero(np.append(True, start[1:] > end[:-1] + closest))
    last = np.append(first[1:], len(start)) - 1
    return np.stack([start[first], end[last] - start[first]], axis=1)


def _place(device: Values, stream: Values, row: int) -> tuple[int, int]:
    """Streams in order of GPU and number, unknown ones first."""
    of_device, number = (each.at(row) for each in (device, stream))
    return -1 if of_device is None else int(of_device), -1 if number is None else int(number)


def _name(device: Values, stream: Values, row: int, several: bool) -> str:
    number = stream.at(row)
    name = "stream unknown" if number is None else f"stream {number}"
    return f"GPU {device.at(row)}, {name}" if several else name
