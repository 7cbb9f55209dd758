"""`advise`: what to change to make a step shorter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis.advice.columns import COLUMNS
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.opening import opening
from fastprof.analysis.advice.registry import ENTRY_POINTS, Rule, all_rules
from fastprof.analysis.advice.replayed import Base, base_of, why_not_replayed
from fastprof.analysis.advice.savings import Saving, savings
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.peaks import devices_with
from fastprof.model.columns import Ints
from fastprof.model.quantity import quantity
from fastprof.model.table import Cells, Floats, Table, texts
from fastprof.ops.user import load_packages
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile


def advise(
    profile: Profile,
    min: float | None = None,  # noqa: A002
    fail_above: float | None = None,
    steps: str | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """A row per finding, in the order in which changes save most. See docs/reports.md.

    Parameters
    ----------
    min : smallest saving that is listed, percent of a step; None for each rule's own. Findings
        that save no time by themselves are listed in any case
    fail_above : `facts["failed"]` is True if a finding saves more, percent of a step
    steps : what a step is, see `Profile.find_steps`
    gpu, peak, bandwidth : see `fastprof.model.device_options.with_figures`

    Raises
    ------
    ReportError
        A GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    return findings(
        Facts(profile, steps, devices_with(profile, gpu, peak, bandwidth)), min, fail_above
    )


def findings(facts: Facts, least: float | None = None, fail_above: float | None = None) -> Table:
    """The table of `advise`; see there for the percentages `least` and `fail_above`.

    Raises
    ------
    BadInputError
        The file has changed since it was read.
    """
    plan, base, not_judged, problems = plan_of(facts, None if least is None else least / 100)
    total = sum(each.ns for each in plan)
    limit = None if fail_above is None else fail_above / 100 * facts.step_ns
    answer = opening(facts, plan)
    return Table(
        _columns(facts, plan),
        COLUMNS,
        lead=(answer, *_lead(facts, plan, base), ""),
        notes=(*facts.steps.notes, *_not_judged(not_judged), *problems),
        total={"saving_ns": round(total), "share": total / max(facts.step_ns, 1)},
        facts={
            "answer": answer,
            "step_ns": round(facts.step_ns),
            "is_bound": base is None,
            "replayed_steps": None if base is None else len(base.model.rows),
            "not_judged": [{"id": name, "because": why} for name, why in not_judged.items()],
            "failed": limit is not None and any(each.ns > limit for each in plan),
        },
    )


class Plan(NamedTuple):
    """The findings in order.

    Parameters
    ----------
    savings : of each finding
    base : the run that is replayed; None if savings are bounds
    not_judged : why the capture does not suffice for a rule, by its id
    problems : with packages of rules, one line each
    """

    savings: list[Saving]
    base: Base | None
    not_judged: dict[str, str]
    problems: list[str]


def plan_of(facts: Facts, least: float | None = None) -> Plan:
    """The plan of a capture.

    least : smallest saving, as a share of the step; None for that of each rule
    """
    problems = load_packages(ENTRY_POINTS, "rules")
    with SecondThread() as second:
        building = second.submit(base_of, facts)
        found, not_judged = _judged(facts)
        base = building.result()
    return Plan(savings(facts, found, base, least), base, not_judged, problems)


def _judged(facts: Facts) -> tuple[list[tuple[Rule, Finding]], dict[str, str]]:
    """All findings, and the rules that the capture does not suffice for, with the reason."""
    found, not_judged = [], {}
    for each in all_rules().values():
        if each.programs is not None and facts.program.kind not in each.programs:
            continue
        try:
            facts.need_work()
            found += [(each, finding) for finding in each.function(facts)]
        except CannotJudge as reason:
            not_judged[each.id] = str(reason)
    return found, not_judged


