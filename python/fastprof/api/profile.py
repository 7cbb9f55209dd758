"""`Profile`: what `fastprof.open` returns, with its reports, charts, exports and notebook view."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

import numpy.typing as npt

from fastprof._system.garbage import uncollected
from fastprof._system.optional import import_optional
from fastprof._system.threads import computed_once, map_on_threads
from fastprof.analysis.registry import imported
from fastprof.analysis.reports import report_of
from fastprof.errors import FastprofError
from fastprof.model import dataframe
from fastprof.model import dataframe as arrow
from fastprof.model.columns import Column
from fastprof.model.table import Table
from fastprof.profile.data import ProfileData

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from fastprof.analysis.overview.report import Overview
    from fastprof.analysis.registry import Where
    from fastprof.api import report_options
    from fastprof.model.page import Page


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
        draw: Callable[..., Any] = imported(f"fastprof.analysis.plot:{name}")
        return cast("Axes", draw(self._profile, ax, **options))


Result = TypeVar("Result")

_ROWS_AT_ONCE = 4096


class KernelArrays(Mapping[str, npt.NDArray[Any]]):
    """The columns of a Profile as NumPy arrays by name.

    Numbers are masked arrays (numpy.ma.MaskedArray), read-only, `[n]`; `grid` and `block` `[n, 3]`.
    Unknown ones are masked. Texts and lists are object arrays `[n]`, None where unknown.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._profile.column(name).array()

    def __iter__(self) -> Iterator[str]:
        return iter(self._profile.names)

    def __len__(self) -> int:
        return len(self._profile.names)


