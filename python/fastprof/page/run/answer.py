"""Section: how long ranks wait for each other, and the causes that cost most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from fastprof.model.numbers import quantity
from fastprof.page.section import Card, Chart, Fact, Link, Section
from fastprof.ranks.run.causes import SCHEDULE, TRANSFER
from fastprof.ranks.run.pictures import StepWaits
from fastprof.ranks.run.result import CauseRow, RunData
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


def answer(run: RunData, waits: StepWaits, links: Sequence[Link]) -> Section:
    """The step in numbers, the causes that cost most, the parts of the step of each rank."""
    missing = [failure.error for failure in run.failures[:_MOST_NAMED]]
    missing += [f"{path}: no GPU work with times" for path in run.empty[:_MOST_NAMED]]
    if run.missing:
        missing.append(
            f"No file of {_named(run.missing)} of the run: waits for a missing rank are estimated "
            "from the time that transfers take longer than the fastest of their kind."
        )
    return Section(
        "answer",
        "The answer",
        list(_lead(run)),
        list(_facts(run, waits)),
        [_bars(run)] if len(run) else [],
        list(_cards(run)),
        missing=missing,
        links=links,
    )


def _named(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_NAMED]))
    rest = len(numbers) - _MOST_NAMED
    return f"rank{'s' if len(numbers) > 1 else ''} {shown}" + (
        f" and {rest} more" if rest > 0 else ""
    )


def _mean(run: RunData, name: str) -> float:
    values = run.mean_parts[:, PARTS.index(name)]
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else 0.0


def _lead(run: RunData) -> Iterator[str]:
    wait, step = _mean(run, "wait"), max(run.step_ns, 1.0)
    if not run.waits.is_shared.any():
        yield "No collective has two ranks with a file: waits are unknown."
        return
    yield (
        f"The mean step takes {quantity(run.step_ns, 'ns')}. In {quantity(wait, 'ns')} of it "
        f"({wait / step:.0%}) the work of a rank waits for other ranks, in "
        f"{quantity(_mean(run, 'transfer'), 'ns')} for transfers."
    )
    own = _own(run)
    if own:
        for row in own[:_CARDS]:
            yield f"{_title(run, row)}: {_costs(run, row)}."
    else:
        yield "No rank makes the others wait for 1% of the step or more."


def _own(run: RunData) -> list[CauseRow]:
    return [row for row in run.findings if row.name not in _FOLLOW]


def _title(run: RunData, row: CauseRow) -> str:
    number = run.number(row.rank)
    rank = "A rank without a file" if number is None else f"Rank {number}"
    return f"{rank}: {row.name}"


def _costs(run: RunData, row: CauseRow) -> str:
    waited = f"the other ranks wait {quantity(row.waited, 'ns')} of GPU time a step"
    if np.isnan(row.costs):
        return waited
    share = row.costs / max(run.step_ns, 1.0)
    return f"the step is {quantity(row.costs, 'ns')} ({share:.0%}) shorter without it; {waited}"


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
                ("others wait", f"{quantity(row.waited, 'ns')} of GPU time a step"),
                *([("last", f"in {row.times:,} instances of collectives")] if row.times else []),
                *([("where", row.where)] if row.where else []),
            ],
            find="" if row.rank == UNKNOWN else f"rank {run.number(row.rank)}",
        )


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
