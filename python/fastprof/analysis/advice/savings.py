"""Savings: what each finding of the plan saves, after the findings before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import Rule
from fastprof.analysis.advice.replayed import Base, planned
from fastprof.analysis.idle_causes import CAUSES


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
    every = [Saving(rule, finding) for rule, finding in found]
    bounds = [each for each in _bounds(facts, every) if each.alone >= _least(facts, each, least)]
    untimed = [each for each in every if not each.is_timed]
    wanted = [_least(facts, each, least) for each in bounds]
    if base is None:
        enough = (each for each, ns in zip(bounds, wanted, strict=True) if each.ns >= ns)
        return [*enough, *untimed]
    plan = planned(facts, base, [each.finding for each in bounds], wanted)
    return [
        *(
            Saving(*bounds[number][:2], ns, alone, together=together)
            for number, ns, alone, together in plan
        ),
        *untimed,
    ]


def _least(facts: Facts, saving: Saving, least: float | None) -> float:
    """The smallest saving that is listed, ns: what is concerned is at least as long."""
    return max((saving.rule.least if least is None else least) * facts.step_ns, 1.0)


def _bounds(facts: Facts, every: list[Saving]) -> list[Saving]:
    """The idle time and the kernels that findings claim, in order of size.

    Each takes what larger ones leave of these: the sum is at most the length of a step.
    """
    try:
        idle = {cause: facts.idle.mean(cause) for cause in CAUSES}
    except CannotJudge:
        idle = {}
    left, free = facts.step_ns, np.ones(len(facts.profile), bool)
    timed = (each for each in every if each.is_timed)
    alone = [(sum(_claimed(facts, each.finding, idle, free)), each) for each in timed]
    found = []
    for claimed, each in sorted(alone, key=lambda pair: -pair[0]):
        finding = each.finding
        ns = min(sum(_claimed(facts, finding, idle, free)), left)
        left -= ns
        for cause, part in finding.idle_ns.items():
            idle[cause] = max(idle.get(cause, 0.0) - part, 0.0)
        free[np.asarray(finding.kernels, np.int64)] = False
        found.append(each._replace(ns=ns, alone=claimed, is_bound=True))
    return sorted(found, key=lambda each: -each.ns)


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
