"""Chrome JSON as torch.profiler writes it, for HTA, TensorBoard, trace viewers and fastprof."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from fastprof._core._rows import RowWriter
from fastprof._core._take import take
from fastprof.analysis.registry import Where
from fastprof.exports.chrome.host import (
    api_rows,
    flow_rows,
    gpu_rows,
    memory_rows,
    name_events,
    numbers_of_calls,
    place_of,
    quoted,
    range_rows,
    step_rows,
    stream_places,
    thread_places,
)
from fastprof.exports.events import HostRows, SelectedWork, read
from fastprof.model.arrays import Int64
from fastprof.model.metadata import About
from fastprof.model.trace import NEVER, NO_TIME
from fastprof.profile.data import ProfileData
from fastprof.writers.write_threads import write_on_threads


def write(
    profile: ProfileData, file: BinaryIO, steps: str | None = None, where: Where | None = None
) -> None:
    """Write a profile as a trace of torch.profiler.

    Parameters
    ----------
    file : binary file
    steps : what a step is, see `Profile.find_steps`; adds the steps as `ProfilerStep#N`
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
    kernels = None if steps is None else profile.find_steps(steps)
    work, rows = read(profile, where)
    origin = min(_first(profile, work, rows), 0)
    root = ",\n".join(f"{quoted(key)}:{quoted(value)}" for key, value in _root(profile.about))
    file.write(f'{{{root},\n"traceEvents":[\n'.encode())
    for event in name_events(profile, work.places.tolist()):
        file.write(quoted(event).encode() + b",\n")
    for writer in _writers(profile, work, rows, origin):
        write_on_threads(writer, file)
    if kernels is not None and kernels.source != "none":
        write_on_threads(step_rows(kernels, origin), file)
    end = int(work.end.max(initial=0)) - origin
    last = {
        "ph": "i",
        "s": "g",
        "name": "Record Window End",
        "pid": "",
        "tid": "",
        "ts": end // 1000,
    }
    file.write(quoted(last).encode() + b"\n]}\n")


def _first(profile: ProfileData, work: SelectedWork, rows: HostRows) -> int:
    """The earliest time. Times in Chrome JSON are not negative."""
    memory = profile.memory_events.time
    times = [work.start, profile.ranges.start[rows.ranges], profile.api.start[rows.api]]
    times.append(memory[memory != NO_TIME])
    return min(int(time.min(initial=NEVER)) for time in times)


def _writers(
    profile: ProfileData, work: SelectedWork, rows: HostRows, origin: int
) -> Iterator[RowWriter]:
    correlation, of_calls = numbers_of_calls(work)
    external = work.of(profile.ranges.of_kernel).astype(np.int64)
    external = np.where(external >= 0, external + 1, -1)
    yield range_rows(profile, rows.ranges, origin)
    yield api_rows(profile, rows.api, of_calls, origin)
    yield gpu_rows(work, correlation, external, origin)
    yield memory_rows(profile, origin)
    yield from _flows(profile, work, correlation, origin)


def _flows(
    profile: ProfileData, work: SelectedWork, correlation: Int64, origin: int
) -> Iterator[RowWriter]:
    """Flows from API calls to GPU work (ac2g) and from forward to backward (fwdbwd)."""
    api, ranges = profile.api, profile.ranges
    threads = thread_places(api.threads)
    launched = np.flatnonzero(work.api >= 0)
    call = work.api[launched]
    ids = correlation[launched]
    place, streams = stream_places(work)
    of_call = place_of(take(api.thread, call), api.threads)
    yield flow_rows("s", "ac2g", ids, (of_call, threads), api.start[call], origin)
    yield flow_rows("f", "ac2g", ids, (place[launched], streams), work.start[launched], origin)
    backward = np.flatnonzero(ranges.forward[: ranges.n_own] >= 0)
    forward = ranges.forward[backward]
    own = forward < ranges.n_own
    backward, forward = backward[own], forward[own]
    ids = np.arange(1, len(backward) + 1, dtype=np.int64)
    for phase, row in (("s", forward), ("f", backward)):
        places = place_of(ranges.thread[row], ranges.threads), threads
        yield flow_rows(phase, "fwdbwd", ids, places, ranges.start[row], origin)


def _root(about: About) -> Iterator[tuple[str, Any]]:
    """The values beside the events."""
    yield "schemaVersion", 1
    devices = []
    for device, name in sorted(about.gpus.items()):
        figures = about.gpu_figures.get(device)
        result: dict[str, Any] = {"id": device, "name": name}
        if figures is not None:
            major, _, minor = (figures.capability or "").partition(".")
            result |= {"totalGlobalMem": figures.memory, "numSms": figures.sms}
            if major.isdigit() and minor.isdigit():
                result |= {"computeMajor": int(major), "computeMinor": int(minor)}
        devices.append({key: value for key, value in result.items() if value is not None})
    yield "deviceProperties", devices
    if about.distributed is not None:
        shared = about.distributed
        values = {"backend": shared.backend, "rank": shared.rank, "world_size": shared.world_size}
        yield "distributedInfo", {key: value for key, value in values.items() if value is not None}
    yield from about.versions.items()
    yield "displayTimeUnit", "ms"
