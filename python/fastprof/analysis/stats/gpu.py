"""Tables of GPU work (kernels, copies and memsets) and of API calls."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.stats.statistics import Statistics, known_duration
from fastprof.model.arrays import Bools, Int32
from fastprof.model.columns import Ints, Values
from fastprof.model.table import ColumnData
from fastprof.model.trace import NEVER
from fastprof.profile.data import ProfileData, begins_in_part, inside_part

_PLACES: Final = {"H": "Host", "D": "Device", "A": "Array", "P": "Peer"}


def is_of_kinds(profile: ProfileData, *kinds: str) -> Bools:
    """[kernels] Whether each row has one of the kinds kernel, graph, memcpy, memset."""
    if "kind" not in profile.names:
        return np.full(len(profile), "kernel" in kinds)
    return texts(profile, "kind").fits(lambda kind: kind in kinds)


def in_part_of_kinds(profile: ProfileData, *kinds: str) -> Bools:
    """[kernels] The same, of those in the part of `Profile.trim`."""
    result, inside = is_of_kinds(profile, *kinds), inside_part(profile)
    return result if inside is None else result & inside


def cuda_gpu_kern_sum(profile: ProfileData) -> list[ColumnData]:
    """Kernels by name."""
    names = texts(profile, "name")
    ids = np.where(in_part_of_kinds(profile, "kernel"), names.ids, np.int32(-1))
    stats = Statistics(ids, numbers(profile, "sil"), len(names.values))
    return [*stats.times(), _all_of(names)]


def cuda_gpu_mem_time_sum(profile: ProfileData) -> list[ColumnData]:
    """Copies and memsets by direction."""
    operations = _operations(profile)
    stats = Statistics(operations.ids, numbers(profile, "sil"), len(operations.values))
    return [*stats.times(), _all_of(operations)]


def cuda_gpu_mem_size_sum(profile: ProfileData) -> list[ColumnData]:
    """Copied bytes by direction."""
    operations = _operations(profile)
    if "copied" not in profile.names:
        operations = Values(np.full(len(profile), -1, np.int32), [])
    copied = numbers(profile, "copied") if operations.values else np.zeros(len(profile), np.int64)
    stats = Statistics(operations.ids, copied, len(operations.values))
    return [
        stats.sum_in_mb(), Ints(stats.count), *stats.spread_in_mb(), _all_of(operations)
    ]  # fmt: skip


def _operations(profile: ProfileData) -> Values:
    """[kernels] nsys's name of each copy and memset, unknown for kernels."""
    if "copy_direction" not in profile.names:
        return Values(np.full(len(profile), -1, np.int32), [])
    directions = texts(profile, "copy_direction").mapped(_operation)
    names = [*directions.values, "[CUDA memcpy Unknown]", "[CUDA memset]"]
    unknown = np.int32(len(directions.values))
    copies = np.where(directions.ids >= 0, directions.ids, unknown)
    ids = np.where(is_of_kinds(profile, "memset"), unknown + np.int32(1), copies)
    ids[~in_part_of_kinds(profile, "memcpy", "memset")] = -1
    return Values(ids.astype(np.int32), names)


def _operation(direction: str) -> str:
    """nsys's name of a copy: HtoD, unified HtoD."""
    unified = "Unified " if direction.startswith("unified ") else ""
    ends = direction.removeprefix("unified ")
    return f"[CUDA memcpy {unified}{_PLACES[ends[0]]}-to-{_PLACES[ends[-1]]}]"


def _all_of(values: Values) -> Values:
    """A row for each distinct value."""
    rows: Int32 = np.arange(len(values.values), dtype=np.int32)
    return Values(rows, values.values)


# nsys prints versions of five digits: cudaLaunchKernel, but cudaGraphLaunch_v10000.
_VERSION: Final = re.compile(r"_v\d{4}\Z")


def printed(names: Values) -> Values:
    """Names of API calls as nsys prints them."""
    return names.mapped(lambda name: _VERSION.sub("", name))


def cuda_api_sum(profile: ProfileData) -> list[ColumnData]:
    """API calls by name."""
    api = profile.api
    names = printed(api.name)
    inside = begins_in_part(profile, api.start)
    ids = names.ids if inside is None else np.where(inside, names.ids, np.int32(-1))
    stats = Statistics(ids, known_duration(api.start, api.end), len(names.values))
    return [*stats.times(), Values(np.arange(len(names.values), dtype=np.int32), names.values)]


def cuda_kern_exec_sum(profile: ProfileData) -> list[ColumnData]:
    """Kernels by process, thread, GPU, launching call and name: total, API, queue, kernel time."""
    api = profile.api
    names, calls = texts(profile, "name"), printed(api.name)
    duration = numbers(profile, "sil")
    call = api.of_kernel
    known = take(api.end, call, NEVER) != NEVER
    rows = np.flatnonzero(in_part_of_kinds(profile, "kernel") & known & (duration >= 0))
    call, kernel = call[rows], np.ascontiguousarray(names.ids[rows])
    device = np.ascontiguousarray(numbers(profile, "device")[rows])
    thread, name = take(api.thread, call), take(calls.ids, call)
    ids, first = alike([thread, device, name, kernel])
    begin, returned = api.start[call], api.end[call]
    start = numbers(profile, "start")[rows]
    end = start + duration[rows]
    queue = start - returned
    phases = [
        Statistics(ids, row, len(first))
        for row in (
            np.maximum(end, returned) - begin,
            returned - begin,
            np.where(queue >= 0, queue, -1),
            duration[rows],
        )
    ]
    threads = api.threads
    return [
        Ints(take(threads.pid, thread[first])),
        Ints(take(threads.tid, thread[first])),
        Ints(device[first]),
        Ints(phases[0].count),
        Ints(phases[2].count),
        *(column for phase in phases for column in phase.spread()),
        Values(name[first], calls.values),
        Values(kernel[first], names.values),
    ]
