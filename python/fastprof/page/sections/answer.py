"""Section: the length of a step, what the GPU does in it, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.advice.idle_text import first_calls
from fastprof.analysis.advice.report import findings
from fastprof.analysis.idle_causes import CAUSES
from fastprof.model.quantity import quantity
from fastprof.model.table import Table
from fastprof.page.section import Card, Chart, Fact, Section, Source
from fastprof.page.step_bars import step_bars
from fastprof.profile.advice import advice_on

_CARDS: Final = 3
_PARTS: Final = (
    ("evidence", "evidence"),
    ("where", "where"),
    ("remedy", "remedy"),
    ("confidence", "confidence"),
)


def section(source: Source) -> Section:
    """The step in numbers, its parts for each step, and the findings that save most."""
    profile, facts = source.profile, source.facts
    if not len(profile):
        why = advice_on(profile.about, profile.contents, "op")
        return Section("answer", "The answer", missing=[why])
    table = findings(facts)
    missing = list(_missing(facts))
    charts: list[Chart] = []
    if facts.has_times:
        charts, without = step_bars(facts)
        missing += without
    shown = replace(table, lead=(), total={})
    return Section(
        "answer",
        "The answer",
        [table.facts["answer"], *first_calls(facts)],
        facts=[*_of_step(source), *_of_savings(facts, table)],
        charts=charts,
        cards=list(_cards(table)),
        tables=[("All findings", shown.select([*_SHOWN]))] if table.n_rows > _CARDS else [],
        missing=missing,
    )


_SHOWN: Final = (
    *("id", "saving_ns", "share", "confidence", "together", "what", "where", "remedy"),
)


def _of_step(source: Source) -> Iterator[Fact]:
    facts = source.facts
    unit = facts.steps.unit
    if not facts.has_times:
        yield Fact("GPU time", quantity(facts.step_ns, "ns"), "dict lines contain no times")
        return
    step, times = facts.step_ns, facts.times
    yield Fact(unit.capitalize(), quantity(step, "ns"), _averaged(facts))
    busy, idle = times["busy_ns"], times["idle_ns"]
    length = max(step, 1.0)
    yield Fact("GPU busy", f"{busy / length:.1%}", quantity(busy, "ns"), busy / length)
    yield Fact("GPU idle", quantity(idle, "ns"), _main_cause(facts), idle / length)
    of_steps: Any = source.table("summary").facts["utilisation"]
    if of_steps is not None:
        name, peak = of_steps["compute_type"], quantity(of_steps["peak_flop_per_s"], "flop/s")
        mfu = of_steps["mfu"]
        yield Fact("MFU", f"{mfu:.1%}", f"of the {name} peak, {peak}", min(mfu, 1.0))


def _averaged(facts: Facts) -> str:
    """Which steps and GPUs the numbers are means of."""
    n_gpus = len({int(each) for each in facts.windows.lane[facts.rows]})
    n_steps = len({int(each) for each in facts.windows.step[facts.rows]})
    steps = f"{n_steps} steps" if facts.has_steps and n_steps > 1 else ""
    gpus = f"{n_gpus} GPUs" if n_gpus > 1 else ""
    both = " on ".join(filter(None, [steps, gpus]))
    return f"mean of {both}" if both else ""


def _main_cause(facts: Facts) -> str:
    """The cause of most idle time."""
    try:
        causes = facts.idle.means
    except CannotJudge:
        return ""
    most = int(np.argmax(causes))
    return f"{CAUSES[most]} {quantity(float(causes[most]), 'ns')}" if causes[most] else ""


def _of_savings(facts: Facts, table: Table) -> Iterator[Fact]:
    saving, share = table.total["saving_ns"], table.total["share"]
    if saving:
        name = "Findings save at most" if table.facts["is_bound"] else "Findings save"
        yield Fact(name, quantity(saving, "ns"), f"{share:.0%} of the {facts.steps.unit}")


def _cards(table: Table) -> Iterator[Card]:
    for row in table.head(_CARDS).rows():
        saving = row["saving_ns"]
        verb = "at most" if row["is_bound"] else "saves"
        badge = "" if saving is None else f"{verb} {quantity(saving, 'ns')}, {row['share']:.1%}"
        if row["together"]:
            badge += f", a share of {row['together'].replace(',', ', ')}"
        rows = [(title, _text(row, name)) for title, name in _PARTS if row[name]]
        yield Card(row["what"], badge, rows)


def _text(row: dict[str, Any], name: str) -> str:
    why = f": {row['why']}" if name == "confidence" and row["why"] else ""
    return f"{row[name]}{why}"


def _missing(facts: Facts) -> Iterator[str]:
    if facts.has_times and not facts.has_steps:
        how = (
            "Use torch.profiler's schedule, or open a range around each step, such as "
            "torch.cuda.nvtx.range(f'step {i}')"
            if facts.program.uses_torch
            else "Open an NVTX or roctx range around each step"
        )
        yield f"No steps found: the capture counts as one step. {how}"
        yield facts.steps.description
