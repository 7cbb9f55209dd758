"""Trace and Recording: the contents of one trace file as columns, independent of its format.

Rows of kernels, launches and ranges are sorted by time. Times are ns, int64, on the clock of the
file. -1 means "none" in every column.
"""

from __future__ import annotations

from dataclasses import field, fields, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.metadata import About
from fastprof.model.timeline import RecordedHost

# The first character of a label that is more than the plain text of a range (fp_column.h).
OF_TORCH, AS_IS = "\1", "\2"
# An event of the PyTorch profiler follows (fastprof.model.markers.kineto).
OF_EVENT = "\3"


def label_text(label: str) -> str:
    """The text of a label, without its prefix."""
    return label[1:] if label.startswith((OF_TORCH, AS_IS)) else label


# The end of a range that was never closed.
NEVER = np.iinfo(np.int64).max
# The unknown time. Times may be negative: each trace has its own epoch.
NO_TIME = np.iinfo(np.int64).min


class Activity(IntEnum):
    """The kind of a row of `Kernels`."""

    KERNEL = 0
    GRAPH = 1  # the launch of a CUDA graph that was traced as one unit, without its kernels
    MEMCPY = 2
    MEMSET = 3


# CUpti_ActivityMemcpyKind: source and target. H host, D device, A array, P peer device.
# CUPTI's kinds of memory (CUpti_ActivityMemoryKind), by number; the last is HIP's.
MEMORY_KINDS = (
    *("", "pageable", "pinned", "device", "array", "managed", "device static", "managed static"),
    "host",
)
# The last three are migrations of unified memory, which nsys numbers so (ENUM_CUDA_MEMCPY_OPER).
COPY_KINDS = (
    *("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"),
    *("unified HtoD", "unified DtoH", "unified DtoD"),
)


@dataclass()
class Configs:
    """Launch configurations of GPU work: one row per distinct combination, of which there are few.

    `name` (demangled) indexes Trace.strings; `kind` is an `Activity`; `copy_kind` indexes
    COPY_KINDS, -1 for kernels, and is None if copies were not read. `source` and `target` index
    MEMORY_KINDS, -1 if unknown; a memset has no source.
    """

    device: Int32
    context: Int32
    stream: Int32
    name: Int32
    grid: Int32  # [configs, 3]
    block: Int32  # [configs, 3]
    registers: Int32
    shared_memory: Int32  # static + dynamic, bytes per block
    graph_id: Int32
    graph_node: Int64
    kind: Int32
    copy_kind: Int32 | None = None
    source: Int32 | None = None
    target: Int32 | None = None
    annotation: Int32 | None = None  # of nodes of graphs: index into Trace.strings; None: no node

    def __len__(self) -> int:
        return len(self.kind)


@dataclass()
class Kernels:
    """GPU work: one row per kernel, unexpanded CUDA graph, memory copy or memset.

    `process` indexes Trace.processes and `config` the rows of `configs`. `launch` and `origin`
    index Launches: the API call that launched the work and, for a node of a CUDA graph, the call
    that created the node.
    """

    start: Int64
    duration: Int64
    process: Int32
    correlation: Int64
    config: Int32  # never -1
    configs: Configs
    launch: Int32
    origin: Int32 | None  # None if no node creation was recorded
    recorded_range: Int32 | None = None  # the range that the file links the kernel to
    external_id: Int64 | None = None  # torch.profiler's id of the range that launched the kernel
    damaged: npt.NDArray[np.bool_] | None = None  # impossible durations, which are -1
    copied: Int64 | None = None  # bytes of copies and memsets; None if copies were not read

    def __len__(self) -> int:
        return len(self.start)


@dataclass()
class Launches:
    """API calls that launched GPU work or added it to a graph."""

    start: Int64
    thread: Int32  # index into Trace.threads
    name: Int32  # index into Trace.strings

    def __len__(self) -> int:
        return len(self.start)


@dataclass()
class LostLaunches:
    """Calls that launch a kernel of which the trace has no GPU work, in order of time.

    Calls that add a kernel to a graph are not among them.

    Parameters
    ----------
    start : int64 [calls], ns
    process : int32 [calls], index into Trace.processes, -1 if unknown
    thread : int32 [calls], index into Trace.threads, -1 if unknown or if it launched nothing else
    """

    start: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    process: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    thread: Int32 = field(default_factory=lambda: np.empty(0, np.int32))

    def __len__(self) -> int:
        return len(self.start)

    def take(self, wanted: Bools) -> LostLaunches:
        """Some of them."""
        return LostLaunches(self.start[wanted], self.process[wanted], self.thread[wanted])


