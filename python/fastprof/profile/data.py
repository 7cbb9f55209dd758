"""ProfileData: everything known about the kernels of a file, and what several reports use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, TypeVar

from fastprof._system.threads import computed_once, once
from fastprof.errors import UnknownColumnError
from fastprof.model.arrays import Bools, Int64
from fastprof.model.column_table import COUNTER
from fastprof.model.columns import Column
from fastprof.model.devices import Device
from fastprof.model.heading import unknown_name
from fastprof.model.metadata import About, Memory
from fastprof.profile.counters import Counters, column_of
from fastprof.profile.coverage import Contents, Coverage
from fastprof.profile.facts import devices_of
from fastprof.profile.instances import ApiCalls, HostEvents, RangeInstances, Synchronisations
from fastprof.profile.range_columns import Paths
from fastprof.profile.source import ProfileSource
from fastprof.profile.steps.kernel_steps import StepsOfKernels

if TYPE_CHECKING:
    from typing_extensions import Self

    from fastprof.profile.captured_graphs import GraphCapture
    from fastprof.profile.checks import Totals


class ProfileData:
    """What a Profile knows, without the reports, charts and exports that are made of it.

    `fastprof.Profile`, which users have, describes the attributes.

    Attributes
    ----------
    source : ProfileSource
        The trace or the dict lines, and everything that is derived from it.
    """

    def __init__(
        self,
        source: ProfileSource,
        recount: Callable[[], Totals | None] | None = None,
        graph_capture: GraphCapture | None = None,
    ) -> None:
        """Make a profile of a source.

        recount : counts the file again, None if it is too damaged; omitted for a pipe
        """
        self.name: str = source.name
        self.about: About = source.about
        self.warnings: list[str] = source.warnings
        self.names: list[str] = source.names
        self.graph_capture = graph_capture
        self.source, self._recount = source, recount

    def __len__(self) -> int:
        return self.source.n_kernels

    def __repr__(self) -> str:
        return f"<fastprof.Profile of {self.name}: {len(self)} kernels>"

    @property
    def available(self) -> list[str]:
        """`names`, and the columns that need the file read again."""
        return [*self.names, *self.source.on_request]

    @property
    def ranges(self) -> RangeInstances:
        """The ranges with their times, including those without kernels.

        The first use of `ranges`, `api` or the column `launch_end` reads a SQLite file again.

        Raises
        ------
        BadInputError
            The file has changed since it was read, or it is dict lines, which contain no ranges.
        """
        return self.source.timeline.ranges

    @property
    def api(self) -> ApiCalls:
        """All calls of the CUDA or HIP API, with their times and class; see `ranges`."""
        return self.source.timeline.api

    @property
    def synchronisations(self) -> Synchronisations:
        """What calls waited for, as CUPTI recorded it; empty if it did not. See `ranges`.

        torch.profiler records it with
        `torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)`.
        """
        return self.source.timeline.synchronisations

    @property
    def os_calls(self) -> HostEvents:
        """Calls of the operating system (nsys: `--trace osrt`); empty if none. See `ranges`."""
        return self.source.host_events("os_calls")

    @property
    def cpu_samples(self) -> HostEvents:
        """The functions that threads ran (nsys: `--sample`); see `os_calls`."""
        return self.source.host_events("cpu_samples")

    @property
    def cpu_switches(self) -> HostEvents:
        """When threads began and ceased to run (nsys: `--cpuctxsw`); see `os_calls`."""
        return self.source.host_events("cpu_switches")

    @property
    def memory_events(self) -> Memory:
        """Allocations and frees; those of Nsight Systems and rocprofv3 are read with `ranges`.

        torch.profiler records them with `profile_memory=True`, Nsight Systems with
        `--cuda-memory-usage=true`, rocprofv3 with `--memory-allocation-trace`. Empty if none were
        recorded.
        """
        if self.about.format not in ("nsys", "rocpd"):
            return self.about.memory
        return self.source.timeline.memory

    @property
    def counters(self) -> Counters:
        """Hardware counters of kernels, which rocprofv3 records with `--pmc`, by name.

        float64 [kernels], NaN for kernels without the counter; empty if none were recorded. The
        first use reads the file again.

        Raises
        ------
        BadInputError
            The file has changed since it was read.
        """
        return self.source.counters

    @property
    def paths(self) -> Paths:
        """The call-path tree, which the column `path` of kernels indexes.

        Raises
        ------
        BadInputError
            The file is dict lines, which contain no call paths.
        """
        return self.source.paths

    @property
    def coverage(self) -> Coverage:
        """How much of the GPU time is known, by depth."""
        return self.source.coverage(True)

    @property
    def coverage_of_kernels(self) -> Coverage:
        """The same without memory copies and memsets."""
        return self.source.coverage(False)

    @computed_once
    def contents(self) -> Contents:
        """Counts of the contents of the file."""
        return self.source.contents()

    @computed_once
    def devices(self) -> Mapping[int, Device]:
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
            - `iteration`: the iterations that a serving engine marks, each to the next
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
        return self.source.steps(source)

    def trim(self, part: str) -> Self:
        """The same rows; reports count those launched in a part, a StepsError if there are none.

        part : times since the first GPU work, `1.5s:4s` or `200ms:`; the name or glob pattern of
            your ranges, from the first to the last; or `:`, all of it, start-up included
        """
        return type(self)(self.source.trimmed(part), self._recount, self.graph_capture)

    def with_steps(self, steps: str) -> Self:
        """The same rows; reports and the page use these steps unless they are given others.

        steps : the source of the steps, see `find_steps`; a StepsError if there are none
        """
        return type(self)(self.source.stepped(steps), self._recount, self.graph_capture)

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
        from fastprof.profile.checks import same

        report = self.source.totals()
        file = self._recount() if self._recount is not None else None
        if file is None:
            why = "comes from a pipe" if self._recount is None else "is damaged"
            return f"{report} agree with calls and call paths; the input {why}: not counted again"
        same(self.name, file, report)
        doubt = f" (except {report.unsure} impossible durations)" if report.unsure else ""
        return f"{report} agree with the file{doubt}, with calls and with call paths"

    def column(self, name: str) -> Column:
        """A column in its compact form: Ints, RepeatedInts, Values or Lists (fastprof.model).

        `column.at(row)` is the value of one row, None where unknown. `counter:NAME` is a hardware
        counter of `counters`.

        Raises
        ------
        ReportError
            There is no counter of that name.
        UnknownColumnError
            There is no column of that name; the message names the nearest. It is a KeyError.
        """
        if name.startswith(COUNTER):
            return column_of(self.counters, name)
        if name not in self.available:
            raise UnknownColumnError(unknown_name("column", name, list(self.available)))
        return self.source.column(name)


Result = TypeVar("Result")


def kept(profile: ProfileData, function: Callable[..., Result], *arguments: Hashable) -> Result:
    """function(profile, *arguments), which is computed once and lives as long as the profile.

    Other threads wait while one computes it.
    Neither arguments nor result may refer to the profile, whose memory would then wait for the
    garbage collector.
    """
    results, key = profile.source.kept, (function, *arguments)
    if key in results:
        result: Result = results[key]
        return result
    return once(results, key, ("lock", key), function, profile, *arguments)


def inside_part(profile: ProfileData) -> Bools | None:
    """bool [kernels], the work in the part of `Profile.trim`; None for all."""
    return profile.source.is_inside


def begins_in_part(profile: ProfileData, time: Int64) -> Bools | None:
    """bool [times], whether each is in the part of `Profile.trim`; None for all."""
    window = profile.source.window
    return None if window is None or not window.text else window.contains(time)


def answered(profile: ProfileData) -> Bools | None:
    """bool [kernels], the work in the part of `Profile.trim`, or after the start-up; None: all."""
    return profile.source.answered


def left_out(profile: ProfileData) -> tuple[str, ...]:
    """The line that says which part of the capture is answered; none if that is all of it."""
    return () if answered(profile) is None else (profile.find_steps().left_out,)
