"""The first screen of a run: lines of text, and the tables below them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof.model.heading import printable
from fastprof.model.numbers import quantity
from fastprof.model.table import Table
from fastprof.ranks.run.causes import BEFORE, COPIES, LATE_START, SLOWER, UNEVEN
from fastprof.ranks.run.changes import STRAGGLERS
from fastprof.ranks.run.result import CauseRow, RunData
from fastprof.ranks.run.waits import PARTS, UNKNOWN

SHOWN: Final = 3  # causes in words
_LISTED: Final = 8
_PATH: Final = 3  # ranks and parts of the critical path
_TOLD: Final = 0.01  # of it
_FEW: Final = 8  # ranks, which are in order of their number
_NAMES: Final = {
    "compute": "compute", "copies": "copies", "idle": "idle", "transfer": "exposed transfer",
    "wait": "waits for ranks",
}  # fmt: skip
_SMALL: Final = 0.001  # of the step: parts that are not told


def lines_of(run: RunData) -> list[str]:
    """The answer, what a rank does, the imbalance, what it would save, and what is missing."""
    return [printable(line) for line in _lines(run)]


def _lines(run: RunData) -> list[str]:
    if not run.records:
        return ["no rank with GPU work", *_problems(run)]
    if np.isnan(run.step_ns):
        return ["no step of a rank has GPU work", "", _what(run), _clocks(run), *_problems(run)]
    lines = [_answer(run), ""]
    lines += [_what(run), _clocks(run), _steps(run)]
    lines += [_mean_rank(run), *_imbalance(run), *_path(run)]
    result = run.findings[:SHOWN]
    if result:
        lines += ["", "what holds the others up"]
        lines += [f"  {i}. {_cause(run, row)}" for i, row in enumerate(result, 1)]
    return [*lines, *_problems(run)]


def tables_of(run: RunData) -> list[tuple[str, Table]]:
    """The tables of the first screen, with titles: those that have rows."""
    ranks = ("ranks, a step", run.ranks)
    if len(run) > _FEW:
        ranks = ("ranks that others wait for most, a step", run.ranks.sort("waited_for_ns"))
    tables = [
        ("groups, a step and rank", run.groups),
        ranks,
        ("causes of late arrivals", run.causes),
        ("stages of the pipeline", run.stages()),
    ]
    return [(title, table) for title, table in tables if table.n_rows]


def _answer(run: RunData) -> str:
    findings = run.findings
    step = quantity(run.step_ns, "ns")
    if len(run) == 1:
        return (
            f"one rank, {run.numbers[0]}: nobody can tell whom it waits for; give the files of all "
            f"ranks. A step takes {step}"
        )
    if not findings:
        return f"no rank holds the others up: no cause of waits costs 1 % of a step of {step}"
    first = findings[0]
    who = "a rank without a file" if first.rank == UNKNOWN else f"rank {run.number(first.rank)}"
    text = f"{who} holds the others up: {_BEGINS.get(first.name, first.name)}"
    if first.where:
        text += f" ({first.where})"
    if not np.isnan(first.costs):
        text += f" costs {quantity(first.costs, 'ns')} of a step of {step}"
    saved = _saved(run)
    if saved > 0:
        text += f"; without stragglers a step would take {quantity(run.step_ns - saved, 'ns')}"
    return text


def _saved(run: RunData) -> float:
    """What a step is shorter if no rank takes longer than the median one, ns."""
    rows = run.what_if(STRAGGLERS)
    value = rows["saved_ns"][1]
    return float(value) if value is not None and not np.isnan(value) else 0.0


def _what(run: RunData) -> str:
    files = len(run.files) + len(run.failures)
    gpus = sorted({record.gpu for record in run.records if record.gpu})
    text = f"{_count(len(run), 'rank')} in {_count(files, 'file')}"
    if gpus:
        text += f", {', '.join(gpus[:2])}" + (", ..." if len(gpus) > 2 else "")
    n, shared = len(run.instances), int(run.waits.is_shared.sum())
    text += f"; {shared} of {n} collectives are matched" if shared < n else (
        f"; all {n} collectives are matched"
    )  # fmt: skip
    return text


def _clocks(run: RunData) -> str:
    clocks = run.clocks
    if run.clock == "recorded":
        return "clocks: as recorded, not aligned"
    known = clocks.residual[~np.isnan(clocks.residual)]
    if not len(known):
        return "clocks: unknown, ranks have no collective in common"
    within = quantity(float(np.median(known)), "ns")
    moved = np.flatnonzero(clocks.offset)
    if not len(moved):
        return f"clocks agree: collectives end on all ranks within {within} (median)"
    most = int(np.abs(clocks.offset).argmax())
    drift = float(np.abs(clocks.drift).max()) * 1e6
    text = f"clocks of {_count(len(moved), 'rank')} are moved, that of rank {run.numbers[most]} "
    text += f"the most: by {_signed(int(clocks.offset[most]))}"
    text += f", drift up to {drift:.1f} ppm" if drift else ""
    return f"{text}; then collectives end within {within} (median)"


def _signed(ns: int) -> str:
    return ("-" if ns < 0 else "") + quantity(abs(ns), "ns")


def _steps(run: RunData) -> str:
    marks = sorted({record.steps.source for record in run.records})
    if marks == ["none"]:
        return f"no steps are recorded: the capture of {quantity(run.step_ns, 'ns')} is one"
    return (
        f"step: {quantity(run.step_ns, 'ns')}, mean of {_count(run.n_steps, 'step')} and "
        f"{_count(len(run), 'rank')} ({', '.join(marks)})"
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _mean_rank(run: RunData) -> str:
    """What a step consists of: means over the ranks, which add up to the mean step."""
    parts = np.nanmean(run.mean_parts, axis=0)
    told = [
        f"{_NAMES[name]} {quantity(float(ns), 'ns')}"
        for name, ns in zip(PARTS, parts.tolist(), strict=False)
        if ns >= _SMALL * run.step_ns
    ]
    hidden = float(parts[len(PARTS)])
    text = f"mean of the ranks, a step: {', '.join(told)}"
    return text + (f"; {quantity(hidden, 'ns')} of transfers are hidden" if hidden else "")


def _imbalance(run: RunData) -> list[str]:
    waits = run.mean_parts[:, PARTS.index("wait")]
    total = float(np.nansum(waits))
    if len(run) < 2 or not total:
        return []
    gpus = total / run.step_ns
    text = (
        f"imbalance: ranks wait {quantity(float(np.nanmean(waits)), 'ns')} a step on average, "
        f"{quantity(total, 'ns')} together: {gpus:.1f} of {len(run)} GPUs"
    )
    return [text + (" at least: ranks are missing" if run.missing else "")]


def _path(run: RunData) -> list[str]:
    """Which ranks and parts the critical path consists of."""
    path = run.critical_path()
    if len(run) < 2 or not path.total:
        return []
    ranks = [f"rank {run.numbers[rank]} {share:.0%}" for rank, share in path.by_rank()[:_PATH]]
    parts: dict[str, float] = {}
    for (_, part), ns in path.ns.items():
        parts[part] = parts.get(part, 0.0) + ns
    told = [
        f"{part} {ns / path.total:.0%}"
        for part, ns in sorted(parts.items(), key=lambda row: -row[1])[:_PATH]
        if ns >= _TOLD * path.total
    ]
    return [
        f"critical path: {', '.join(told)}; {', '.join(ranks)}; it changes rank "
        f"{path.hops:.1f} times a step"
    ]


def _cause(run: RunData, row: CauseRow) -> str:
    who = "a rank without a file" if row.rank == UNKNOWN else f"rank {run.number(row.rank)}"
    text = f"{who}: {_BEGINS.get(row.name, row.name)}"
    if row.where:
        text += f", {row.where}"
    if row.name == LATE_START:
        return f"{text}; others wait {quantity(row.waited * run.n_steps, 'ns')}, once"
    text += f"; others wait {quantity(row.waited, 'ns')} a step"
    if not np.isnan(row.costs):
        text += f", the step would be {quantity(max(row.costs, 0.0), 'ns')} shorter"
    advice = ADVICE.get(row.name, "")
    return text + (f". {advice}" if advice else "")


_BEGINS: Final = {BEFORE: "it is late when the recording begins"}
# What to look at, by name of the cause.
ADVICE: Final = {
    "data loading": "More loader workers there, or even shards",
    SLOWER: "Equal kernels take longer there: compare clocks, power and temperature of that GPU",
    UNEVEN: "It has other shapes or more calls: balance tokens, experts or sequence lengths",
    COPIES: "It copies longer: pinned memory, or another NUMA node or PCIe slot",
    "host-bound": "Its host is slower: compare CPU load, pinning of threads and garbage collection",
    "launch-bound": "Its host is slower: compare CPU load and pinning of threads",
}


def _problems(run: RunData) -> list[str]:
    result = []
    if run.missing:
        text = f"missing: {_numbers(run.missing)}; waits for them are unknown"
        unread = f"; no work could be read of {_numbers(run.unreadable)}" if run.unreadable else ""
        result.append(text + unread)
    lost = sum(row.calls for row in run.instances.unmatched) if run.records else 0
    if lost:
        ranks = sorted({run.numbers[row.rank] for row in run.instances.unmatched})
        result.append(f"not matched: {lost} calls of {_numbers(ranks)}; see --table unmatched")
    silent = [run.numbers[i] for i, record in enumerate(run.records) if not len(record.calls)]
    if silent and len(run) > 1:
        result.append(f"no collectives are recorded of {_numbers(silent)}")
    result += _warnings(run)
    result += [f"{path}: has no GPU work with times" for path in run.empty]
    return ["", *result] if result else []


def _warnings(run: RunData) -> list[str]:
    """The first warning of the files, in words, and whose the others are."""
    warned = [i for i, record in enumerate(run.records) if record.warnings]
    if not warned:
        return []
    n = sum(len(run.records[i].warnings) for i in warned)
    ranks = _numbers([run.numbers[i] for i in warned])
    first = run.records[warned[0]].warnings[0]
    return [f"{_count(n, 'warning')} of {ranks}; the first: {first}"]


def _numbers(values: Sequence[int]) -> str:
    more = f", ... ({len(values)})" if len(values) > _LISTED else ""
    return f"rank{'s' * (len(values) != 1)} " + ", ".join(map(str, values[:_LISTED])) + more
