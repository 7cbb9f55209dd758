"""The chart of `roofline`: FLOP/s by arithmetic intensity, with the roofs of the GPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.atomic_file import atomic_file
from fastprof._system.optional import import_optional
from fastprof.analysis.roofline_columns import checked_plot
from fastprof.model.columns import Values
from fastprof.model.devices import Device
from fastprof.model.table import Table

__all__ = ["draw"]

# Colours that people with colour blindness can distinguish (Okabe and Ito).
_COLOURS: Final = {"compute": "#d55e00", "bandwidth": "#0072b2", "latency": "#999999"}
_LARGEST: Final = 1500.0  # area of the largest circle, points squared
_MOST_LABELS: Final = 8


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
        with atomic_file(path) as file:
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
        axes.scatter(
            *(intensity[own], rate[own]),
            s=np.maximum(_LARGEST * time[own] / largest, 4),
            c=colour,
            alpha=0.6,
            linewidths=0.5,
            edgecolors="black",
            label=f"{bound}: {time[own].sum() / 1e6:.4g} ms",
        )
    for row in _apart(intensity, rate, rows)[:_MOST_LABELS]:
        axes.annotate(_label(table, row), (intensity[row], rate[row]), fontsize=7)
    _roofs(axes, table, devices, intensity[rows])
    scale = "log" if axes.dataLim.width > 0 or len(rows) else "linear"  # nothing to draw
    axes.set(xscale=scale, yscale=scale, xlabel="FLOP/byte", ylabel="FLOP/s")
    names = ", ".join(dict.fromkeys(device.name or "unknown GPU" for device in devices))
    rest = time.sum() - time[rows].sum()
    axes.set_title(
        f"{names}: {time.sum() / 1e6:.4g} ms, of which {rest / 1e6:.4g} ms without FLOPs"
    )
    axes.grid(True, which="major", linewidth=0.3)
    for handle in axes.legend(title="bound by", loc="lower right").legend_handles:
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
    bandwidth = max((device.bandwidth or 0.0 for device in devices), default=0.0)
    peaks: dict[str, float] = {}
    types = table.columns["compute_type"]
    if isinstance(types, Values):
        for i, peak in enumerate(table["peak_flop_per_s"]):
            name = types.at(i)
            if name is not None and peak > peaks.get(name, 0.0):
                peaks[name] = float(peak)
    low = min(float(intensity.min(initial=1.0)), 0.1) / 2
    ridges = [peak / bandwidth for peak in peaks.values()] if bandwidth else [1.0]
    high = max(float(intensity.max(initial=1.0)), *ridges, 1.0) * 4
    if bandwidth:
        end = max(ridges, default=high)
        axes.plot([low, end], [low * bandwidth, end * bandwidth], color="black", linewidth=1)
        label = f"{bandwidth / 1e9:.4g} GB/s"
        axes.annotate(label, (low, low * bandwidth), rotation=35, fontsize=8, va="bottom")
    for name, peak in peaks.items():
        start = peak / bandwidth if bandwidth else low
        axes.plot([start, high], [peak, peak], color="black", linewidth=1)
        label = f"{name} {peak / 1e12:.4g} TFLOP/s"
        axes.annotate(label, (high, peak), fontsize=8, ha="right", va="bottom")
