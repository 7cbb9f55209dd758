"""What the host does in the time before and in its calls, by the states that `idle` names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.host.states import HostStates, State
from fastprof.analysis.idle.causes import Cause
from fastprof.analysis.replay.graph import CALL, RETURN, Graph
from fastprof.model.arrays import Int32, Int64, UInt8

AS_RECORDED: Final = (1.0,) * len(Cause)


class Spent(NamedTuple):
    """Host time in states, in order of node and state.

    Parameters
    ----------
    node : int32 [parts]
    state : uint8 [parts], a `State`, or another `Cause` of idle time
    ns : int64 [parts], more than 0
    """

    node: Int32
    state: UInt8
    ns: Int64

    def time_of_nodes(self, nodes: Int32, left: tuple[float, ...]) -> Iterator[Floats64]:
        """[nodes] The ns that remain of each state in turn.

        left : the share of each `Cause` that remains
        """
        keys = np.append(self.node.astype(np.int64) * len(State) + self.state, -1)
        ns = np.append(self.ns, 0)
        for state in range(len(State)):
            wanted = nodes.astype(np.int64) * len(State) + state
            place = np.searchsorted(keys[:-1], wanted)
            yield np.where(keys[place] == wanted, ns[place], 0) * left[state]

    def sums(self, n: int, left: tuple[float, ...]) -> Int64:
        """[n nodes] The ns that remain of all states."""
        ns = self.ns * np.array(left)[self.state]
        return np.rint(np.bincount(self.node, ns, n)).astype(np.int64)


class HostTime(NamedTuple):
    """The time in states, before the nodes of host calls and in their own time."""

    before: Spent
    own: Spent


def host_time(
    states: HostStates, graph: Graph, thread_of_call: Int32, before: Int64, time: Int64
) -> HostTime:
    """The host time of the graph as recorded.

    thread_of_call : int32 [calls]
    before : int64 [nodes], ns, the time before each node that counts
    time : int64 [2 * nodes], ns since the origin, start and end of each
    """
    host = np.flatnonzero((graph.kind == CALL) | (graph.kind == RETURN))
    if not any(len(event.start) for event in states.events):
        host = host[:0]
    thread = take(thread_of_call, graph.call[host])
    start, end = (time[2 * host + i] + graph.origin for i in (0, 1))

    def spent(begin: Int64, end: Int64) -> Spent:
        longer = np.flatnonzero(end > begin)
        ns = states.covered(thread[longer], begin[longer], end[longer])
        row, state = np.nonzero(ns > 0)
        node = host[longer[row]].astype(np.int32)
        return Spent(node, state.astype(np.uint8), ns[row, state])

    return HostTime(spent(start - before[host], start), spent(start, end))
