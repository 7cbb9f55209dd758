"""Replays of a graph, and where the steps begin and end in them.

The work before the first counted step is recorded in part at most. A change concerns it too: the
step then begins sooner, as it would in a longer run. But a change saves no more time of the counted
steps than if it concerned these alone, and none becomes longer by it: see `Runs.run`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._core import _replay
from fastprof._core._take import take
from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.replay.graph import WORK, Graph, Run, pids_of
from fastprof.analysis.replay.host_time import AS_RECORDED
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_NEVER: Final = np.iinfo(np.int64).min
NO_EDGE: Final = np.iinfo(np.int32).min


@dataclass(frozen=True, eq=False)
class Weights:
    """What the nodes and edges of a graph weigh, ns; see `Graph`.

    Arrays are shared: `changed` copies those that a change writes to. `source` are the sources of
    the edges. `left` is the share that remains of the host time of each `Cause` of idle time; the
    first ones are the `State`s.
    """

    before: Int64
    duration: Int64
    lag: tuple[Int32, Int32, Int32]
    source: tuple[Int32, Int32, Int32]
    left: tuple[float, ...] = AS_RECORDED

    def changed(self, before: bool = False, duration: bool = False, lag: bool = False) -> Weights:
        """The same weights with own copies of some arrays."""
        return replace(
            self,
            before=self.before.copy() if before else self.before,
            duration=self.duration.copy() if duration else self.duration,
            lag=(self.lag[0].copy(), self.lag[1].copy(), self.lag[2].copy()) if lag else self.lag,
        )


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay.

    Parameters
    ----------
    time : int64 [2 * nodes], ns since the origin: start and end of each node
    begin, end : int64 [rows], ns since the origin, of each step
    weights : those of the replay
    """

    time: Int64
    begin: Int64
    end: Int64
    weights: Weights

    @property
    def wall(self) -> Int64:
        """int64 [rows], ns, the length of each step."""
        result: Int64 = np.maximum(self.end - self.begin, 0)
        return result


