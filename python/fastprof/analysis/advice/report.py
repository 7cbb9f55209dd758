"""`advise`: what to change to make a step shorter, and what the GPU loses most of its time to."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof._system.memory import give_back
from fastprof._system.threads import SecondThread
from fastprof.analysis.advice.calls import cut_tensors
from fastprof.analysis.advice.columns import COLUMNS
from fastprof.analysis.advice.facts import Facts, percent
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import ENTRY_POINTS, Rule, all_rules
from fastprof.analysis.advice.savings import (
    Base,
    Saving,
    Step,
    base_of,
    savings,
    step_of,
    why_not_replayed,
)
from fastprof.analysis.cells import FEW_CELLS
from fastprof.analysis.grouping import Floats64
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.model.columns import Ints
from fastprof.model.numbers import quantity, scale_of
from fastprof.model.table import ColumnData, Floats, Table, text_column
from fastprof.ops.user import load_packages
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names
from fastprof.profile.recording_hints import advice_on


def advise(
    profile: ProfileData,
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
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

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
    return table_of(facts, plan_of(facts, None if least is None else least / 100), fail_above)


def table_of(facts: Facts, plan: Plan, fail_above: float | None = None) -> Table:
    """The table of a plan."""
    base, step, answer = plan.base, plan.step, opening(facts, plan)
    total = sum(saving.ns for saving in plan.savings)
    limit = None if fail_above is None else fail_above / 100 * step.ns
    return Table(
        _columns(plan),
        COLUMNS,
        lead=(answer, *_lead(facts, plan), ""),
        notes=(*facts.steps.notes, *_not_judged(plan.not_judged), *plan.problems),
        total={"saving_ns": round(total), "share": step.share(total)},
        facts={
            "answer": answer,
            "step_ns": round(facts.step_ns),
            "without_recorder_ns": round(step.ns) if step.is_unrecorded else None,
            "is_bound": base is None,
            "replayed_steps": None if base is None else len(base.model.rows),
            "not_judged": [{"id": name, "because": why} for name, why in plan.not_judged.items()],
            "failed": limit is not None and any(saving.ns > limit for saving in plan.savings),
        },
    )


class Plan(NamedTuple):
    """The findings in order.

    Parameters
    ----------
    savings : of each finding
    base : the run that is replayed; None if savings are bounds
    step : what savings are parts of
    not_judged : why the capture does not suffice for a rule, by its id
    problems : with packages of rules, one line each
    """

    savings: list[Saving]
    base: Base | None
    step: Step
    not_judged: dict[str, str]
    problems: list[str]


def plan_of(facts: Facts, least: float | None = None) -> Plan:
    """The plan of a capture.

    least : smallest saving, as a share of the step; None for that of each rule
    """
    problems = load_packages(ENTRY_POINTS, "rules")
    if max(len(facts.profile.source.cells), len(facts.windows)) > FEW_CELLS:
        results, not_judged = _judged(facts)
        facts.reach  # noqa: B018  kept
        facts.forget_calls()
        give_back()
        base = base_of(facts)
    else:
        with SecondThread() as second:
            building = second.submit(base_of, facts)
            results, not_judged = _judged(facts)
            base = building.result()
    plan = savings(facts, results, base, least)
    return Plan(plan, base, step_of(facts, base), not_judged, problems)


def _judged(facts: Facts) -> tuple[list[tuple[Rule, Finding]], dict[str, str]]:
    """All findings, and the rules that the capture does not suffice for, with the reason."""
    results, not_judged = [], {}
    for rule in all_rules().values():
        if rule.programs is not None and facts.program.kind not in rule.programs:
            continue
        try:
            results += [(rule, finding) for finding in rule.findings(facts)]
        except CannotJudge as reason:
            not_judged[rule.id] = str(reason)
    return results, not_judged


def _columns(plan: Plan) -> dict[str, ColumnData]:
    planned = plan.savings
    none = [not saving.is_timed for saving in planned]
    ns = np.array([saving.ns for saving in planned], np.float64)
    alone = np.array([saving.alone for saving in planned], np.float64)
    findings = [saving.finding for saving in planned]
    return {
        "id": text_column([saving.rule.id for saving in planned]),
        "saving_ns": _whole(ns, none),
        "share": Floats(np.where(none, np.nan, ns / max(plan.step.ns, 1))),
        "is_bound": Ints(np.array([saving.is_bound for saving in planned], np.int64)),
        "confidence": text_column([finding.confidence for finding in findings]),
        "where": text_column([finding.where or None for finding in findings]),
        "what": text_column([finding.what for finding in findings]),
        "evidence": text_column([finding.evidence or None for finding in findings]),
        "remedy": text_column([finding.remedy for finding in findings]),
        "why": text_column([finding.why or None for finding in findings]),
        "alone_ns": Ints(np.where(none, -1, alone.round()).astype(np.int64)),
        "together": text_column(
            [",".join(f"{i + 1}" for i in saving.together) or None for saving in planned]
        ),
    }


def _whole(ns: Floats64, none: list[bool]) -> Ints:
    """Whole ns that add up to the rounded sum, in the same order."""
    result = np.floor(ns).astype(np.int64)
    result[: round(ns.sum()) - int(result.sum())] += 1
    return Ints(np.where(none, -1, result))


def _lead(facts: Facts, plan: Plan) -> Iterator[str]:
    """The step, and each finding in words."""
    gpus = gpu_names(facts.profile.about, facts.profile.column("device"))
    base, step = plan.base, plan.step
    yield ", ".join(filter(None, [gpus, facts.steps.description]))
    length = quantity(round(facts.step_ns), "ns")
    text = f"{facts.steps.word} {length}" if facts.has_times else f"GPU time {length}"
    if step.is_unrecorded:
        text += f", without the recorder {quantity(round(step.ns), 'ns')}"
    total = sum(saving.ns for saving in plan.savings)
    yield f"{text}: {saved_text(total, step.share(total), base is None)}"
    if total:
        yield _basis(facts, base)
    for number, saving in enumerate(plan.savings, 1):
        finding = saving.finding
        yield ""
        yield f"{number}. {saving.rule.id}{_saves(step, saving)}: {finding.what}"
        if saving.together and saving.together[0] == number - 1:
            names = _listed([f"{place + 1}" for place in saving.together])
            ns = quantity(round(saving.ns * len(saving.together)), "ns")
            yield f"- together: {names} need each other and save {ns}, of which each has an " + (
                f"equal share; {number} alone saves {quantity(round(saving.alone), 'ns')}"
            )
        if finding.evidence:
            yield f"- evidence: {finding.evidence}"
        if finding.where:
            yield f"- where: {cut_tensors(finding.where)}"
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
    without = " without the recorder" if base.is_unrecorded else ""
    return f"each saving is replayed{part}{without}, after the findings above it"


def _saves(step: Step, saving: Saving) -> str:
    """What a finding saves, in brackets."""
    if not saving.is_timed:
        return ""
    verb = "at most" if saving.is_bound else "saves"
    return f" ({verb} {quantity(round(saving.ns), 'ns')}, {step.share(saving.ns):.0%})"


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


_LARGE: Final = 0.03  # of a step; smaller savings are not worth the sentence
_BUSY: Final = 0.9  # of a step; the rest is hardly worth a change
_MOSTLY: Final = 0.5  # of the busy time
_NEAR: Final = 0.6  # of the practical roof
_MORE: Final = 1.02  # times the time concerned: the rest comes from launches that are earlier
_MORE_ESTIMATED: Final = 1.1  # the same where idle time without the recorder is an estimate
_AHEAD: Final = "run ahead"
_HARDLY: Final = 0.01  # of the time in which the host makes calls


def opening(facts: Facts, plan: Plan) -> str:
    """What the file lacks, if anything, and at most two sentences, from the plan's first finding.

    Without one that saves enough: how close the step is to what the GPU can do, or what to record.
    """
    lacks, text = facts.steps.incomplete, _opening(facts, plan)
    if not lacks or text == _without_work(facts):  # which a capture of a graph may be
        return text
    return f"Incomplete: {lacks}. {text}"


def _opening(facts: Facts, plan: Plan) -> str:
    if not facts.step_ns:
        profile = facts.profile
        missing = advice_on(profile.about, profile.contents, "op").removesuffix(".")
        return f"{missing[:1].upper()}{missing[1:]}."
    savings, step = plan.savings, plan.step
    first = savings[0] if savings else None
    least = 0.0 if first is None else first.ns
    told = next(
        (
            s.finding.cause
            for s in savings
            if not s.is_timed
            and s.finding.cause
            # What the rest of the plan saves more than is not the answer.
            and (not len(s.finding.kernels) or _concerned(facts, step, s.finding) >= least)
        ),
        "",
    )
    if first is not None and first.ns >= _LARGE * step.ns:
        told = told or _unexplained_idle(facts, step, least)
        if not told:
            return f"{_cause(facts, step, first.finding)} {_effect(facts, step, first)}"
        most = "at most" if first.is_bound else "about"
        return f"{told} Of the rest, {first.rule.id} saves most: {most} {_saved(step, first.ns)}."
    return told or _without_work(facts) or _close(facts, step)


def _unexplained_idle(facts: Facts, step: Step, least: float) -> str:
    """Idle time of more than `least` ns whose cause the file does not tell; "" if there is none."""
    if not facts.has_times:
        return ""
    idle = step.ns - facts.times["busy_ns"]
    if idle <= least:
        return ""
    try:
        _ = facts.idle
    except CannotJudge as reason:
        return f"The GPU is idle {part_of_step(facts, idle, step)}; why is unknown: {reason}."
    return ""


def _cause(facts: Facts, step: Step, finding: Finding) -> str:
    """What takes the time."""
    text = finding.cause or f"{finding.what.removesuffix('.')}: {{time}}."
    return text.replace("{time}", part_of_step(facts, _concerned(facts, step, finding), step))


def _concerned(facts: Facts, step: Step, finding: Finding) -> float:
    """ns a step of the kernels and of the idle time that a finding is about."""
    rows = np.asarray(finding.kernels, np.int64)
    of_gpu = facts.own_ns(rows) if len(rows) else 0.0
    left = facts.left if step.is_unrecorded else {}
    idle = sum(ns * left.get(cause, 1.0) for cause, ns in finding.idle_ns.items())
    return min(of_gpu + idle, step.ns)


def _effect(facts: Facts, step: Step, saving: Saving) -> str:
    """What a change saves, and with those that it needs."""
    finding, share = saving.finding, "at most" if saving.is_bound else "about"
    text = finding.effect or f"Without this, {facts.a_step} would take {{saving}} less."
    own = saving.alone if saving.together else saving.ns
    most = _MORE_ESTIMATED if step.is_unrecorded else _MORE
    more = own > most * _concerned(facts, step, finding)
    if more and "{saving}" in text and _AHEAD not in text:
        text = f"{text.removesuffix('.')}, as the host would {_AHEAD}."
    if saving.together:
        others = len(saving.together) - 1
        following = "the next finding" if others == 1 else f"the next {others} findings"
        all_of_them = _saved(step, saving.ns * len(saving.together))
        text = f"{text.removesuffix('.')}; with {following}, {all_of_them}."
    return text.replace("{saving}", f"{share} {_saved(step, own)}")


def _saved(step: Step, ns: float) -> str:
    """A time in the unit of a step."""
    return f"{rounded(ns, step.ns)} {scale_of('ns', step.ns).name}"


def _without_work(facts: Facts) -> str:
    """The GPU has next to nothing to do while the host makes calls: why; "" if it has work."""
    if facts.has_steps or not facts.has_times or not len(facts.profile.api):
        return ""
    api = facts.profile.api
    length = float(api.start.max() - api.start.min())
    if facts.times["busy_ns"] > _HARDLY * length:
        return ""
    busy = _saved(Step(facts.step_ns), facts.times["busy_ns"])
    times = f"{busy} in {quantity(round(length), 'ns')} of calls"
    if any("StreamBeginCapture" in name for name in api.name.values):
        return (
            "The host captures a graph, whose work the GPU does when it is replayed; here it works "
            f"{times}. With a trace of replays, this file is --graph-capture."
        )
    return f"The GPU works only {times}: record while it does the work that is to be judged."


def _close(facts: Facts, step: Step) -> str:
    """No finding saves much: why not."""
    unit = facts.steps.word if facts.has_steps else "capture"
    if not facts.has_times:
        missing = "no step has all of its GPU work in the file: --steps names another mark"
        if "start" not in facts.profile.names:
            missing = "dict lines contain no times: the original trace shows what the GPU waits for"
        return f"No finding saves more than {percent(_LARGE)} of the GPU time, and {missing}."
    busy = min(step.share(facts.times["busy_ns"]), 1.0)
    if busy < _BUSY:
        idle = part_of_step(facts, step.ns * (1 - busy), step)
        return f"The GPU is idle {idle}{_why_idle(facts)}."
    is_busy = f"busy {percent(busy)} of the {unit}"
    for name, does in (("copy", "only copies"), ("communication", "only communicates")):
        share = facts.times[f"exposed_{name}_ns"] / facts.times["busy_ns"]
        if share >= _MOSTLY:
            return (
                f"The GPU is {is_busy}, but {does} for {percent(share)} of that, more than other "
                "work can hide: copy or send less."
            )
    roof = facts.reach
    if isinstance(roof, str):
        return f"The GPU is {is_busy}. Whether its kernels could be faster is unknown: {roof}."
    reach = f"its kernels reach {percent(roof)} of the practical roof"
    if roof >= _NEAR:
        return f"The {unit} is close to what the GPU can do: it is {is_busy}, and {reach}."
    return (
        f"The GPU is {is_busy}, but {reach}. No change is known that saves more than "
        f"{percent(_LARGE)}."
    )


def _why_idle(facts: Facts) -> str:
    """The main cause, or why it is unknown."""
    try:
        causes = facts.idle.means
    except CannotJudge as reason:
        return f"; why is unknown: {reason}"
    cause = CAUSES[int(np.argmax(causes))]
    return f", mostly by the cause '{cause}'; no change is known that saves more than " + percent(
        _LARGE
    )


def evidence_of(facts: Facts, *causes: str) -> str:
    """The idle time of some causes, its spread over steps and its gaps."""
    idle = facts.idle
    of_steps = np.sum([idle.time_by_window(cause) for cause in causes], axis=0)
    own = idle.is_mainly(*causes)
    length = (idle.gaps.end - idle.gaps.start)[own]
    parts = [f"{quantity(round(float(of_steps.mean())), 'ns')} idle {facts.per_step}"]
    if len(causes) > 1:
        each = [f"{name} {quantity(round(idle.mean(name)), 'ns')}" for name in causes]
        parts[0] += f" ({', '.join(each)})"
    if facts.has_steps and len(of_steps) >= _SPREAD:
        low, middle, high = (round(float(f(of_steps))) for f in (np.min, np.median, np.max))
        parts.append(
            f"median {quantity(middle, 'ns')}, {quantity(low, 'ns')} to {quantity(high, 'ns')}"
        )
    if len(length):
        count = len(length) / facts.n_steps
        gaps = "1 gap" if count == 1 else f"{count:.4g} gaps"
        parts.append(f"{gaps}, the longest {quantity(int(length.max()), 'ns')}")
    return "; ".join(parts)


_SPREAD: Final = 3  # steps
_MOSTLY_IDLE: Final = 0.5  # of the time of a cause, from which a place is its place
_LEAST: Final = 0.1  # of the time of a cause; places below are not named


def part_of_step(facts: Facts, ns: float, step: Step | None = None) -> str:
    """`47 of 209 ms a step`; of a step as recorded if None."""
    step = step or Step(facts.step_ns)
    every = f" {facts.a_step}" if facts.has_steps else ""
    without = " (without the recorder)" if step.is_unrecorded else ""
    unit = scale_of("ns", step.ns).name
    return f"{rounded(ns, step.ns)} of {rounded(step.ns, step.ns)} {unit}{every}{without}"


def rounded(ns: float, step: float) -> str:
    """A time in the unit of a step, in the digits of a step of three."""
    scale = scale_of("ns", step)
    digits = max(2 - math.floor(math.log10(max(step / scale.size, 1.0))), 0)
    text = f"{ns / scale.size:.{digits}f}"
    return text if float(text) or not ns else f"{ns / scale.size:.1g}"


def first_calls(facts: Facts) -> tuple[str, ...]:
    """What the GPU waits for only once, where that is much of a capture without steps."""
    if facts.has_steps:
        return ()
    try:
        once = {cause: ns for cause in _ONCE if (ns := facts.idle.mean(cause))}
    except CannotJudge:
        return ()
    share = sum(once.values()) / max(facts.step_ns, 1)
    if share < _MANY_FIRST:
        return ()
    largest = sorted(once, key=lambda cause: -once[cause])[:_MOST_NAMED]
    named = (f"{cause} {quantity(round(once[cause]), 'ns')}" for cause in largest)
    return (
        f"first calls take {share:.0%} of the {facts.steps.unit} ({', '.join(named)}): they happen "
        "once; no step repeats after them: record again after a warm-up",
    )


_ONCE: Final = ("JIT compilation", "code loading", "creation", "allocation")
_MANY_FIRST: Final = 0.25  # of the capture, from which its first calls are worth a line
_MOST_NAMED: Final = 2


def shares_of(facts: Facts, causes: tuple[str, ...], *names: str) -> str:
    """Where most of some causes is, with shares of their time."""
    rows = facts.idle.is_mainly(*causes)
    results = []
    for name in names:
        top = [pair for pair in facts.idle.top(name, rows) if pair[1] >= _LEAST]
        if top:
            results.append(", ".join(f"{text} {share:.0%}" for text, share in top))
    return "; ".join(results)


def at(facts: Facts, causes: tuple[str, ...], *names: str) -> str:
    """` (resnet.py:44)`: the first kind of place of which one takes most; or nothing."""
    rows = facts.idle.is_mainly(*causes)
    for name in names:
        for text, share in facts.idle.top(name, rows, most=1):
            if share >= _MOSTLY_IDLE:
                return f" ({os.path.basename(text) if name == 'line' else text})"
    return ""


def places_of(facts: Facts, causes: tuple[str, ...], place: str) -> list[str]:
    """The places that take most of some causes, without shares."""
    rows = facts.idle.is_mainly(*causes)
    return [text for text, share in facts.idle.top(place, rows) if share >= _LEAST]
