"""The host time by which launches come too late: what the GPU waits for in its gaps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.idle.causes import Cause
from fastprof.analysis.idle.gaps import WindowGaps
from fastprof.analysis.replay.graph import CALL, RETURN
from fastprof.analysis.replay.host_time import HostTime, Spent
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.runs import NO_EDGE, Weights
from fastprof.model.arrays import Bools, Int32, Int64

# Causes in no `State`: the host prepares the launch, or the launch takes a while to begin.
_CAUSES: Final = (
    Cause.OTHER_THREAD, Cause.SYSTEM, Cause.OFF_CPU, Cause.LAUNCH_BOUND, Cause.HOST_BOUND,
    Cause.LATENCY,
)  # fmt: skip


def late_launches(model: Model, idle: WindowGaps, start: Weights | None = None) -> HostTime:
    """The host's own time, by the `Cause` of the gaps that end with its launches.

    Each gap takes its ns from the calls that lead to the launch of the work after it, and from the
    time between them: since the launch after the gap before, since the thread waited, or since
    another thread handed over. Their time in any `State` remains. So no more host time is late than
    the GPU is idle: without it, the steps are shorter by at most that.

    start : the run from which changes start, of whose host time the same shares are late; None for
        the run as recorded
    """
    graph = model.graph
    node, cause, ns = _wanted(model, idle)
    host = _in_order(model)
    segment, is_own = _segments(model, host, node)
    before, own = _available(model, model.base)
    before, own = np.where(is_own, before[host], 0), np.where(is_own, own[host], 0)
    n = int(segment.max(initial=-1)) + 1
    place = np.full(len(graph), -1, np.int64)
    place[host] = segment
    of_gap, available = place[node], np.bincount(segment, before + own, n)
    most = np.maximum(np.maximum(available, np.bincount(of_gap, ns, n)), 1)
    if start is not None:
        before, own = (np.where(is_own, ns[host], 0) for ns in _available(model, start))
    parts = (np.flatnonzero(cause == column) for column in range(len(_CAUSES)))
    shares = (np.bincount(of_gap[rows], ns[rows], n) / most for rows in parts)
    return HostTime(*_spent(host, (before, own), shares, segment))


def _wanted(model: Model, idle: WindowGaps) -> tuple[Int32, Int32, Int64]:
    """Parts of gaps: the launch of the work after, the cause as index of _CAUSES, and the ns."""
    graph, calls = model.graph, model.profile.api
    column = np.full(len(Cause), -1, np.int32)
    column[[*_CAUSES]] = np.arange(len(_CAUSES))
    parts = idle.causes.parts
    of_call = np.full(len(calls) + 1, -1, np.int32)
    nodes = np.flatnonzero(graph.kind == CALL)
    of_call[graph.call[nodes]] = nodes
    of_call[-1] = -1
    kernel = model.places_of(idle.gaps.after)
    node = of_call[take(calls.of_kernel, kernel, -1)]
    rows = np.flatnonzero((column[parts.cause] >= 0) & (node[parts.gap] >= 0))
    return node[parts.gap[rows]], column[parts.cause[rows]], parts.ns[rows]


def _in_order(model: Model) -> Int64:
    """The nodes of the host, in order of thread and time."""
    kind = model.graph.kind
    host = np.flatnonzero((kind == CALL) | (kind == RETURN))
    thread = take(model.profile.api.thread, model.graph.call[host])
    return host[np.argsort(thread, kind="stable")]


def _segments(model: Model, host: Int64, launches: Int32) -> tuple[Int64, Bools]:
    """[host] The stretch of its thread that each node is in, and whether it is a call.

    A stretch ends with one of the launches, or a wait; it begins where another thread hands over.
    """
    graph = model.graph
    thread: Int32 = take(model.profile.api.thread, graph.call[host])
    is_wait = graph.kind[host] == RETURN
    is_last = np.zeros(len(graph), bool)
    is_last[launches] = True
    begins = np.append(True, thread[1:] != thread[:-1])[: len(host)]
    for source, lag in zip(graph.source, graph.lag, strict=True):
        before = graph.call[source[host] // 2]
        known = (lag[host] != NO_EDGE) & (before >= 0) & ~is_wait
        begins |= known & (take(model.profile.api.thread, before, -1) != thread)
    ends = is_last[host] | is_wait
    begins[1:] |= ends[:-1]
    return np.cumsum(begins) - 1, ~is_wait


def _available(model: Model, weights: Weights) -> tuple[Int64, Int64]:
    """[nodes] The host's own time before calls and in them, in no `State`, ns."""
    in_calls = model.host_time.own.sums(len(model.graph), weights.left)
    before = np.maximum(weights.before - model.in_states(weights), 0)
    return before, np.maximum(weights.duration - in_calls, 0)


def _spent(
    host: Int64, times: tuple[Int64, Int64], shares: Iterable[Floats64], segment: Int64
) -> Iterator[Spent]:
    """Shares of each of two times of nodes, by cause.

    shares : of _CAUSES in turn, [segments]
    """
    results: tuple[list[Spent], list[Spent]] = [], []
    for cause, share in zip(_CAUSES, shares, strict=True):
        for ns, result in zip(times, results, strict=True):
            part = np.rint(ns * share[segment]).astype(np.int64)
            rows = np.flatnonzero(part)
            causes = np.full(len(rows), cause, np.uint8)
            result.append(Spent(host[rows].astype(np.int32), causes, part[rows]))
    for result in results:
        yield Spent(*map(np.concatenate, zip(*result, strict=True)))
