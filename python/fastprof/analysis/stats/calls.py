"""Tables of API calls."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.stats.gpu import in_part_of_kinds
from fastprof.analysis.stats.statistics import Statistics, known_duration
from fastprof.model.columns import Ints, Values
from fastprof.model.table import Cells
from fastprof.model.trace import NEVER
from fastprof.profile.kept import begins_in_part
from fastprof.profile.profile import Profile

# nsys prints versions of five digits: cudaLaunchKernel, but cudaGraphLaunch_v10000.
_VERSION: Final = re.compile(r"_v\d{4}\Z")


def printed(names: Values) -> Values:
    """Names of API calls as nsys prints them."""
    return names.mapped(lambda name: _VERSION.sub("", name))


def cuda_api_sum(profile: Profile) -> list[Cells]:
    """API calls by name."""
    api = profile.api
    names = printed(api.name)
    inside = begins_in_part(profile, api.start)
    ids = names.ids if inside is None else np.where(inside, names.ids, np.int32(-1))
    stats = Statistics(ids, known_duration(api.start, api.end), len(names.values))
    return [*stats.times(), Values(np.arange(len(names.values), dtype=np.int32), names.values)]


def cuda_kern_exec_sum(profile: Profile) -> list[Cells]:
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
        Statistics(ids, each, len(first))
        for each in (
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
