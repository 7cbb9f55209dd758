"""Rules on the lengths of steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.registry import rule
from fastprof.model.arrays import unique
from fastprof.model.quantity import quantity
from fastprof.profile.program import CUDA, OTHER, SERVING, TORCH

_LONG: Final = 1.3  # medians
_LEAST_STEPS: Final = 3
_DIFFERS: Final = {
    TORCH: "loader, allocation, logging, garbage collection (gc.freeze() or gc.disable() in the "
    "loop)",
    SERVING: "the number of requests and tokens, prefill among decode steps (chunked prefill evens "
    "them out)",
    CUDA: "input, allocation, output of results",
    OTHER: "input, allocation, logging, garbage collection (gc.freeze() or gc.disable() in the "
    "loop)",
}


@rule("uneven-steps", needs=("times",))
def uneven_steps(facts: Facts) -> Iterator[Finding]:
    """Some steps take far longer than the median."""
    windows = facts.windows
    wall, step = windows.wall[facts.rows], windows.step[facts.rows]
    if len(unique(step)) < _LEAST_STEPS:
        raise CannotJudge("fewer than 3 whole steps: record more, or name them with --steps")
    median = float(np.median(wall))
    if wall.max() <= _LONG * median:  # most captures; np.percentile imports numpy.ma
        return
    late = float(np.percentile(wall, 95))
    if late <= _LONG * median:
        return
    long = unique(step[wall > _LONG * median])
    numbers = ", ".join(map(str, facts.steps.number[long][:5].tolist()))
    from fastprof.analysis.steps.report import steps

    outliers = steps(facts.profile, steps=facts.steps_source).lead
    causes = [
        line for line in outliers if line.startswith(("outlier:", "slow:")) and " over " in line
    ][:1]
    yield Finding(
        what=f"{len(long)} of {len(unique(step))} steps take over 1.3 times the median.",
        where=f"step {numbers}",
        evidence="; ".join(
            [
                f"median {quantity(round(median), 'ns')}, 95th percentile "
                f"{quantity(round(late), 'ns')}",
                *causes,
            ]
        ),
        remedy="fastprof steps shows what differs in these steps: "
        + facts.program.choose(_DIFFERS),
        confidence="medium",
    )
