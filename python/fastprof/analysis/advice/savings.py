"""The plan: findings in the order in which a replay of the run gains most, and what each saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import Rule
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.host.states import State
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.idle.gaps import gaps_of_steps
from fastprof.analysis.replay import changes as host_changes
from fastprof.analysis.replay.changes import calibrated, overlapped
from fastprof.analysis.replay.graph import CALL
from fastprof.analysis.replay.late_launches import late_launches
from fastprof.analysis.replay.model import Model, rounded
from fastprof.analysis.replay.runs import Weights
from fastprof.model.arrays import Bools, Int64

MOST: Final = 100_000  # kernels to replay; the steps of longer runs are alike
_PAIRED: Final = 8  # of the findings that save too little by themselves, the largest
_WAITS: Final = frozenset({"sync", "blocking copy"})
_LAUNCHES: Final = frozenset({"launch-bound", "launch latency", "host-bound"})


class Planned(NamedTuple):
    """A finding of the plan.

    Parameters
    ----------
    number : index of the finding
    ns : what its change saves per step, after the changes of the findings before it; of changes
        that need each other, an equal share of what they save together
    alone : what it saves without other changes
    together : the places in the plan, from 0, of the findings that need each other, itself
        included; () if it needs none
    """

    number: int
    ns: float
    alone: float
    together: tuple[int, ...] = ()


class Base(NamedTuple):
    """A run to replay, without the recorder where its part is known.

    Parameters
    ----------
    model : Model
    weights : those from which changes start
    wall : the mean length of its steps in a replay without changes, ns, more than 0
    recorded : the same as recorded
    is_unrecorded : whether it is without the recorder
    """

    model: Model
    weights: Weights
    wall: float
    recorded: float
    is_unrecorded: bool


class Step(NamedTuple):
    """The step that savings are parts of.

    Parameters
    ----------
    ns : its length: without the recorder if that is known, else as recorded
    is_unrecorded : whether it is without the recorder
    """

    ns: float
    is_unrecorded: bool = False

    def share(self, ns: float) -> float:
        """A part of it."""
        return ns / max(self.ns, 1)


def step_of(facts: Facts, base: Base | None) -> Step:
    """The mean step; of a part of the run that is replayed, scaled to that of the whole run."""
    if base is None or not base.is_unrecorded or base.wall > (1 - _SHORTER) * base.recorded:
        return Step(facts.step_ns)
    return Step(facts.step_ns * base.wall / base.recorded, True)


_SHORTER: Final = 0.005  # of the step, from which the recorder makes a difference


def base_of(facts: Facts) -> Base | None:
    """The run as recorded; None if the trace does not record what a replay needs."""
    if why_not_replayed(facts):
        return None
    model = Model(facts.profile, facts.steps_source, MOST)
    if not len(model.rows):
        return None
    recorded, start = model.mean(model.run(model.base).wall), calibrated(model, facts.steps)
    if min(start.wall, recorded) <= 0:
        return None
    return Base(model, start.weights, start.wall, recorded, start.factor is not None)


def why_not_replayed(facts: Facts) -> str:
    """What the trace lacks, "" if it can be replayed."""
    if not facts.has_times:
        return "the trace has no times of whole steps to replay"
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
    remain are replayed again for each place. Findings that save less than `least` are left out;
    if all do, but two of them save enough together, these are next. Where a later change saves
    more than an earlier one, it needs that one: they share what both save.

    least : smallest saving of each finding, ns
    """
    plan = PlannedRun(facts, base, findings)
    remaining, order, taken = list(range(len(findings))), list[int](), list[float]()
    alone: dict[int, float] = {}
    while remaining:
        saved = {number: plan.saved(number) for number in remaining}
        alone = alone or saved
        fits = [number for number in remaining if saved[number] >= max(least[number], 1.0)]
        chosen = [max(fits, key=saved.__getitem__)] if fits else plan.pair(remaining, least)
        if not chosen:
            break
        for number in chosen:
            order.append(number)
            taken.append(plan.take(number))
            remaining.remove(number)
    return [
        Planned(number, ns, alone[number], together)
        for number, (ns, together) in zip(order, _shared(taken), strict=True)
    ]


