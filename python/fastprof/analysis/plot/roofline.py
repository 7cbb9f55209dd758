"""The chart of `roofline`: FLOP/s by FLOP/byte, with the roofs of the GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fastprof._system.optional import import_optional
from fastprof._system.output_file import output_file
from fastprof.analysis.plot.style import COLOURS, GREY, axes_of, dressed
from fastprof.analysis.reports import report_of
from fastprof.analysis.roofline.columns import checked_plot
from fastprof.analysis.roofline.peaks import devices_with
from fastprof.analysis.roofline.points import roofs_of
from fastprof.model.devices import Device
from fastprof.model.table import Table
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    found: list[int] = []
    for row in rows.tolist():
        x, y = (np.abs(np.log10(each[row] / each[found])) for each in (intensity, rate))
        if ((x > 0.3) | (y > 0.3)).all():
            found.append(row)
    return found


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
