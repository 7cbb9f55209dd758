"""The page of a directory of traces: ranks compared with each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fastprof._system.garbage import uncollected
from fastprof.model.numbers import quantity
from fastprof.model.page import Page
from fastprof.model.table import Table
from fastprof.page.build import build
from fastprof.page.run_steps import run_steps
from fastprof.page.section import Chart, Fact, Section
from fastprof.ranks.result import BatchData

_GROUPS: Final = {
    "Operators": ("op", "dir"),
    "Layers": ("layer",),
    "Kinds of kernels": ("class",),
}
_OF_RANKS: Final = (
    *("rank", "kernels", "gpu_time", "span", "busy", "steps", "cost", "source line"),
    *("warnings", "file", "error"),
)
_FAR: Final = 0.1  # of the median


def page_of_ranks(batch: BatchData) -> Page:
    """The page of `fastprof.batch`: GPU time of each rank, waits in collectives, totals."""
    with uncollected():
        sections = [_ranks(batch), _waits(batch), _totals(batch), _lacking(batch)]
        of_runs = [run_steps(summary.path) for summary in batch.summaries[:1]]
        sections[1:1] = [run for run in of_runs if run is not None]
        n = len(batch.all_ranks.ranks)
        return Page(build(f"{n} ranks", [batch.overview()], sections))


def _ranks(batch: BatchData) -> Section:
    table = batch.ranks
    names = [name for name in _OF_RANKS if name in table]
    if not batch.failures:
        names.remove("error")
    numbers = [rank.number for rank in batch.all_ranks.ranks]
    return Section(
        "ranks",
        "GPU time of each rank",
        list(_outliers(batch)),
        list(_facts(batch)),
        [_chart(batch, numbers)] if numbers else [],
        tables=[("Ranks", table.select(names))],
        missing=[failure.error for failure in batch.failures],
    )


def _facts(batch: BatchData) -> Iterator[Fact]:
    times = [rank.process.time for rank in batch.all_ranks.ranks if rank.process is not None]
    yield Fact("Ranks", f"{len(batch.all_ranks.ranks)}")
    if times:
        mean = sum(times) / len(times)
        yield Fact("GPU time of a rank", quantity(mean, "ns"), "mean")
        spread = f"{quantity(min(times), 'ns')} to {quantity(max(times), 'ns')}"
        yield Fact("Longest to mean", f"{max(times) / max(mean, 1):.2f}", spread)
    waits = batch.collectives()
    if waits.n_rows and (wait := np.nansum(np.ma.filled(waits["wait"].astype(float), np.nan))):
        yield Fact("Wait for other ranks", quantity(float(wait), "ns"), "mean of a rank")


def _outliers(batch: BatchData) -> Iterator[str]:
    """Ranks whose GPU time is far from the median."""
    results = [
        (rank.number, rank.process.time)
        for rank in batch.all_ranks.ranks
        if rank.process is not None
    ]
    median = float(np.median([time for _, time in results])) if results else 0.0
    far = [(number, time) for number, time in results if abs(time - median) > _FAR * median]
    for number, time in sorted(far, key=lambda pair: -abs(pair[1] - median))[:5]:
        yield (
            f"Rank {number}: GPU time {quantity(time, 'ns')}, {(time - median) / median:+.0%} "
            "from the median of the ranks."
        )


def _chart(batch: BatchData, numbers: list[int]) -> Chart:
    """The GPU time of each rank by kind of kernel."""
    ranks = batch.all_ranks
    kind = ranks.keys["class"]
    shape = len(kind.values) + 1, len(numbers)
    values = np.zeros(shape, np.float64)
    np.add.at(values, (kind.ids, ranks.rank), ranks.sums["time"])
    names = [*kind.values, "other"]
    order = [i for i in np.argsort(-values.sum(axis=1), kind="stable") if values[i].any()]
    return Chart(
        "bars",
        "GPU time of each rank by kind of kernel",
        {
            "unit": "rank",
            "labels": numbers,
            "parts": [{"name": names[i], "color": ["kind", names[i]]} for i in order],
        },
        {"values": values[order].ravel()},
        ("bars.css",),
    )


def _waits(batch: BatchData) -> Section:
    table = batch.collectives()
    if not table.n_rows:
        why = "no collectives: the ranks do not communicate, or their kernels were not recorded"
        return Section("collectives", "Waiting for other ranks", missing=[why])
    lead = (
        "A collective ends on all ranks when the last rank arrives; the others wait inside it. "
        "The column last is the rank that others wait for most often."
    )
    return Section(
        "collectives", "Waiting for other ranks", [lead], tables=[("Collectives", table)]
    )


def _totals(batch: BatchData) -> Section:
    tables = [(title, batch.table(by)) for title, by in _GROUPS.items()]
    return Section(
        "totals",
        "Where time goes",
        tables=[(title, table) for title, table in tables if _is_known(table)],
    )


def _is_known(table: Table) -> bool:
    """Whether the first key of any row is known."""
    first = next(iter(table.columns.values()))
    return any(first.at(row) not in (None, "-") for row in range(table.n_rows))


def _lacking(batch: BatchData) -> Section:
    table = batch.lacking()
    title = "Work that some ranks lack"
    if not table.n_rows:
        return Section("lacking", title, ["All ranks have the same kinds of data."])
    return Section("lacking", title, tables=[("Differences between ranks", table)])
