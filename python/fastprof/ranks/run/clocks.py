"""Offset and drift of each rank's clock, from the ends of collectives."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof._system.regex import regex
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.ranks.run.match import CollectiveInstances
from fastprof.ranks.run.record import RankRecord

Floats = npt.NDArray[np.float64]

_PASSES: Final = 4
_AT_A_TIME: Final = 1 << 18  # values whose medians are found together
_FEWEST: Final = 8  # instances from which a drift is told
_LEAST_DRIFT: Final = 3.0  # residuals by which a drift must move a clock within the capture
_MOST_DRIFT: Final = 2e-4  # clocks of computers drift by less
_NONE: Final = 3.0  # residuals: a smaller offset is none
_NO_DRIFT: Final = 1e-9
_ONE_CLOCK_NS: Final = 1_000_000  # ranks of a host whose calls end further apart have own clocks


@dataclass(frozen=True, eq=False)
class Clocks:
    """The clocks of ranks.

    A time of rank r, moved to the clock of the run: time + offset + drift * (time - origin).

    Parameters
    ----------
    origin : int64 [ranks], ns on the clock of the rank
    offset : int64 [ranks], ns, what is added to a time
    drift : float64 [ranks], what is added for each ns since the origin
    residual : float64 [ranks], ns: how far the ends of its calls are from those of the others; half
        of them are closer; NaN without a common instance
    is_known : bool [ranks], whether the rank shares instances with others
    host : int32 [ranks], ranks whose clocks agree as recorded have equal numbers
    """

    origin: Int64
    offset: Int64
    drift: Floats
    residual: Floats
    is_known: Bools
    host: Int32

    def moved(self, time: Int64, rank: Int32) -> Int64:
        """Times of ranks on the clock of the run."""
        since = time - self.origin[rank]
        result: Int64 = time + self.offset[rank]
        if self.drift.any():
            result += np.rint(self.drift[rank] * since).astype(np.int64)
        return result


def recorded_clocks(instances: CollectiveInstances) -> Clocks:
    """The clocks as recorded."""
    n = len(instances.calls.bounds) - 1
    nothing = np.zeros(n)
    return Clocks(
        _origins(instances), np.zeros(n, np.int64), nothing, np.full(n, np.nan),
        np.ones(n, bool), np.zeros(n, np.int32),
    )  # fmt: skip


def _origins(instances: CollectiveInstances) -> Int64:
    bounds, start = instances.calls.bounds, instances.calls.start
    first = np.append(start, 0)[np.minimum(bounds[:-1], len(start))]
    return np.where(bounds[1:] > bounds[:-1], first, 0)


def estimated_clocks(instances: CollectiveInstances, hosts: Int32) -> Clocks:
    """Estimate the clocks: an instance ends on all its ranks at nearly the same time.

    The end of an instance is the median of its ranks' ends; the offset of a rank is the median of
    its differences to them, so that instances which end late on some ranks have no effect. A rank
    whose offset is not larger than three residuals has none: its clock is that of the others.
    Ranks of one host have one clock, as recorded.

    hosts : int32 [ranks], see `hosts_of`
    """
    calls = instances.calls
    n_ranks = len(calls.bounds) - 1
    origin = _origins(instances)
    order, bounds = instances.members()
    counts = np.diff(bounds)
    shared = np.repeat(counts > 1, counts)
    order, instance = order[shared], np.repeat(np.arange(len(counts)), counts)[shared]
    rank = calls.rank[order]
    first = int(origin[rank].min()) if len(rank) else 0
    base = origin - first  # ns between the origins, by the recorded clocks
    since = calls.end[order] - origin[rank]
    solver = _Solver(n_ranks, rank, instance, since.astype(np.float64), base)
    solver.spread()
    residual = solver.refine()
    solver.offset -= base
    moved = _at_one_place(solver.offset, solver.drift, solver.known, hosts)
    solver.offset += base
    residual = np.where(moved, solver.residuals(), residual)
    offset, drift, host = _without_small(solver.offset - base, solver.drift, residual, solver.known)
    return Clocks(origin, np.rint(offset).astype(np.int64), drift, residual, solver.known, host)


class _Solver:
    """Clocks relative to the first call of each rank."""

    def __init__(
        self, n_ranks: int, rank: Int32, instance: Int64, since: Floats, base: Int64
    ) -> None:
        self.rank, self.instance, self.since = rank, instance, since
        self.offset, self.drift = base.astype(np.float64), np.zeros(n_ranks)
        self.known = np.zeros(n_ranks, bool)
        self._by_rank = np.argsort(rank, kind="stable")
        self._bounds = np.searchsorted(rank[self._by_rank], np.arange(n_ranks + 1))

    def spread(self) -> None:
        """First offsets, from one rank to those with which it shares instances, and on."""
        counts = np.diff(self._bounds)
        while (waiting := np.flatnonzero(~self.known & (counts > 0))).size:
            self.known[waiting[np.argmax(counts[waiting])]] = True
            while self._reach():
                pass
            counts = np.where(self.known, 0, counts)

    def _reach(self) -> bool:
        """Set the offsets of ranks that share instances with known ones."""
        is_known = self.known[self.rank]
        end = self._ends(is_known)
        target = np.where(is_known, np.nan, end[self.instance])
        rows = np.flatnonzero(~np.isnan(target))
        apart = target[rows] - self.since[rows]
        offset = medians(self.rank[rows], apart, len(self.offset))
        reached = np.flatnonzero(~np.isnan(offset))
        self.offset[reached] = offset[reached]
        self.known[reached] = True
        return bool(len(reached))

    def _time(self) -> Floats:
        result: Floats = self.since * (1 + self.drift[self.rank]) + self.offset[self.rank]
        return result

    def _ends(self, wanted: Bools) -> Floats:
        """[instances] The median end over the wanted calls, NaN without any."""
        rows = np.flatnonzero(wanted)
        n = int(self.instance.max(initial=-1)) + 1
        return medians(self.instance[rows], self._time()[rows], n)

    def refine(self) -> Floats:
        """Fit offset and drift of all ranks; returns the residuals."""
        n_ranks = len(self.offset)
        residual = np.full(n_ranks, np.nan)
        for _ in range(_PASSES):
            end = self._ends(np.ones(len(self.rank), bool))
            apart = end[self.instance] - self._time()
            for rank in range(n_ranks):
                rows = self._by_rank[self._bounds[rank] : self._bounds[rank + 1]]
                if len(rows):
                    residual[rank] = self._fit(rank, self.since[rows], apart[rows])
        return residual

    def residuals(self) -> Floats:
        """The median distance of each rank's ends from those of the instances, ns."""
        apart = np.abs(self._ends(np.ones(len(self.rank), bool))[self.instance] - self._time())
        return medians(self.rank, apart, len(self.offset))

    def _fit(self, rank: int, since: Floats, apart: Floats) -> float:
        """Move a clock to the ends; returns its residual."""
        shift, drift = float(np.median(apart)), 0.0
        left = np.abs(apart - shift)
        half = len(since) // 2
        if half * 2 >= _FEWEST:
            order = np.argsort(since, kind="stable")
            low, high = order[:half], order[half:]
            run = float(np.median(since[high]) - np.median(since[low]))
            rise = float(np.median(apart[high]) - np.median(apart[low]))
            moved = apart - (rise / run if run > 0 else 0.0) * since
            straight = np.abs(moved - np.median(moved))
            is_drift = abs(rise) > _LEAST_DRIFT * float(np.median(straight))
            if run > 0 and is_drift and abs(rise / run) < _MOST_DRIFT:
                shift, drift, left = float(np.median(moved)), rise / run, straight
        self.offset[rank] += shift
        self.drift[rank] += drift
        return float(np.median(left))


