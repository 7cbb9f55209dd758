"""Changes of what the host does, and of how it launches.

The host of the unrecorded run: its own time without that of the recorder.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np

from fastprof._core._take import take
from fastprof._system.classes import NamedTuple
from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.host.states import State
from fastprof.analysis.recorder import unrecorded_step
from fastprof.analysis.replay.graph import CALL, RETURN
from fastprof.analysis.replay.host_time import HostTime
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.runs import NO_EDGE, Weights
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.profile.api_classes import COPY, SYNC
from fastprof.profile.steps.kernel_steps import StepsOfKernels

_ROUNDING_NS: Final = 1000  # recorded times of successive work may overlap by so much


def host_scaled(model: Model, weights: Weights, factor: float) -> tuple[Weights, int]:
    """The host's own time and calls times a factor; time in a `State` keeps its length."""
    nodes = np.flatnonzero(model.graph.kind == CALL)
    found = weights.changed(before=True, duration=True)
    in_calls = model.host_time.own.sums(len(model.graph), weights.left)
    for ns, rest in ((found.before, model.in_states(weights)), (found.duration, in_calls)):
        fixed = np.minimum(rest[nodes], np.maximum(ns[nodes], 0))
        ns[nodes] = fixed + rounded((ns[nodes] - fixed) * factor)
    return found, len(nodes)


def states_scaled(
    model: Model, weights: Weights, states: Collection[State], factor: float
) -> tuple[Weights, int]:
    """Host time in some states times a factor; waits for GPU work keep their length."""
    return time_scaled(model.host_time, weights, states, factor)


def time_scaled(
    time: HostTime, weights: Weights, causes: Collection[int], factor: float
) -> tuple[Weights, int]:
    """The parts of host time that belong to some causes times a factor."""
    left = np.array(weights.left)
    is_wanted = np.zeros(len(left), bool)
    is_wanted[[int(each) for each in causes]] = True
    found = weights.changed(before=True, duration=True)
    n = 0
    for spent, ns in ((time.before, found.before), (time.own, found.duration)):
        parts = np.flatnonzero(is_wanted[spent.state])
        is_concerned = np.zeros(len(ns), bool)
        is_concerned[spent.node[parts]] = True
        nodes = np.flatnonzero(is_concerned)
        saved = spent.ns[parts] * left[spent.state[parts]] * (1 - factor)
        np.subtract.at(ns, spent.node[parts], rounded(saved))
        ns[nodes] = np.maximum(ns[nodes], 0)
        n += len(nodes)
    left[is_wanted] *= factor
    return replace(found, left=tuple(left.tolist())), n


def without_loading(model: Model, weights: Weights) -> tuple[Weights, int]:
    """Batches that are ready when the host fetches them."""
    return states_scaled(model, weights, {State.DATA_LOADING}, 0.0)


def waiting(model: Model) -> Int64:
    """The nodes of returns from calls that synchronise, and from copies that block."""
    classes = model.profile.api.call_class
    waits = classes.fits(lambda each: each in (SYNC, COPY))
    nodes = np.flatnonzero(model.graph.kind == RETURN)
    return nodes[waits[model.graph.call[nodes]]]


def without_sync(model: Model, weights: Weights) -> tuple[Weights, int]:
    """Calls that synchronise, and copies that block, return at once."""
    nodes = waiting(model)
    found = weights.changed(before=True, lag=True)
    found.lag[1][nodes] = NO_EDGE
    found.before[nodes] = 0
    return found, len(nodes)


def removed(model: Model, weights: Weights, kernels: Bools) -> tuple[Weights, int]:
    """No such kernels, and no launches of them: nor the host's own time before these."""
    found = weights.changed(before=True, duration=True, lag=True)
    _remove(model, found, kernels)
    return found, int(np.count_nonzero(kernels))


def _remove(model: Model, weights: Weights, kernels: Bools) -> None:
    graph, of_kernel = model.graph, model.profile.api.of_kernel
    nodes = graph.node_of_kernel[np.flatnonzero(kernels)]
    weights.duration[nodes] = weights.before[nodes] = 0
    weights.lag[0][nodes] = weights.lag[2][nodes] = NO_EDGE
    weights.lag[1][nodes] = np.minimum(weights.lag[1][nodes], 0)
    gone = np.zeros(len(model.profile.api) + 1, bool)
    gone[of_kernel[kernels]] = True
    gone[of_kernel[~kernels]] = gone[-1] = False  # the call launches other work too
    host = np.flatnonzero((graph.call >= 0) & gone[graph.call])
    weights.duration[host] = 0
    weights.before[host] = np.minimum(weights.before[host], _loading(model, weights)[host])
    returns = host[graph.kind[host] == RETURN]
    weights.lag[1][returns] = NO_EDGE


def _loading(model: Model, weights: Weights) -> Int64:
    """[nodes] The data loading before each node, ns."""
    only = tuple(ns if i == State.DATA_LOADING else 0.0 for i, ns in enumerate(weights.left))
    return model.host_time.before.sums(len(model.graph), only)


