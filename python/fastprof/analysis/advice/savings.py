"""Savings without overlaps: each moment of a step is saved by one finding at most."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import Rule
from fastprof.analysis.idle_causes import CAUSES

__all__ = ["Saving", "without_overlaps"]


class Saving(NamedTuple):
    """A finding with what it saves.

    Parameters
    ----------
    rule : which found it
    finding : as the rule made it
    ns : per step and GPU, without what larger findings save
    claimed : per step and GPU, alone
    replayed : per step, what a replay with this change alone saves; None without a replay
    """

    rule: Rule
    finding: Finding
    ns: float
    claimed: float
    replayed: float | None = None


def without_overlaps(facts: Facts, found: list[tuple[Rule, Finding]]) -> list[Saving]:
    """The savings in order of size; each takes what larger ones leave of its idle time and kernels.

    The sum is at most the length of a step.
    """
    try:
        idle = {cause: facts.idle.mean(cause) for cause in CAUSES}
    except CannotJudge:
        idle = {}
    left, free = facts.step_ns, np.ones(len(facts.profile), bool)
    alone = [(_claimed(facts, finding, idle, free), rule, finding) for rule, finding in found]
    savings = []
    for claimed, rule, finding in sorted(alone, key=lambda each: -sum(each[0])):
        of_idle, of_gpu = _claimed(facts, finding, idle, free)
        rows = np.asarray(finding.kernels, np.int64)
        ns = min(of_idle + of_gpu, left)
        left -= ns
        for cause, part in finding.idle_ns.items():
            idle[cause] = max(idle.get(cause, 0.0) - part, 0.0)
        free[rows] = False
        savings.append(Saving(rule, finding, ns, sum(claimed)))
    return sorted(savings, key=lambda each: -each.ns)


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