def medians(group: npt.NDArray[np.integer], values: Floats, n: int) -> Floats:
    """[n] The median of the values of each group, NaN for groups without any."""
    counts = np.bincount(group, minlength=n)
    if (group[1:] < group[:-1]).any():
        values = values[np.argsort(group, kind="stable")]
    first = np.cumsum(counts) - counts
    result = np.full(n, np.nan)
    # Groups of one size are the rows of a matrix.
    for size in unique(counts[counts > 0]).tolist():
        groups = np.flatnonzero(counts == size)
        for some in np.array_split(groups, -(-len(groups) * size // _AT_A_TIME)):
            rows = values[first[some, None] + np.arange(size)]
            low, high = (size - 1) // 2, size // 2
            rows.partition((low, high), axis=1)
            result[some] = (rows[:, low] + rows[:, high]) / 2
    return result


def hosts_of(records: Sequence[RankRecord]) -> Int32:
    """[ranks] Equal numbers for ranks that a record shows to be on one host, else their own.

    Ranks are on one host if they are of one file; if file names begin with the same name of a host
    and a process id, as those of torch's TensorBoard handler; or if the job has no more ranks than
    a host has GPUs, and each uses its own.
    """
    result = np.arange(len(records), dtype=np.int32)
    first: dict[object, int] = {}
    names = [_HOST.match(os.path.basename(record.path)) for record in records]
    for i, (record, name) in enumerate(zip(records, names, strict=True)):
        keys: list[object] = [record.source.path]
        keys += [] if name is None else [(name[1],)]
        for key in keys:
            result[result == result[i]] = result[first.setdefault(key, i)]
    sizes = {record.world_size or 0 for record in records}
    devices = {record.device for record in records}
    n_gpus = min((record.n_gpus for record in records), default=0)
    if len(devices) == len(records) and 0 < max(sizes, default=0) <= n_gpus:
        result[:] = 0
    return result


# <host>_<pid>.<time>.pt.trace.json, see torch.profiler.tensorboard_trace_handler.
_HOST: Final = regex(r"(.+)_\d+\.\d+\.pt\.trace\.json")


def _at_one_place(offset: Floats, drift: Floats, known: Bools, hosts: Int32) -> Bools:
    """Give ranks of one host one clock; returns which ranks were moved.

    Not where their calls end so far apart that they have no common clock after all.
    """
    moved = np.zeros(len(offset), bool)
    for host in np.unique(hosts).tolist():
        rows = np.flatnonzero((hosts == host) & known)
        middle = float(np.median(offset[rows])) if len(rows) else 0.0
        if len(rows) > 1 and np.abs(offset[rows] - middle).max() <= _ONE_CLOCK_NS:
            offset[rows], drift[rows] = middle, float(np.median(drift[rows]))
            moved[rows] = True
    return moved


def _without_small(
    offset: Floats, drift: Floats, residual: Floats, known: Bools
) -> tuple[Floats, Floats, Int32]:
    """Offsets relative to those of most ranks; those that the residuals do not show are none."""
    n = len(offset)
    host = np.arange(n, dtype=np.int32)
    rows = np.flatnonzero(known)
    if not len(rows):
        return np.zeros(n), np.zeros(n), host
    usual = float(np.median(residual[rows]))
    shift = _densest(offset[rows], _NONE * usual)
    result = np.where(known, offset - shift, 0.0)
    slope = float(np.median(drift[rows]))
    turn = np.where(known, drift - slope, 0.0)
    turn[np.abs(turn) < _NO_DRIFT] = 0.0
    is_same = (np.abs(result) <= _NONE * np.maximum(np.nan_to_num(residual), usual)) & (turn == 0)
    result[is_same] = 0.0
    host[is_same] = rows[0]
    return result, turn, host


def _densest(values: Floats, width: float) -> float:
    """The middle of the window of some width with the most values."""
    ordered = np.sort(values)
    last = np.searchsorted(ordered, ordered + max(2 * width, 1.0), "right")
    best = int(np.argmax(last - np.arange(len(ordered))))
    return float(np.median(ordered[best : last[best]]))