def fused(model: Model, weights: Weights, kernels: Bools) -> tuple[Weights, int]:
    """Neighbours on a stream, in one layer and phase, as one kernel: it takes as long as the
    longest of them, which moves its bytes once."""
    order, run = _neighbours(model, kernels)
    found = weights.changed(before=True, duration=True, lag=True)
    if not len(order):
        return found, 0
    is_first = np.append(True, run[1:] != run[:-1])
    first = np.flatnonzero(is_first)
    nodes = model.graph.node_of_kernel[order]
    ns = weights.duration[nodes]
    # Each keeps a share of the time of the longest, so that none ends later than it did.
    sums, longest = np.add.reduceat(ns, first), np.maximum.reduceat(ns, first)
    share = rounded(ns * (longest / np.maximum(sums, 1))[np.cumsum(is_first) - 1])
    rest = longest - (np.add.reduceat(share, first) - share[first])
    share[first] = np.clip(rest, 0, ns[first])
    others = np.zeros(len(kernels), bool)
    others[order[~is_first]] = True
    _remove(model, found, others)
    found.duration[nodes] = share
    return found, int(np.count_nonzero(others))


def _neighbours(model: Model, kernels: Bools) -> tuple[Int64, Int64]:
    """Some kernels in order of their streams, and the number of the run of each."""
    profile, n = model.profile, len(kernels)
    keys = [numbers(profile, name) for name in ("pid", "device", "stream")]
    order = np.lexsort((np.arange(n), *keys))
    own = [texts(profile, name).ids for name in ("layer", "phase", "dir")]
    start = numbers(profile, "start")[order]
    same = start[1:] >= (start + numbers(profile, "sil")[order])[:-1] - _ROUNDING_NS
    for each in (*keys, *own, model.steps.of_kernel):
        same &= each[order[1:]] == each[order[:-1]]
    same &= kernels[order[1:]] & kernels[order[:-1]]
    run = np.cumsum(np.append(True, ~same))
    chosen = kernels[order]
    return order[chosen], run[chosen]


def as_graph(model: Model, weights: Weights, kernels: Bools | None = None) -> tuple[Weights, int]:
    """The launches of each thread between two waits, in one step, as one launch of a CUDA graph.

    The first keeps the typical length of a launch; the others, and the host's own time before
    them, are gone. Data loading remains.

    kernels : those of the graph, None for all
    """
    graph = model.graph
    found = weights.changed(before=True, duration=True)
    launches, is_first = _graph_launches(model)
    if kernels is not None:
        own = kernels[graph.kernel[launches]]
        launches, is_first = launches[own], is_first[own]
    length = found.duration[launches]
    typical = int(np.median(length[length > 0])) if (length > 0).any() else 0
    rest = launches[~is_first]
    found.before[rest] = np.minimum(found.before[rest], _loading(model, weights)[rest])
    found.duration[launches] = np.where(is_first, np.minimum(length, typical), 0)
    return found, len(rest)


def _graph_launches(model: Model) -> tuple[Int64, Bools]:
    """The nodes of launches in order of their thread, and whether each begins a graph."""
    graph, api = model.graph, model.profile.api
    thread = take(api.thread, graph.call)
    host = np.flatnonzero(graph.kind != 0)
    host = host[graph.call[host] >= 0]
    host = host[np.argsort(thread[host], kind="stable")]
    # Returns of calls that wait end a graph, as does a new step or thread.
    part = np.cumsum(graph.kind[host] == RETURN)
    launches = (graph.kind[host] == CALL) & (graph.kernel[host] >= 0)
    nodes, part = host[launches], part[launches]
    step: Int32 = take(model.steps.of_kernel, graph.kernel[nodes])
    new = (np.diff(part) > 0) | (np.diff(step) != 0) | (np.diff(thread[nodes]) != 0)
    return nodes, np.append(True, new)[: len(nodes)]


_LEAST: Final = 0.1  # of the host's own time: no recorder is known to slow a host down tenfold
_HALVINGS: Final = 10
_CLOSE: Final = 0.005  # of the length of a step


class Calibrated(NamedTuple):
    """The run without the recorder, from which changes start.

    Parameters
    ----------
    weights : those of `Model.base` where nothing is known
    wall : mean length of a step of its replay, ns
    factor : what remains of the host's own time; None where nothing is known
    """

    weights: Weights
    wall: float
    factor: float | None


def calibrated(model: Model, steps: StepsOfKernels) -> Calibrated:
    """Scale the host's own time until the median replayed step is as long as the unrecorded one.

    The run as recorded, if unrecorded steps were not measured or not shorter, or if no plausible
    factor explains them.

    steps : those of the whole run
    """
    recorded, typical = _replayed(model, model.base, None)
    measured = unrecorded_step(model.whole, steps)
    if measured is None or measured.median_ns >= typical:
        return recorded
    wanted, least, most = measured.median_ns, _LEAST, 1.0
    found, typical = _scaled(model, least)
    if typical > wanted * (1 + _CLOSE):
        return recorded
    for _ in range(_HALVINGS):
        if abs(typical - wanted) <= _CLOSE * wanted:
            break
        middle = (least + most) / 2
        found, typical = _scaled(model, middle)
        least, most = (middle, most) if typical < wanted else (least, middle)
    return found


def _scaled(model: Model, factor: float) -> tuple[Calibrated, float]:
    return _replayed(model, host_scaled(model, model.base, factor)[0], factor)


def _replayed(model: Model, weights: Weights, factor: float | None) -> tuple[Calibrated, float]:
    """The run with some weights, and the median length of its counted steps, ns."""
    wall = model.run(weights).wall
    typical = float(np.median(wall[model.is_counted])) if len(wall) else float("nan")
    return Calibrated(weights, model.mean(wall), factor), typical
