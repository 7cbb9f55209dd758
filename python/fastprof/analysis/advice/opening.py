"""The opening sentence: what the GPU loses most of its time to, and what a change would save."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.idle_text import part_of_step, rounded
from fastprof.analysis.advice.savings import Saving
from fastprof.analysis.idle_causes import CAUSES
from fastprof.model.quantity import quantity, scale_of
from fastprof.profile.advice import advice_on
from fastprof.profile.program import WITH_OPERATORS

_LARGE: Final = 0.03  # of a step; smaller savings are not worth the sentence
_BUSY: Final = 0.9  # of a step; the rest is hardly worth a change
_MOSTLY: Final = 0.5  # of the busy time
_NEAR: Final = 0.6  # of the practical roof
_MORE: Final = 1.02  # times the time concerned: the rest comes from launches that are earlier
_AHEAD: Final = "run ahead"
_HARDLY: Final = 0.01  # of the time in which the host makes calls
_KNOWN: Final = 0.8  # of the GPU time; with less, the roof says little


def opening(facts: Facts, savings: Sequence[Saving]) -> str:
    """At most two sentences, from the first finding of the plan.

    Without one that saves enough: how close the step is to what the GPU can do, or what to record.
    """
    if not facts.step_ns:
        profile = facts.profile
        missing = advice_on(profile.about, profile.contents, "op").removesuffix(".")
        return f"{missing[:1].upper()}{missing[1:]}."
    first = savings[0] if savings else None
    told = next((s.finding.cause for s in savings if not s.is_timed and s.finding.cause), "")
    if first is not None and first.ns >= _LARGE * facts.step_ns:
        if not told:
            return f"{_cause(facts, first.finding)} {_effect(facts, first)}"
        return f"{told} Of the rest, {first.rule.id} saves most: about {_saved(facts, first.ns)}."
    return told or _without_work(facts) or _close(facts)


def _cause(facts: Facts, finding: Finding) -> str:
    """What takes the time."""
    text = finding.cause or f"{finding.what.removesuffix('.')}: {{time}}."
    return text.replace("{time}", part_of_step(facts, _concerned(facts, finding)))


def _concerned(facts: Facts, finding: Finding) -> float:
    """ns a step of the kernels and of the idle time that a finding is about."""
    rows = np.asarray(finding.kernels, np.int64)
    of_gpu = facts.own_ns(rows) if len(rows) else 0.0
    return min(of_gpu + sum(finding.idle_ns.values()), facts.step_ns)


def _effect(facts: Facts, saving: Saving) -> str:
    """What a change saves, and with those that it needs."""
    finding, share = saving.finding, "at most" if saving.is_bound else "about"
    unit = "a step" if facts.has_steps else "the capture"
    text = finding.effect or f"Without this, {unit} would take {{saving}} less."
    own = saving.alone if saving.together else saving.ns
    more = own > _MORE * _concerned(facts, finding)
    if more and "{saving}" in text and _AHEAD not in text:
        text = f"{text.removesuffix('.')}, as the host would {_AHEAD}."
    if saving.together:
        others = len(saving.together) - 1
        following = "the next finding" if others == 1 else f"the next {others} findings"
        all_of_them = _saved(facts, saving.ns * len(saving.together))
        text = f"{text.removesuffix('.')}; with {following}, {all_of_them}."
    return text.replace("{saving}", f"{share} {_saved(facts, own)}")


def _saved(facts: Facts, ns: float) -> str:
    """A time in the unit of a step."""
    return f"{rounded(ns, facts.step_ns)} {scale_of('ns', facts.step_ns).name}"


def _without_work(facts: Facts) -> str:
    """The GPU has next to nothing to do while the host makes calls: why; "" if it has work."""
    if facts.has_steps or not facts.has_times or not len(facts.profile.api):
        return ""
    api = facts.profile.api
    length = float(api.start.max() - api.start.min())
    if facts.times["busy_ns"] > _HARDLY * length:
        return ""
    times = f"{_saved(facts, facts.times['busy_ns'])} in {quantity(round(length), 'ns')} of calls"
    if any("StreamBeginCapture" in name for name in api.name.values):
        return (
            "The host captures a graph, whose work the GPU does when it is replayed; here it works "
            f"{times}. With a trace of replays, this file is --graph-capture."
        )
    return f"The GPU works only {times}: record while it does the work that is to be judged."


def _close(facts: Facts) -> str:
    """No finding saves much: why not."""
    unit = "step" if facts.has_steps else "capture"
    if not facts.has_times:
        missing = "no step has all of its GPU work in the file: --steps names another mark"
        if "start" not in facts.profile.names:
            missing = "dict lines contain no times: the original trace shows what the GPU waits for"
        return f"No finding saves more than {_percent(_LARGE)} of the GPU time, and {missing}."
    busy = facts.times["busy_ns"] / facts.step_ns
    if busy < _BUSY:
        return f"The GPU is idle {part_of_step(facts, facts.times['idle_ns'])}{_why_idle(facts)}."
    is_busy = f"busy {_percent(busy)} of the {unit}"
    for name, does in (("copy", "only copies"), ("communication", "only communicates")):
        share = facts.times[f"exposed_{name}_ns"] / facts.times["busy_ns"]
        if share >= _MOSTLY:
            return (
                f"The GPU is {is_busy}, but {does} for {_percent(share)} of that, more than other "
                "work can hide: copy or send less."
            )
    roof = _roof(facts)
    if isinstance(roof, str):
        return f"The GPU is {is_busy}. Whether its kernels could be faster is unknown: {roof}."
    reach = f"its kernels reach {_percent(roof)} of the practical roof"
    if roof >= _NEAR:
        return f"The {unit} is close to what the GPU can do: it is {is_busy}, and {reach}."
    return (
        f"The GPU is {is_busy}, but {reach}. No change is known that saves more than "
        f"{_percent(_LARGE)}."
    )


def _percent(share: float) -> str:
    return f"{round(100 * share)} %"


def _why_idle(facts: Facts) -> str:
    """The main cause, or why it is unknown."""
    try:
        causes = facts.idle.means
    except CannotJudge as reason:
        return f"; why is unknown: {reason}"
    cause = CAUSES[int(np.argmax(causes))]
    return f", mostly by the cause '{cause}'; no change is known that saves more than " + _percent(
        _LARGE
    )


def _roof(facts: Facts) -> float | str:
    """The share of the practical roof that the kernels reach; or why it is unknown."""
    calls = facts.calls
    if not calls.has_ops:
        if facts.program.kind not in WITH_OPERATORS:
            return "the file has no operators, so the cost of its kernels is unknown"
        return "no operators in the file; record with torch.profiler, or emit_nvtx under nsys"
    if not calls.has_shapes:
        return "no shapes in the file; record with record_shapes=True"
    why = [each.why for each in facts.devices.values() if each.why]
    if why:
        return f"{why[0]}; --gpu NAME gives the peaks"
    parts = [part for group in calls.groups for part in group.parts]
    known = [part for part in parts if part.has_ideal and part.ideal_ns > 0]
    time = sum(part.ns for part in known)
    if time < _KNOWN * max(calls.kernel_ns, 1.0):
        share = time / max(calls.kernel_ns, 1.0)
        return f"their cost is known of {_percent(share)} of their time"
    return sum(part.ideal_ns for part in known) / time
