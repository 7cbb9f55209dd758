"""Rows of the kernel and copy tables for any step, from the GPU work of the recorded step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from bench.identity import CONTEXT, Identity
from bench.placement import Ints, Placement, column
from bench.recorder import TO_GPU, GpuWork
from bench.strings import StringTable

Row = tuple[Any, ...]

LAUNCH_LATENCY = 4_200
GAP_IN_STREAM = 900
SPREAD_OF_DURATION = 0.04
PINNED_MEMORY, DEVICE_MEMORY = 1, 2

KERNEL_COLUMNS = (
    "start",
    "end",
    "correlationId",
    "deviceId",
    "contextId",
    "globalPid",
    "streamId",
    "gridId",
    "demangledName",
    "shortName",
    "mangledName",
    "registersPerThread",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "staticSharedMemory",
    "dynamicSharedMemory",
)
KERNEL_CONSTANTS = {
    "greenContextId": 0,
    "launchType": 1,
    "cacheConfig": 1,
    "localMemoryPerThread": 0,
    "localMemoryTotal": 250_871_808,
    "sharedMemoryExecuted": 102_400,
    "sharedMemoryLimitConfig": 0,
}
COPY_COLUMNS = (
    "start",
    "end",
    "correlationId",
    "deviceId",
    "contextId",
    "globalPid",
    "streamId",
    "bytes",
    "copyKind",
    "srcKind",
    "dstKind",
)
COPY_CONSTANTS = {"greenContextId": 0, "copyCount": 1}


@dataclass(frozen=True)
class GpuRows:
    """Rows by start, with KERNEL_COLUMNS and COPY_COLUMNS; the GPU is idle from `end` on, ns."""

    kernels: list[Row]
    copies: list[Row]
    end: int


class GpuTemplate:
    """Kernels and copies of one process, ordered by launch."""

    def __init__(self, work: Sequence[GpuWork], identity: Identity, strings: StringTable) -> None:
        owner = (identity.rank, CONTEXT, identity.global_pid)
        self.launched = column(item.launched for item in work)
        self.correlations = column(item.correlation for item in work)
        self.durations = column(item.duration for item in work)
        self.streams = column(item.stream for item in work)
        self.is_kernel = np.array([item.kernel is not None for item in work], dtype=bool)
        self.values = [
            (*owner, item.stream, *(kernel_values(i, item, strings) or copy_values(item)))
            for i, item in enumerate(work)
        ]
        self.n_kernels = int(self.is_kernel.sum())

    def play(
        self, placement: Placement, first_correlation: int, random: np.random.Generator
    ) -> GpuRows:
        """The rows of one step. In each step, one kernel has a duration of 0."""
        durations = self.vary_durations(random)
        ready = placement.at(self.launched) + LAUNCH_LATENCY
        starts = np.empty_like(ready)
        for stream in np.unique(self.streams):
            members = self.streams == stream
            starts[members] = starts_in_order(ready[members], durations[members], GAP_IN_STREAM)
        ends = starts + durations
        correlations = self.correlations + first_correlation
        rows = [
            (start, end, correlation, *values)
            for start, end, correlation, values in zip(
                starts.tolist(), ends.tolist(), correlations.tolist(), self.values, strict=True
            )
        ]
        return GpuRows(
            kernels=by_start(rows, self.is_kernel),
            copies=by_start(rows, ~self.is_kernel),
            end=int(ends.max(initial=placement.begin)),
        )

    def vary_durations(self, random: np.random.Generator) -> Ints:
        factors = 1 + SPREAD_OF_DURATION * random.standard_normal(len(self.durations))
        durations = np.maximum((self.durations * factors).astype(np.int64), 1)
        if self.n_kernels:
            durations[random.choice(np.flatnonzero(self.is_kernel))] = 0
        return durations


def starts_in_order(ready: Ints, durations: Ints, gap: int) -> Ints:
    """The start times, ns, of work that a stream runs in order.

    Each piece starts when it is ready, and at least `gap` ns after the end of the previous one.
    """
    busy_before = np.cumsum(durations + gap) - (durations + gap)
    return np.maximum.accumulate(ready - busy_before) + busy_before


def by_start(rows: list[Row], chosen: np.ndarray) -> list[Row]:
    return sorted((rows[i] for i in np.flatnonzero(chosen).tolist()), key=itemgetter(0))


def kernel_values(i: int, work: GpuWork, strings: StringTable) -> Row:
    """The columns of a kernel that are the same in each step, from gridId on; () for a copy."""
    kernel = work.kernel
    if kernel is None:
        return ()
    name = strings.id_of(kernel.name)
    return (
        i,
        name,
        strings.id_of(kernel.short_name),
        None if "(" in kernel.name else name,
        kernel.registers,
        *kernel.grid,
        *kernel.block,
        *kernel.shared,
    )


def copy_values(work: GpuWork) -> Row:
    """The columns of a copy that are the same in each step, from bytes on."""
    ends = (PINNED_MEMORY, DEVICE_MEMORY)
    source, target = ends if work.copy_kind == TO_GPU else reversed(ends)
    return (work.n_bytes, work.copy_kind, source, target)
