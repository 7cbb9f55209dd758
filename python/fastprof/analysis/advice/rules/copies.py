"""Rules on copies between host and GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import Finding
from fastprof.analysis.advice.registry import rule
from fastprof.analysis.keys import key_of
from fastprof.model.arrays import Int64
from fastprof.model.quantity import quantity

__all__: list[str] = []

_NEGLIGIBLE: Final = 0.001  # of a step


@rule("exposed-copy", least=0.02)
def exposed_copy(facts: Facts) -> Iterator[Finding]:
    """Copies between host and GPU during which the GPU does nothing else."""
    facts.need_times()
    rows = facts.kernels(kind="memcpy", direction=("HtoD", "DtoH"))
    exposed = facts.own_ns(rows)
    if exposed <= _NEGLIGIBLE * facts.step_ns:
        return
    pageable = _pageable(facts, rows)
    if pageable is None or pageable < 0.5:
        pinned = "" if pageable is None else f"; {1 - pageable:.0%} of it from or to pinned memory"
        remedy = "copy the next batch on another stream while the GPU computes"
    else:
        pinned = f"; {pageable:.0%} of it from or to pageable memory"
        remedy = (
            "DataLoader(pin_memory=True) and .to(device, non_blocking=True); copy the next batch "
            "on another stream while the GPU computes"
        )
    yield Finding(
        what="The GPU only copies from or to the host.",
        where=_where(facts, rows, "direction", "line", "op"),
        evidence=f"{quantity(round(exposed), 'ns')} exposed {facts.per_step}, "
        f"{facts.count(rows):.4g} copies{pinned}",
        remedy=remedy,
        confidence="medium",
        why="overlap needs other work that does not depend on the copy",
        kernels=rows,
        gpu_ns=exposed,
        overlaps=True,
    )


@rule("device-copy", least=0.03)
def device_copy(facts: Facts) -> Iterator[Finding]:
    """Copies within the memory of the GPU during which it does nothing else."""
    facts.need_times()
    rows = facts.kernels(kind="memcpy", direction=("DtoD", "PtoP"))
    exposed = facts.own_ns(rows)
    if exposed <= _NEGLIGIBLE * facts.step_ns:
        return
    yield Finding(
        what="The GPU only copies within its own memory.",
        where=_where(facts, rows, "line", "op", "layer"),
        evidence=f"{quantity(round(exposed), 'ns')} exposed {facts.per_step}, "
        f"{facts.count(rows):.4g} copies",
        remedy="avoid clone(), cat() and contiguous(): write into views of one tensor (out=)",
        confidence="low",
        why="the program may need both copies",
        kernels=rows,
        gpu_ns=exposed,
    )


def _where(facts: Facts, rows: Int64, *keys: str) -> str:
    """The values of some keys that take most of the time of copies."""
    found = []
    for key in keys:
        top = facts.top(key, rows, most=2)
        found += [", ".join(f"{name} {share:.0%}" for name, share in top)] if top else []
    return "; ".join(found)


def _pageable(facts: Facts, rows: Int64) -> float | None:
    """The share of the time of copies that is from or to pageable memory; None if not recorded."""
    memory = key_of(facts.profile, "memory").take(rows)
    ns = facts.of_kernels[rows]
    if not (memory.ids >= 0).any():
        return None
    is_pageable = memory.fits(lambda text: "pageable" in str(text))
    return float(ns[is_pageable].sum() / max(float(ns.sum()), 1.0))
