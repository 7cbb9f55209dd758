"""Sections: steps replayed with changes, and all tables of a run."""

from __future__ import annotations

from typing import Final

import numpy as np

from fastprof.model.table import Table
from fastprof.page.section import Section
from fastprof.ranks.run.result import RunData

_CHANGES: Final = ("no-stragglers", "equal-work", "no-data-loading", "communication:0.5")
_MOST_STEPS: Final = 20_000  # rows of ranks and steps
_MOST_CALLS: Final = 1000


def what_if(run: RunData) -> Section:
    """The step with some changes."""
    lead = (
        "The replay computes all ranks again: their work in order, each collective when its last "
        "rank arrives. no-stragglers: no rank takes longer than the median one; equal-work: all "
        "take the mean; communication:0.5: transfers take half their time."
    )
    if not len(run) or np.isnan(run.step_ns):
        return Section("what-if", "What if", missing=["no steps to replay"])
    return Section(
        "what-if", "What if", [lead], tables=[("Replayed steps", run.what_if(list(_CHANGES)))]
    )


def section(run: RunData) -> Section:
    """Ranks, groups, causes, stages, steps, calls that match none."""
    result: list[tuple[str, Table]] = [
        ("Ranks", run.ranks),
        ("Causes", run.causes),
        ("Process groups", run.groups),
        ("Pipeline stages", run.stages()),
        ("Unmatched calls", run.unmatched()),
    ]
    folded, missing = [], []
    calls = run.calls().sort("late_ns")
    if calls.n_rows:
        latest = f", the {_MOST_CALLS:,} latest of {calls.n_rows:,}"
        title = f"Collectives{latest if calls.n_rows > _MOST_CALLS else ''}"
        folded.append((title, calls.take(np.arange(min(calls.n_rows, _MOST_CALLS)))))
    n_rows = sum(len(numbers) for numbers in run.step_numbers)
    if n_rows <= _MOST_STEPS:
        folded.append(("Steps of each rank", run.steps()))
    else:
        missing.append(f"The table of {n_rows:,} steps of ranks is omitted.")
    return Section(
        "tables",
        "Tables",
        tables=[(title, table) for title, table in result if table.n_rows],
        folded=folded,
        missing=missing,
    )