class Profile(ProfileData):
    """Everything known about the kernels of a trace or of dict lines; rows are in order of start.

    `fastprof.open` returns it. Columns, coverage and contents are computed on first use.

    Attributes
    ----------
    name : str
        The file.
    about : About
        Versions, names of GPUs, processes and threads, rank, steps, memory events.
    warnings : list of str
        Defects of the file that did not prevent reading it.
    graph_capture : GraphCapture or None
        How many kernels of replayed graphs have the calls of their capture; None without a capture.
    names : list of str
        The columns; see docs/columns.md. Dict lines lack those that only a trace has (start, pid,
        ...). `column("launch_end")` is not among them: it needs the file read again.
    kernels : mapping of str to array
        The columns as NumPy arrays: `profile.kernels["flops"].sum()`.
    coverage, coverage_of_kernels : Coverage
        Share of the GPU time with a known launch, range, operator, shapes, cost and source line;
        the second leaves memory copies and memsets out.
    contents : Contents
        How many kernels, launches, ranges, threads, ... the file contains.
    devices : dict of int to Device
        The GPUs with work: peak rates, multiprocessors, clock and memory, each with its source.
    """

    @computed_once
    def _series(self) -> dict[str, pandas.Series[Any]]:
        """Converted columns, which the frames of `to_pandas` share."""
        return {}

    def __repr__(self) -> str:
        """The first lines of the first screen."""
        kernels = super().__repr__()
        try:
            overview = cast("Overview", self.overview())
        except FastprofError:
            return kernels
        return "\n".join([*overview.opening(), kernels])

    def _repr_html_(self) -> str:
        from fastprof.api.notebook import profile_html

        return profile_html(self, super().__repr__().strip("<>"))

    @property
    def plot(self) -> Plots:
        """Charts with matplotlib: `profile.plot.roofline()`."""
        return Plots(self)

    @property
    def kernels(self) -> KernelArrays:
        """The columns as NumPy arrays by name."""
        return KernelArrays(self)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a dict of all columns for each kernel; None where unknown."""
        columns = self._converted(lambda name, column: column.chunks(_ROWS_AT_ONCE)).values()
        for chunk in zip(*columns, strict=True):
            for row in zip(*chunk, strict=True):
                yield dict(zip(self.names, row, strict=True))

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table of all columns; texts are dictionary-encoded, unknown values null.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        return arrow.to_arrow(self._converted(lambda name, column: column))

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame of all columns; unknown values are missing.

        Numbers are integers, nullable (Int64) where some are unknown; texts are categories; lists
        are tuples. grid and block become grid_x, grid_y, grid_z and so on. With pandas 3, the frame
        shares memory with the profile, and pandas copies a column before it changes it.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        frames = dataframe.FrameBuilder(self._series)
        return frames.join(self._converted(frames.convert).values())

    def _converted(self, convert: Callable[[str, Column], Result]) -> dict[str, Result]:
        """Compute and convert all columns on several threads."""
        source, costs = self.source, self.source.of_costs
        # The first column of costs takes longest, and the others wait for it.
        others = [name for name in self.names if name not in costs]
        order = [*costs[:1], *others, *costs[1:]]
        with uncollected():
            results = map_on_threads(lambda name: convert(name, source.column_once(name)), order)
        done = dict(zip(order, results, strict=True))
        return {name: done[name] for name in self.names}

    @overload
    def report(self, name: None = None, **options: Unpack[report_options.PageOptions]) -> Page: ...
    @overload
    def report(self, name: str, **options: Any) -> Table: ...
    def report(self, name: str | None = None, **options: Any) -> Table | Page:
        """A report as a table: `profile.report("summary", by=["layer"])`.

        docs/reports.md lists the reports and their options; `fastprof.report` adds one. Without a
        name, the HTML page of all reports, which notebooks show: `profile.report().save(path)`.

        Raises
        ------
        ReportError
            There is no such report, or an option has an invalid value.
        """
        if name is None:
            from fastprof.page import page_of

            return page_of(self, **options)
        return report_of(self, name, **options)

    def overview(self, **options: Unpack[report_options.OverviewOptions]) -> Table:
        """The first look, in one screen: `print(profile.overview().text())`; see `report`."""
        return self.report("overview", **options)

    def summary(
        self,
        by: str | Sequence[str] | None = None,
        **options: Unpack[report_options.SummaryOptions],
    ) -> Table:
        """Time and work by any keys: `profile.summary(by=["layer", "dir"])`; see `report`."""
        return self.report("summary", by=by, **options)

    def ranges_table(self, **options: Unpack[report_options.RangesOptions]) -> Table:
        """Time of your own ranges: `profile.ranges_table(flat=True)`; see `report`."""
        return self.report("ranges", **options)

    def roofline(
        self,
        by: str | Sequence[str] | None = None,
        **options: Unpack[report_options.RooflineOptions],
    ) -> Table:
        """Time against ideal time: `profile.roofline(by="layer", gpu="H100")`; see `report`."""
        return self.report("roofline", by=by, **options)

    def layers(
        self, depth: int | None = None, **options: Unpack[report_options.LayersOptions]
    ) -> Table:
        """Time and work of each layer: `profile.layers(depth=2, fold=True)`; see `report`."""
        return self.report("layers", depth=depth, **options)

    def lines(
        self, files: str | Sequence[str] = (), **options: Unpack[report_options.LinesOptions]
    ) -> Table:
        """Time and work of each source line: `profile.lines(by="function")`; see `report`."""
        return self.report("lines", files=files, **options)

    def steps(self, **options: Unpack[report_options.StepsOptions]) -> Table:
        """Length of each step and how the GPU spends it: `profile.steps()`; see `report`."""
        return self.report("steps", **options)

    def copies(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.CopiesOptions]
    ) -> Table:
        """Copies and memsets: `profile.copies(by=["direction", "size"])`; see `report`."""
        return self.report("copies", by=by, **options)

    def serving(self, idle: bool = False, **options: Unpack[report_options.PeakOptions]) -> Table:
        """Tokens per second and times by stage of an engine: `profile.serving()`; see `report`."""
        return self.report("serving", idle=idle, **options)

    def experts(self, **options: Unpack[report_options.PartOptions]) -> Table:
        """Mixtures of experts by layer: `profile.experts().sort("imbalance")`; see `report`."""
        return self.report("experts", **options)

    def overlap(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.PartOptions]
    ) -> Table:
        """Communication hidden and exposed: `profile.overlap(by="op")`; see `report`."""
        return self.report("overlap", by=by, **options)

    def launches(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.PartOptions]
    ) -> Table:
        """Host time of launches, latency and queue: `profile.launches(by="op")`; see `report`."""
        return self.report("launches", by=by, **options)

    def idle(self, gaps: int | None = None, **options: Unpack[report_options.IdleOptions]) -> Table:
        """Why the GPU has no work: `profile.idle(by="line")`; see `report`."""
        return self.report("idle", gaps=gaps, **options)

    def memory(
        self, by: str | Sequence[str] | None = None, **options: Unpack[report_options.MemoryOptions]
    ) -> Table:
        """Allocations and the peak: `profile.memory(by="layer", device="cpu")`; see `report`."""
        return self.report("memory", by=by, **options)

    def find(
        self,
        of: Literal["kernels", "calls", "ranges", "api"] = "kernels",
        **options: Unpack[report_options.FindOptions],
    ) -> Table:
        """Kernels, calls, ... one by one: `profile.find(where="op=mm", nth=3)`; see `report`."""
        return self.report("find", of=of, **options)

    def kernel(
        self, idx: int | Sequence[int] = (), **options: Unpack[report_options.KernelOptions]
    ) -> Table:
        """One kernel explained: `profile.kernel(42).facts["kernel"]`; see `report`."""
        return self.report("kernel", idx=idx, **options)

    def advise(
        self,
        min: float | None = None,  # noqa: A002
        **options: Unpack[report_options.AdviseOptions],
    ) -> Table:
        """What to change to make a step shorter: `profile.advise(min=1.0)`; see `report`."""
        return self.report("advise", min=min, **options)

    def export(
        self,
        path: str | os.PathLike[str],
        to: report_options.ExportFormat,
        **options: Unpack[report_options.ExportOptions],
    ) -> None:
        """Write the profile for another tool: `profile.export("net.pftrace", to="perfetto")`.

        docs/exports.md lists the formats and their options. The file is compressed if its name
        ends with .gz.

        Raises
        ------
        ReportError
            There is no such format or option.
        OSError
            The file cannot be written.
        """
        from fastprof.exports.export import export

        export(self, path, to, **options)

    def repro(
        self,
        call: int | None = None,
        top: int = 1,
        where: Where | None = None,
        variants: bool = False,
        idx: int | None = None,
    ) -> str:
        """A Python script that repeats recorded calls: `profile.repro(top=10)`.

        Calls are in the order of the GPU time that they lose against their ideal time.

        Parameters
        ----------
        call : only the call of this place in the order, from 1; None for the first `top`
        top : how many calls
        where : which calls, see `report`
        variants : also run what `advise` names for these calls: other types, sizes, layouts,
            backends of attention, torch.compile
        idx : only the call that launched this kernel, as `fastprof.kernel` numbers it

        Raises
        ------
        ReportError
            No call can be repeated, or there is none of this number.
        """
        from fastprof.analysis.repro.script import script

        return script(self, where, call, top, variants, idx).text

    def whatif(self, **options: Unpack[report_options.WhatIfOptions]) -> Table:
        """What a step would take: `profile.whatif(scale=["op=linear:0.5"])`; see `report`."""
        return self.report("whatif", **options)
