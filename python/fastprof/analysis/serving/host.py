"""What the engine does on the host while the GPU is idle."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.idle.causes import CAUSES, Cause
from fastprof.analysis.idle.gaps import WindowGaps
from fastprof.model.arrays import Bools, Int64
from fastprof.model.trace import NEVER
from fastprof.profile.data import ProfileData
from fastprof.profile.serving.names import HOST_WORK, host_work_of

BEFORE, INSIDE = "before", "inside"
# A range of an earlier one inside one of a later one counts for itself: scheduling ends with
# sampling, say.
_ORDER: Final = (*HOST_WORK[1:], HOST_WORK[0])
# The work is launched already: what the host does meanwhile is no cause.
_NOT_OF_HOST: Final = (Cause.LATENCY, Cause.DEPENDENCY)


def by_work(
    profile: ProfileData, gaps: WindowGaps, counted: Bools, gpu_start: Int64
) -> dict[tuple[str, str], float]:
    """The idle time of the counted windows, ns, by place and by what the engine does.

    counted, gpu_start : [windows]; the start of the first GPU work of the iteration
    """
    rows = np.flatnonzero(take(counted, gaps.window))
    start, end = gaps.gaps.start[rows], gaps.gaps.end[rows]
    is_before = end <= gpu_start[gaps.window[rows]]
    main = gaps.causes.main[rows]
    result: dict[tuple[str, str], float] = defaultdict(float)
    rest = (end - start).astype(np.float64)
    for work, whole in _by_range(profile, start, end):
        time = np.where(np.isin(main, _NOT_OF_HOST), 0.0, whole)
        rest -= time
        for place, own in ((BEFORE, is_before), (INSIDE, ~is_before)):
            result[place, work] += time[own].sum()
    for place, own in ((BEFORE, is_before), (INSIDE, ~is_before)):
        times = np.bincount(main[own], rest[own], len(Cause))
        for cause, ns in zip(CAUSES, times.tolist(), strict=True):
            result[place, cause] += ns
    result[INSIDE, CAUSES[Cause.SHORT]] += float(gaps.short[counted].sum())
    result[INSIDE, CAUSES[Cause.UNKNOWN]] += float(gaps.after[counted].sum())
    return {key: ns for key, ns in result.items() if ns >= 1}


def _by_range(profile: ProfileData, start: Int64, end: Int64) -> list[tuple[str, Floats64]]:
    """The time of each gap in ranges of each kind of work of the engine, [gaps] each.

    start, end : [gaps], ns
    """
    ranges = profile.ranges
    works = [
        host_work_of(meaning.name) or host_work_of(meaning.label) for meaning in ranges.meanings
    ]
    results: list[tuple[str, Floats64]] = []
    label = ranges.label
    is_wanted = np.zeros(len(ranges.meanings) + 1, bool)
    covered = np.zeros(len(start), np.float64)
    for work in _ORDER:
        own = np.array([*(each == work for each in works), False], bool)
        if not own.any():
            continue
        is_wanted |= own
        rows = np.flatnonzero(is_wanted[label] & (ranges.end != NEVER))
        total = _covered(ranges.start[rows], ranges.end[rows], start, end)
        results.append((work, total - covered))
        covered = total
    return results


def _covered(start: Int64, end: Int64, begins: Int64, ends: Int64) -> Floats64:
    """The time of each interval in the union of ranges, ns.

    start, end : of the ranges, in order of start
    begins, ends : of the intervals
    """
    if not len(start):
        return np.zeros(len(begins), np.float64)
    latest = np.maximum.accumulate(end)
    is_first = np.append(True, start[1:] > latest[:-1])
    first = np.flatnonzero(is_first)
    start, end = start[first], latest[np.append(first[1:], len(latest)) - 1]
    before = np.append(0, np.cumsum(end - start))

    def until(time: Int64) -> Floats64:
        place = np.searchsorted(start, time, side="right")
        over = np.where(place > 0, np.maximum(end[place - 1] - time, 0), 0)
        return (before[place] - over).astype(np.float64)

    return until(ends) - until(begins)
