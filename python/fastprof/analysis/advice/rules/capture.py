"""Rules on what the capture contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.profile.program import OTHER, SERVING, TORCH, WITH_OPERATORS, Program
from fastprof.profile.recording_hints import advice

_ENOUGH: Final = 0.95  # of the GPU time
_MARKS: Final = {
    TORCH: "mark steps: torch.profiler schedule with prof.step(), or --steps SOURCE",
    SERVING: "name the steps: --steps range:REGEX or anchor:REGEX",
    OTHER: "mark steps: a range around each one, or --steps SOURCE",
}
_LATER: Final = {
    TORCH: "start the recording later: schedule(wait=..., warmup=...)",
    OTHER: "start the recording later, or repeat the work more often",
}


def _depths(program: Program) -> tuple[str, ...]:
    """The depths that a program of its kind can have."""
    if program.kind in WITH_OPERATORS:
        return "launch", "range", "op", "shapes", "source line", "layer"
    return "launch", "range"


@rule("capture")
def capture(facts: Facts) -> Iterator[Finding]:
    """What the capture lacks for further findings."""
    profile, coverage = facts.profile, facts.profile.coverage_of_kernels
    if not coverage.total:
        return
    low = {
        depth: known / coverage.total
        for depth, known in coverage.known.items()
        if depth in _depths(facts.program) and known < _ENOUGH * coverage.total
    }
    gaps = advice(profile.about, profile.contents, coverage)
    remedies = [line for depth in (*low, "types") for line in gaps.get(depth, [])[:1]]
    evidence = [f"{depth} known of {share:.1%} of the GPU time" for depth, share in low.items()]
    if facts.has_times and not facts.has_steps:
        evidence.append("no steps")
        remedies.append(facts.program.choose(_MARKS))
    warm_up = [note for note in facts.steps.notes if note.startswith("means exclude the first")]
    if warm_up:
        evidence += warm_up
        remedies.append(facts.program.choose(_LATER))
    if not remedies:
        return
    yield Finding(
        what="The capture lacks what further findings need.",
        evidence="; ".join(evidence),
        remedy="; ".join(dict.fromkeys(remedies)),
        confidence="high",
        why="coverage of the GPU time",
    )
