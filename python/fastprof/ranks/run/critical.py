"""The critical path of a run: which rank, which work, and where it goes from rank to rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple
from fastprof.analysis.idle.causes import Cause
from fastprof.ranks.run.graph import BEGIN, CHAIN, HOST, MEMBER, PathParts
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


def critical_path(records: Sequence[RankRecord], parts: PathParts, n_steps: int) -> CriticalPath:
    """Add up the parts of the path of some steps."""
    is_work = (parts.kind == CHAIN) | (parts.kind == HOST)
    ns = _beside_work(parts.take(~is_work))
    most: dict[tuple[int, str], tuple[float, Label]] = {}
    work = parts.take(is_work)
    ranks, first = np.unique(work.rank, return_index=True)
    for rank in ranks[np.argsort(first)].tolist():
        for name, time, label in _work(records[rank], work.take(work.rank == rank)):
            key = rank, name
            ns[key] = ns.get(key, 0.0) + time
            if label is not None and (key not in most or time > most[key][0]):
                most[key] = time, label
    n = max(n_steps, 1)
    return CriticalPath(
        {key: value / n for key, value in ns.items()},
        {key: label for key, (_, label) in most.items()},
        np.count_nonzero(np.diff(parts.rank)) / n,
    )


def _beside_work(parts: PathParts) -> dict[tuple[int, str], float]:
    """Sums of transfers, waits and starts by rank and name, in order of appearance."""
    names = (LATENCY, TRANSFER, START)
    number = np.where(parts.kind == MEMBER, 1, np.where(parts.kind == BEGIN, 2, 0))
    key = parts.rank * len(names) + number
    used, first, place = np.unique(key, return_index=True, return_inverse=True)
    sums = np.bincount(place, parts.ns, len(used))
    return {
        (int(used[i]) // len(names), names[int(used[i]) % len(names)]): float(sums[i])
        for i in np.argsort(first).tolist()
    }


def _work(record: RankRecord, parts: PathParts) -> Iterator[tuple[str, float, Label | None]]:
    """Name, ns and label of what the pieces of a chain and its host consist of on the path.

    Changed pieces are divided in proportion; the time up to a launch, among the idle time of the
    host's making.
    """
    chain = record.chain
    kind, _, event, ns = parts
    n = chain.offsets[event + 1] - chain.offsets[event]
    part = np.repeat(np.arange(len(event)), n)
    rows = np.arange(len(part)) + np.repeat(chain.offsets[event] - np.cumsum(n) + n, n)
    label = chain.label[rows]
    is_host = np.array([one.kind in HOST_KINDS for one in record.labels] or [False])
    late = is_host[label] & (chain.slack[event] >= 0)[part]
    spent = np.where(late == (kind == HOST)[part], chain.ns[rows], 0)
    whole = np.bincount(part, spent, len(event))
    time = np.bincount(label, ns[part] * spent / np.maximum(whole, 1)[part], len(record.labels))
    for number in np.flatnonzero(time).tolist():
        own = record.labels[number]
        yield KINDS_OF_LABELS[own.kind], float(time[number]), own
    for name, of in ((HOST_BOUND, HOST), (LATENCY, CHAIN)):
        if rest := int(ns[(whole == 0) & (kind == of)].sum()):
            yield name, float(rest), None


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
