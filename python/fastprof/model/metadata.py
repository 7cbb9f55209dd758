"""About: what a file says of itself: who wrote it, GPUs, ranks, names, steps, memory events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fastprof.model.arrays import Int32, Int64


def _no_int64() -> Int64:
    return np.empty(0, np.int64)


def _no_int32() -> Int32:
    return np.empty(0, np.int32)


@dataclass
class Steps:
    """Training steps: the ranges `ProfilerStep#N` that a schedule of torch.profiler opens.

    Attributes
    ----------
    number : int64 [steps], N
    start, end : int64 [steps], ns on the trace's clock, in order of start. The end of a step that
        was never closed is the largest int64.
    pid : int64 [steps], the process, -1 where it is not told
    """

    number: Int64 = field(default_factory=_no_int64)
    start: Int64 = field(default_factory=_no_int64)
    end: Int64 = field(default_factory=_no_int64)
    pid: Int64 = field(default_factory=_no_int64)

    def __len__(self) -> int:
        return len(self.number)


@dataclass
class Memory:
    """Allocations and frees, one row each, in the order of the file.

    Attributes
    ----------
    time : int64 [events], ns on the trace's clock; the smallest int64 where it is not told
    address : int64 [events], -1 where it is not told
    bytes : int64 [events], negative for a free; the smallest int64 where it is not told
    device_type : int32 [events], 0 CPU, 1 CUDA, ... (c10::DeviceType), -1 where it is not told
    device : int32 [events], -1 for the CPU and where it is not told
    total_allocated, total_reserved : int64 [events], bytes of the device after the event, -1 where
        they are not told
    """

    time: Int64 = field(default_factory=_no_int64)
    address: Int64 = field(default_factory=_no_int64)
    bytes: Int64 = field(default_factory=_no_int64)
    device_type: Int32 = field(default_factory=_no_int32)
    device: Int32 = field(default_factory=_no_int32)
    total_allocated: Int64 = field(default_factory=_no_int64)
    total_reserved: Int64 = field(default_factory=_no_int64)

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Distributed:
    """The place of a process among the ranks of a run; None for what the trace does not say."""

    backend: str | None
    rank: int | None
    world_size: int | None


@dataclass(frozen=True)
class GpuFigures:
    """What a file says of a GPU besides its name; None for what it does not say.

    Attributes
    ----------
    sms : int or None
        Multiprocessors; of AMD compute units.
    clock : int or None
        Hz, the highest of its cores.
    bandwidth : int or None
        Bytes a second of its memory.
    capability : str or None
        Compute capability, as "8.0".
    memory : int or None
        Bytes.
    """

    sms: int | None = None
    clock: int | None = None
    bandwidth: int | None = None
    capability: str | None = None
    memory: int | None = None


def positive(value: object) -> int | None:
    """A number that a file says, None for what is none or says nothing: 0, or less."""
    return value if type(value) is int and value > 0 else None


@dataclass
class About:
    """What a file says of itself. What it does not say is None, or missing from its dict.

    Attributes
    ----------
    format : str
        nsys, nvprof, kineto or dict.
    tool : str or None
        The program that wrote the file.
    tool_version, schema_version : str or None
        Its version, and that of the file's layout.
    versions : dict of str to str
        Versions of other software, by the names that the file gives them: cuda_runtime_version, ...
    settings : dict of str to Any
        What was asked of the profiler, and other single values beside the events, by the names
        that the file gives them. Of Nsight Systems only what concerns CUDA and the capture: no
        environment variables.
    gpus : dict of int to str
        Device, as the column `device` has it, to the name of the GPU. A device whose name is not
        sure is not in it.
    gpu_figures : dict of int to GpuFigures
        Device to what the file says of the GPU besides its name.
    distributed : Distributed or None
    processes : dict of int to str
        Process id to name, of processes with ranges or launches.
    threads : dict of (int, int) to str
        Process and thread id to name, of threads with ranges or launches.
    steps : Steps
    memory : Memory
    read_by : dict of str to str
        Of SQLite files, the tables that were read: why SQLite had to step through them, or "" where
        they were read from the pages of the file.
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
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[tuple[int, int], str] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)
    memory: Memory = field(default_factory=Memory)
    read_by: dict[str, str] = field(default_factory=dict)
