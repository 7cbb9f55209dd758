"""The chart of steps: what the GPU does in each."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fastprof.analysis.plot.style import COLOURS, axes_of, dressed
from fastprof.analysis.reports import report_of
from fastprof.errors import ReportError
from fastprof.model.quantity import scale_of
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The parts of a step; they add up to its length.
_PARTS: Final = {
    "compute_ns": ("compute", COLOURS[0]),
    "exposed_communication_ns": ("exposed communication", COLOURS[5]),
    "exposed_copy_ns": ("exposed copies", COLOURS[1]),
    "idle_ns": ("idle", "#d9d9d9"),
}
_MOST_LABELS: Final = 20
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
    every = -(-table.n_rows // (_MOST_LABELS // min(len(devices), 2)))
    axes.set_xticks(rows[::every], labels[::every])
    title = textwrap.fill(table.lead[0], _TITLE) if table.lead else ""
    dressed(axes, title, "step", f"time ({scale.name})")
    axes.grid(False, axis="x")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8, frameon=False)
    return axes
