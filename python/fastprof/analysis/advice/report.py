"""`advise`: what to change to make a step shorter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis.advice.columns import COLUMNS
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import ENTRY_POINTS, Rule, all_rules
from fastprof.analysis.advice.replayed import Base, base_of, replayed_savings
from fastprof.analysis.advice.savings import Saving, without_overlaps
from fastprof.analysis.peaks import devices_with
from fastprof.model.columns import Ints
from fastprof.model.quantity import quantity
from fastprof.model.table import Cells, Floats, Table, texts
from fastprof.ops.user import load_packages
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile

__all__ = ["advise", "findings"]

_MOST: Final = 0.9  # of the saving of a finding alone


def advise(
    profile: Profile,
    min: float | None = None,  # noqa: A002
    fail_above: float | None = None,
    steps: str | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """A row per finding, the largest replayed saving first. See docs/reports.md.

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
    problems = load_packages(ENTRY_POINTS, "rules")
    with SecondThread() as second:
        building = second.submit(base_of, facts)
        found, not_judged = _judged(facts)
        listed = [each for each in without_overlaps(facts, found) if _is_listed(facts, each, least)]
        base = building.result()
    savings, together = _in_order(facts, listed, base)
    total = sum(each.ns for each in savings)
    limit = None if fail_above is None else fail_above / 100 * facts.step_ns
    return Table(
        _columns(facts, savings),
        COLUMNS,
        lead=(*_lead(facts, savings, total, together, _part(facts, base)), ""),
        notes=(*facts.steps.notes, *_not_judged(not_judged), *problems),
        total={"saving_ns": round(total), "share": total / max(facts.step_ns, 1)},
        facts={
            "step_ns": round(facts.step_ns),
            "replayed_together_ns": None if together is None else round(together),
            "replayed_steps": None if base is None else len(base.model.rows),
            "not_judged": [{"id": name, "because": why} for name, why in not_judged.items()],
            "failed": limit is not None and any(each.ns > limit for each in savings),
        },
    )


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


def _in_order(
    facts: Facts, savings: list[Saving], base: Base | None
) -> tuple[list[Saving], float | None]:
    """The findings by what their replay saves, and what the replay of all together saves.

    Without a replay, they keep their order.
    """
    timed = [each for each in savings if not _saves_nothing(each)]
    if base is None or not timed:
        return savings, None
    found = replayed_savings(facts, base, [each.finding for each in timed])
    timed = [each._replace(replayed=ns) for each, ns in zip(timed, found.alone, strict=True)]
    others = [each for each in savings if _saves_nothing(each)]
    return [*sorted(timed, key=lambda each: -(each.replayed or 0.0)), *others], found.together


def _is_listed(facts: Facts, saving: Saving, least: float | None) -> bool:
    """Whether a finding saves enough alone, and larger ones do not save all of it.

    Findings that save nothing by themselves are listed always.
    """
    if _saves_nothing(saving):
        return True
    share = saving.rule.least if least is None else least / 100
    return saving.ns >= 1 and saving.claimed >= share * facts.step_ns


def _saves_nothing(saving: Saving) -> bool:
    return not saving.finding.idle_ns and not saving.finding.gpu_ns


def _columns(facts: Facts, savings: list[Saving]) -> dict[str, Cells]:
    none = [_saves_nothing(each) for each in savings]
    ns = np.array([each.ns for each in savings], np.float64)
    alone = np.array([each.claimed for each in savings], np.float64)
    findings = [each.finding for each in savings]
    return {
        "id": texts([each.rule.id for each in savings]),
        "saving_ns": Ints(np.where(none, -1, np.floor(ns)).astype(np.int64)),
        "replayed_ns": Ints(np.array([_floor(each.replayed) for each in savings], np.int64)),
        "share": Floats(np.where(none, np.nan, ns / max(facts.step_ns, 1))),
        "confidence": texts([each.confidence for each in findings]),
        "where": texts([each.where or None for each in findings]),
        "what": texts([each.what for each in findings]),
        "evidence": texts([each.evidence or None for each in findings]),
        "remedy": texts([each.remedy for each in findings]),
        "why": texts([each.why or None for each in findings]),
        "alone_ns": Ints(np.where(none, -1, np.floor(alone)).astype(np.int64)),
    }


def _floor(ns: float | None) -> int:
    return -1 if ns is None else int(ns)


def _part(facts: Facts, base: Base | None) -> str:
    """Which steps are replayed, if not all."""
    if base is None or base.model.profile is facts.profile:
        return ""
    numbers = base.model.steps.number[base.model.rows]
    return f" on {len(numbers)} of {len(facts.steps)} steps, #{numbers[0]} to #{numbers[-1]}"


def _lead(
    facts: Facts, savings: list[Saving], total: float, together: float | None, part: str
) -> Iterator[str]:
    """The step, and each finding in words."""
    gpus = gpu_names(facts.profile.about, facts.profile.column("device"))
    yield ", ".join(filter(None, [gpus, facts.steps.description]))
    length = quantity(round(facts.step_ns), "ns")
    step = f"step {length}" if facts.has_steps else f"capture {length}"
    if not facts.has_times:
        step = f"GPU time {length}"
    share = total / max(facts.step_ns, 1)
    saves = f"findings save up to {quantity(round(total), 'ns')}, {share:.0%}"
    yield f"{step}: {saves if total else 'no finding saves time'}"
    if together is not None:
        yield (
            f"all together, replayed{part}: {quantity(round(together), 'ns')} saved, "
            f"{together / max(facts.step_ns, 1):.0%}"
        )
    for number, each in enumerate(savings, 1):
        finding = each.finding
        yield ""
        yield f"{number}. {each.rule.id}{_up_to(each)}: {finding.what}"
        if finding.evidence:
            yield f"- evidence: {finding.evidence}"
        if finding.where:
            yield f"- where: {finding.where}"
        yield f"- remedy: {finding.remedy}"
        why = f": {finding.why}" if finding.why else ""
        yield f"- confidence: {finding.confidence}{why}"


def _up_to(saving: Saving) -> str:
    """The saving, and that of the finding alone if larger findings save much of it."""
    if _saves_nothing(saving):
        return ""
    text = f"up to {quantity(round(saving.ns), 'ns')}"
    if saving.replayed is not None:
        text += f", replayed {quantity(round(saving.replayed), 'ns')}"
    if saving.ns < _MOST * saving.claimed:
        text += f"; {quantity(round(saving.claimed), 'ns')} without the findings above"
    return f" ({text})"


def _not_judged(reasons: dict[str, str]) -> Iterator[str]:
    """A line per reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    for reason, ids in by_reason.items():
        yield f"not judged: {', '.join(ids)}, because: {reason}"
