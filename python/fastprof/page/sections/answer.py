"""Section: the length of a step, what the GPU does in each, and what to change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np

from fastprof._system.memory import give_back
from fastprof.analysis.advice.calls import cut_tensors
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge, Finding
from fastprof.analysis.advice.report import first_calls, plan_of, table_of
from fastprof.analysis.grouping import texts
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.steps.windows import ProcessLane, times_of
from fastprof.model.arrays import Int32, Int64
from fastprof.model.numbers import quantity
from fastprof.model.table import Table, text_column
from fastprof.page.section import Card, Chart, Fact, PageSource, Section
from fastprof.profile.recording_hints import advice_on

_CARDS: Final = 3
_PARTS: Final = (
    ("evidence", "evidence"),
    ("where", "where"),
    ("remedy", "remedy"),
    ("confidence", "confidence"),
)


def section(source: PageSource) -> Section:
    """The step in numbers, its parts for each step, and the findings that save most."""
    profile, facts = source.profile, source.facts
    if not len(profile):
        why = advice_on(profile.about, profile.contents, "op")
        return Section("answer", "The answer", missing=[why])
    give_back()  # findings take the most
    plan = plan_of(facts)
    table = table_of(facts, plan)
    finds = [_find(facts, saving.finding) for saving in plan.savings]
    facts.forget_calls()
    del plan  # with the run that was replayed
    missing = list(_missing(facts))
    charts: list[Chart] = []
    if facts.has_times:
        charts, without = step_bars(facts)
        missing += without
    where = text_column([text and cut_tensors(text) for text in table["where"].tolist()])
    columns = {**table.columns, "where": where}
    shown = replace(table, lead=(), total={}, columns=columns).select([*_shown_keys(table)])
    return Section(
        "answer",
        "The answer",
        [table.facts["answer"], *first_calls(facts)],
        facts=[*_of_step(source, table), *_of_savings(facts, table)],
        charts=charts,
        cards=list(_cards(table, finds)),
        tables=[("All findings", shown)] if table.n_rows > _CARDS else [],
        missing=missing,
    )


def _shown_keys(table: Table) -> Iterator[str]:
    """Columns of the table of findings; `together` where some findings need each other."""
    together = ("together",) if any(row["together"] for row in table.rows()) else ()
    yield from ("id", "saving_ns", "share", "confidence", *together, "what", "where", "remedy")


def _of_step(source: PageSource, table: Table) -> Iterator[Fact]:
    facts = source.facts
    unit = facts.steps.word
    if not facts.has_times:
        yield Fact("GPU time", quantity(facts.step_ns, "ns"), "dict lines contain no times")
        return
    step, times = facts.step_ns, facts.times
    less = table.facts["without_recorder_ns"]
    without = f"{quantity(less, 'ns')} without the recorder" if less is not None else ""
    detail = "; ".join(filter(None, [_averaged(facts), without]))
    yield Fact(unit.capitalize(), quantity(step, "ns"), detail)
    busy, idle = times["busy_ns"], times["idle_ns"]
    length = max(step, 1.0)
    yield Fact("GPU busy", f"{busy / length:.1%}", quantity(busy, "ns"), busy / length)
    yield Fact("GPU idle", quantity(idle, "ns"), _main_cause(facts), idle / length)
    of_steps: Any = source.whole("summary").table.facts["utilisation"]
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
        whole, length = f"the {facts.steps.word}", table.facts["without_recorder_ns"]
        if length is not None:
            whole = f"the {quantity(length, 'ns')} without the recorder"
        yield Fact(name, quantity(saving, "ns"), f"{share:.0%} of {whole}")


def _find(facts: Facts, finding: Finding) -> str:
    """What finds a finding on the time line: the main operator, or cause, of its time."""
    rows = np.asarray(finding.kernels, np.int64)
    idle = finding.idle_ns
    if len(rows) and finding.gpu_ns >= sum(idle.values()):
        ops = texts(facts.profile, "op")
        ids = ops.ids[rows]
        known = ids >= 0
        times = np.bincount(ids[known], facts.of_kernels[rows[known]], len(ops.values))
        return str(ops.values[int(np.argmax(times))]) if known.any() else ""
    return max(idle, key=idle.__getitem__) if idle else ""


def _cards(table: Table, finds: list[str]) -> Iterator[Card]:
    for row, find in zip(table.head(_CARDS).rows(), finds, strict=False):
        saving = row["saving_ns"]
        verb = "at most" if row["is_bound"] else "saves"
        badge = "" if saving is None else f"{verb} {quantity(saving, 'ns')}, {row['share']:.1%}"
        if row["together"]:
            badge += f", a share of {row['together'].replace(',', ', ')}"
        rows = [(title, _text(row, name)) for title, name in _PARTS if row[name]]
        yield Card(row["what"], badge, rows, find)


def _text(row: dict[str, Any], name: str) -> str:
    why = f": {row['why']}" if name == "confidence" and row["why"] else ""
    return f"{cut_tensors(row[name])}{why}"


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


_MOST_LANES: Final = 8
_BUSY: Final = (
    ("compute_ns", "compute", "compute"),
    ("exposed_communication_ns", "exposed communication", "communication"),
    ("exposed_copy_ns", "exposed copies", "copy"),
)


def step_bars(facts: Facts) -> tuple[list[Chart], list[str]]:
    """A chart for each GPU, and what is missing."""
    order, bounds = facts.windows.in_lanes()
    n_lanes = len(facts.windows.lanes)
    rows = order[: bounds[min(n_lanes, _MOST_LANES)]]
    windows = facts.windows.take(rows)
    missing: list[str] = []
    rest = "before the first work"  # no gap: nothing precedes it
    times = times_of(windows)
    idle = times["idle_ns"]
    parts: list[tuple[str, str, str, Int64]] = [
        (title, "busy", color, times[name]) for name, title, color in _BUSY
    ]
    try:
        causes = facts.idle_by_window(rows)
    except CannotJudge as reason:
        rest = "idle, cause unknown"
        missing.append(f"causes of idle time unknown: {reason}")
        causes = np.zeros((len(idle), len(CAUSES)), np.int64)
    parts += [(name, "cause", name, causes[:, i]) for i, name in enumerate(CAUSES)]
    parts.append((rest, "cause", "other", idle - causes.sum(axis=1)))
    charts = []
    for lane, own in islice(windows.by_lane(), _MOST_LANES):
        known = own[windows.is_known[own]]
        some = [part for part in parts if part[3][known].any()]
        if some and len(known) > 1:
            charts.append(_chart(facts, lane, windows.step[known], known, some, n_lanes > 1))
        elif not some:
            missing.append(
                f"no chart of GPU {lane.device}, process {lane.pid}: its steps take 0 ns"
            )
    if n_lanes > _MOST_LANES:
        missing.append(f"charts of {n_lanes - _MOST_LANES} more GPUs are omitted")
    return charts, missing


def _chart(
    facts: Facts,
    lane: ProcessLane,
    step: Int32,
    rows: Int64,
    parts: list[tuple[str, str, str, Int64]],
    is_named: bool,
) -> Chart:
    """The chart of a GPU.

    step : int32 [rows], rows of the steps
    """
    number = facts.steps.number[step]
    values = np.empty((len(parts), len(rows)))
    for i, (*_, array) in enumerate(parts):
        values[i] = array[rows]
    unit = f"{'each' if facts.has_steps else 'the'} {facts.steps.word}"
    where = f", GPU {lane.device}, process {lane.pid}" if is_named else ""
    return Chart(
        "bars",
        f"What the GPU does in {unit}{where}",
        {
            "unit": facts.steps.word,
            "labels": number.tolist() if facts.has_steps else [""],
            "parts": [{"name": name, "color": [group, color]} for name, group, color, _ in parts],
        },
        {"values": values.ravel()},
        ("bars.css",),
    )
