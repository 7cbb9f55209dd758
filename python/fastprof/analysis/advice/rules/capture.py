"""Rules on what the capture contains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.profile.advice import advice

__all__: list[str] = []

_ENOUGH: Final = 0.95  # of the GPU time


@rule("capture")
def capture(facts: Facts) -> Iterator[Finding]:
    """What the capture lacks for further findings."""
    profile, coverage = facts.profile, facts.profile.coverage_of_kernels
    if not coverage.total:
        return
    low = {
        depth: known / coverage.total
        for depth, known in coverage.known.items()
        if depth != "cost" and known < _ENOUGH * coverage.total
    }
    gaps = advice(profile.about, profile.contents, coverage)
    remedies = [line for depth in (*low, "types") for line in gaps.get(depth, [])[:1]]
    evidence = [f"{depth} known of {share:.1%} of the GPU time" for depth, share in low.items()]
    if facts.has_times and not facts.has_steps:
        evidence.append("no steps")
        remedies.append("mark steps: torch.profiler schedule with prof.step(), or --steps SOURCE")
    warm_up = [note for note in facts.steps.notes if note.startswith("averages exclude the first")]
    if warm_up:
        evidence += warm_up
        remedies.append("start the recording later: schedule(wait=..., warmup=...)")
    if not remedies:
        return
    yield Finding(
        what="The capture lacks what further findings need.",
        evidence="; ".join(evidence),
        remedy="; ".join(dict.fromkeys(remedies)),
        confidence="high",
        why="coverage of the GPU time",
    )
