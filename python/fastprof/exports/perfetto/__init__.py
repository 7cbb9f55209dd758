"""Perfetto traces: protobuf packets of Perfetto's TracePacket schema."""

from __future__ import annotations

from typing import BinaryIO

from fastprof.analysis.registry import Where
from fastprof.exports.events import HostRows, SelectedWork, read
from fastprof.exports.perfetto import packets as proto
from fastprof.exports.perfetto.host import write_gpu, write_host
from fastprof.exports.perfetto.packets import clock_packets
from fastprof.exports.perfetto.tracks import (
    TraceOutput,
    write_ended_elsewhere,
    write_memory,
    write_steps,
)
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData


def write(
    profile: ProfileData, file: BinaryIO, steps: str | None = None, where: Where | None = None
) -> None:
    """Write a profile as a Perfetto trace.

    Parameters
    ----------
    file : binary file
    steps : what a step is, see `Profile.find_steps`
    where : the GPU work to export, and the host's work during it

    Raises
    ------
    BadInputError
        The profile is dict lines, which contain no times.
    ReportError
        A condition of `where` is malformed.
    StepsError
        There are no such steps.
    """
    work, rows = read(profile, where)
    kernels = profile.find_steps(steps)
    memory = profile.memory_events
    starts = [work.start, profile.ranges.start[rows.ranges], profile.api.start[rows.api]]
    starts += [profile.ranges.ended_elsewhere.start, memory.time[memory.time != NO_TIME]]
    starts.append(kernels.start[kernels.start != NO_TIME])
    first = min(int(start.min(initial=NEVER)) for start in starts)
    output = TraceOutput(first if first != NEVER else 0)
    processes = _processes(work, output)
    write_steps(kernels, work, output, processes)
    add_work(work, rows, output, processes)
    file.write(clock_packets(output.origin))
    output.flush(file)


def add_work(
    work: SelectedWork, rows: HostRows, output: TraceOutput, processes: dict[int, int]
) -> None:
    """Add GPU work, the host's ranges and API calls, and memory.

    processes : the track of each process by its number
    """
    write_gpu(work, output, processes)
    write_host(work, rows, output, processes)
    write_ended_elsewhere(work.profile, work, output)
    write_memory(work.profile, output, processes)


def _processes(work: SelectedWork, output: TraceOutput) -> dict[int, int]:
    """The track of each process by its number; 0 for an unknown process."""
    profile = work.profile
    pids = {*profile.api.threads.pid.tolist(), *work.places[:, 0].tolist()}
    pids |= {*profile.memory_events.pid.tolist()}
    processes = {-1: 0}
    for pid in sorted(pids - {-1}):
        name = profile.about.processes.get(pid) or "process"
        parts = []
        if 0 < pid < 1 << 31:
            parts = [proto.message(3, proto.number(1, pid), proto.text(6, name))]
        processes[pid] = output.tracks.add(f"{name} {pid}", 0, *parts)
    return processes
