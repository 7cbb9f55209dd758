"""The critical path of a run: which rank, which work, and where it goes from rank to rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.idle.causes import Cause
from fastprof.model.arrays import Int64
from fastprof.ranks.run.graph import BEGIN, CHAIN, HOST, MEMBER, PathPart
from fastprof.ranks.run.record import FIRST_CAUSE, HOST_KINDS, KINDS_OF_LABELS, Label, RankRecord

HOST_BOUND: Final = KINDS_OF_LABELS[FIRST_CAUSE + Cause.HOST_BOUND]
TRANSFER, LATENCY, START = "transfer", "latency", "start"


class CriticalPath(NamedTuple):
    """What the steps of a run consist of, by rank and part.

    Parameters
    ----------
    ns : of each rank (index) and part: `compute`, `copies`, a cause of idle time, `transfer` (of an
        instance in which the rank was last), `latency` between them, or `start` (the rank begins
        later than the others); a step on average
    where : the label with most of each
    hops : how often a step the path goes from one rank to another
    """

    ns: dict[tuple[int, str], float]
    where: dict[tuple[int, str], Label]
    hops: float

    @property
    def total(self) -> float:
        """The length of the path, ns a step."""
        return sum(self.ns.values())

    def by_rank(self) -> list[tuple[int, float]]:
        """The ranks with their share of the path, the largest first; transfers are of no rank."""
        sums: dict[int, float] = {}
        for (rank, part), ns in self.ns.items():
            if part != TRANSFER:
                sums[rank] = sums.get(rank, 0.0) + ns
        whole = self.total or 1.0
        return sorted(((rank, ns / whole) for rank, ns in sums.items()), key=lambda row: -row[1])


def critical_path(
    records: Sequence[RankRecord], parts: Iterable[PathPart], n_steps: int
) -> CriticalPath:
    """Add up the parts of the path of some steps."""
    ns: dict[tuple[int, str], float] = {}
    labels: dict[tuple[int, str], dict[Label, float]] = {}
    hops, before = 0, -1
    for part in parts:
        hops += before not in (-1, part.rank)
        before = part.rank
        if part.kind in (CHAIN, HOST):
            _add_work(ns, labels, records[part.rank], part)
            continue
        name = TRANSFER if part.kind == MEMBER else LATENCY
        if part.kind == BEGIN:
            name = START
        key = part.rank, name
        ns[key] = ns.get(key, 0.0) + part.ns
    n = max(n_steps, 1)
    return CriticalPath(
        {key: value / n for key, value in ns.items()},
        {key: max(own, key=lambda label: own[label]) for key, own in labels.items()},
        hops / n,
    )


def _add_work(
    ns: dict[tuple[int, str], float],
    labels: dict[tuple[int, str], dict[Label, float]],
    record: RankRecord,
    part: PathPart,
) -> None:
    """Divide a piece of a chain among what it consists of; a changed one in proportion.

    The time up to a launch: among the idle time of the host's making.
    """
    chain = record.chain
    rows = slice(int(chain.offsets[part.event]), int(chain.offsets[part.event + 1]))
    names = [record.labels[number] for number in chain.label[rows].tolist()]
    late = np.array([name.kind in HOST_KINDS for name in names], bool)
    late &= chain.slack[part.event] >= 0
    spent: Int64 = chain.ns[rows] * (late if part.kind == HOST else ~late)
    whole = int(spent.sum())
    if not whole:
        key = part.rank, HOST_BOUND if part.kind == HOST else LATENCY
        ns[key] = ns.get(key, 0.0) + part.ns
        return
    for label, own in zip(names, spent.tolist(), strict=True):
        if not own:
            continue
        key = part.rank, KINDS_OF_LABELS[label.kind]
        time = part.ns * own / whole
        ns[key] = ns.get(key, 0.0) + time
        of_key = labels.setdefault(key, {})
        of_key[label] = of_key.get(label, 0.0) + time


def path_rows(
    path: CriticalPath, numbers: Sequence[int], where: dict[tuple[int, str], str | None]
) -> list[dict[str, Any]]:
    """Rows of a table, the longest part first; see `columns.PATH`."""
    whole = path.total or 1.0
    return [
        {
            "rank": numbers[rank],
            "part": part,
            "path_ns": ns,
            "path_share": ns / whole,
            "where": where.get((rank, part)),
        }
        for (rank, part), ns in sorted(path.ns.items(), key=lambda row: -row[1])
    ]
