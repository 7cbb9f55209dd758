"""Copies or communication behind other work: on a stream of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fastprof.analysis.columns import numbers, texts
from fastprof.analysis.replay.graph import RETURN, WORK, pids_of
from fastprof.analysis.replay.model import Model
from fastprof.analysis.replay.runs import NO_EDGE, Weights
from fastprof.model.arrays import Bools, Int32, Int64


def overlapped(model: Model, weights: Weights, kernels: Bools) -> tuple[Weights, int]:
    """Some work on a stream of its own: results come in time, from or for another step.

    It keeps its time, its launches, and what it waits for, but for copies to the GPU the work
    before them on their stream: it follows itself. So a step is as long as this work takes, and as
    the rest takes: overlap saves at most the shorter of both, and what the GPU is idle.
    """
    rows = np.flatnonzero(kernels)
    if not len(rows):
        return weights, 0
    first, second, third = weights.source
    edges = _Edges((first, second.copy(), third.copy()), weights.changed(lag=True).lag)
    chosen = np.zeros(len(model.graph), bool)
    chosen[model.graph.node_of_kernel[rows]] = True
    before = _not_chosen_before(model, weights, chosen)
    _detach_others(model, chosen, before, edges)
    _chain(model, rows, before, edges)
    return replace(weights, source=edges.source, lag=edges.lag), len(rows)


class _Edges(NamedTuple):
    """The edges that change, as in Weights."""

    source: tuple[Int32, Int32, Int32]
    lag: tuple[Int32, Int32, Int32]


def _not_chosen_before(model: Model, weights: Weights, chosen: Bools) -> Int32:
    """[nodes] Itself; of chosen work, the last other work before it on its stream; 0: none."""
    found = np.arange(len(chosen), dtype=np.int32)
    nodes = np.flatnonzero(chosen)
    known = weights.lag[1][nodes] != NO_EDGE
    found[nodes] = np.where(known, weights.source[1][nodes] // 2, 0)
    while chosen[found].any():
        found = found[found]
    return found


def _detach_others(model: Model, chosen: Bools, before: Int32, edges: _Edges) -> None:
    """What waits for chosen work waits for the work before it."""
    kind, (source, lag) = model.graph.kind, edges
    for slot in (1, 2):
        waits = (lag[slot] != NO_EDGE) & chosen[source[slot] // 2] & ~chosen
        nodes = np.flatnonzero(waits & ((kind == WORK) | (kind == RETURN)))
        instead = before[source[slot][nodes] // 2]
        # Work with no other edge stays where it is.
        alone = (
            (kind[nodes] == WORK) & (lag[0][nodes] == NO_EDGE) & (lag[3 - slot][nodes] == NO_EDGE)
        )
        nodes, instead = nodes[(instead > 0) | ~alone], instead[(instead > 0) | ~alone]
        source[slot][nodes] = np.where(instead > 0, 2 * instead + 1, 0)
        lag[slot][nodes] = np.where(instead > 0, np.minimum(lag[slot][nodes], 0), NO_EDGE)


def _chain(model: Model, rows: Int64, before: Int32, edges: _Edges) -> None:
    """Chosen work follows the work of its class on its stream, chosen or not: it hides behind
    other classes. Unless it copies to the GPU, it also follows the other work before it."""
    source, lag = edges
    nodes = model.graph.node_of_kernel[rows]
    uploads = texts(model.profile, "copy_direction").fits(lambda each: str(each) == "HtoD")[rows]
    follows = nodes[~uploads & (lag[2][nodes] == NO_EDGE) & (before[nodes] > 0)]
    source[2][follows] = 2 * before[follows] + 1
    lag[2][follows] = np.minimum(lag[1][follows], 0)
    last, node = _successive(model, np.unique(model.kernel_class[rows]))
    chosen = np.zeros(len(model.graph), bool)
    chosen[nodes] = True
    after = model.recorded[2 * node] - model.base.before[node] - model.recorded[2 * last + 1]
    after = np.clip(after, -np.iinfo(np.int32).max, 0)
    lag[1][nodes] = NO_EDGE
    for slot, own in (
        (1, chosen[node]),
        (2, ~chosen[node] & chosen[last] & (lag[2][node] == NO_EDGE)),
    ):
        source[slot][node[own]] = 2 * last[own] + 1
        lag[slot][node[own]] = after[own]


def _successive(model: Model, classes: Int32) -> tuple[Int32, Int32]:
    """The nodes of work of some classes on a stream, and of the next such work."""
    rows = np.flatnonzero(np.isin(model.kernel_class, classes))
    keys = [pids_of(model.profile)[rows]]
    keys += [numbers(model.profile, name)[rows] for name in ("device", "stream")]
    order = np.lexsort((rows, *keys))
    same = np.ones(max(len(rows) - 1, 0), bool)
    for key in keys:
        same &= key[order[1:]] == key[order[:-1]]
    nodes = model.graph.node_of_kernel[rows[order]]
    return nodes[:-1][same], nodes[1:][same]
