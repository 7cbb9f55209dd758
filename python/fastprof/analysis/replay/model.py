"""The replay of a trace: what its graph weighs, and the lengths of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._core import _replay
from fastprof._core._pools import alike
from fastprof._core._take import take
from fastprof.analysis.cells import Cells, cells_of
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.host_states import State, host_states
from fastprof.analysis.keys import key_of
from fastprof.analysis.replay.graph import CALL, RETURN, Graph, graph_of
from fastprof.analysis.replay.part import Part, Run, part_of
from fastprof.analysis.saturated import limited
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.model.trace import NEVER
from fastprof.profile.api_classes import ALLOC, LOAD
from fastprof.profile.kept import kept
from fastprof.profile.profile import Profile
from fastprof.profile.steps.of_kernels import StepsOfKernels

__all__ = ["NO_EDGE", "Model", "Replayed", "Weights", "rounded"]

# Collectives that agree in these transfer as much.
_SAME_MESSAGE: Final = ("name", "message_bytes", "op", "shape", "layer", "dir")
_BLOCK: Final = 1 << 16  # nodes
_MOST_NS: Final = 9e18
NO_EDGE: Final = np.iinfo(np.int32).min


@dataclass(frozen=True, eq=False)
class Weights:
    """What the nodes and edges of a graph weigh, ns; see `Graph`.

    Arrays are shared: `changed` copies those that a change writes to. `has_loading` is False if
    `before` contains no data loading any more.
    """

    before: Int64
    duration: Int64
    lag: tuple[Int32, Int32, Int32]
    has_loading: bool = True

    def changed(self, before: bool = False, duration: bool = False, lag: bool = False) -> Weights:
        """The same weights with own copies of some arrays."""
        return Weights(
            self.before.copy() if before else self.before,
            self.duration.copy() if duration else self.duration,
            (self.lag[0].copy(), self.lag[1].copy(), self.lag[2].copy()) if lag else self.lag,
            self.has_loading,
        )


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay.

    Parameters
    ----------
    time : int64 [2 * nodes], ns since the origin: start and end of each node
    begin, end : int64 [rows], ns since the origin, of each step
    """

    time: Int64
    begin: Int64
    end: Int64

    @property
    def wall(self) -> Int64:
        """int64 [rows], ns, the length of each step."""
        found: Int64 = np.maximum(self.end - self.begin, 0)
        return found


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

    def __init__(self, profile: Profile, steps: str | None = None, most: int | None = None) -> None:
        """Build the graph. Reads the file again on first use.

        most : replay about so many kernels, see `part_of`; None for all
        """
        self.whole = profile
        found = profile.find_steps(steps)
        self.profile: Run = profile if most is None else part_of(profile, found, most)
        self.steps: StepsOfKernels = self.profile.find_steps(steps)
        self.graph: Graph = graph_of(self.profile, int(self.steps.start.min(initial=NEVER)))
        graph = self.graph
        self.base = _with_waits(
            self.profile,
            graph,
            Weights(graph.before, graph.duration, (graph.lag[0], graph.lag[1], graph.lag[2])),
        )
        self.is_span = self.steps.source == "none"
        length = (
            self.steps.gpu_end - self.steps.gpu_start if self.is_span else self.steps.gpu_length
        )
        has_work = np.bincount(self.steps.of_kernel + 1, minlength=len(self.steps) + 1)[1:] > 0
        self.rows: Int64 = np.flatnonzero((length >= 0) & has_work)
        self.wall: Int64 = length[self.rows]
        counted = self.steps.is_counted[self.rows]
        self.is_counted: Bools = counted if counted.any() else np.ones(len(self.rows), bool)
        self._time = np.empty(2 * len(graph) + 1, np.int64)

    @cached_property
    def cells(self) -> Cells:
        """The cells of the kernels of the whole run."""
        return cells_of(self.whole)

    @cached_property
    def kernel_class(self) -> Int32:
        """[kernels] 0 compute, 1 communication, 2 copy."""
        codes = {"communication": 1, "memcpy": 2, "memset": 2}
        classes = texts(self.profile, "class")
        of_class = np.array([*(codes.get(each, 0) for each in classes.values), 0], np.int32)
        return of_class[classes.ids]

    @cached_property
    def loading(self) -> Int64:
        """[nodes] The part of `before` of host calls during which the thread loads data, ns."""
        graph, found = self.graph, np.zeros(len(self.graph), np.int64)
        states = kept(self.whole, host_states)
        if not len(states.events[State.DATA_LOADING].start):
            return found
        nodes = np.flatnonzero((graph.kind == CALL) & (graph.before > 0))
        thread = self.profile.api.thread[graph.call[nodes]]
        end = self.profile.api.start[graph.call[nodes]]
        spent = states.covered(thread, end - graph.before[nodes], end)[:, State.DATA_LOADING]
        found[nodes] = np.minimum(spent, graph.before[nodes])
        return found

    @cached_property
    def launches(self) -> Int32:
        """[nodes] For host nodes, a kernel of their call, else of the next launch of the thread.

        -1 if there is none; of work, its own row.
        """
        graph = self.graph
        found: Int32 = graph.kernel.copy()
        host = np.flatnonzero((graph.kind == CALL) | (graph.kind == RETURN))
        thread = self.profile.api.thread[graph.call[host]]
        order = host[np.argsort(thread, kind="stable")]
        # Of the nodes in reverse order, each takes the last one with a kernel.
        reverse = order[::-1]
        has = found[reverse] >= 0
        last = np.maximum.accumulate(np.where(has, np.arange(len(reverse)), -1))
        same = np.append(self.profile.api.thread, -1)[graph.call[reverse]]
        source = reverse[np.maximum(last, 0)]
        fits = (last >= 0) & (self.profile.api.thread[graph.call[source]] == same)
        found[reverse] = np.where(fits, found[source], -1)
        return found

    def rows_of(self, kernels: Int64) -> Int64:
        """Those kernels that are replayed, as rows of `profile`."""
        return self.profile.within(kernels) if isinstance(self.profile, Part) else kernels

    def run(
        self, weights: Weights, group: Int32 | None = None, factor: Floats64 | None = None
    ) -> Replayed:
        """Replay. The times are valid until the next replay.

        group : int32 [nodes], -1 for none; durations are multiplied by the `factor` of their group
        """
        graph = self.graph
        if len(self.rows) and not self.is_span:
            _ = self._anchors  # their replay uses the same room
        replay = _replay.Replay(graph.source, weights.lag, weights.before, weights.duration)
        time, ends = replay.run(self._step_of_node, self._n_ends, group, factor, self._time)
        return Replayed(time, *self._bounds(time, ends, weights))

    def mean(self, wall: Int64) -> float:
        """The mean length of the counted steps, ns."""
        return float(wall[self.is_counted].mean()) if len(wall) else float("nan")

    def paths(self, weights: Weights, replayed: Replayed, rows: Int64) -> np.ndarray:
        """The critical paths of some steps, each the last part first; see `_replay.Replay.path`."""
        ends = replayed.time[1::2]
        replay = _replay.Replay(self.graph.source, weights.lag, weights.before, weights.duration)
        found = []
        for row in rows.tolist():
            nodes = self._nodes_of_step(row)
            last = int(nodes[np.argmax(ends[nodes])])
            found.append(replay.path(replayed.time, last, int(replayed.begin[row])))
        return np.concatenate(found) if found else replay.path(replayed.time, 0, 0)

    @cached_property
    def allocates(self) -> Bools:
        """[calls + 1] Whether a call allocates, frees or loads; the last for none."""
        classes = self.profile.api.call_class
        return np.append(classes.fits(lambda each: each in (ALLOC, LOAD)), False)

    def slack(self, weights: Weights, replayed: Replayed) -> Int64:
        """[nodes] How much later each node may start without making a step longer, ns; -1: any."""
        most = np.iinfo(np.int64).max
        slack = np.full(len(self.graph), most, np.int64)
        latest = np.full(len(self.steps) + 1, most)  # the last for work outside of steps
        latest[self.rows] = replayed.end
        nodes = self.graph.node_of_kernel
        of_kernel = latest[self.steps.of_kernel]
        slack[nodes] = np.where(of_kernel == most, most, of_kernel - replayed.time[2 * nodes + 1])
        replay = _replay.Replay(self.graph.source, weights.lag, weights.before, weights.duration)
        replay.slack(replayed.time, slack)
        return np.where(slack == most, -1, slack)

    def _nodes_of_step(self, row: int) -> Int32:
        order, first = self._by_step
        step = self.rows[row]
        return order[first[step] : first[step + 1]]

    @cached_property
    def _by_step(self) -> tuple[Int32, Int64]:
        """The nodes of kernels in order of their step, and where each step begins."""
        of_kernel = self.steps.of_kernel
        order = np.argsort(of_kernel, kind="stable")
        first = np.searchsorted(of_kernel[order], np.arange(len(self.steps) + 1))
        return self.graph.node_of_kernel[order], first

    @cached_property
    def _pids(self) -> Int64:
        return np.unique(self.steps.pid)

    @property
    def _n_ends(self) -> int:
        """The steps, and the work before the first step of each process."""
        return len(self.steps) + len(self._pids)

    @cached_property
    def _step_of_node(self) -> Int32:
        steps, of_kernel = self.steps, self.steps.of_kernel.copy()
        outside = np.flatnonzero(of_kernel < 0)
        pid, start = (numbers(self.profile, name)[outside] for name in ("pid", "start"))
        for i, each in enumerate(self._pids.tolist()):
            first = self._first_row(each)
            if first is None:
                continue
            is_before = start < steps.gpu_start[first]
            is_own = np.ones(len(outside), bool) if each == -1 else pid == each
            of_kernel[outside[is_before & is_own]] = len(steps) + i
        found = np.full(len(self.graph), -1, np.int32)
        found[self.graph.node_of_kernel] = of_kernel
        return found

    def _first_row(self, pid: int) -> int | None:
        rows = self.rows[self.steps.pid[self.rows] == pid]
        return int(rows[0]) if len(rows) else None

    def _bounds(self, time: Int64, ends: Int64, weights: Weights) -> tuple[Int64, Int64]:
        """[rows] Start and end of each step, ns since the origin."""
        never = np.iinfo(np.int64).min
        begin, end = np.zeros(len(self.steps), np.int64), np.zeros(len(self.steps), np.int64)
        for i, pid in enumerate(self._pids.tolist()):
            own = np.flatnonzero(self.steps.pid == pid)
            before = ends[[len(self.steps) + i]]
            latest = np.maximum.accumulate(np.concatenate([before, ends[own]]))
            begin[own], end[own] = latest[:-1], latest[1:]
            first = self._first_row(pid)
            if first is not None and (
                self.is_span or self._has_begin(first, begin[first] != never)
            ):
                begin[first] = self._first_begin(pid, time, weights)
        return begin[self.rows], end[self.rows]

    def _has_begin(self, first: int, follows_work: bool) -> bool:
        """Whether the first step of known length begins with the host's step."""
        steps = self.steps
        begin = steps.gpu_end[first] - steps.gpu_length[first]
        return not follows_work or bool(begin == steps.start[first])

    def _first_begin(self, pid: int, time: Int64, weights: Weights) -> int:
        """The start of the first step: as far behind the same call or work as recorded."""
        first = self._first_row(pid)
        if first is None or self.is_span:
            return int(time[2 * self._nodes_of_step(0)].min())
        start = int(self.steps.gpu_end[first] - self.steps.gpu_length[first]) - self.graph.origin
        node, ready = self._anchors[pid]
        begin = start + int(time[2 * node] - weights.before[node]) - ready
        return int(limited([begin])[0])

    @cached_property
    def _anchors(self) -> dict[int, tuple[int, int]]:
        """The first call of the first step of each process, and when its host time begins."""
        graph, found = self.graph, {}
        replay = _replay.Replay(graph.source, self.base.lag, self.base.before, self.base.duration)
        time, _ = replay.run(self._step_of_node, self._n_ends, out=self._time)
        for pid in self._pids.tolist():
            first = self._first_row(pid)
            node = self._first_call(pid, int(self.steps.start[0 if first is None else first]))
            found[pid] = node, int(time[2 * node] - self.base.before[node])
        return found

    def _first_call(self, pid: int, start: int) -> int:
        """The node of the first call of a process from a time on; 0 if there is none."""
        graph, api = self.graph, self.profile.api
        for begin in range(0, len(graph), _BLOCK):
            nodes = begin + np.flatnonzero(graph.kind[begin : begin + _BLOCK] == CALL)
            calls = graph.call[nodes]
            fits = api.start[calls] >= start
            fits &= (take(api.threads.pid, api.thread[calls]) == pid) | (pid == -1)
            if fits.any():
                return int(nodes[np.argmax(fits)])
        return 0


def rounded(values: npt.NDArray[np.floating[Any]]) -> Int64:
    """The nearest integers; times of damaged files may exceed 64 bits."""
    found: Int64 = np.rint(np.clip(values, -_MOST_NS, _MOST_NS)).astype(np.int64)
    return found


def _with_waits(profile: Run, graph: Graph, weights: Weights) -> Weights:
    """Of collectives, the wait for other ranks as `before`: the time above the fastest."""
    is_comm = texts(profile, "class").fits(lambda each: each == "communication")
    rows = np.flatnonzero(is_comm)
    if not len(rows):
        return weights
    keys = [key_of(profile, name).ids[rows] for name in _SAME_MESSAGE]
    ids, _ = alike([np.ascontiguousarray(each) for each in keys])
    nodes = graph.node_of_kernel[rows]
    duration = weights.duration[nodes]
    fastest = np.full(int(ids.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(fastest, ids, duration)
    found = weights.changed(before=True, duration=True)
    found.before[nodes] += duration - fastest[ids]
    found.duration[nodes] = fastest[ids]
    return found
