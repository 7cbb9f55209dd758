"""The replay of a trace: what its graph weighs, and the lengths of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core._pools import alike
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import ReportCells, cells_of
from fastprof.analysis.gpu_work import BusyTime
from fastprof.analysis.grouping import Columns, Floats64, numbers, texts
from fastprof.analysis.host.states import host_states
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.graph import (
    CALL,
    RETURN,
    Graph,
    Run,
    RunPart,
    graph_of,
    part_of,
    pids_of,
)
from fastprof.analysis.replay.host_time import HostTime, host_time
from fastprof.analysis.replay.runs import Replayed, Runs, Weights
from fastprof.model.arrays import Bools, Int32, Int64, unique
from fastprof.model.trace import NEVER
from fastprof.profile.data import ProfileData, kept
from fastprof.profile.steps.kernel_steps import StepsOfKernels

# Collectives that agree in these transfer as much.
_SAME_MESSAGE: Final = ("name", "message_bytes", "op", "shape", "layer", "dir")
_MOST_NS: Final = 9e18
_NEVER: Final = np.iinfo(np.int64).min


class Model:
    """The graph of a trace with its steps.

    Attributes
    ----------
    whole : Profile
    profile : what is replayed: `whole`, or a Part of it
    steps : StepsOfKernels
    graph : Graph
    base : Weights
        As recorded. Of collectives, `duration` is the transfer and `before` the wait for other
        ranks: the transfer is as long as the fastest of the same collective.
    rows : int64 [rows]
        The steps of known length, rows of `steps`.
    wall : int64 [rows], ns
        Their recorded lengths, from the end of the GPU work of the preceding step.
    is_counted : bool [rows]
        Whether means include the step.
    """

    def __init__(
        self, profile: ProfileData, steps: str | None = None, most: int | None = None
    ) -> None:
        """Build the graph. Reads the file again on first use.

        most : replay about so many kernels, see `part_of`; None for all
        """
        self.whole = profile
        kernels = profile.find_steps(steps)
        self.profile: Run = profile if most is None else part_of(profile, kernels, most)
        self.steps: StepsOfKernels = self.profile.find_steps(steps)
        self.graph: Graph = graph_of(self.profile, int(self.steps.start.min(initial=NEVER)))
        graph = self.graph
        lag, source = (
            (members[0], members[1], members[2]) for members in (graph.lag, graph.source)
        )
        recorded = Weights(graph.before, graph.duration, lag, source)
        self.is_span = self.steps.source == "none"
        length = (
            self.steps.gpu_end - self.steps.gpu_start if self.is_span else self.steps.gpu_length
        )
        has_work = np.bincount(self.steps.of_kernel + 1, minlength=len(self.steps) + 1)[1:] > 0
        self.rows: Int64 = np.flatnonzero((length >= 0) & has_work)
        self.wall: Int64 = length[self.rows]
        counted = self.steps.is_counted[self.rows]
        self.is_counted: Bools = counted if counted.any() else np.ones(len(self.rows), bool)
        begin = self.steps.gpu_end - length
        base = _with_waits(self.profile, graph, recorded)
        self._runs = Runs(self.profile, graph, self.steps, begin, self.rows, self.is_counted, base)
        self.base: Weights = self._runs.base

    @computed_once
    def cells(self) -> ReportCells:
        """The cells of the kernels of the whole run."""
        return cells_of(self.whole)

    @computed_once
    def kernel_class(self) -> Int32:
        """[kernels] 0 compute, 1 communication, 2 copy."""
        codes = {"communication": 1, "memcpy": 2, "memset": 2}
        classes = texts(self.profile, "class")
        of_class = np.array([*(codes.get(value, 0) for value in classes.values), 0], np.int32)
        return of_class[classes.ids]

    @computed_once
    def waits_for_ranks(self) -> Bools:
        """[kernels] Whether each is a collective, of known size, that waits for other ranks."""
        result = np.zeros(len(self.profile), bool)
        rows = np.flatnonzero(self.kernel_class == 1)
        late = self.base.before[self.graph.node_of_kernel[rows]] > 0
        result[rows] = late & has_size(self.profile, rows)
        return result

    @computed_once
    def host_time(self) -> HostTime:
        """The host time in each `State`, as recorded."""
        states, thread = kept(self.whole, host_states), self.profile.api.thread
        return host_time(states, self.graph, thread, self.base.before, self.recorded)

    def in_states(self, weights: Weights) -> Int64:
        """[nodes] The part of `before` of host calls in any `State`, ns."""
        spent = self.host_time.before.sums(len(self.graph), weights.left)
        return np.minimum(spent, np.maximum(weights.before, 0))

    @computed_once
    def _windows(self) -> dict[int, BusyTime]:
        """The counted steps of each process, ns since the origin, as recorded."""
        begin, end = self._runs.recorded.begin, self._runs.recorded.end
        pid = np.where(self.is_counted, self.steps.pid[self.rows], _NEVER)
        pids = unique(pid[self.is_counted]).tolist()
        return {each: BusyTime(begin[pid == each], end[pid == each]) for each in pids}

    @computed_once
    def counted_ns(self) -> Int64:
        """[kernels] The GPU time within the counted steps, as recorded, ns."""
        start, pid = numbers(self.profile, "start") - self.graph.origin, pids_of(self.profile)
        end = start + np.maximum(numbers(self.profile, "sil"), 0)
        result: Int64 = np.zeros(len(start), np.int64)
        for number, steps in self._windows.items():
            own = np.flatnonzero((pid == number) | (pid < 0) | (number == -1))
            result[own] = steps.until(end[own]) - steps.until(start[own])
        return result

    def in_counted(self, start: Int64, end: Int64, pid: Int64) -> float:
        """ns a counted step in at least one of the intervals of its process.

        start : ascending, ns since the origin
        """
        n = 0
        for number, steps in self._windows.items():
            own = (pid == number) | (number == -1)
            if own.any():
                times = BusyTime(start[own], end[own])
                n += int((times.until(steps.end) - times.until(steps.start)).sum())
        return n / max(self.n_counted, 1)

    @property
    def n_counted(self) -> int:
        """The steps that means include."""
        return int(self.is_counted.sum())

    @computed_once
    def launches(self) -> Int32:
        """[nodes] For host nodes, a kernel of their call, else of the next launch of the thread.

        -1 if there is none; of work, its own row.
        """
        graph = self.graph
        result: Int32 = graph.kernel.copy()
        host = np.flatnonzero((graph.kind == CALL) | (graph.kind == RETURN))
        thread = self.profile.api.thread[graph.call[host]]
        order = host[np.argsort(thread, kind="stable")]
        # Of the nodes in reverse order, each takes the last one with a kernel.
        reverse = order[::-1]
        has = result[reverse] >= 0
        last = np.maximum.accumulate(np.where(has, np.arange(len(reverse)), -1))
        same = np.append(self.profile.api.thread, -1)[graph.call[reverse]]
        source = reverse[np.maximum(last, 0)]
        fits = (last >= 0) & (self.profile.api.thread[graph.call[source]] == same)
        result[reverse] = np.where(fits, result[source], -1)
        return result

    def rows_of(self, kernels: Int64) -> Int64:
        """Those kernels that are replayed, as rows of `profile`."""
        return self.profile.within(kernels) if isinstance(self.profile, RunPart) else kernels

    def places_of(self, kernels: Int32) -> Int32:
        """The row of `profile` of each kernel, -1 if it is not replayed."""
        return self.profile.places(kernels) if isinstance(self.profile, RunPart) else kernels

    def run(
        self, weights: Weights, group: Int32 | None = None, factor: Floats64 | None = None
    ) -> Replayed:
        """Replay. The times are valid until the next replay; see `Runs.run`.

        group : int32 [nodes], -1 for none; durations are multiplied by the `factor` of their group
        """
        return self._runs.run(weights, group, factor)

    @property
    def recorded(self) -> Int64:
        """[2 * nodes] Start and end of each node as recorded, ns since the origin."""
        return self._runs.recorded.time

    def mean(self, wall: Int64) -> float:
        """The mean length of the counted steps, ns."""
        return float(wall[self.is_counted].mean()) if len(wall) else float("nan")

    def paths(self, replayed: Replayed, rows: Int64) -> np.ndarray:
        """The critical paths of some steps, each the last part first; see `_replay.Replay.path`.

        Steps that follow each other have one path, from the end of the last to the begin of the
        first: no change saves more of them than it takes from this path.

        rows : ascending, indices into `self.rows`
        """
        replay = self._runs.replay(replayed.weights)
        results = []
        for first, last in self._successive(rows):
            node = self._last_node(replayed, last)
            results.append(replay.path(replayed.time, node, int(replayed.begin[first])))
        return np.concatenate(results) if results else replay.path(replayed.time, 0, 0)

    def _successive(self, rows: Int64) -> Iterator[tuple[int, int]]:
        """The first and the last of steps of one process that follow each other."""
        pid = self.steps.pid[self.rows]
        for number in unique(pid[rows]).tolist():
            own = np.flatnonzero(pid == number)
            place = np.searchsorted(own, rows[pid[rows] == number])
            for run in np.split(place, np.flatnonzero(np.diff(place) > 1) + 1):
                yield int(own[run[0]]), int(own[run[-1]])

    def _last_node(self, replayed: Replayed, row: int) -> int:
        """The node of the work that ends a step: work of an earlier one may end later."""
        pid = self.steps.pid[self.rows]
        for earlier in np.flatnonzero(pid[: row + 1] == pid[row])[::-1].tolist():
            nodes = self._nodes_of_step(earlier)
            ends = replayed.time[2 * nodes.astype(np.int64) + 1]
            if ends.max(initial=_NEVER) == replayed.end[row]:
                return int(nodes[np.argmax(ends)])
        return 0

    def slack(self, replayed: Replayed) -> Int64:
        """[nodes] How much later each node may start without making a step longer, ns; -1: any."""
        most = np.iinfo(np.int64).max
        slack = np.full(len(self.graph), most, np.int64)
        latest = np.full(len(self.steps) + 1, most)  # the last for work outside of steps
        latest[self.rows] = replayed.end
        nodes = self.graph.node_of_kernel
        of_kernel = latest[self.steps.of_kernel]
        slack[nodes] = np.where(of_kernel == most, most, of_kernel - replayed.time[2 * nodes + 1])
        self._runs.replay(replayed.weights).slack(replayed.time, slack)
        return np.where(slack == most, -1, slack)

    def _nodes_of_step(self, row: int) -> Int32:
        order, first = self._by_step
        step = self.rows[row]
        return order[first[step] : first[step + 1]]

    @computed_once
    def _by_step(self) -> tuple[Int32, Int64]:
        """The nodes of kernels in order of their step, and where each step begins."""
        of_kernel = self.steps.of_kernel
        order = np.argsort(of_kernel, kind="stable")
        first = np.searchsorted(of_kernel[order], np.arange(len(self.steps) + 1))
        return self.graph.node_of_kernel[order], first


def rounded(values: npt.NDArray[np.floating[Any]]) -> Int64:
    """The nearest integers; times of damaged files may exceed 64 bits."""
    result: Int64 = np.rint(np.clip(values, -_MOST_NS, _MOST_NS)).astype(np.int64)
    return result


def has_size(profile: Columns, rows: Int64) -> Bools:
    """Whether the size of the message of each kernel is recorded: else waits are a guess."""
    known: Bools = key_of(profile, "message_bytes").ids[rows] >= 0
    return known


def waits_for_ranks(profile: Columns, rows: Int64) -> Int64:
    """How long some kernels of communication wait for other ranks: the time above the fastest of
    the same message, ns."""
    keys = [key_of(profile, name).ids[rows] for name in _SAME_MESSAGE]
    ids, _ = alike([np.ascontiguousarray(key) for key in keys])
    duration = np.maximum(numbers(profile, "sil")[rows], 0).astype(np.int64)
    fastest = np.full(int(ids.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(fastest, ids, duration)
    waits: Int64 = duration - fastest[ids]
    return waits


def _with_waits(profile: Run, graph: Graph, weights: Weights) -> Weights:
    """Of collectives, the wait for other ranks as `before`."""
    is_comm = texts(profile, "class").fits(lambda each: each == "communication")
    rows = np.flatnonzero(is_comm)
    if not len(rows):
        return weights
    nodes, waits = graph.node_of_kernel[rows], waits_for_ranks(profile, rows)
    result = weights.changed(before=True, duration=True)
    result.before[nodes] += waits
    result.duration[nodes] -= waits
    return result
