"""What rules claim, and the plan that is made of it."""

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import Rule, all_rules
from fastprof.analysis.advice.savings import PlannedRun, base_of, savings


def judged(facts: Facts) -> list[tuple[Rule, Finding]]:
    """All findings, of whatever size."""
    result = []
    for rule in all_rules().values():
        try:
            facts.need_work()
            result += [(rule, finding) for finding in rule.function(facts)]
        except CannotJudge:
            continue
    return result


def claims(facts: Facts) -> dict[str, float]:
    """The largest claim of each rule, ns per step and GPU: idle time, and time of kernels."""
    result: dict[str, float] = {}
    for rule, finding in judged(facts):
        claim = sum(finding.idle_ns.values()) + finding.gpu_ns
        result[rule.id] = max(claim, result.get(rule.id, 0.0))
    return result


def saved_together(facts: Facts) -> tuple[float, float]:
    """The sum of the savings of a plan, and what one replay with all its changes saves, ns.

    Both are 0 without a replay.
    """
    base = base_of(facts)
    if base is None:
        return 0.0, 0.0
    plan = [saving for saving in savings(facts, judged(facts), base, None) if saving.is_timed]
    together = PlannedRun(facts, base, [each.finding for each in plan])
    return sum(each.ns for each in plan), together.saved(*range(len(plan)))
