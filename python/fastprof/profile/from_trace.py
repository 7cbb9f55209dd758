"""A trace and the call paths of its kernels as the source of a Profile, with its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from fastprof._core import _link, _nest, _path
from fastprof._core._take import take
from fastprof._system.threads import computed_once, is_computed
from fastprof.errors import StepsError
from fastprof.model.arrays import Bools, Int32, rows_by
from fastprof.model.column_table import COLUMNS, TRACE_COLUMNS
from fastprof.model.columns import Column, Ints, RepeatedInts, SharedValues, Values, as_lists
from fastprof.model.markers import Kind, SourceLines, each_part_once
from fastprof.model.timeline import GpuSamples, RecordedEvents
from fastprof.model.trace import NO_TIME, Trace, label_text
from fastprof.profile import annotated, checks, collectives, gpu_work, phases
from fastprof.profile import api_classes as kernel_types
from fastprof.profile.callpath.attribution import Attribution
from fastprof.profile.calls import CallsOfKernels
from fastprof.profile.cells import KernelCells, bits, lookups_of_cells, numbered, partition, sums
from fastprof.profile.counters import Counters
from fastprof.profile.coverage import Contents, Coverage, RowCalls, contents_of, cover
from fastprof.profile.instances import HostEvents, Threads, host_events_of
from fastprof.profile.lookups import Lookups
from fastprof.profile.range_columns import Paths, RangeColumns, paths_of
from fastprof.profile.serving import stages
from fastprof.profile.source import ProfileSource
from fastprof.profile.steps.kernel_steps import StepsOfKernels
from fastprof.profile.steps.window import Window, inside, window_of
from fastprof.profile.timeline import Timeline, no_timeline

if TYPE_CHECKING:
    from fastprof.profile.compiled.sites import CompiledWork

_DIRECTIONS: Final = ["fprop", "bprop"]


class TraceSource(ProfileSource):
    """A trace. Columns are computed on first use.

    read_times : reads the timeline from the file of the trace
    read_events : reads further events of the host by name, None if the format has none
    read_counters : reads the hardware counters of kernels
    """

    of_costs = (
        *("flops", "tc", "tc_reason", "params", "op", "mod", "compute_type", "helper", "call"),
        *("bytes", "exact"),
    )

    def __init__(
        self,
        trace: Trace,
        attribution: Attribution,
        lines: SourceLines,
        read_times: Callable[[Trace, Attribution], Timeline],
        read_events: Callable[[str], RecordedEvents | None],
        read_samples: Callable[[], GpuSamples | None],
        read_counters: Callable[[], Counters],
    ) -> None:
        super().__init__(
            trace.name, trace.about, trace.warnings, len(trace.kernels), COLUMNS + TRACE_COLUMNS
        )
        self._trace, self._attribution, self.lines = trace, attribution, lines
        self._lookups = Lookups(trace, attribution, lines)
        self._readers = read_times, read_events, read_samples, read_counters
        self._host_events: dict[str, HostEvents] = {}

    def _copy(self) -> TraceSource:
        return self._of(self._trace, self._attribution)

    def _of(self, trace: Trace, attribution: Attribution) -> TraceSource:
        """A source for the same file."""
        return TraceSource(trace, attribution, self.lines, *self._readers)

    def trimmed(self, text: str) -> TraceSource:
        """As in ProfileSource."""
        window = window_of(self._trace, self._attribution.meanings, text)
        if window.text and not inside(self._trace, window).any():
            raise StepsError(f"{self._trace.name}: no GPU work is launched in {window.text}")
        return self._with(window, self._lookups.of_steps)

    def stepped(self, steps: str) -> TraceSource:
        """As in ProfileSource."""
        source = self._with(self._lookups.window, steps)
        source.steps(None)
        return source

    def _with(self, window: Window | None, of_steps: str | None) -> TraceSource:
        """A source of a part, with other steps by default."""
        source = self._copy()
        source._lookups = Lookups(self._trace, self._attribution, self.lines, window, of_steps)
        source.host_omitted = self.host_omitted
        source.compiled = self.compiled
        if is_computed(self, "timeline"):
            source.timeline = self.timeline
        return source

    @property
    def window(self) -> Window | None:
        """As in ProfileSource."""
        return self._lookups.window

    @property
    def is_inside(self) -> Bools | None:
        """As in ProfileSource."""
        return None if self._lookups.window is None else self._lookups.answered

    @property
    def answered(self) -> Bools | None:
        """As in ProfileSource."""
        return self._lookups.answered

    def _make(self, name: str) -> Column:
        if name == "launch_end":
            return self.timeline.launch_ends()
        if name == "annotation":
            return annotated.notes_of(self._lookups.trace).mapped(str)
        if name == "triton":
            return _triton(self._lookups)
        if name in collectives.COLUMNS:
            return self.messages.column(name)
        if name in stages.COLUMNS:
            return stages.column_of_stages(self._lookups, name)
        made = _MAKERS[name](self._lookups)
        if name in annotated.COLUMNS and isinstance(made, Values):
            return annotated.COLUMNS[name](made, self._lookups.trace)
        return made

    def steps(self, source: str | None) -> StepsOfKernels:
        """The steps by a source."""
        return self._lookups.steps(source, lambda: self.timeline.ranges)

    @computed_once
    def timeline(self) -> Timeline:
        """As in ProfileSource."""
        return self._readers[0](self._trace, self._attribution)

    def host_events(self, name: str) -> HostEvents:
        """As in ProfileSource."""
        if name not in self._host_events:
            threads = self.timeline.api.threads
            recorded = self._readers[1](name)
            self._host_events[name] = host_events_of(recorded, threads, name == "os_calls")
        return self._host_events[name]

    def calls_of_kernels(self) -> CallsOfKernels:
        """As in ProfileSource."""
        return self._lookups.calls

    def gpu_samples(self) -> GpuSamples | None:
        """As in ProfileSource."""
        return self._readers[2]()

    @computed_once
    def counters(self) -> Counters:
        """As in ProfileSource."""
        return self._readers[3]()

    @computed_once
    def paths(self) -> Paths:
        """As in ProfileSource."""
        return paths_of(self._attribution)

    def omit_host(self, why: str) -> None:
        """As in ProfileSource."""
        self.host_omitted = why
        self.timeline = no_timeline(self.n_kernels)

    @computed_once
    def range_columns(self) -> RangeColumns:
        """As in ProfileSource."""
        shared = {name: _MAKERS[name] for name in RangeColumns.SHARED}
        # Without a reference to `self`, which would keep the trace until garbage is collected.
        lookups, ranges = self._lookups, self.timeline.ranges
        return RangeColumns(
            self._trace,
            self._attribution,
            lookups.lines,
            ranges,
            shared,
            lambda: lookups.steps(None, lambda: ranges),
        )

    @computed_once
    def compiled_work(self) -> CompiledWork | None:
        """As in ProfileSource."""
        if self.compiled is None or not self.compiled.graphs:
            return None
        from fastprof.profile.compiled.sites import work_of

        names = self._lookups.names[1]
        return work_of(self._trace, self._attribution, names, self.compiled.graphs)

    @property
    def forward_ranges(self) -> Int32:
        """As in ProfileSource."""
        lookups = self._lookups
        forward = np.where(lookups.meaning == lookups.frame, np.int32(-1), lookups.meaning)
        return take(self._attribution.frame_range, forward)

    @computed_once
    def messages(self) -> collectives.Messages:
        """As in ProfileSource."""
        return collectives.messages_of(self._lookups, self._payloads)

    def _payloads(self) -> HostEvents:
        trace = self._trace
        pid = take(trace.processes, trace.process_of_thread)
        threads = Threads(trace.threads.astype(np.int64), pid.astype(np.int64))
        return host_events_of(self._readers[1]("payloads"), threads)

    def _cover(self, copies: bool) -> Coverage:
        cells, lookups, inside = self.cells, self._of_cells._lookups, self.is_inside
        trace = lookups.trace
        counted = None if copies else ~gpu_work.are_copies(trace)
        if inside is not None:
            counted = inside[cells.first] if counted is None else inside[cells.first] & counted
        return cover(
            trace.kernels.duration,
            trace.kernels.launch >= 0,
            lookups.frame >= 0,
            lookups.source,
            RowCalls.of(self._lookups.calls, cells.first),
            lookups.flops.values >= 0,
            self._has_shapes,
            cells.kernels,
            counted,
            lambda: gpu_work.in_graphs(trace),
        )

    def _cover_alone(self) -> Coverage:
        """The coverage with copies, if nothing else needs the cells of reports: from larger cells,
        which take less time and memory."""
        trace, lookups = self._trace, self._lookups
        kernels, frame = trace.kernels, lookups.frame
        calls, lines, (is_known, _) = lookups.calls, lookups.source, lookups.known
        flags = [kernels.launch >= 0, frame >= 0, kernels.duration >= 0, is_known, lines.fits(bool)]
        in_graphs = gpu_work.in_graphs(trace) if gpu_work.has_graphs(trace) else ()
        of_kernel, first = numbered([calls.kind, bits(*flags, *in_graphs)], len(kernels))
        return cover(
            sums(kernels.duration, of_kernel, first),
            kernels.launch[first] >= 0,
            frame[first] >= 0,
            lines.take(first),
            RowCalls.of(calls, first),
            is_known[first],
            self._has_shapes,
            np.bincount(of_kernel, minlength=len(first)),
            graphs=lambda: [graph[first] for graph in in_graphs],
        )

    @property
    def _has_shapes(self) -> bool:
        """Whether torch recorded the shapes of any call."""
        return any(m.kind == Kind.TORCH and m.has_arguments for m in self._attribution.meanings)

    @computed_once
    def cells(self) -> KernelCells:
        """As in ProfileSource."""
        return KernelCells(*self._partition, self._of_cells.column)

    @computed_once
    def _partition(self) -> tuple[Int32, Int32]:
        """The cell of each kernel, and the first kernel of each cell."""
        inside, (of_kernel, first) = self.is_inside, partition(self._lookups)
        if inside is None:
            return of_kernel, first
        return numbered([of_kernel, bits(inside)], len(of_kernel))

    @computed_once
    def _of_cells(self) -> TraceSource:
        """The trace with one kernel for each cell, which has the numbers of all of its kernels."""
        lookups = lookups_of_cells(self._lookups, *self._partition)
        source = self._of(lookups.trace, lookups.attribution)
        source._lookups = lookups
        return source

    def contents(self) -> Contents:
        """Count the contents."""
        return contents_of(self._trace, self._attribution)

    def totals(self) -> checks.Totals:
        """Sum the rows, and check the sums along calls and call paths."""
        trace, lookups = self._trace, self._lookups
        duration = Ints(trace.kernels.duration)
        time = np.maximum(duration.values, 0)
        checks.inclusive(trace.name, lookups.frame, time, self._attribution)
        for column in (lookups.flops, lookups.bytes):
            if len(column) != len(duration):
                raise checks.mistake(trace.name, "rows", len(duration), len(column))
        unsure = int(np.count_nonzero(gpu_work.damaged(trace).values))
        return checks.totals_of(gpu_work.kinds(trace), duration, unsure)

    def dict_line_columns(self) -> Mapping[str, Any]:
        """The columns of dict lines: the ranges around the launch, none from forward calls."""
        lookups = self._lookups
        # The coverage needs large arrays that dict lines do not; the copy releases them.
        copy = self._copy()
        copy._lookups.tree_without_user_ranges = lookups.tree_without_user_ranges
        self._coverage[True] = copy._cover_alone()
        del copy
        operators = lookups.operators
        return {
            "kShortName": self.column("kernel"),
            "kDuration": self.column("sil"),
            "layer": lookups.layer(lookups.own_paths),
            "trace": lookups.frames(lookups.own_paths),
            "reprMarkers": lookups.markers(Kind.MODULE),
            "marker": lookups.markers(Kind.ARGUMENT),
            "mod": operators.mapped(itemgetter(0)),
            "op": operators.mapped(itemgetter(1)),
            "device": self.column("device"),
            "stream": self.column("stream"),
            "grid": self.column("grid"),
            "block": self.column("block"),
            "kLongName": self.column("name"),
            "dir": self.column("dir"),
            "tid": self.column("tid"),
            "seqMarker": lookups.seq_markers(),
            "seqId": as_lists(lookups.numbers[0]),
            "subSeqId": self.column("sub"),
            "altSeqId": self.column("altseq"),
        }


def _of_config(name: str) -> Callable[[Lookups], Column]:
    """Makes a column of a field of the launch configuration."""

    def make(lookups: Lookups) -> Column:
        kernels = lookups.trace.kernels
        return RepeatedInts(kernels.config, getattr(kernels.configs, name))

    return make


def _idx(lookups: Lookups) -> Ints:
    return Ints(np.arange(1, len(lookups.trace.kernels) + 1, dtype=np.int32))


def _end(lookups: Lookups) -> Ints:
    kernels = lookups.trace.kernels
    end = kernels.start + kernels.duration
    np.copyto(end, NO_TIME, where=kernels.duration < 0)
    return Ints(end, none=NO_TIME)


def _launch_start(lookups: Lookups) -> Ints:
    trace = lookups.trace
    return Ints(take(trace.launches.start, trace.kernels.launch, NO_TIME), none=NO_TIME)


def _dir(lookups: Lookups) -> Values:
    attribution = lookups.attribution
    if attribution.in_engine is not None:
        return Values(lookups.direction - np.int32(1), _DIRECTIONS)
    of_node = attribution.direction_of_node - np.int32(1)
    return SharedValues(lookups.node, of_node, _DIRECTIONS)


def _tid(lookups: Lookups) -> RepeatedInts:
    trace = lookups.trace
    return RepeatedInts(lookups.thread + np.int32(1), np.append(np.int32(-1), trace.threads))


def _sub(lookups: Lookups) -> Ints:
    """The index of each kernel in its run of equal sequence number and operators."""
    trace = lookups.trace
    seq, _ = lookups.numbers
    ids = take(lookups.operators.id_of_row, lookups.operators.rows)
    return Ints(_link.sub(trace.kernels.process, seq.values, ids, len(trace.processes)))


def _triton(lookups: Lookups) -> Values:
    """What the range around the launch of a Triton kernel records of it."""
    attribution = lookups.attribution
    meanings = attribution.meanings
    ranks = np.array([_path.NO_RANK if m.triton is None else 0 for m in meanings], np.uint8)
    labels = take(attribution.ranges.label, attribution.frame_range)
    best = take(_path.best(attribution.frame_parent, labels, ranks), lookups.frame)
    return Values(take(labels, best), [m.triton for m in meanings]).mapped(lambda text: text)


_MAKERS: Final[dict[str, Callable[[Lookups], Column]]] = {
    "idx": _idx,
    "seq": lambda lookups: lookups.numbers[0],
    "altseq": lambda lookups: lookups.numbers[1],
    "tid": _tid,
    "layer": lambda lookups: lookups.layer(lookups.meaning_paths).mapped(each_part_once),
    "trace": lambda lookups: lookups.source,
    "dir": _dir,
    "sub": _sub,
    "mod": lambda lookups: lookups.costs.mod,
    "op": lambda lookups: lookups.costs.op,
    "kernel": lambda lookups: lookups.names[1],
    "params": lambda lookups: lookups.costs.params,
    "sil": lambda lookups: Ints(lookups.trace.kernels.duration),
    "tc": lambda lookups: lookups.costs.tc,
    "device": _of_config("device"),
    "stream": _of_config("stream"),
    "grid": _of_config("grid"),
    "block": _of_config("block"),
    "flops": lambda lookups: lookups.flops,
    "bytes": lambda lookups: lookups.bytes,
    "tc_reason": lambda lookups: lookups.costs.tc_reason,
    "exact": lambda lookups: lookups.exact,
    "line": lambda lookups: lookups.source.mapped(lookups.lines.line),
    "library_line": lambda lookups: lookups.source.mapped(lookups.lines.library_line),
    "name": lambda lookups: lookups.names[0],
    "class": lambda lookups: kernel_types.classes(lookups.names[0], gpu_work.kinds(lookups.trace)),
    "compute_type": lambda lookups: kernel_types.compute_types_of(lookups.names[0], lookups.costs),
    "helper": lambda of: kernel_types.helpers(of.names[0], of.costs),
    "call": lambda lookups: kernel_types.call_numbers(lookups.calls),
    "start": lambda lookups: Ints(lookups.trace.kernels.start, none=NO_TIME),
    "end": _end,
    "kind": lambda lookups: gpu_work.kinds(lookups.trace),
    "pid": lambda lookups: Ints(take(lookups.trace.processes, lookups.trace.kernels.process)),
    "context": _of_config("context"),
    "correlation": lambda lookups: Ints(lookups.trace.kernels.correlation),
    "launch": lambda lookups: gpu_work.launch_names(lookups.trace),
    "launch_start": _launch_start,
    "registers": _of_config("registers"),
    "shared_memory": _of_config("shared_memory"),
    "graph_id": _of_config("graph_id"),
    "graph_node": _of_config("graph_node"),
    "ranges": lambda lookups: lookups.ranges,
    "launch_ranges": lambda lookups: lookups.launch_ranges,
    "home_range": lambda lookups: lookups.user_range(lookups.meaning),
    "range": lambda lookups: lookups.user_range(lookups.attribution.launch_frame_of_kernel),
    "phases": lambda lookups: open_at_launch(lookups.trace),
    "phase": phases.phase_of_kernels,
    "step": lambda lookups: lookups.steps().column(),
    "path": lambda lookups: Ints(lookups.node),
    "copied": lambda lookups: gpu_work.copied(lookups.trace),
    "copy_direction": lambda lookups: gpu_work.copy_directions(lookups.trace),
    "copy_memory": lambda lookups: gpu_work.copy_memory(lookups.trace),
    "damaged": lambda lookups: gpu_work.damaged(lookups.trace),
}


def open_at_launch(trace: Trace) -> Values:
    """[kernels] The phases of the process that were open at the launch, outermost first.

    Phases may overlap in any way.
    """
    phases, launches = trace.phases, trace.launches
    if not len(phases):
        return Values(np.zeros(len(trace.kernels), np.int32), [()])
    ids: dict[tuple[str, ...], int] = {(): 0}
    of_launch = np.zeros(len(launches), np.int32)
    process_of_phase = take(trace.process_of_thread, phases.thread)
    threads_known = launches.thread.min(initial=0) >= 0
    is_one = threads_known and len(trace.processes) == 1
    process_of_call = take(trace.process_of_thread, launches.thread)
    calls_of = {} if is_one else dict(rows_by(process_of_call))
    calls_of.pop(-1, None)
    for process, rows in rows_by(process_of_phase):
        # A slice makes views; rows, copies.
        calls = slice(None) if is_one else calls_of.get(process, np.empty(0, np.int64))
        tree = _nest.Tree(phases.start[rows], phases.end[rows])
        node, parent, label = tree.nodes(phases.label[rows], launches.start[calls])
        chains: list[tuple[str, ...]] = []
        for above, number in zip(parent.tolist(), label.tolist(), strict=True):
            name = label_text(trace.labels[number])
            chains.append((*(chains[above] if above >= 0 else ()), name))
        of_node = np.array([ids.setdefault(chain, len(ids)) for chain in chains], np.int32)
        of_launch[calls] = take(of_node, node, 0)
    return Values(take(of_launch, trace.kernels.launch, 0), list(ids))
