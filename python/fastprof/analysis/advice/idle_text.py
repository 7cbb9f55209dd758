"""The idle time of some causes in words: how much, and where."""

from __future__ import annotations

import math
import os
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.model.quantity import quantity, scale_of


def evidence_of(facts: Facts, *causes: str) -> str:
    """The idle time of some causes, its spread over steps and its gaps."""
    idle = facts.idle
    of_steps = np.sum([idle.of_windows(cause) for cause in causes], axis=0)
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
_MOSTLY: Final = 0.5  # of the time of a cause, from which a place is its place
_LEAST: Final = 0.1  # of the time of a cause; places below are not named


def part_of_step(facts: Facts, ns: float) -> str:
    """`47 of 209 ms a step`."""
    step, scale = facts.step_ns, scale_of("ns", facts.step_ns)
    every = " a step" if facts.has_steps else ""
    return f"{rounded(ns, step)} of {rounded(step, step)} {scale.name}{every}"


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
    found = []
    for name in names:
        top = [each for each in facts.idle.top(name, rows) if each[1] >= _LEAST]
        if top:
            found.append(", ".join(f"{text} {share:.0%}" for text, share in top))
    return "; ".join(found)


def at(facts: Facts, causes: tuple[str, ...], *names: str) -> str:
    """` (resnet.py:44)`: the first kind of place of which one takes most; or nothing."""
    rows = facts.idle.is_mainly(*causes)
    for name in names:
        for text, share in facts.idle.top(name, rows, most=1):
            if share >= _MOSTLY:
                return f" ({os.path.basename(text) if name == 'line' else text})"
    return ""


def places_of(facts: Facts, causes: tuple[str, ...], place: str) -> list[str]:
    """The places that take most of some causes, without shares."""
    rows = facts.idle.is_mainly(*causes)
    return [text for text, share in facts.idle.top(place, rows) if share >= _LEAST]