def _shared(saved: Sequence[float]) -> list[tuple[float, tuple[int, ...]]]:
    """The saving of each change, none more than one before it, and those that share it.

    Neighbours share what they save while the later ones save more.
    """
    groups: list[list[int]] = []
    for place in range(len(saved)):
        groups.append([place])
        while len(groups) > 1 and _share(saved, groups[-1]) > _share(saved, groups[-2]):
            last = groups.pop()
            groups[-1] += last
    return [
        (_share(saved, group), tuple(group) if len(group) > 1 else ())
        for group in groups
        for _ in group
    ]


def _share(saved: Sequence[float], group: Sequence[int]) -> float:
    return sum(saved[place] for place in group) / len(group)


class _Tried(NamedTuple):
    """The run with some findings more, and the length of its mean step, ns."""

    numbers: tuple[int, ...]
    weights: Weights
    wall: float


class PlannedRun:
    """The run with the changes of the findings so far."""

    def __init__(self, facts: Facts, base: Base, findings: Sequence[Finding]) -> None:
        self._model, self._wall = base.model, base.wall
        self._scale = facts.step_ns / base.recorded  # a part of the run may be replayed
        self._start = self._weights = base.weights
        gaps = gaps_of_steps(facts.profile, facts.steps)
        late = self._late = late_launches(base.model, gaps, base.weights)
        self._late_ns = np.concatenate([late.before.ns, late.own.ns])
        self._late_state = np.concatenate([late.before.state, late.own.state])
        self._claims = [finding.gpu_ns + sum(finding.idle_ns.values()) for finding in findings]
        self._changes = [_change(facts, base.model, finding) for finding in findings]
        self._shortest: _Tried | None = None

    def saved(self, *numbers: int) -> float:
        """What some findings save on top of those so far, ns a step."""
        tried = self._tried(numbers)
        if self._shortest is None or tried.wall < self._shortest.wall:
            self._shortest = tried  # the plan mostly takes it next
        return (self._wall - tried.wall) * self._scale

    def take(self, number: int) -> float:
        """Make a finding part of the plan; what it saves, ns a step."""
        tried, before = self._shortest, self._wall
        if tried is None or tried.numbers != (number,):
            tried = self._tried((number,))
        self._weights, self._wall, self._shortest = tried.weights, tried.wall, None
        return (before - self._wall) * self._scale

    def _tried(self, numbers: tuple[int, ...]) -> _Tried:
        weights = self._with(numbers)
        return _Tried(numbers, weights, self._replayed(weights))

    def pair(self, remaining: Sequence[int], least: Sequence[float]) -> list[int]:
        """The two findings that save most together, if that is enough for both; or none."""
        largest = sorted(remaining, key=lambda number: -self._claims[number])[:_PAIRED]
        pairs = {pair: self.saved(*pair) for pair in combinations(largest, 2)}
        enough = {(i, j): max(least[i] + least[j], 1.0) for i, j in pairs}
        fits = [pair for pair, ns in pairs.items() if ns >= enough[pair]]
        best = max(fits, key=pairs.__getitem__, default=())
        return sorted(best, key=self._claims.__getitem__)

    def _with(self, numbers: Iterable[int]) -> Weights:
        weights = self._weights
        for number in numbers:
            weights = self._changed(weights, self._changes[number])
        return weights

    def _changed(self, weights: Weights, change: _Change) -> Weights:
        """The run without the time that a finding claims."""
        model = self._model
        if change.saved and change.overlaps:
            weights = overlapped(model, weights, _flags(model, change.rows))[0]
        elif change.saved:
            weights = _shorter(model, weights, change.rows, 1 - change.saved)
        if change.without_launches:
            weights = _without_launches(model, weights, change.rows, change.saved)
        for cause, share in change.idle.items():
            weights = self._without_idle(weights, cause, share)
        return weights

    def _without_idle(self, weights: Weights, cause: str, share: float) -> Weights:
        """The run without a share of the time of a cause, of what the findings before it left."""
        if cause in _WAITS:
            return host_changes.without_sync(self._model, weights)[0]
        if cause not in CAUSES:
            return weights
        number = CAUSES.index(cause)
        left, all_of_it = weights.left[number], self._start.left[number]
        if not left:
            return weights
        time = self._model.host_time if number < len(State) else self._late
        factor = max(left - share * all_of_it, 0.0) / left
        return host_changes.time_scaled(time, weights, {number}, factor)[0]

    def _replayed(self, weights: Weights) -> float:
        """The mean step; no change makes it longer."""
        return min(self._mean(weights), self._on_time(weights), self._wall)

    def _mean(self, weights: Weights) -> float:
        return self._model.mean(self._model.run(weights).wall)

    def _on_time(self, weights: Weights) -> float:
        """The mean step if launches that are not late any more stay on time with shorter kernels.

        The host's own time then shrinks by as much as the GPU's, but this saves no more than that.
        """
        model, ns, state = self._model, self._late_ns, self._late_state
        left = np.array(weights.left)
        share = 1 - float((ns * left[state]).sum()) / max(float(ns.sum()), 1.0)
        if share <= 0:
            return self._wall
        nodes = model.graph.node_of_kernel
        shorter = np.where(model.kernel_class == 0, 1 - _ratio(model, weights)[nodes], 0.0)
        saved = share * float((shorter * model.counted_ns).sum())
        if saved < 1:
            return self._wall
        host = np.flatnonzero(model.graph.kind == CALL)
        own = np.maximum(weights.before - model.in_states(weights), 0)[host].sum()
        own += np.maximum(weights.duration, 0)[host].sum()
        if not own:
            return self._wall
        total = share * float((model.base.duration - weights.duration)[nodes].sum())
        faster = host_changes.host_scaled(model, weights, 1 - min(total / float(own), 1.0))[0]
        recorded = weights.changed(duration=True)
        recorded.duration[nodes] = model.base.duration[nodes]
        return max(self._mean(faster), self._mean(recorded) - saved / max(model.n_counted, 1))


