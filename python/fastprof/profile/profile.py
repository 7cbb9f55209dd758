"""Profile: everything known about the kernels of a file, as columns, rows and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy.typing as npt

from fastprof._system.garbage import uncollected
from fastprof._system.threads import map_on_threads
from fastprof.model import arrow, dataframe
from fastprof.model.columns import Column
from fastprof.model.derived import Deferred
from fastprof.model.devices import Device
from fastprof.model.markers import SourceLines
from fastprof.model.metadata import About, Memory
from fastprof.model.table import Table
from fastprof.profile import reports
from fastprof.profile.cells import KernelCells
from fastprof.profile.checks import Totals, same
from fastprof.profile.collectives import Messages
from fastprof.profile.counts import Contents
from fastprof.profile.coverage import Coverage
from fastprof.profile.facts import devices_of, facts_of
from fastprof.profile.host_events import HostEvents, Synchronisations
from fastprof.profile.instances import ApiCalls, RangeInstances
from fastprof.profile.notebook import profile_html
from fastprof.profile.paths import Paths
from fastprof.profile.plots import Plots
from fastprof.profile.range_columns import RangeColumns
from fastprof.profile.report_methods import ReportMethods
from fastprof.profile.source import ProfileSource
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    import pandas
    import pyarrow
    from typing_extensions import Unpack

    from fastprof.model.page import Page
    from fastprof.profile.captured_graphs import GraphCapture
    from fastprof.profile.report_options import PeakOptions

Result = TypeVar("Result")

_ROWS_AT_ONCE = 4096


class Kernels(Mapping[str, npt.NDArray[Any]]):
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


class Profile(ReportMethods):
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

    def __init__(
        self,
        source: ProfileSource,
        recount: Callable[[], Totals | None] | None = None,
        graph_capture: GraphCapture | None = None,
    ) -> None:
        """Make a Profile of a source.

        recount : counts the file again, None if it is too damaged; omitted for a pipe
        """
        self.name: str = source.name
        self.about: About = source.about
        self.warnings: list[str] = source.warnings
        self.names: list[str] = source.names
        self.graph_capture = graph_capture
        self._source, self._recount = source, recount
        self._series: dict[str, pandas.Series[Any]] = {}

    def __len__(self) -> int:
        return self._source.n_kernels

    def __repr__(self) -> str:
        return f"<fastprof.Profile of {self.name}: {len(self)} kernels>"

    def _repr_html_(self) -> str:
        return profile_html(self, repr(self).strip("<>"))

    @property
    def plot(self) -> Plots:
        """Charts with matplotlib: `profile.plot.roofline()`."""
        return Plots(self)

    @property
    def kernels(self) -> Kernels:
        """The columns as NumPy arrays by name."""
        return Kernels(self)

    @property
    def available(self) -> list[str]:
        """`names`, and the columns that need the file read again."""
        return [*self.names, *self._source.on_request]

    @property
    def ranges(self) -> RangeInstances:
        """The ranges with their times, including those without kernels.

        The first use of `ranges`, `api` or the column `launch_end` reads a SQLite file again.

        Raises
        ------
        BadInputError
            The file has changed since it was read, or it is dict lines, which contain no ranges.
        """
        return self._source.timeline.ranges

    @property
    def api(self) -> ApiCalls:
        """All calls of the CUDA or HIP API, with their times and class; see `ranges`."""
        return self._source.timeline.api

    @property
    def synchronisations(self) -> Synchronisations:
        """What calls waited for, as CUPTI recorded it; empty if it did not. See `ranges`.

        torch.profiler records it with
        `torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)`.
        """
        return self._source.timeline.synchronisations

    @property
    def os_calls(self) -> HostEvents:
        """Calls of the operating system (nsys: `--trace osrt`); empty if none. See `ranges`."""
        return self._source.host_events("os_calls")

    @property
    def cpu_samples(self) -> HostEvents:
        """The functions that threads ran (nsys: `--sample`); see `os_calls`."""
        return self._source.host_events("cpu_samples")

    @property
    def cpu_switches(self) -> HostEvents:
        """When threads began and ceased to run (nsys: `--cpuctxsw`); see `os_calls`."""
        return self._source.host_events("cpu_switches")

    @property
    def memory_events(self) -> Memory:
        """Allocations and frees; those of Nsight Systems are read with `ranges`.

        torch.profiler records them with `profile_memory=True`, Nsight Systems with
        `--cuda-memory-usage=true`. Empty if none were recorded.
        """
        if self.about.format != "nsys":
            return self.about.memory
        return self._source.timeline.memory

    @property
    def paths(self) -> Paths:
        """The call-path tree, which the column `path` of kernels indexes.

        Raises
        ------
        BadInputError
            The file is dict lines, which contain no call paths.
        """
        return self._source.paths

    @property
    def coverage(self) -> Coverage:
        """How much of the GPU time is known, by depth."""
        return self._source.coverage(True)

    @property
    def coverage_of_kernels(self) -> Coverage:
        """The same without memory copies and memsets."""
        return self._source.coverage(False)

    @cached_property
    def contents(self) -> Contents:
        """Counts of the contents of the file."""
        return self._source.contents()

    @cached_property
    def devices(self) -> dict[int, Device]:
        """Peaks and sizes of the GPUs with work, by number."""
        return devices_of(self.about, self.column("device"))

    def find_steps(self, source: str | None = None) -> StepsOfKernels:
        """The training steps, and the step of every kernel; kept for each source.

        Parameters
        ----------
        source : str, optional
            What marks the steps. By default, the first that applies: `ProfilerStep` (two or more),
            `range`, `repetition`, `DataLoader`, `Optimizer.step`, `graph`, `none`.

            - `ProfilerStep`: the ranges of torch.profiler's schedule
            - `range`: your outermost range whose label, numbers folded, repeats, and that launches
              at least 90 % of the GPU time
            - `range:REGEX`: your outermost ranges whose label the expression is found in; without
              any, ranges of any kind (reads the file again)
            - `repetition`: the launches of the same kernels, at least 98 % of the GPU time
            - `DataLoader`: each fetch of torch's DataLoader begins a step
            - `Optimizer.step`: each step of an optimizer ends a step
            - `graph`: each launch of the CUDA graph with the most GPU time begins a step
            - `anchor:REGEX`, `anchor:REGEX>5ms`: each launch of a kernel, or else of an operator,
              that the expression is found in, and that takes over 5 ms, begins a step
            - `none`: the capture is one step

        Raises
        ------
        StepsError
            The source is unknown, the file has no such steps, or it is dict lines.
        """
        return self._source.steps(source)

    def trim(self, part: str) -> Profile:
        """The same rows; reports count those launched in a part, a StepsError if there are none.

        part : times since the first GPU work, `1.5s:4s` or `200ms:`; the name or glob pattern of
            your ranges, from the first to the last; or `:`, all of it, start-up included
        """
        return Profile(self._source.trimmed(part), self._recount, self.graph_capture)

    def check(self) -> str:
        """Count the file again in a simpler way and compare; return a summary of what agrees.

        Compares the rows and the GPU time with those of the file, the FLOPs of kernels with those
        of calls, and the kernels of each call path with its own and its children's.

        Raises
        ------
        CheckError
            Rows or time were lost or counted twice.
        BadInputError
            The file cannot be read any more.
        """
        report = self._source.totals()
        file = self._recount() if self._recount is not None else None
        if file is None:
            why = "comes from a pipe" if self._recount is None else "is damaged"
            return f"{report} agree with calls and call paths; the input {why}: not counted again"
        same(self.name, file, report)
        doubt = f" (except {report.unsure} impossible durations)" if report.unsure else ""
        return f"{report} agree with the file{doubt}, with calls and with call paths"

    def column(self, name: str) -> Column:
        """A column in its compact form: Ints, RepeatedInts, Values or Lists (fastprof.model).

        `column.at(row)` is the value of one row, None where unknown.

        Raises
        ------
        KeyError
            There is no column of that name.
        """
        if name not in self.available:
            raise KeyError(f"no column {name!r}; columns: {', '.join(self.available)}")
        return self._source.column(name)

    @overload
    def report(self, name: None = None, **options: Unpack[PeakOptions]) -> Page: ...
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
            return cast("Page", reports.imported("fastprof.page:page_of")(self, **options))
        with uncollected():
            table = reports.find(name).run(self, **options)
        own = table.facts
        # Only JSON needs the facts, and they take as long as a report.
        return replace(table, facts=Deferred(lambda: {**self._facts(options), **own}))

    def _facts(self, options: Mapping[str, Any]) -> dict[str, Any]:
        steps = self.find_steps(options.get("steps"))
        device, coverage = self.column("device"), self.coverage_of_kernels
        found = facts_of(self.name, self.about, device, coverage, steps)
        return {**found, "program": self.contents.program.facts()}

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
        source, costs = self._source, self._source.of_costs
        # The first column of costs takes longest, and the others wait for it.
        others = [name for name in self.names if name not in costs]
        order = [*costs[:1], *others, *costs[1:]]
        with uncollected():
            found = map_on_threads(lambda name: convert(name, source.column_once(name)), order)
        done = dict(zip(order, found, strict=True))
        return {name: done[name] for name in self.names}


def dict_line_columns(profile: Profile) -> Mapping[str, Any]:
    """The columns of dict lines by PyProf's keys; computes the coverage at the same time."""
    return profile._source.dict_line_columns()


def range_columns(profile: Profile) -> RangeColumns:
    """The columns of the ranges of a trace: `op`, `layer`, `line`, ..."""
    return profile._source.range_columns


def cells(profile: Profile) -> KernelCells:
    """The cells of the kernels."""
    return profile._source.cells


def source_lines(profile: Profile) -> SourceLines:
    """Which source lines are the user's."""
    return profile._source.lines


def forward_ranges(profile: Profile) -> npt.NDArray[Any]:
    """int32 [kernels], the range of the forward call of each backward kernel; -1 for none."""
    return profile._source.forward_ranges


def messages(profile: Profile) -> Messages:
    """The calls of collectives of a trace."""
    return profile._source.messages
