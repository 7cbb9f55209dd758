"""The charts of `Profile.plot` and `roofline --plot`, with matplotlib: a function each."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.optional import import_optional
from fastprof._system.output_file import output_file
from fastprof.analysis import keys
from fastprof.analysis.grouping import group, numbers
from fastprof.analysis.memory.rows import envelope, uses_of, why_none
from fastprof.analysis.reports import report_of
from fastprof.analysis.roofline.columns import checked_plot
from fastprof.analysis.roofline.points import roofs_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.steps.windows import Windows, windows_of
from fastprof.errors import ReportError
from fastprof.model.arrays import Bools
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.numbers import quantity, scale_of
from fastprof.model.table import Table
from fastprof.profile.data import ProfileData
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Colours that people with colour blindness can distinguish (Okabe and Ito).
COLOURS: Final = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442",
)  # fmt: skip
GREY: Final = "#999999"


def axes_of(ax: Axes | None, height: float = 4.5) -> Axes:
    """The axes given, or those of a new figure of pyplot, 9 inches wide."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    made: Axes = pyplot.subplots(figsize=(9, height), layout="constrained")[1]
    return made


def dressed(ax: Axes, title: str, x: str, y: str) -> Axes:
    """The axes with title, labels with units, and a light grid behind the data."""
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, which="major", linewidth=0.4, alpha=0.5)
    ax.set_axisbelow(True)
    return ax


_COLOURS: Final = {"compute": COLOURS[5], "bandwidth": COLOURS[0], "latency": GREY}
_LARGEST: Final = 1500.0  # area of the largest circle, points squared
_MOST_LABELS: Final = 8


def roofline(profile: ProfileData, ax: Axes | None = None, **options: Any) -> Axes:
    """See `Plots.roofline`."""
    figures = {name: options.get(name) for name in ("gpu", "peak", "bandwidth")}
    devices = devices_with(profile, **figures)
    table = report_of(profile, "roofline", **options)
    axes = axes_of(ax, 6)
    _fill(axes, table, list(devices.values()))
    return axes


def draw(table: Table, devices: Sequence[Device], path: str) -> None:
    """Draw the rows of `roofline` with FLOPs; the area of a circle is its GPU time.

    Raises
    ------
    ReportError
        The path does not end in .png or .svg.
    MissingDependencyError
        matplotlib is not installed.
    """
    plot_format = os.path.splitext(checked_plot(path))[1].lower().removeprefix(".")
    matplotlib = import_optional("matplotlib", "--plot needs")
    import_optional("matplotlib.figure", "--plot needs")
    # Fixed ids and no date: equal tables give equal files.
    with matplotlib.rc_context({"svg.hashsalt": "fastprof", "svg.fonttype": "none"}):
        figure = matplotlib.figure.Figure(figsize=(9, 6), layout="constrained")
        _fill(figure.add_subplot(), table, devices)
        with output_file(path) as file:
            metadata = {"Date": None} if plot_format == "svg" else {}
            figure.savefig(file, format=plot_format, dpi=150, metadata=metadata)


def _fill(axes: Any, table: Table, devices: Sequence[Device]) -> None:
    """Draw the roofs and circles, the longest first."""
    time = np.ma.filled(table["gpu_ns"], 0)
    intensity, rate = table["intensity"], table["flop_per_s"]
    shown = (intensity > 0) & (rate > 0) & (time > 0)
    rows = np.flatnonzero(shown)[np.argsort(-time[shown], kind="stable")]
    bounds, largest = table["bound"], max(time[rows].max(initial=0), 1)
    for bound, colour in _COLOURS.items():
        own = rows[bounds[rows] == bound]
        if not len(own):
            continue
        axes.scatter(
            *(intensity[own], rate[own]),
            s=np.maximum(_LARGEST * time[own] / largest, 4),
            c=colour,
            alpha=0.6,
            linewidths=0.5,
            edgecolors="white",
            label=f"{bound}: {time[own].sum() / 1e6:.4g} ms",
        )
    for row in _apart(intensity, rate, rows)[:_MOST_LABELS]:
        axes.annotate(
            _label(table, row),
            (intensity[row], rate[row]),
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=7,
        )
    _roofs(axes, table, devices, intensity[rows])
    scale = "log" if axes.dataLim.width > 0 or len(rows) else "linear"  # nothing to draw
    axes.set(xscale=scale, yscale=scale)
    names = ", ".join(dict.fromkeys(device.name or "unknown GPU" for device in devices))
    rest = time.sum() - time[rows].sum()
    title = f"{names}: {time.sum() / 1e6:.4g} ms, {rest / 1e6:.4g} ms of it without FLOPs"
    dressed(axes, title, "arithmetic intensity (FLOP/byte)", "rate (FLOP/s)")
    if len(rows):
        legend = axes.legend(title="bound by", loc="lower right", fontsize=8, frameon=False)
        for handle in legend.legend_handles:
            handle.set_sizes([40])


