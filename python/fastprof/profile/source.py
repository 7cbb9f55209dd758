"""ProfileSource: a trace or dict lines, and everything that a Profile derives from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar

from fastprof.errors import BadInputError, StepsError
from fastprof.model.arrays import Bools, Int32
from fastprof.model.column_table import ColumnInfo
from fastprof.model.columns import Column
from fastprof.model.compiled import Compiled
from fastprof.model.markers import SourceLines
from fastprof.model.metadata import About
from fastprof.model.timeline import GpuSamples
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.cells import KernelCells
from fastprof.profile.checks import Totals
from fastprof.profile.collectives import Messages
from fastprof.profile.counters import Counters
from fastprof.profile.coverage import Contents, Coverage
from fastprof.profile.instances import HostEvents
from fastprof.profile.range_columns import Paths, RangeColumns
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.profile.steps.window import Window
from fastprof.profile.timeline import Timeline

if TYPE_CHECKING:
    from fastprof.profile.compiled.sites import CompiledWork


class ProfileSource(ABC):
    """A trace or dict lines. Columns are computed on first use and kept.

    `of_costs` names the columns that share the cost computation, about half of the total time, in
    an order for several threads: first the one that needs all of it, last those that need that one.
    `lines` selects the user's own source lines.

    Parameters
    ----------
    name : the file
    about : its metadata
    warnings : defects of the file, one line each
    n_kernels : number of rows of every column
    table : its columns, in order

    Attributes
    ----------
    names : the columns of complete tables
    on_request : further columns, which need the file read again
    """

    of_costs: ClassVar[tuple[str, ...]] = ()
    lines: SourceLines

    def __init__(
        self,
        name: str,
        about: About,
        warnings: list[str],
        n_kernels: int,
        table: tuple[ColumnInfo, ...],
    ) -> None:
        self.name, self.about, self.warnings, self.n_kernels = name, about, warnings, n_kernels
        self.names = [info.key for info in table if not info.on_request]
        self.on_request = [info.key for info in table if info.on_request]
        self.kept: dict[object, Any] = {}  # see `fastprof.profile.data`
        # Replays of the profile, which refer to it: kept for further ones if a caller sets a dict.
        self.replays: dict[str | None, Any] | None = None
        self.compiled: Compiled | None = None  # artefacts of torch.compile
        self.host_omitted = ""  # why `timeline` contains nothing
        self._columns: dict[str, Column] = {}
        self._being_made: dict[str, RLock] = {}
        self._coverage: dict[bool, Coverage] = {}

    def column(self, name: str) -> Column:
        """The column of a name in `names` or `on_request`."""
        if name not in self._columns:
            # Other threads wait: two that make a column take twice the memory.
            with self._being_made.setdefault(name, RLock()):
                if name not in self._columns:
                    self._columns[name] = self._make(name)
            self._being_made.pop(name, None)
        return self._columns[name]

    def column_once(self, name: str) -> Column:
        """The column of a name in `names`, for one use: kept only if another use keeps it."""
        return self._columns[name] if name in self._columns else self._make(name)

    @abstractmethod
    def _make(self, name: str) -> Column:
        """Compute a column."""

    @property
    @abstractmethod
    def cells(self) -> KernelCells:
        """The cells of the kernels; kept."""

    @abstractmethod
    def steps(self, source: str | None) -> StepsOfKernels:
        """The steps by a source, as for `Profile.find_steps`."""

    def coverage(self, copies: bool) -> Coverage:
        """The GPU time by depth; `copies`: including memory copies and memsets."""
        if copies not in self._coverage:
            self._coverage[copies] = self._cover(copies)
        return self._coverage[copies]

    @abstractmethod
    def _cover(self, copies: bool) -> Coverage:
        """Sum the GPU time by depth."""

    @abstractmethod
    def contents(self) -> Contents:
        """Count the contents."""

    @abstractmethod
    def totals(self) -> Totals:
        """Sum the rows.

        Raises
        ------
        CheckError
            The sum over kernels differs from that over calls or call paths.
        """

    @abstractmethod
    def dict_line_columns(self) -> Mapping[str, Any]:
        """The columns of dict lines by PyProf's keys; computes the coverage at the same time."""

    def trimmed(self, text: str) -> ProfileSource:
        """A source for the same file, of which a part counts, see `Profile.trim`.

        Raises
        ------
        StepsError
            The part has no work, or the file is dict lines.
        """
        raise StepsError(f"{self.name}: dict lines contain no times: use the original trace")

    def stepped(self, steps: str) -> ProfileSource:
        """A source for the same file with other steps by default, see `Profile.with_steps`.

        Raises
        ------
        StepsError
            The file has no such steps.
        """
        raise StepsError(f"{self.name}: dict lines contain no times: use the original trace")

    @property
    def window(self) -> Window | None:
        """The part that counts; None for all."""
        return None

    @property
    def is_inside(self) -> Bools | None:
        """bool [kernels], the work in the part that counts; None for all."""
        return None

    @property
    def answered(self) -> Bools | None:
        """bool [kernels], `is_inside`, or the work after the start-up; None for all."""
        return None

    @property
    def timeline(self) -> Timeline:
        """The ranges and API calls; read from the file on first use.

        Raises
        ------
        BadInputError
            The file has changed, or it is dict lines, which contain neither.
        """
        raise self._lacks("ranges and API calls")

    @property
    def counters(self) -> Counters:
        """Hardware counters of kernels, by name, [kernels], NaN where a kernel has none."""
        return {}

    def omit_host(self, why: str) -> None:
        """Let `timeline` contain nothing, and `host_omitted` say why.

        Raises
        ------
        BadInputError
            The file is dict lines, which have no timeline.
        """
        raise self._lacks("ranges and API calls")

    def host_events(self, name: str) -> HostEvents:
        """The events `os_calls`, `cpu_samples` or `cpu_switches`; read on first use.

        Raises
        ------
        BadInputError
            The file has changed, or it is dict lines, which contain none.
        """
        raise self._lacks(name.replace("_", " "))

    def calls_of_kernels(self) -> CallsOfKernels | None:
        """The call of every kernel, with its arguments; None for dict lines."""
        return None

    def gpu_samples(self) -> GpuSamples | None:
        """Samples of the GPUs' counters (nsys: `--gpu-metrics-devices`); None if there are none.

        Raises
        ------
        BadInputError
            The file has changed.
        """
        return None

    @property
    def paths(self) -> Paths:
        """The call-path tree.

        Raises
        ------
        BadInputError
            The file is dict lines, which do not contain it.
        """
        raise self._lacks("call paths")

    @property
    def range_columns(self) -> RangeColumns:
        """The columns of ranges; reads the file again on first use.

        Raises
        ------
        BadInputError
            The file has changed, or it is dict lines, which contain no ranges.
        """
        raise self._lacks("ranges")

    @property
    def forward_ranges(self) -> Int32:
        """[kernels] The range of the forward call of each backward kernel, -1 for others.

        Raises
        ------
        BadInputError
            The file is dict lines, which contain no ranges.
        """
        raise self._lacks("ranges")

    @property
    def compiled_work(self) -> CompiledWork | None:
        """The parts of kernels that torch.compile generated; None without its artefacts."""
        return None

    @property
    def messages(self) -> Messages:
        """The calls of collectives.

        Raises
        ------
        BadInputError
            The file is dict lines.
        """
        raise self._lacks("the calls of collectives")

    def _lacks(self, contents: str) -> BadInputError:
        return BadInputError(
            f"{self.name}: expected a trace, found dict lines, which do not contain {contents}; "
            "open the trace from which fastprof parse made them"
        )
