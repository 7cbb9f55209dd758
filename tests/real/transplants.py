"""The graph of one step with the times of another: whether it predicts a step it never saw."""

import numpy as np

from fastprof.analysis.grouping import numbers, texts
from fastprof.analysis.replay.graph import CALL, RETURN, WORK
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.runs import Weights

_ALIKE = 0.99  # of the kernels' names


def predictions(model: Model, with_host: bool) -> list[tuple[int, int, float]]:
    """Pairs of counted steps and the relative error of the length that one predicts for the other.

    The step before each is replaced too: it decides how far the host is ahead. Steps that launch
    other kernels are left out.
    """
    rows = np.flatnonzero(model.is_counted)
    steps = model.rows[rows]
    result = []
    for i, a in enumerate(steps.tolist()):
        for j, b in enumerate(steps.tolist()):
            same_process = model.steps.pid[a] == model.steps.pid[b]
            if a == b or not same_process or not {a - 1, b - 1} <= set(steps.tolist()):
                continue
            weights = model.base.changed(before=True, duration=True)
            if all(_transplant(model, weights, a - k, b - k, with_host) for k in (1, 0)):
                wall = model.run(weights).wall[rows[i]]
                expected = model.wall[rows[j]]
                result.append((a, b, float(wall - expected) / float(expected)))
    return result


def _transplant(model: Model, weights: Weights, a: int, b: int, with_host: bool) -> bool:
    """Give step a the times of step b; False if it launches other kernels."""
    own, other = _kernels(model, a), _kernels(model, b)
    if len(own) != len(other):
        return False
    names = texts(model.profile, "name").ids
    if np.mean(names[own] == names[other]) < _ALIKE:
        return False
    nodes = model.graph.node_of_kernel
    weights.duration[nodes[own]] = model.base.duration[nodes[other]]
    weights.before[nodes[own]] = model.base.before[nodes[other]]
    if with_host:
        to, source = (_host_nodes(model, step) for step in (a, b))
        for kind in (CALL, RETURN):
            if len(to[kind]) != len(source[kind]):
                return False
            weights.before[to[kind]] = model.base.before[source[kind]]
            weights.duration[to[kind]] = model.base.duration[source[kind]]
    return True


def _kernels(model: Model, step: int) -> np.ndarray:
    """The kernels of a step, in order of their streams."""
    rows = np.flatnonzero(model.steps.of_kernel == step)
    keys = [numbers(model.profile, name)[rows] for name in ("stream", "device", "pid")]
    return rows[np.lexsort((rows, *keys))]


def _host_nodes(model: Model, step: int) -> dict[int, np.ndarray]:
    """The calls and returns of a step by kind, in order of their threads."""
    graph, api, steps = model.graph, model.profile.api, model.steps
    host = np.flatnonzero((graph.kind != WORK) & (graph.call >= 0))
    call = graph.call[host]
    start = api.start[call]
    fits = (start >= steps.start[step]) & (start < steps.end[step])
    fits &= (api.pid[call] == steps.pid[step]) | (steps.pid[step] == -1)
    host = host[fits]
    host = host[np.argsort(api.thread[graph.call[host]], kind="stable")]
    return {kind: host[graph.kind[host] == kind] for kind in (CALL, RETURN)}


def with_mean_lags(model: Model) -> Weights:
    """The same run with the mean latency of its class for each latency and gap."""
    graph, result = model.graph, model.base.changed(lag=True)
    for slot, lag in enumerate(result.lag):
        for at_end in (0, 1):
            decides = (graph.kind == WORK) & (graph.slot == slot) & (graph.source[slot] > 1)
            decides &= graph.source[slot] % 2 == at_end
            if decides.any():
                lag[decides] = round(float(lag[decides].mean()))
    return result