def _ratio(model: Model, weights: Weights) -> Floats64:
    """[nodes] The time that remains of that recorded."""
    result: Floats64 = weights.duration / np.maximum(model.base.duration, 1)
    return result


class _Change(NamedTuple):
    """What a finding changes.

    Parameters
    ----------
    rows : int64 [any], kernels of the model
    saved : the share of their time that is saved
    overlaps : whether they take as long, but behind other work
    without_launches : whether their launches are saved too
    idle : the share of the idle time that is saved, by cause
    """

    rows: Int64
    saved: float
    overlaps: bool
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
    shares = {cause: _share_of_cause(facts, cause, ns) for cause, ns in idle.items()}
    return _Change(model.rows_of(rows), saved, finding.overlaps, launches, shares)


def _without_launches(model: Model, weights: Weights, rows: Int64, saved: float) -> Weights:
    """Kernels without launches if all their time is saved, else launched together."""
    change = host_changes.removed if saved == 1.0 else host_changes.as_graph
    return change(model, weights, _flags(model, rows))[0]


def _flags(model: Model, rows: Int64) -> Bools:
    """[kernels] Whether each is among some rows."""
    flags = np.zeros(len(model.profile), bool)
    flags[rows] = True
    return flags


def _shorter(model: Model, weights: Weights, rows: Int64, factor: float) -> Weights:
    """Kernels of their recorded time times a factor, collectives with their waits.

    Of two changes of a kernel, the larger one counts: both save the same time.
    """
    result, recorded = weights.changed(before=True, duration=True), model.base
    nodes = model.graph.node_of_kernel[rows]
    waits = nodes[model.kernel_class[rows] == 1]
    for own, was, own_nodes in (
        (result.duration, recorded.duration, nodes),
        (result.before, recorded.before, waits),
    ):
        own[own_nodes] = np.minimum(own[own_nodes], rounded(was[own_nodes] * factor))
    return result