class Runs:
    """Replays of a graph.

    Parameters
    ----------
    steps : StepsOfKernels
    begin : int64 [steps], ns on the trace's clock, when each step begins as recorded
    rows : int64 [rows], the steps of known length, rows of `steps`
    is_counted : bool [rows], whether means include the step
    base : Weights, as recorded

    Attributes
    ----------
    base : Weights
        As recorded; the time before calls and GPU work of the counted steps begins with these.
    """

    def __init__(
        self,
        profile: Run,
        graph: Graph,
        steps: StepsOfKernels,
        begin: Int64,
        rows: Int64,
        is_counted: Bools,
        base: Weights,
    ) -> None:
        self._profile, self._graph, self.base = profile, graph, base
        self._pid, self._rows, self._is_counted = steps.pid, rows, is_counted
        self._begin = (begin - graph.origin)[rows]
        self._step_of_node = np.full(len(graph), -1, np.int32)
        self._step_of_node[graph.node_of_kernel] = steps.of_kernel
        self.base, self._long, self._rest = self._cut(base)

    def replay(self, weights: Weights) -> _replay.Replay:
        """The graph with other weights."""
        w = weights
        return _replay.Replay(w.source, w.lag, w.before, w.duration, self.base.duration)

    @computed_once
    def recorded(self) -> Replayed:
        """The run as recorded. Its times stay valid."""
        time, ends = self.replay(self.base).run(self._step_of_node, len(self._pid))
        _, end = self._follows(ends)
        return Replayed(time, self._begin, end, self.base)

    def run(
        self, weights: Weights, group: Int32 | None = None, factor: Floats64 | None = None
    ) -> Replayed:
        """Replay. The times are valid until the next replay.

        The changes concern the whole graph. If the counted steps would save or cost more so than
        with changes of only what starts after these begin, it is as with these. Changes that make
        them shorter so make them longer in no case, and vice versa.

        group : int32 [nodes], -1 for none; durations are multiplied by the `factor` of their group
        """
        limited = self._from_begin(weights, group, factor)
        if all(self._is_fixed[rows[0]] for rows in self._counted.values()):
            return limited
        steps, room = self._step_of_node, self._room[0]
        time, ends = self.replay(weights).run(steps, len(self._pid), group, factor, out=room)
        sign = 1 if self._total(limited) <= self._total(self.recorded) else -1
        begin, end = self._bounds(ends)
        for rows in self._counted.values():
            length = int(self.recorded.end[rows[-1]]) - int(self.recorded.begin[rows[0]])
            since = max(int(end[rows[-1]]) - length, _NEVER)  # a begin may be the least int64
            if sign * since > sign * int(begin[rows[0]]):
                begin[rows[0]] = since
                begin[rows], end[rows] = (np.maximum(array[rows], since) for array in (begin, end))
        replayed = Replayed(time, begin, end, weights)
        return replayed if sign * self._total(replayed) >= sign * self._total(limited) else limited

    def _from_begin(
        self, weights: Weights, group: Int32 | None, factor: Floats64 | None
    ) -> Replayed:
        """A replay in which what starts before the first counted step stays as recorded."""
        part, begins = self._parts
        if len(self._long):
            weights = weights.changed(before=True)
            weights.before[self._long] = np.maximum(weights.before[self._long] - self._rest, 0)
        time, ends = self.replay(weights).run(
            self._step_of_node, len(self._pid), group, factor, part, begins, self._room[1]
        )
        return Replayed(time, *self._bounds(ends), weights)

    def _total(self, replayed: Replayed) -> int:
        return int(replayed.wall[self._is_counted].sum())

    @computed_once
    def _room(self) -> tuple[Int64, Int64]:
        """[2 * nodes] Room for the times of replays; in the second, of nodes that keep theirs."""
        return np.empty_like(self.recorded.time), self.recorded.time.copy()

    @computed_once
    def _counted(self) -> dict[int, Int64]:
        """The rows of each process from its first to its last counted one."""
        result, pid = {}, self._pid[self._rows]
        for number in unique(pid[self._is_counted]).tolist():
            own = np.flatnonzero(pid == number)
            counted = np.flatnonzero(self._is_counted[own])
            result[int(number)] = own[counted[0] : counted[-1] + 1]
        return result

    def _bounds(self, ends: Int64) -> tuple[Int64, Int64]:
        """[rows] Start and end of each step, ns since the origin.

        ends : int64 [steps], the last end of GPU work of each
        """
        begin, end = self._follows(ends)
        return np.where(self._is_fixed, self._begin, begin), end

    def _follows(self, ends: Int64) -> tuple[Int64, Int64]:
        """[rows] The last end of GPU work before and in each step; without any, the least int64."""
        begin, end = np.empty(len(ends), np.int64), np.empty(len(ends), np.int64)
        for pid in unique(self._pid).tolist():
            own = np.flatnonzero(self._pid == pid)
            end[own] = np.maximum.accumulate(ends[own])
            begin[own] = np.append(_NEVER, end[own[:-1]])
        return begin[self._rows], end[self._rows]

    @computed_once
    def _is_fixed(self) -> Bools:
        """[rows] Whether a step begins with something else than the end of a recorded one."""
        _, ends = self.replay(self.base).run(self._step_of_node, len(self._pid))
        result: Bools = self._follows(ends)[0] != self._begin
        return result

    @computed_once
    def _parts(self) -> tuple[Int32, Int64]:
        """[nodes] The process of each node, and when its first counted step begins.

        -1 for nodes that start before: they keep their times.
        """
        graph, api = self._graph, self._profile.api
        pids = np.array(list(self._counted), np.int64)
        if not len(pids):
            return np.zeros(len(graph), np.int32), np.array([_NEVER])
        begins = np.array([self._begin[rows[0]] for rows in self._counted.values()], np.int64)
        begins = np.append(begins, begins.min())
        is_work = graph.kind == WORK
        pid = take(pids_of(self._profile), np.where(is_work, graph.kernel, -1), -1)
        pid = np.where(is_work, pid, take(api.threads.pid, take(api.thread, graph.call), -1))
        place = np.minimum(np.searchsorted(pids, pid), len(pids) - 1)
        known = (pids[place] == pid) | (pids[0] == -1)
        part = np.where(known, place, len(pids)).astype(np.int32)
        part[self.recorded.time[::2] < begins[part]] = -1
        return part, begins

    def _cut(self, weights: Weights) -> tuple[Weights, Int64, Int64]:
        """Time before the first counted step, as lags: no change concerns it.

        Also what lags cannot hold: nodes, and ns.
        """
        part, begins = self._parts
        within = self.recorded.time[::2] - np.append(begins, 0)[part]
        nodes = np.flatnonzero((part >= 0) & (weights.before > within))
        result = weights.changed(before=True, lag=True)
        ns = weights.before[nodes] - within[nodes]
        lags = [lag[nodes].astype(np.int64) for lag in weights.lag]
        most = np.iinfo(np.int32).max - np.maximum.reduce(lags, initial=0)
        moved = np.minimum(ns, most)
        for lag, own in zip(result.lag, lags, strict=True):
            lag[nodes] = np.where(own == NO_EDGE, own, own + moved)
        result.before[nodes] -= moved
        return result, nodes[ns > moved], (ns - moved)[ns > moved]
