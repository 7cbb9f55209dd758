"""The plan: findings in the order in which a replay of the run gains most, and what each saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.host_states import State
from fastprof.analysis.idle_causes import CAUSES
from fastprof.analysis.idle_windows import gaps_of_steps
from fastprof.analysis.replay import host_changes
from fastprof.analysis.replay.host_time import HostTime
from fastprof.analysis.replay.late_launches import late_launches
from fastprof.analysis.replay.model import Model, Weights, rounded
from fastprof.model.arrays import Int64

__all__ = ["Base", "Planned", "base_of", "planned", "why_not_replayed"]

MOST: Final = 100_000  # kernels to replay; the steps of longer runs are alike
_WAITS: Final = frozenset({"sync", "blocking copy"})
_LAUNCHES: Final = frozenset({"launch-bound", "launch latency", "host-bound"})


class Planned(NamedTuple):
    """A finding of the plan.

    Parameters
    ----------
    number : index of the finding
    ns : what its change saves per step, after the changes of the findings before it
    alone : what it saves without these
    """

    number: int
    ns: float
    alone: float


class Base(NamedTuple):
    """A run to replay, and the mean length of its steps without changes, ns, more than 0."""

    model: Model
    wall: float


def base_of(facts: Facts) -> Base | None:
    """The run as recorded; None if the trace does not record what a replay needs."""
    if why_not_replayed(facts):
        return None
    model = Model(facts.profile, facts.steps_source, MOST)
    if not len(model.rows):
        return None
    wall = model.mean(model.run(model.base).wall)
    return Base(model, wall) if wall > 0 else None


def why_not_replayed(facts: Facts) -> str:
    """What the trace lacks, "" if it can be replayed."""
    if not facts.has_times:
        return "the trace has no times to replay"
    if not len(facts.profile.api):
        return "the trace has no API calls to replay"
    if not (facts.profile.api.of_kernel >= 0).any():
        return "the trace has no launches to replay"
    return ""


def planned(
    facts: Facts, base: Base, findings: Sequence[Finding], least: Sequence[float]
) -> list[Planned]:
    """The findings of the plan: next is always the one whose change, on top of the changes before,
    saves most.

    What each saves adds up to what all together save. Changes may need each other, so all that
    remain are replayed again for each place. Findings that save less than `least` are left out.

    least : smallest saving of each finding, ns
    """
    model, weights, wall = base.model, base.model.base, base.wall
    scale = facts.step_ns / base.wall  # a part of the run may be replayed
    late = late_launches(model, gaps_of_steps(facts.profile, facts.steps))
    changes = [_change(facts, model, finding) for finding in findings]
    remaining = list(range(len(changes)))
    found: list[Planned] = []
    alone: dict[int, float] = {}
    while remaining:
        walls = {}
        for number in remaining:
            changed = _changed(model, late, weights, changes[number])
            walls[number] = min(model.mean(model.run(changed).wall), wall)
        saved = {number: (wall - each) * scale for number, each in walls.items()}
        alone = alone or saved
        fits = [number for number in remaining if saved[number] >= max(least[number], 1.0)]
        if not fits:
            break
        best = max(fits, key=saved.__getitem__)
        found.append(Planned(best, saved[best], alone[best]))
        weights, wall = _changed(model, late, weights, changes[best]), walls[best]
        remaining.remove(best)
    return found


class _Change(NamedTuple):
    """What a finding changes.

    Parameters
    ----------
    rows : int64 [any], kernels of the model
    saved : the share of their time that is saved
    without_launches : whether their launches are saved too
    idle : the share of the idle time that is saved, by cause
    """

    rows: Int64
    saved: float
    without_launches: bool
    idle: Mapping[str, float]


def _change(facts: Facts, model: Model, finding: Finding) -> _Change:
    rows = np.asarray(finding.kernels, np.int64)
    own = facts.own_ns(rows) if len(rows) else 0.0
    saved = min(max(finding.gpu_ns, 0.0) / own, 1.0) if own else 0.0
    idle = {cause: ns for cause, ns in finding.idle_ns.items() if ns > 0}
    launches = saved > 0 and bool(_LAUNCHES & idle.keys())
    if launches:
        idle = {cause: ns for cause, ns in idle.items() if cause not in _LAUNCHES}
    shares = {cause: _share(facts, cause, ns) for cause, ns in idle.items()}
    return _Change(model.rows_of(rows), saved, launches, shares)


def _changed(model: Model, late: HostTime, weights: Weights, change: _Change) -> Weights:
    """The run without the time that a finding claims."""
    if change.saved:
        weights = _shorter(model, weights, change.rows, 1 - change.saved)
    if change.without_launches:
        weights = _without_launches(model, weights, change.rows, change.saved)
    for cause, share in change.idle.items():
        weights = _without_idle(model, late, weights, cause, share)
    return weights


def _without_launches(model: Model, weights: Weights, rows: Int64, saved: float) -> Weights:
    """Kernels without launches if all their time is saved, else launched together."""
    kernels = np.zeros(len(model.profile), bool)
    kernels[rows] = True
    change = host_changes.removed if saved == 1.0 else host_changes.as_graph
    return change(model, weights, kernels)[0]


def _shorter(model: Model, weights: Weights, rows: Int64, factor: float) -> Weights:
    """Kernels of their recorded time times a factor, collectives with their waits.

    Of two changes of a kernel, the larger one counts: both save the same time.
    """
    found, recorded = weights.changed(before=True, duration=True), model.base
    nodes = model.graph.node_of_kernel[rows]
    waits = nodes[model.kernel_class[rows] == 1]
    for own, was, own_nodes in (
        (found.duration, recorded.duration, nodes),
        (found.before, recorded.before, waits),
    ):
        own[own_nodes] = np.minimum(own[own_nodes], rounded(was[own_nodes] * factor))
    return found


def _share(facts: Facts, cause: str, ns: float) -> float:
    """The share of the idle time of a cause."""
    try:
        total = facts.idle.mean(cause)
    except CannotJudge:
        return 1.0
    return min(ns / total, 1.0) if total else 1.0


def _without_idle(
    model: Model, late: HostTime, weights: Weights, cause: str, share: float
) -> Weights:
    """The run without a share of the time of a cause, of what the findings before it left."""
    if cause in _WAITS:
        return host_changes.without_sync(model, weights)[0]
    if cause not in CAUSES:
        return weights
    number = CAUSES.index(cause)
    left = weights.left[number]
    if not left:
        return weights
    time = model.host_time if number < len(State) else late
    factor = max(left - share, 0.0) / left
    return host_changes.time_scaled(time, weights, {number}, factor)[0]
