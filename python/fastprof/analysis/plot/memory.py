"""The chart of memory over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fastprof.analysis.memory.uses import envelope, uses_of, why_none
from fastprof.analysis.plot.style import COLOURS, GREY, axes_of, dressed
from fastprof.errors import ReportError
from fastprof.model.quantity import quantity, scale_of
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    use = max(uses, key=lambda each: len(each.rows))
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
