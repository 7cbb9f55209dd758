"""What a step saves if it is replayed with the changes of findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.host_states import State
from fastprof.analysis.replay import host_changes
from fastprof.analysis.replay.model import Model, Weights, rounded
from fastprof.analysis.replay.overlap import overlapped
from fastprof.analysis.replay.path import OF_STATES
from fastprof.model.arrays import Bools

__all__ = ["Base", "ReplayedSavings", "base_of", "replayed_savings"]

MOST: Final = 100_000  # kernels to replay; the steps of longer runs are alike
_WAITS: Final = frozenset({"sync", "blocking copy"})
_LAUNCHES: Final = frozenset({"launch-bound", "launch latency", "host-bound"})
_SHORT: Final = frozenset({"launch-bound", "launch latency"})


class ReplayedSavings(NamedTuple):
    """Savings per step, ns.

    Parameters
    ----------
    alone : of each finding
    together : of all of them
    """

    alone: list[float]
    together: float


class Base(NamedTuple):
    """A run to replay, and the mean length of its steps in a replay without changes, ns."""

    model: Model
    wall: float


def base_of(facts: Facts) -> Base | None:
    """The run as recorded; None if the trace does not record what a replay needs."""
    if not facts.has_times or not (facts.profile.api.of_kernel >= 0).any():
        return None
    model = Model(facts.profile, facts.steps_source, MOST)
    return Base(model, model.mean(model.run(model.base).wall)) if len(model.rows) else None


def replayed_savings(facts: Facts, base: Base, findings: Sequence[Finding]) -> ReplayedSavings:
    """The savings of findings."""
    model = base.model

    def saved(weights: Weights) -> float:
        return max(base.wall - model.mean(model.run(weights).wall), 0.0)

    alone, together = [], model.base
    for each in findings:
        alone.append(saved(_changed(facts, model, model.base, each)))
        together = _changed(facts, model, together, each)
    return ReplayedSavings(alone, saved(together))


def _changed(facts: Facts, model: Model, weights: Weights, finding: Finding) -> Weights:
    """The run without the time that a finding claims."""
    rows = np.asarray(finding.kernels, np.int64)
    own = facts.own_ns(rows) if len(rows) else 0.0
    idle = {cause: ns for cause, ns in finding.idle_ns.items() if ns > 0}
    if own and finding.gpu_ns > 0:
        saved = min(finding.gpu_ns / own, 1.0)
        rows = model.rows_of(rows)
        if finding.overlaps:
            weights = overlapped(model, weights, _flags(model, rows))[0]
        else:
            weights = _shorter(model, weights, rows, 1 - saved)
        if _LAUNCHES & idle.keys():
            weights = _without_launches(model, weights, rows, saved)
            idle = {cause: ns for cause, ns in idle.items() if cause not in _LAUNCHES}
    for cause, ns in idle.items():
        weights = _without_idle(model, weights, cause, _share(facts, cause, ns))
    return weights


def _without_launches(model: Model, weights: Weights, rows: np.ndarray, saved: float) -> Weights:
    """Kernels without launches if all their time is saved, else launched together."""
    change = host_changes.removed if saved == 1.0 else host_changes.as_graph
    return change(model, weights, _flags(model, rows))[0]


def _flags(model: Model, rows: np.ndarray) -> Bools:
    """[kernels] Whether each is among some rows."""
    found = np.zeros(len(model.profile), bool)
    found[rows] = True
    return found


def _shorter(model: Model, weights: Weights, rows: np.ndarray, factor: float) -> Weights:
    """Kernels times a factor, collectives with their waits."""
    found = weights.changed(before=True, duration=True)
    nodes = model.graph.node_of_kernel[rows]
    found.duration[nodes] = rounded(found.duration[nodes] * factor)
    waits = nodes[model.kernel_class[rows] == 1]
    found.before[waits] = rounded(found.before[waits] * factor)
    return found


def _share(facts: Facts, cause: str, ns: float) -> float:
    """The share of the idle time of a cause."""
    try:
        total = facts.idle.mean(cause)
    except CannotJudge:
        return 1.0
    return min(ns / total, 1.0) if total else 1.0


def _without_idle(model: Model, weights: Weights, cause: str, share: float) -> Weights:
    if cause in OF_STATES and cause not in _WAITS:
        state = State(OF_STATES.index(cause))
        return host_changes.states_scaled(model, weights, {state}, 1 - share)[0]
    if cause in _WAITS:
        return host_changes.without_sync(model, weights)[0]
    if cause in _SHORT:
        return host_changes.as_graph(model, weights)[0]
    if cause == "host-bound":
        return host_changes.without_stalls(model, weights, share)
    return weights