def _share_of_cause(facts: Facts, cause: str, ns: float) -> float:
    """The share of the idle time of a cause."""
    try:
        total = facts.idle.mean(cause)
    except CannotJudge:
        return 1.0
    return min(ns / total, 1.0) if total else 1.0


class Saving(NamedTuple):
    """A finding with what it saves.

    Parameters
    ----------
    rule : which found it
    finding : as the rule made it
    ns : per step and GPU, after the findings before it, or its share of what findings that need
        each other save; 0 if it saves no time by itself
    alone : per step and GPU, without other findings
    is_bound : whether these are upper bounds, for lack of a replay
    together : the places in the plan of the findings that need each other, see `Planned`
    """

    rule: Rule
    finding: Finding
    ns: float = 0.0
    alone: float = 0.0
    is_bound: bool = False
    together: tuple[int, ...] = ()

    @property
    def is_timed(self) -> bool:
        """False for findings that save no time by themselves."""
        return bool(self.finding.idle_ns) or bool(self.finding.gpu_ns)


def savings(
    facts: Facts, found: list[tuple[Rule, Finding]], base: Base | None, least: float | None
) -> list[Saving]:
    """The plan: findings that save enough time, then those that save none by themselves.

    base : the run to replay; without one, savings are bounds
    least : smallest saving, as a share of the step; None for that of each rule
    """
    every, step = [Saving(rule, finding) for rule, finding in found], step_of(facts, base)
    bounds = [bound for bound in _bounds(facts, every) if bound.alone >= _least(step, bound, least)]
    untimed = [saving for saving in every if not saving.is_timed]
    wanted = [_least(step, bound, least) for bound in bounds]
    if base is None:
        enough = (bound for bound, ns in zip(bounds, wanted, strict=True) if bound.ns >= ns)
        return [*enough, *untimed]
    plan = planned(facts, base, [bound.finding for bound in bounds], wanted)
    return [
        *(
            Saving(*bounds[number][:2], ns, alone, together=together)
            for number, ns, alone, together in plan
        ),
        *untimed,
    ]


def _least(step: Step, saving: Saving, least: float | None) -> float:
    """The smallest saving that is listed, ns: what is concerned is at least as long."""
    return max((saving.rule.least if least is None else least) * step.ns, 1.0)


def _bounds(facts: Facts, every: list[Saving]) -> list[Saving]:
    """The idle time and the kernels that findings claim, in order of size.

    Each takes what larger ones leave of these: the sum is at most the length of a step.
    """
    try:
        idle = {cause: facts.idle.mean(cause) for cause in CAUSES}
    except CannotJudge:
        idle = {}
    left, free = facts.step_ns, np.ones(len(facts.profile), bool)
    timed = (saving for saving in every if saving.is_timed)
    alone = [(sum(_claimed(facts, saving.finding, idle, free)), saving) for saving in timed]
    results = []
    for claimed, saving in sorted(alone, key=lambda pair: -pair[0]):
        finding = saving.finding
        ns = min(sum(_claimed(facts, finding, idle, free)), left)
        left -= ns
        for cause, part in finding.idle_ns.items():
            idle[cause] = max(idle.get(cause, 0.0) - part, 0.0)
        free[np.asarray(finding.kernels, np.int64)] = False
        results.append(saving._replace(ns=ns, alone=claimed, is_bound=True))
    return sorted(results, key=lambda saving: -saving.ns)


def _claimed(
    facts: Facts, finding: Finding, idle: dict[str, float], free: np.ndarray
) -> tuple[float, float]:
    """The idle time and the time of free kernels that a finding can save."""
    of_idle = sum(min(max(ns, 0.0), idle.get(cause, 0.0)) for cause, ns in finding.idle_ns.items())
    rows = np.asarray(finding.kernels, np.int64)
    all_of_them = facts.own_ns(rows) if len(rows) else 0.0
    if not all_of_them:
        return of_idle, 0.0
    share = min(max(finding.gpu_ns, 0.0) / all_of_them, 1.0)
    return of_idle, share * facts.own_ns(rows[free[rows]])
