"""About: the metadata of a file. Snapshot: the state and history of torch's CUDA allocator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.model.arrays import Int32, Int64
from fastprof.model.columns import Values

# In a trace of torch.profiler, and in the facts of a run: the steps before the recording.
UNRECORDED: Final = "fastprof_unrecorded"
AFTER: Final = "fastprof_after"
# In a trace of torch.profiler: the annotations of nodes of CUDA graphs, lists by id of the node.
GRAPH_ANNOTATIONS: Final = "fastprof_graph_annotations"


def _no_int64() -> Int64:
    return np.empty(0, np.int64)


def _no_int32() -> Int32:
    return np.empty(0, np.int32)


@dataclass()
class ProfilerSteps:
    """Training steps: the ranges `ProfilerStep#N` of torch.profiler's schedule.

    Attributes
    ----------
    number : int64 [steps], N
    start, end : int64 [steps], ns on the trace's clock, in order of start. The end of an unclosed
        step is the largest int64.
    pid : int64 [steps], the process, -1 if not recorded
    """

    number: Int64 = field(default_factory=_no_int64)
    start: Int64 = field(default_factory=_no_int64)
    end: Int64 = field(default_factory=_no_int64)
    pid: Int64 = field(default_factory=_no_int64)

    def __len__(self) -> int:
        return len(self.number)


# The name of each format, see `About.format`.
FORMATS: Final = {
    "nsys": "Nsight Systems export",
    "nvprof": "NVProf file",
    "rocpd": "rocpd database",
    "rpd": "rocmProfileData file",
    "kineto": "torch.profiler trace",
    "rocprof": "rocprofv3 JSON",
    "dict": "dict lines",
}

# Those of AMD's profilers.
OF_AMD: Final = ("rocpd", "rpd", "rocprof")

# Further values of Memory.device_type, for kinds of memory that only Nsight Systems records.
MANAGED: Final = 1000  # of CPU and GPU
PINNED: Final = 1001  # of the CPU, locked for copies


@dataclass()
class Memory:
    """Allocations and frees, one row per event, in file order.

    Attributes
    ----------
    time : int64 [events], ns on the trace's clock; the smallest int64 if not recorded
    address : int64 [events], -1 if not recorded
    bytes : int64 [events], negative for a free; the smallest int64 if not recorded
    device_type : int32 [events], 0 CPU, 1 CUDA, ... (c10::DeviceType), MANAGED or PINNED, -1 if not
        recorded
    device : int32 [events], -1 for the CPU and if not recorded
    total_allocated, total_reserved : int64 [events], bytes of the device after the event, -1 if not
        recorded
    pid, tid : int64 [events], process and thread, -1 if not recorded
    correlation : int64 [events], the id of the API call, -1 if not recorded
    """

    time: Int64 = field(default_factory=_no_int64)
    address: Int64 = field(default_factory=_no_int64)
    bytes: Int64 = field(default_factory=_no_int64)
    device_type: Int32 = field(default_factory=_no_int32)
    device: Int32 = field(default_factory=_no_int32)
    total_allocated: Int64 = field(default_factory=_no_int64)
    total_reserved: Int64 = field(default_factory=_no_int64)
    pid: Int64 = field(default_factory=_no_int64)
    tid: Int64 = field(default_factory=_no_int64)
    correlation: Int64 = field(default_factory=_no_int64)

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Distributed:
    """Backend, rank and world size of a process; None if not recorded.

    groups : the ranks of each process group, by name; empty if not recorded
    """

    backend: str | None
    rank: int | None
    world_size: int | None
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class GpuFigures:
    """Properties of a GPU recorded in a file, other than its name; None if not recorded.

    Attributes
    ----------
    sms : int or None
        Multiprocessors; for AMD, compute units.
    clock : int or None
        Maximum core clock in Hz.
    bandwidth : int or None
        Memory bandwidth in bytes per second.
    capability : str or None
        Compute capability, such as "8.0".
    memory : int or None
        Memory size in bytes.
    """

    sms: int | None = None
    clock: int | None = None
    bandwidth: int | None = None
    capability: str | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Unrecorded:
    """The steps before a recording, without the recorder.

    Parameters
    ----------
    steps : how many
    median_ns : their median length on the host, from end to end, ns
    after : the same for the steps after the recording, if they are known
    """

    steps: int
    median_ns: int
    after: Unrecorded | None = None

    def facts(self) -> dict[str, Any]:
        """As `unrecorded_of` reads them; `after` only if it is known."""
        known: dict[str, Any] = {"steps": self.steps, "median_ns": self.median_ns}
        return known if self.after is None else {**known, "after": self.after.facts()}


def unrecorded_of(facts: object, after: object = None) -> Unrecorded | None:
    """What `fastprof run` or `capture` has kept; None if it is nothing, or damaged.

    Parameters
    ----------
    facts : of the steps before the recording
    after : of those after it
    """
    if not isinstance(facts, dict):
        return None
    steps, ns = positive(facts.get("steps")), positive(facts.get("median_ns"))
    return Unrecorded(steps, ns, unrecorded_of(after)) if steps and ns else None


def median_unrecorded(recordings: Iterable[Unrecorded | None]) -> Unrecorded | None:
    """Of several processes or recordings, without the unknown ones; None if none is left."""
    known = sorted(filter(None, recordings), key=lambda one: one.median_ns)
    return known[(len(known) - 1) // 2] if known else None


def positive(value: object) -> int | None:
    """The value if it is a positive integer, else None: files write 0 for unknown."""
    return value if type(value) is int and value > 0 else None


@dataclass()
class About:
    """The metadata of a file. Missing data is None, or absent from its dict.

    Attributes
    ----------
    format : str
        nsys, nvprof, rocpd, rpd, kineto, rocprof or dict.
    tool : str or None
        The program that wrote the file.
    tool_version, schema_version : str or None
        Version of the program, and of the file's schema.
    versions : dict of str to str
        Versions of other software, by the file's names for them: cuda_runtime_version, ...
    settings : dict of str to Any
        Settings of the profiler and other single values outside the events, by the file's names.
        For Nsight Systems, only settings of CUDA and the capture; no environment variables.
    gpus : dict of int to str
        Device, as in the column `device`, to the name of the GPU. Devices with an ambiguous name
        are absent.
    gpu_figures : dict of int to GpuFigures
        Device to the GPU's other properties.
    distributed : Distributed or None
    unrecorded : Unrecorded or None
    diagnostics : list of str
        Warnings of the recorder that events of CUDA or NVTX may be missing.
    processes : dict of int to str
        Process id to name, of processes with ranges or launches.
    threads : dict of (int, int) to str
        Process and thread id to name, of threads with ranges or launches.
    steps : Steps
    memory : Memory
    read_by : dict of str to str
        For SQLite files, each table that was read: why it was read through SQLite, or "" if it was
        read from the file's pages.
    """

    format: str
    tool: str | None = None
    tool_version: str | None = None
    schema_version: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    gpus: dict[int, str] = field(default_factory=dict)
    gpu_figures: dict[int, GpuFigures] = field(default_factory=dict)
    distributed: Distributed | None = None
    unrecorded: Unrecorded | None = None
    diagnostics: list[str] = field(default_factory=list)
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    steps: ProfilerSteps = field(default_factory=ProfilerSteps)
    memory: Memory = field(default_factory=Memory)
    read_by: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SnapshotSegments:
    """Memory that the allocator holds; [segments], sizes in bytes, -1 if not recorded."""

    device: Int32
    address: Int64
    size: Int64
    stream: Int64

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class SnapshotBlocks:
    """The parts of segments; [blocks], in order of segments.

    Parameters
    ----------
    segment : row of the segment
    address, size : of the block
    requested : bytes that the program requested, the size if not recorded
    state : active_allocated, active_pending_free, active_awaiting_free or inactive
    stack : index into `Snapshot.stacks`
    category : the block's category if recorded
    """

    segment: Int32
    address: Int64
    size: Int64
    requested: Int64
    state: Values
    stack: Int32
    category: Values

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class SnapshotEvents:
    """The history, oldest first in each device; [events], -1 if not recorded.

    Parameters
    ----------
    action : alloc, free_requested, free_completed, segment_alloc, segment_free, segment_map,
        segment_unmap, oom or snapshot
    address : of the block or segment
    size : bytes
    free : bytes that CUDA has left, of `oom`
    time : ns
    stack : index into `Snapshot.stacks`
    category : the block's category if recorded
    """

    device: Int32
    action: Values
    address: Int64
    size: Int64
    free: Int64
    time: Int64
    stream: Int64
    stack: Int32
    category: Values

    def __len__(self) -> int:
        return len(self.size)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A memory snapshot.

    Parameters
    ----------
    name : the file
    stacks : the distinct stacks, `FILE:LINE FUNCTION` of each frame, outermost first; frames of
        C++ have no line
    settings : the allocator's settings by name
    """

    name: str
    segments: SnapshotSegments
    blocks: SnapshotBlocks
    events: SnapshotEvents
    stacks: list[tuple[str, ...]]
    settings: dict[str, Any]
