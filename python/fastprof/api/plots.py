"""`profile.plot`: charts with matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from fastprof._system.optional import import_optional
from fastprof.analysis.registry import imported
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from fastprof.api import report_options


class Plots:
    """Charts of a profile: `profile.plot.roofline()`. Each returns matplotlib axes.

    Each draws on `ax`, or else on a new figure of pyplot; further options are those of the report.
    The methods raise MissingDependencyError without matplotlib (`pip install 'fastprof[plot]'`),
    and ReportError if the file lacks what the chart shows.
    """

    def __init__(self, profile: ProfileData) -> None:
        self._profile = profile

    def roofline(
        self, ax: Axes | None = None, **options: Unpack[report_options.RooflineChartOptions]
    ) -> Axes:
        """FLOP/s by FLOP/byte, logarithmic; the area of a circle is its GPU time.

        options : those of `Profile.roofline`, such as `by="layer"` or `where="op=linear"`
        """
        return self._draw("roofline", ax, options)

    def steps(self, ax: Axes | None = None, **options: Unpack[report_options.StepsOptions]) -> Axes:
        """The time of each step, stacked: compute, exposed communication and copies, idle.

        options : those of `Profile.steps`
        """
        return self._draw("steps", ax, options)

    def memory(self, ax: Axes | None = None, device: str | int | None = None) -> Axes:
        """Allocated and reserved bytes over time in ms, with the peak and the steps.

        device : GPU number or "cpu"; by default the GPU with the most events
        """
        return self._draw("memory", ax, {"device": device})

    def timeline(
        self, ax: Axes | None = None, step: int | None = None, steps: str | None = None
    ) -> Axes:
        """The work of each stream in one step, by kind, over ms; idle time is left empty.

        step : number of the step; by default the one of median length
        steps : what a step is, see `Profile.find_steps`
        """
        return self._draw("timeline", ax, {"step": step, "steps": steps})

    def _draw(self, name: str, ax: Axes | None, options: Mapping[str, object]) -> Axes:
        import_optional("matplotlib.pyplot", "charts need")
        draw: Callable[..., Any] = imported(f"fastprof.analysis.plot.{name}:{name}")
        return cast("Axes", draw(self._profile, ax, **options))
