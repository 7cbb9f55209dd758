"""The time of ranges on the GPU: from their first to their last work."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.columns import numbers
from fastprof.analysis.gpu_work import work_of_device
from fastprof.model.arrays import Bools, Int32, Int64, joined
from fastprof.model.trace import NO_TIME
from fastprof.profile.profile import Profile


class Spans(NamedTuple):
    """Sums over GPUs, int64 [ranges]; 0 for ranges without work.

    Parameters
    ----------
    projected : from the start of the first to the end of the last work launched inside
    idle : the part during which the GPU has no work, of whatever range
    """

    projected: Int64
    idle: Int64


def spans(profile: Profile, ranges: Int32, rows: Bools | None) -> Spans:
    """The spans of ranges.

    Parameters
    ----------
    ranges : rows of `profile.ranges`
    rows : the work to include, bool [kernels]; None for all
    """
    instances, found = profile.ranges, Spans(*np.zeros((2, len(ranges)), np.int64))
    start, launched = numbers(profile, "start"), numbers(profile, "launch_start")
    end = start + np.maximum(numbers(profile, "sil"), 0)
    # Work of the autograd engine belongs to ranges of its thread and of the one that waits for it.
    innermost = numbers(profile, "range").astype(np.int32)
    owners = [
        take(instances.thread, each) for each in (innermost, take(instances.waiting, innermost))
    ]
    device = numbers(profile, "device")
    included = launched != NO_TIME if rows is None else (launched != NO_TIME) & rows
    known = [np.flatnonzero(included & (thread >= 0)) for thread in owners]
    work, thread = (
        np.concatenate(known),
        np.concatenate([of[rows] for of, rows in zip(owners, known, strict=True)]),
    )
    order = np.lexsort((launched[work], thread, device[work]))
    work, thread = work[order], thread[order]
    of_devices, thread_of_range = work_of_device(profile), instances.thread[ranges]
    nothing = np.empty(0, np.int64)

    def inside_runs() -> Iterator[tuple[Int64, ...]]:
        """Places in `ranges`, parts of the devices, and the spans, of a device and thread each."""
        for run in _runs(np.arange(len(work)), device[work], thread):
            inside = work[run]
            places = np.flatnonzero(thread_of_range == thread[run[0]])
            of = ranges[places]
            first = np.searchsorted(launched[inside], instances.start[of], "left")
            last = np.searchsorted(launched[inside], instances.end[of], "left")
            some = first < last
            places, first, last = places[some], first[some], last[some]
            begin = _reduced(np.minimum, start[inside], first, last)
            finish = _reduced(np.maximum, end[inside], first, last)
            part = np.full(len(places), of_devices.places[int(device[inside[0]])])
            yield places, part, begin, finish

    every = joined(chain([(nothing,) * 4], inside_runs()))
    for first in range(0, len(every[0]), _AT_ONCE):
        places, part, begin, finish = (each[first : first + _AT_ONCE] for each in every)
        by_kinds = of_devices.parts.ns_by_kinds(part, (begin, finish))
        np.add.at(found.projected, places, finish - begin)
        np.add.at(found.idle, places, by_kinds[:, 0])
    return found


_AT_ONCE: Final = 1 << 14  # spans


def _runs(rows: Int64, *keys: Int32) -> list[Int64]:
    """Rows with equal keys, which follow each other."""
    if not len(rows):
        return []
    changes = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.split(rows, np.flatnonzero(changes) + 1)


def _reduced(reduce: np.ufunc, values: Int64, first: Int64, last: Int64) -> Int64:
    """The minimum or maximum of values[first:last] for each pair; none is empty."""
    both = np.column_stack([first, last]).ravel()
    padded = np.append(values, values[-1:])  # `last` may be the length
    return np.asarray(reduce.reduceat(padded, both)[::2])