@dataclass()
class Captured:
    """GPU work that was captured into a CUDA or HIP graph, in order of time.

    `launch` indexes Launches. `graph` numbers the captures from 0. `name` (demangled) indexes
    Trace.strings, -1 if the API call does not record its kernel; `kind` is an `Activity`.
    `files` holds the file name of each capture that came from another file than the trace.
    """

    launch: Int32
    graph: Int32
    name: Int32
    grid: Int32  # [calls, 3]
    block: Int32  # [calls, 3]
    kind: Int32
    files: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.launch)

    def file_of(self, graph: int) -> str | None:
        """The file name of a capture, None if it is in the trace itself."""
        return self.files[graph] if graph < len(self.files) else None


@dataclass(frozen=True)
class Appended:
    """How many of the last rows of a trace come from separate graph-capture files.

    `start`, `end` and `thread` are those of the ranges, as in `Ranges`.
    """

    start: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    end: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    thread: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    threads: int = 0
    processes: int = 0

    @property
    def ranges(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class RangeNames:
    """The names of ranges: `label` indexes Trace.labels, `seq` and `op_id` are torch's numbers."""

    label: Int32
    seq: Int64
    op_id: Int64

    def __len__(self) -> int:
        return len(self.label)


@dataclass()
class Ranges:
    """Named ranges of threads, ordered by (start ascending, end descending).

    `label` indexes Trace.labels; `seq` and `op_id` are the numbers that torch appends to names.
    """

    start: Int64
    end: Int64
    thread: Int32
    label: Int32
    seq: Int64
    op_id: Int64

    def __len__(self) -> int:
        return len(self.label)


def _no_int64() -> Int64:
    return np.empty(0, np.int64)


def _no_int32() -> Int32:
    return np.empty(0, np.int32)


@dataclass()
class UserRanges:
    """Some of the ranges, such as the user's own, in order of start.

    Columns are those of Ranges.
    """

    start: Int64 = field(default_factory=_no_int64)
    end: Int64 = field(default_factory=_no_int64)
    thread: Int32 = field(default_factory=_no_int32)
    label: Int32 = field(default_factory=_no_int32)

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True)
class MessageNumbers:
    """Numbers of collectives in their process group, as torch.profiler records them.

    Parameters
    ----------
    row : int32 [numbers], rows of the ranges, ascending
    number : int32 [numbers]
    """

    row: Int32 = field(default_factory=_no_int32)
    number: Int32 = field(default_factory=_no_int32)

    def numbers_of(self, row: Int32) -> Int32:
        """The number of each range, -1 for none."""
        place = np.searchsorted(self.row, row)
        fits = np.append(self.row, np.int32(-1))[place] == row
        result: Int32 = np.where(fits & (row >= 0), np.append(self.number, 0)[place], -1).astype(
            np.int32
        )
        return result


@dataclass(kw_only=True)
class Trace:
    """One trace without its ranges, which `Attribution` holds. Units: see the module docstring."""

    name: str
    kernels: Kernels
    launches: Launches
    phases: Ranges  # ranges that ended on another thread: they belong to a process, not to a thread
    labels: list[str]  # range names, see label_text
    strings: list[str | None]
    threads: Int32 | Int64  # thread ids of the operating system
    process_of_thread: Int32  # index into processes
    processes: Int32  # process ids
    warnings: list[str] = field(default_factory=list)
    about: About = field(default_factory=lambda: About("unknown"))
    captured: Captured | None = None  # None if no graph was captured
    lost: LostLaunches = field(default_factory=LostLaunches)
    # Launches in Python functions of which the file lacks the callers; ascending.
    truncated: Int64 = field(default_factory=_no_int64)
    open_ranges: int = 0  # ranges that were open when the recording ended
    appended: Appended = Appended()
    user_ranges: UserRanges = field(default_factory=UserRanges)  # may mark steps
    # Ranges of data loaders and optimizers, which may mark steps too.
    step_marks: UserRanges = field(default_factory=UserRanges)
    message_numbers: MessageNumbers = field(default_factory=MessageNumbers)

    def keep_labels_of_phases(self) -> None:
        """Release the other labels: the meanings of ranges have what is needed of theirs."""
        used, place = np.unique(self.phases.label, return_inverse=True)
        self.labels = [self.labels[label] for label in used.tolist()]
        self.phases = replace(self.phases, label=place.ravel().astype(np.int32))


@dataclass(kw_only=True)
class Recording(Trace):
    """A trace as a reader returns it: with its ranges."""

    ranges: Ranges
    # The forward range of each backward range if the file links them: rows of `ranges`, or -1.
    recorded_forward: Int32 | None = None
    host: RecordedHost | None = None  # if requested, or if it takes little of the reading

    def without_ranges(self) -> Trace:
        """The same trace without its ranges. Columns are shared, not copied."""
        return Trace(**{each.name: getattr(self, each.name) for each in fields(Trace)})