def _apart(intensity: Any, rate: Any, rows: Any) -> list[int]:
    """The rows whose labels do not hide each other, the longest first."""
    results: list[int] = []
    for row in rows.tolist():
        x, y = (np.abs(np.log10(each[row] / each[results])) for each in (intensity, rate))
        if ((x > 0.3) | (y > 0.3)).all():
            results.append(row)
    return results


def _label(table: Table, row: int) -> str:
    """The texts of the first keys of a row."""
    values = (column.at(row) for column in list(table.columns.values())[:2])
    return " ".join(str(value) for value in values if value is not None)


def _roofs(axes: Any, table: Table, devices: Sequence[Device], intensity: Any) -> None:
    """The bandwidth, and the peak of each compute type present."""
    bandwidth, peaks = roofs_of(table, devices)
    low = min(float(intensity.min(initial=1.0)), 0.1) / 2
    ridges = [peak / bandwidth for peak in peaks.values()] if bandwidth else [1.0]
    high = max(float(intensity.max(initial=1.0)), *ridges, 1.0) * 4
    if bandwidth:
        end = max(ridges, default=high)
        axes.plot([low, end], [low * bandwidth, end * bandwidth], color="black", linewidth=1)
        axes.annotate(
            f"{bandwidth / 1e9:.4g} GB/s",
            (low, low * bandwidth),
            xytext=(6, 4),
            textcoords="offset points",
            rotation=45,
            rotation_mode="anchor",
            transform_rotates_text=True,
            fontsize=8,
        )
    for name, peak in peaks.items():
        start = peak / bandwidth if bandwidth else low
        axes.plot([start, high], [peak, peak], color="black", linewidth=1)
        label = f"{name} {peak / 1e12:.4g} TFLOP/s"
        axes.annotate(
            label, (high, peak), xytext=(4, 0), textcoords="offset points", fontsize=8, va="center"
        )


# The parts of a step; they add up to its length.
_PARTS: Final = {
    "compute_ns": ("compute", COLOURS[0]),
    "exposed_communication_ns": ("exposed communication", COLOURS[5]),
    "exposed_copy_ns": ("exposed copies", COLOURS[1]),
    "idle_ns": ("idle", "#d9d9d9"),
}
_MOST_STEP_LABELS: Final = 20
_MOST_BARS: Final = 500  # of each part
_TITLE: Final = 90  # characters per line


def steps(profile: ProfileData, ax: Axes | None = None, **options: Any) -> Axes:
    """See `Plots.steps`.

    Raises
    ------
    ReportError
        The file has no times or no GPU work.
    """
    table = report_of(profile, "steps", **options)
    if not table.n_rows:
        raise ReportError("; ".join(table.notes) or "no steps in the file")
    axes = axes_of(ax)
    scale = scale_of("ns", float(np.max(table["wall_ns"])))
    rows = np.arange(table.n_rows)
    below = np.zeros(table.n_rows)
    for name, (label, colour) in _PARTS.items():
        height = np.ma.filled(table[name], 0) / scale.size
        if height.any():
            look: dict[str, Any] = {"color": colour, "label": label, "linewidth": 0}
            if table.n_rows <= _MOST_BARS:
                axes.bar(rows, height, 0.8, below, **look)
            else:
                axes.fill_between(rows, below, below + height, step="mid", **look)
            below += height
    devices = np.unique(np.ma.filled(table["device"], -1))
    labels = [
        f"{row['step']}" + (f"\nGPU {row['device']}" if len(devices) > 1 else "")
        for row in table.select(["step", "device"]).rows()
    ]
    every = -(-table.n_rows // (_MOST_STEP_LABELS // min(len(devices), 2)))
    axes.set_xticks(rows[::every], labels[::every])
    title = textwrap.fill(table.lead[0], _TITLE) if table.lead else ""
    dressed(axes, title, "step", f"time ({scale.name})")
    axes.grid(False, axis="x")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8, frameon=False)
    return axes


