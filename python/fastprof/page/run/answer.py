"""Section: how long ranks wait for each other, and the causes that cost most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np

from fastprof.model.numbers import quantity
from fastprof.page.section import Card, Chart, Fact, Link, Section
from fastprof.ranks.run.causes import LATE_START, SCHEDULE, TRANSFER
from fastprof.ranks.run.pictures import StepWaits
from fastprof.ranks.run.result import CauseRow, RunData
from fastprof.ranks.run.text import lines_of
from fastprof.ranks.run.waits import PARTS, UNKNOWN

_CARDS: Final = 3
_MOST_NAMED: Final = 8
# What follows from the waits of others, or from the schedule: no card says to change it.
_FOLLOW: Final = frozenset({TRANSFER, SCHEDULE})
_PARTS: Final = (
    ("compute", ["busy", "compute"]),
    ("copies", ["busy", "copy"]),
    ("idle", ["part", "idle"]),
    ("transfer", ["busy", "communication"]),
    ("wait", ["part", "wait"]),
)


def section(run: RunData, waits: StepWaits, links: Sequence[Link]) -> Section:
    """The lines of the first screen, the causes that cost most, the parts of the step of ranks."""
    lines = lines_of(run)
    blocks = [list(block) for is_line, block in groupby(lines, key=bool) if is_line]
    problems = [block for block in blocks[1:] if not block[0].startswith("what holds")][1:]
    missing = [failure.error for failure in run.failures[:_MOST_NAMED]]
    return Section(
        "answer",
        "The answer",
        [_sentences(block) for block in blocks[:2]],
        list(_facts(run, waits)),
        [_bars(run)] if len(run) else [],
        list(_cards(run)),
        missing=[*missing, *(_sentences([line]) for block in problems for line in block)],
        links=links,
    )


def _sentences(lines: Sequence[str]) -> str:
    return " ".join(f"{line[:1].upper()}{line[1:]}." for line in lines)


def _mean(run: RunData, name: str) -> float:
    values = run.mean_parts[:, PARTS.index(name)]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else 0.0


def _own(run: RunData) -> list[CauseRow]:
    return [row for row in run.findings if row.name not in _FOLLOW]


def _title(run: RunData, row: CauseRow) -> str:
    number = run.number(row.rank)
    rank = "A rank without a file" if number is None else f"Rank {number}"
    return f"{rank}: {row.name}"


def _facts(run: RunData, waits: StepWaits) -> Iterator[Fact]:
    step = max(run.step_ns, 1.0)
    yield Fact("Ranks", f"{len(run):,}", f"{len(run.missing):,} missing" if run.missing else "")
    longest = waits.length[:, waits.is_counted].max(initial=0)
    yield Fact("Step", quantity(run.step_ns, "ns"), f"longest {quantity(float(longest), 'ns')}")
    for name, title, about in (
        ("compute", "Compute", "kernels other than communication"),
        ("transfer", "Exposed transfer", "work waits for data"),
        ("wait", "Waits for ranks", "work waits for a late rank"),
        ("idle", "Idle", "neither work nor a call that it waits for"),
    ):
        share = _mean(run, name) / step
        yield Fact(title, f"{share:.1%}", f"{quantity(_mean(run, name), 'ns')}: {about}", share)
    saved = sum(row.costs for row in _own(run) if not np.isnan(row.costs))
    if saved:
        yield Fact("Causes cost", quantity(saved, "ns"), "a step, each alone", saved / step)


def _cards(run: RunData) -> Iterator[Card]:
    for row in _own(run)[:_CARDS]:
        share = row.costs / max(run.step_ns, 1.0)
        known = not np.isnan(row.costs)
        yield Card(
            _title(run, row),
            f"saves {quantity(row.costs, 'ns')} a step ({share:.0%})" if known else "",
            [
                ("others wait", _waited(run, row)),
                *([("last", f"in {row.times:,} instances of collectives")] if row.times else []),
                *([("where", row.where)] if row.where else []),
            ],
            find="" if row.rank == UNKNOWN else f"rank {run.number(row.rank)}",
        )


def _waited(run: RunData, row: CauseRow) -> str:
    if row.name == LATE_START:
        return f"{quantity(row.waited * max(run.n_steps, 1), 'ns')} of GPU time, once"
    return f"{quantity(row.waited, 'ns')} of GPU time a step"


def _bars(run: RunData) -> Chart:
    """The mean step of each rank in parts."""
    values = np.nan_to_num(run.mean_parts[:, : len(PARTS)]).T
    return Chart(
        "bars",
        "The mean step of each rank in parts",
        {
            "unit": "rank",
            "labels": run.numbers,
            "parts": [{"name": name, "color": color} for name, color in _PARTS],
        },
        {"values": np.ascontiguousarray(values, np.float64).ravel()},
        ("bars.css", "run.css"),
    )
