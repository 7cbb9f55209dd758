"""Trace: what a source read out of one file, as columns of kernels, launches and ranges.

Rows of all three are in order of time. Times are ns, int64, on the file's own clock. -1 means
"none" in every column. Nothing here depends on the format that the trace came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import Int32 as Int32
from fastprof.model.arrays import Int64 as Int64
from fastprof.model.metadata import About

# The first character of a label that is not just the range's text (csrc/fp_column.h).
OF_TORCH, AS_IS = "\1", "\2"
# ... that what follows is an event of the PyTorch profiler (fastprof.model.markers.kineto).
OF_EVENT = "\3"


def label_text(label: str) -> str:
    """The text that a label stands for."""
    return label[1:] if label.startswith((OF_TORCH, AS_IS)) else label


# The end of a range that was never closed.
NEVER = np.iinfo(np.int64).max


class Activity(IntEnum):
    """What a row of `Kernels` is."""

    KERNEL = 0
    GRAPH = 1  # the launch of a whole CUDA graph, whose kernels the trace does not tell
    MEMCPY = 2
    MEMSET = 3


# CUpti_ActivityMemcpyKind: from where to where. H host, D device, A array, P another device.
COPY_KINDS = ("", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP")


@dataclass
class Configs:
    """What GPU work is launched with: a row for each distinct combination, of which there are few.

    `name` (demangled) indexes Trace.strings; `kind` is one of `Activity`; `copy_kind` (an index
    into COPY_KINDS) is known of copies, None where these were not read.
    """

    device: Int32
    context: Int32
    stream: Int32
    name: Int32
    grid: Int32  # [configs, 3]
    block: Int32  # [configs, 3]
    registers: Int32
    shared_memory: Int32  # static + dynamic, bytes a block
    graph_id: Int32
    graph_node: Int64
    kind: Int32
    copy_kind: Int32 | None = None

    def __len__(self) -> int:
        return len(self.kind)


@dataclass
class Kernels:
    """GPU work, one row a kernel, CUDA graph launch, memory copy or memset.

    `process` indexes Trace.processes, `config` the rows of `configs`, `launch` Launches (the API
    call that launched it), `origin` Launches too: for a node of a CUDA graph, the call that created
    the node. `copied` (bytes) is known of copies and memsets, None where these were not read.
    """

    start: Int64
    duration: Int64
    process: Int32
    correlation: Int64
    config: Int32  # never -1
    configs: Configs
    launch: Int32
    origin: Int32 | None  # None where no kernel's node was seen being created
    told_range: Int32 | None = None  # the range that the trace itself says, a row of Ranges
    external_id: Int64 | None = None  # of the range that torch.profiler says launched it
    damaged: npt.NDArray[np.bool_] | None = None  # rows whose duration cannot be true: it is -1
    copied: Int64 | None = None

    def __len__(self) -> int:
        return len(self.start)


@dataclass
class Launches:
    """API calls that launched GPU work, or put it into a graph. `thread` indexes Trace.threads."""

    start: Int64
    thread: Int32
    name: Int32  # index into Trace.strings

    def __len__(self) -> int:
        return len(self.start)


@dataclass
class Captured:
    """GPU work that was put into a CUDA or HIP graph instead of being started, in order of time.

    `launch` indexes Launches: the API call. `graph` numbers the captures from 0. `name` (demangled)
    indexes Trace.strings, -1 where the call does not tell its kernel; `kind` is one of `Activity`.
    `files` has the name of the file of each capture, where that is another than the trace's.
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
        """The name of the file that a capture came from, None for the trace's own."""
        return self.files[graph] if graph < len(self.files) else None


@dataclass(frozen=True)
class Borrowed:
    """How many of a Trace's rows, the last ones, come from the captures of its graphs."""

    ranges: int
    threads: int
    processes: int


@dataclass
class Ranges:
    """Named ranges of a thread, in order of (start ascending, end descending).

    `label` indexes Trace.labels; `seq` and `op_id` are the numbers that torch wrote behind it.
    """

    start: Int64
    end: Int64
    thread: Int32
    label: Int32
    seq: Int64
    op_id: Int64

    def __len__(self) -> int:
        return len(self.label)


@dataclass
class Trace:
    """One capture. See the module's text for units and the meaning of -1."""

    name: str
    kernels: Kernels
    launches: Launches
    ranges: Ranges
    phases: Ranges  # ranges that ended on another thread: of the process, not of a call chain
    labels: list[str]  # range names, see label_text; OF_TORCH in front: torch wrote a suffix
    strings: list[str | None]
    threads: Int32 | Int64  # thread id as the operating system knows it
    process_of_thread: Int32  # index into processes
    processes: Int32  # process id
    warnings: list[str] = field(default_factory=list)
    # The forward range of each backward range, where the trace itself says so: rows of Ranges, -1.
    told_forward: Int32 | None = None
    about: About = field(default_factory=lambda: About("unknown"))
    captured: Captured | None = None  # None where no graph was captured
    borrowed: Borrowed = Borrowed(0, 0, 0)

    @property
    def n_own_ranges(self) -> int:
        """How many ranges are of this file: the first ones."""
        return len(self.ranges) - self.borrowed.ranges

    def forget_times(self) -> None:
        """Free what nothing needs once ranges are nested: their times."""
        self.ranges.start = self.ranges.end = np.empty(0, np.int64)

    def forget_threads(self) -> None:
        """Free what nothing needs after attribution: ranges keep their labels and numbers only."""
        self.ranges.thread = np.empty(0, np.int32)
