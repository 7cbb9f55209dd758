"""Rules on the causes of idle time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.model.quantity import quantity

__all__: list[str] = []


@rule("data-loading", least=0.05)
def data_loading(facts: Facts) -> Iterator[Finding]:
    """The GPU waits for batches."""
    ns = facts.idle.mean("data loading")
    if not ns:
        return
    yield Finding(
        what="The GPU waits for the data loader.",
        where=places(facts, "data loading", "line", "range"),
        evidence=evidence(facts, "data loading"),
        remedy="DataLoader(num_workers=4, pin_memory=True, persistent_workers=True) prefetches "
        "batches; or move transforms to the GPU",
        confidence="high",
        why="the thread that launches the next work is in the loader while the GPU has none",
        idle_ns={"data loading": ns},
    )


def evidence(facts: Facts, cause: str) -> str:
    """The idle time of a cause per step, its spread and its gaps."""
    idle = facts.idle
    own, of_steps = idle.is_mainly(cause), idle.of_windows(cause)
    length = (idle.gaps.end - idle.gaps.start)[own]
    parts = [f"{quantity(round(float(of_steps.mean())), 'ns')} idle per step"]
    if len(of_steps) > 1:
        low, middle, high = np.percentile(of_steps, [0, 50, 100]).round().astype(np.int64).tolist()
        parts.append(
            f"median {quantity(middle, 'ns')}, {quantity(low, 'ns')} to {quantity(high, 'ns')}"
        )
    if len(length):
        gaps = f"{len(length) / facts.n_steps:.3g} gaps per step"
        parts.append(f"{gaps}, the longest {quantity(int(length.max()), 'ns')}")
    return "; ".join(parts)


_MOST: Final = 0.1  # of the time of a cause; places below are not named


def places(facts: Facts, cause: str, *names: str) -> str:
    """Where most of a cause is: the first of some places that is known, with shares."""
    rows = facts.idle.is_mainly(cause)
    found = []
    for name in names:
        top = [each for each in facts.idle.top(name, rows) if each[1] >= _MOST]
        if top:
            found.append(", ".join(f"{text} {share:.0%}" for text, share in top))
    return "; ".join(found)