_POINTS: Final = 20_000  # of a curve


def memory(profile: ProfileData, ax: Axes | None = None, device: str | int | None = None) -> Axes:
    """See `Plots.memory`.

    Raises
    ------
    ReportError
        The file has no memory events, or none of this memory.
    """
    uses = uses_of(profile, device)
    if not uses:
        raise ReportError(why_none(profile))
    axes = axes_of(ax)
    use = max(uses, key=lambda use: len(use.rows))
    first, live = int(use.time[0]), use.above + use.base
    rows = envelope(live, _POINTS)
    ms = (use.time[rows] - first) / 1e6
    largest = max(int(live.max()), 0 if use.reserved is None else int(use.reserved.max()))
    scale = scale_of("bytes", largest)
    shown = live[rows] / scale.size
    axes.fill_between(ms, shown, step="post", color=COLOURS[4], alpha=0.4, linewidth=0)
    axes.step(ms, shown, where="post", color=COLOURS[0], linewidth=1, label="allocated")
    if use.reserved is not None:
        reserved = use.reserved[rows] / scale.size
        axes.step(ms, reserved, where="post", color=COLOURS[5], linewidth=1, label="reserved")
    steps = profile.find_steps()
    for number, start in zip(steps.number.tolist(), steps.start.tolist(), strict=True):
        at = (start - first) / 1e6
        if steps.source != "none" and 0 <= at <= ms[-1]:
            axes.axvline(at, color=GREY, linewidth=0.5)
            axes.annotate(
                str(number),
                (at, 0),
                xycoords=("data", "axes fraction"),
                xytext=(2, 2),
                textcoords="offset points",
                fontsize=7,
                color=GREY,
            )
    if use.peak >= 0:
        peak = use.base + use.peak_above
        at = (int(use.time[use.peak]) - first) / 1e6
        axes.plot(at, peak / scale.size, "o", color=COLOURS[5], markersize=5)
        axes.annotate(
            f"peak {quantity(peak, 'bytes')}",
            (at, peak / scale.size),
            xytext=(6, 4),
            textcoords="offset points",
            fontsize=8,
        )
    above = "" if use.start is not None else ", above the start of the capture"
    dressed(axes, f"memory of {use.name}{above}", "time (ms)", f"bytes ({scale.name})")
    axes.legend(loc="upper right", fontsize=8, frameon=False)
    return axes


_HEIGHT: Final = 0.8  # of the bars of a stream
_LEAST_ROWS: Final = 3
_MOST_TIMELINE_BARS: Final = 5000


def timeline(
    profile: ProfileData, ax: Axes | None = None, step: int | None = None, steps: str | None = None
) -> Axes:
    """See `Plots.timeline`.

    Raises
    ------
    ReportError
        The file has no times or no GPU work, or there is no such step.
    """
    kernels = profile.find_steps(steps)
    windows = windows_of(profile, kernels)
    if not len(windows):
        raise ReportError("no times of GPU work in the file: use the original trace of a GPU run")
    number = _median(windows, kernels) if step is None else step
    rows = np.flatnonzero((kernels.number[windows.step] == number) & windows.is_known)
    if not len(rows):
        known = ", ".join(map(str, np.unique(kernels.number).tolist()[:10]))
        raise ReportError(f"step: expected one of {known}, found {number}")
    axes = axes_of(ax)
    first, last = int(windows.start[rows].min()), int(windows.end[rows].max())
    start = numbers(profile, "start")
    end = start + np.maximum(numbers(profile, "sil"), 0)
    _draw(axes, profile, (start < last) & (end > first), first)
    name = "capture" if kernels.source == "none" else f"step {number}"
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
    closest = np.ptp(start) / _MOST_TIMELINE_BARS if len(rows) > _MOST_TIMELINE_BARS else 0.0
    heaviest = [row for row in np.argsort(-ns, kind="stable").tolist() if ns[row] > 0]
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
    of_device, number = (values.at(row) for values in (device, stream))
    return -1 if of_device is None else int(of_device), -1 if number is None else int(number)


def _name(device: Values, stream: Values, row: int, several: bool) -> str:
    number = stream.at(row)
    name = "stream unknown" if number is None else f"stream {number}"
    return f"GPU {device.at(row)}, {name}" if several else name
