"""Rules on communication."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.model.quantity import quantity

__all__: list[str] = []


@rule("exposed-comm", least=0.03)
def exposed_communication(facts: Facts) -> Iterator[Finding]:
    """Communication during which the GPU computes nothing."""
    times = facts.times
    exposed = times["exposed_communication_ns"]
    if not exposed:
        return
    rows = np.flatnonzero(facts.where("class", "communication"))
    hidden = times["hidden_communication_ns"] / max(times["communication_ns"], 1)
    names = ", ".join(f"{name} {share:.0%}" for name, share in facts.top("kernel", rows))
    yield Finding(
        what="The GPU computes nothing during communication.",
        where=names,
        evidence=f"{quantity(round(exposed), 'ns')} exposed per step; {hidden:.0%} of "
        f"{quantity(round(times['communication_ns']), 'ns')} is hidden behind compute",
        remedy="DistributedDataParallel(bucket_cap_mb=...), FSDP prefetch (backward_prefetch, forward_prefetch)",
        idle_ns={},
        kernels=rows,
        gpu_ns=facts.own_ns(rows),
    )
