"""Rules on the work of replayed graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.idle_causes import CAUSES, Cause
from fastprof.analysis.keys import key_of
from fastprof.model.quantity import quantity
from fastprof.profile.gpu_work import launches_graph

__all__: list[str] = []

_SHARE: Final = 0.05  # of a step
_WAITING: Final = CAUSES[Cause.DEPENDENCY]


@rule("graph-gaps")
def graph_gaps(facts: Facts) -> Iterator[Finding]:
    """The GPU is idle within replays of graphs, or before their first work."""
    facts.need_calls()
    idle = facts.idle
    launched = key_of(facts.profile, "launch")
    in_graph = np.append(launched.fits(launches_graph), False)
    gaps = idle.is_mainly(_WAITING) & in_graph[idle.gaps.after]
    ns = idle.by_cause(gaps).get(_WAITING, 0.0)
    if ns < _SHARE * facts.step_ns:
        return
    length = (idle.gaps.end - idle.gaps.start)[gaps]
    top = [name for name, _ in idle.top("op", gaps, 2)] or [
        name for name, _ in idle.top("range", gaps, 2)
    ]
    yield Finding(
        what="The GPU is idle within replays of graphs, with their work queued.",
        where=", ".join(top),
        evidence=f"{quantity(round(ns), 'ns')} idle {facts.per_step} before work that a graph "
        f"launch queued; {len(length) / facts.n_steps:.4g} gaps, the longest "
        f"{quantity(int(length.max()), 'ns')}",
        remedy="nsys profile --cuda-graph-trace=node records all nodes: if the gaps remain, "
        "branches of the graph wait for each other or for host nodes",
        confidence="low",
        why="a recorder that omits nodes of a graph leaves such gaps, too",
    )
