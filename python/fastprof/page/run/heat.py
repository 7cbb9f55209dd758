"""Section: the waits of each rank in each step, as a map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from fastprof.model.columns import Ints
from fastprof.model.heading import Heading
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Table, text_column
from fastprof.page.section import Chart, Section
from fastprof.ranks.run.pictures import StepWaits, chosen_ranks, waiting_of
from fastprof.ranks.run.result import RunData
from fastprof.ranks.run.waits import UNKNOWN

_MOST_RANKS: Final = 256  # rows
_KEPT: Final = 63  # rows of more ranks; the median of the others is one more
_MOST_STEPS: Final = 2000
_NAMED: Final = 3
_WAITING: Final = (
    Heading("rank", "rank", "", "number of the rank in the run"),
    Heading("waits_for", "waits for", "", "rank that arrives last"),
    Heading("calls", "calls", "", "calls that work waits for"),
    Heading("wait_ns", "waits", "ns", "work waits for that rank to arrive, all steps"),
)


def section(run: RunData, waits: StepWaits) -> Section:
    """The map of ranks and steps, and who waits for whom."""
    title = "Waits by rank and step"
    if not len(waits.steps):
        return Section("waits", title, missing=["no steps are known"])
    ranks = list(range(len(run)))
    if len(run) > _MOST_RANKS:
        ranks = chosen_ranks(run, waits, _KEPT)
    return Section(
        "waits",
        title,
        list(_lead(run, waits, len(ranks))),
        charts=[_chart(run, waits, ranks)],
        folded=[("Rank by rank waited for", _pairs(run))],
    )


def _lead(run: RunData, waits: StepWaits, n_ranks: int) -> Iterator[str]:
    yield (
        "A row is a rank, a column a step. A late rank waits for nobody: its cells are blank where "
        "those of the others have colour. The other map shows how long others wait for each rank."
    )
    if n_ranks < len(run):
        yield (
            f"The map has {n_ranks} of {len(run):,} ranks: those of the causes above, those that "
            "others wait for longest, and those that wait longest. The last row is the median of "
            "the others."
        )
    if len(waits.steps) > _MOST_STEPS:
        yield f"The map has the {_MOST_STEPS:,} longest of {len(waits.steps):,} steps."


def _chart(run: RunData, waits: StepWaits, ranks: list[int]) -> Chart:
    steps = np.arange(len(waits.steps))
    if len(steps) > _MOST_STEPS:
        longest = waits.length.max(axis=0)
        steps = np.sort(np.argsort(-longest, kind="stable")[:_MOST_STEPS])
    place = np.ix_(np.array(ranks, np.int64), steps)
    numbers = np.array([*run.numbers, -1], np.int64)
    # The rank without a file, UNKNOWN, is the last of these.
    columns = {
        "wait": waits.wait[place],
        "waited_for": waits.waited_for[place],
        "length": waits.length[place],
        "last": numbers[waits.last[place]],
        "for_last": waits.for_last[place],
    }
    labels = [f"rank {run.numbers[rank]}" for rank in ranks]
    others = np.setdiff1d(np.arange(len(run)), ranks)
    if len(others):
        labels.append(f"median of {len(others):,}")
        rest: dict[str, Any] = {name: _median(getattr(waits, name)[np.ix_(others, steps)])
                                for name in ("wait", "waited_for", "length")}  # fmt: skip
        rest |= {"last": np.full(len(steps), UNKNOWN), "for_last": np.zeros(len(steps))}
        columns = {name: np.vstack([own, rest[name]]) for name, own in columns.items()}
    return Chart(
        "heat",
        "Time that the work of each rank waits for other ranks, by step. Arrow keys select a cell.",
        {
            "rows": labels,
            "steps": waits.steps[steps].tolist(),
            "counted": waits.is_counted[steps].tolist(),
            "marked": [ranks.index(rank) for rank in sorted(_of_causes(run)) if rank in ranks],
        },
        {name: column.astype(np.float64).ravel() for name, column in columns.items()},
        ("run.css", "timeline_draw.js"),
    )


def _of_causes(run: RunData) -> set[int]:
    """The ranks that a finding is about."""
    return {row.rank for row in run.findings}


def _median(values: Any) -> Any:
    """The median of each step over the ranks that have it, -1 if none has."""
    known = np.where(values >= 0, values, np.nan)
    has = (values >= 0).any(axis=0)
    result = np.full(values.shape[1], -1.0)
    result[has] = np.nanmedian(known[:, has], axis=0)
    return result


def _pairs(run: RunData) -> Table:
    """Waits by rank and rank waited for, the longest first."""
    items = sorted(waiting_of(run, range(len(run))).items(), key=lambda pair: -pair[1][1])
    numbers = [run.number(last) for (_, last), _ in items]
    waited = sum(ns for _, (_, ns) in items)
    lead: tuple[str, ...] = ()
    if items:
        blame: dict[int | None, int] = {}
        for number, (_, (_, ns)) in zip(numbers, items, strict=True):
            blame[number] = blame.get(number, 0) + ns
        most = sorted(blame, key=lambda number: -blame[number])[:_NAMED]
        lead = (
            "Longest waited for: "
            + ", ".join(
                f"{'a rank without a file' if number is None else f'rank {number}'} "
                f"{quantity(blame[number], 'ns')} ({blame[number] / max(waited, 1):.0%})"
                for number in most
            ),
        )
    columns: dict[str, ColumnData] = {
        "rank": Ints(np.array([run.numbers[rank] for (rank, _), _ in items], np.int64)),
        "waits_for": text_column([None if number is None else str(number) for number in numbers]),
        "calls": Ints(np.array([calls for _, (calls, _) in items], np.int64)),
        "wait_ns": Ints(np.array([ns for _, (_, ns) in items], np.int64)),
    }
    return Table(columns, _WAITING, lead=lead)