def _columns(facts: Facts, plan: list[Saving]) -> dict[str, Cells]:
    none = [not each.is_timed for each in plan]
    ns = np.array([each.ns for each in plan], np.float64)
    alone = np.array([each.alone for each in plan], np.float64)
    findings = [each.finding for each in plan]
    return {
        "id": texts([each.rule.id for each in plan]),
        "saving_ns": _whole(ns, none),
        "share": Floats(np.where(none, np.nan, ns / max(facts.step_ns, 1))),
        "is_bound": Ints(np.array([each.is_bound for each in plan], np.int64)),
        "confidence": texts([each.confidence for each in findings]),
        "where": texts([each.where or None for each in findings]),
        "what": texts([each.what for each in findings]),
        "evidence": texts([each.evidence or None for each in findings]),
        "remedy": texts([each.remedy for each in findings]),
        "why": texts([each.why or None for each in findings]),
        "alone_ns": Ints(np.where(none, -1, alone.round()).astype(np.int64)),
        "together": texts([",".join(f"{i + 1}" for i in each.together) or None for each in plan]),
    }


def _whole(ns: Floats64, none: list[bool]) -> Ints:
    """Whole ns that add up to the rounded sum, in the same order."""
    found = np.floor(ns).astype(np.int64)
    found[: round(ns.sum()) - int(found.sum())] += 1
    return Ints(np.where(none, -1, found))


def _lead(facts: Facts, plan: list[Saving], base: Base | None) -> Iterator[str]:
    """The step, and each finding in words."""
    gpus = gpu_names(facts.profile.about, facts.profile.column("device"))
    yield ", ".join(filter(None, [gpus, facts.steps.description]))
    length = quantity(round(facts.step_ns), "ns")
    step = f"{facts.steps.unit} {length}"
    if not facts.has_times:
        step = f"GPU time {length}"
    total = sum(each.ns for each in plan)
    yield f"{step}: {saved_text(total, total / max(facts.step_ns, 1), base is None)}"
    if total:
        yield _basis(facts, base)
    for number, each in enumerate(plan, 1):
        finding = each.finding
        yield ""
        yield f"{number}. {each.rule.id}{_saves(facts, each)}: {finding.what}"
        if each.together and each.together[0] == number - 1:
            names = _listed([f"{place + 1}" for place in each.together])
            ns = quantity(round(each.ns * len(each.together)), "ns")
            yield f"- together: {names} need each other and save {ns}, of which each has an " + (
                f"equal share; {number} alone saves {quantity(round(each.alone), 'ns')}"
            )
        if finding.evidence:
            yield f"- evidence: {finding.evidence}"
        if finding.where:
            yield f"- where: {finding.where}"
        yield f"- remedy: {finding.remedy}"
        why = f": {finding.why}" if finding.why else ""
        yield f"- confidence: {finding.confidence}{why}"


def saved_text(ns: float, share: float, is_bound: bool) -> str:
    """What all findings together save, in words."""
    if not ns:
        return "no finding saves time"
    most = " at most" if is_bound else ""
    return f"all findings together save{most} {quantity(round(ns), 'ns')}, {share:.0%}"


def _basis(facts: Facts, base: Base | None) -> str:
    """What the savings are: replayed, on which steps, or bounds."""
    if base is None:
        return f"savings are bounds: {why_not_replayed(facts)}"
    part = ""
    if base.model.profile is not facts.profile:
        numbers = base.model.steps.number[base.model.rows]
        part = f" on {len(numbers)} of {len(facts.steps)} steps, #{numbers[0]} to #{numbers[-1]}"
    return f"each saving is replayed{part}, after the findings above it"


def _saves(facts: Facts, saving: Saving) -> str:
    """What a finding saves, in brackets."""
    if not saving.is_timed:
        return ""
    verb = "at most" if saving.is_bound else "saves"
    share = saving.ns / max(facts.step_ns, 1)
    return f" ({verb} {quantity(round(saving.ns), 'ns')}, {share:.0%})"


def _listed(words: Sequence[str]) -> str:
    """`1, 2 and 3`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _not_judged(reasons: dict[str, str]) -> Iterator[str]:
    """A line per reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, ids in by_reason.items():
        yield f"not judged: {', '.join(ids)}, because: {reason}"
