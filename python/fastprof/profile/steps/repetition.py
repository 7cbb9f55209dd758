"""Steps found by repetition: every step launches the same kernels the same number of times."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.metadata import ProfilerSteps
from fastprof.model.trace import NEVER, Trace
from fastprof.profile.steps.ranges import kernels_by_process

ENOUGH: Final = 0.98  # share of the GPU time that must repeat


class Repetition(NamedTuple):
    """The steps, None if too little repeats; `share` of the GPU time repeats in every step."""

    steps: ProfilerSteps | None
    share: float


def find(trace: Trace, group: Int32, is_kernel: Bools) -> Repetition:
    """Find the steps of each process.

    A group has c kernels in a process. The number of steps is the n > 1 for which the groups whose
    c is a multiple of n take the most GPU time, among the counts of groups; of equal ones, the
    largest. Of that time, `share` counts what each step has c / n of.

    group : [kernels] number of the kernel's group: its direction, operator, name, parameters, ...
    is_kernel : bool [kernels], False for work to ignore, such as copies
    """
    results, share = [], 1.0
    known = is_kernel & (trace.kernels.launch >= 0)
    launch_start = take(trace.launches.start, trace.kernels.launch)
    for pid, rows in kernels_by_process(trace, known):
        rows = rows[np.argsort(launch_start[rows], kind="stable")]
        duration = np.maximum(trace.kernels.duration[rows], 0)
        first, of_time = _first_launches(_renumbered(group[rows]), duration)
        share = min(share, of_time)
        results.append((pid, launch_start[rows[first]]))
    if not results or share < ENOUGH:
        return Repetition(None, share if results else 0.0)
    return Repetition(consecutive(results), share)


def _renumbered(group: Int32) -> Int32:
    """Numbers of groups that are not far above the number of kernels."""
    if int(group.max()) <= 4 * len(group):
        return group
    return np.unique(group, return_inverse=True)[1].astype(np.int32)


def _first_launches(group: Int32, duration: Int64) -> tuple[np.ndarray, float]:
    """The first kernel of each step of one process, and the share of its GPU time that repeats.

    group, duration : [kernels] in order of launch
    """
    total = duration.sum()
    count, time = np.bincount(group), np.bincount(group, duration)
    counts, place = np.unique(count, return_inverse=True)
    time_of_count = np.bincount(place, time)
    candidates = counts[counts > 1]
    none = np.zeros(0, np.intp)
    if not len(candidates) or not total:
        return none, 0.0
    times = [time_of_count[counts % n == 0].sum() for n in candidates]
    n, most = max(zip(candidates.tolist(), times, strict=True), key=lambda pair: pair[::-1])
    if most < ENOUGH * total or len(group) < 2 * n:
        return none, float(most / total) if len(group) >= 2 * n else 0.0
    first = _begins(group, count, n)
    return first, _share_in_every_step(group, duration, count, first)


def _begins(group: Int32, count: np.ndarray, n: int) -> np.ndarray:
    """The first kernel of each step: a kernel of the earliest group with one kernel per step, moved
    back as far as all steps begin with the same kernels."""
    once = count[group] == n
    anchor = np.flatnonzero(group == group[np.argmax(once)])
    back = 0
    while back < anchor[0] and len(unique(group[anchor - back - 1])) == 1:
        back += 1
    return anchor - back


def _share_in_every_step(
    group: Int32, duration: Int64, count: np.ndarray, first: np.ndarray
) -> float:
    """The share of the GPU time of kernels of which every step has equally many."""
    n = len(first)
    divides = count % n == 0
    rows = np.flatnonzero(divides[group])
    number = (np.cumsum(divides) - 1)[group[rows]]
    step = np.searchsorted(first, rows, side="right")
    cells = np.bincount(step * divides.sum() + number, minlength=(n + 1) * divides.sum())
    cells = cells.reshape(n + 1, -1)[1:]
    equal = (cells * n == count[divides]).all(axis=0)
    return float(duration[rows[equal[number]]].sum() / duration.sum())


def consecutive(found: list[tuple[int, Int64]], last: list[int] | None = None) -> ProfilerSteps:
    """The steps of all processes in order of start; each ends where the next begins.

    found : process and starts of its steps
    last : the end of the last step of each process; None if unknown
    """
    ends = [NEVER] * len(found) if last is None else last
    start = np.concatenate([starts for _, starts in found])
    end = np.concatenate(
        [np.append(starts[1:], end) for (_, starts), end in zip(found, ends, strict=True)]
    )
    pid = np.concatenate([np.full(len(starts), pid, np.int64) for pid, starts in found])
    number = np.concatenate([np.arange(1, len(starts) + 1) for _, starts in found])
    order = np.argsort(start, kind="stable")
    return ProfilerSteps(number[order], start[order], end[order], pid[order])
