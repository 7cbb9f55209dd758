"""Rows of tables over process groups: traffic and waits, and the stages of pipelines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from fastprof.model.arrays import Bools, Int64
from fastprof.ops.collectives.messages import COLLECTIVES, bus_bytes
from fastprof.ranks.run.match import CollectiveInstances
from fastprof.ranks.run.peers import Peers
from fastprof.ranks.run.record import RankRecord, description
from fastprof.ranks.run.waits import UNKNOWN, Exposed, Waits

_KINDS_SHOWN = 3


class CallRun(Protocol):
    """What rows are made of, see `RunData`."""

    records: list[RankRecord]
    numbers: list[int]

    @property
    def instances(self) -> CollectiveInstances: ...
    @property
    def waits(self) -> Waits: ...
    @property
    def exposed(self) -> Sequence[Exposed]: ...
    @property
    def peers(self) -> Peers: ...
    @property
    def step_numbers(self) -> Sequence[Int64]: ...
    @property
    def calls_in_steps(self) -> Bools: ...
    @property
    def mean_parts(self) -> np.ndarray: ...
    @property
    def rank_steps(self) -> int: ...
    def rank_steps_of(self, ranks: Iterable[int]) -> int: ...


class _Kinds:
    """Groups of one description and size, and the numbers of their instances."""

    def __init__(self, run: CallRun) -> None:
        instances = run.instances
        names: dict[tuple[str, int], int] = {}
        self.of_group = []
        for group in instances.groups:
            size = group.size if group.size > 0 else len(group.ranks)
            key = ("messages" if group.is_pair else description(group.name), size)
            self.of_group.append(names.setdefault(key, len(names)))
        self.names = list(names)
        of_group = np.array([*self.of_group, -1], np.int64)
        self.of_instance = of_group[instances.group]
        self.texts = self._texts(run)

    def _texts(self, run: CallRun) -> list[str]:
        """Name and kinds of collectives of each."""
        signatures = run.instances.calls.signatures
        result = []
        for number, (name, _) in enumerate(self.names):
            own = run.instances.signature[self.of_instance == number]
            ids, counts = np.unique(own, return_counts=True)
            by_kind: dict[str, int] = {}
            for i, count in zip(ids.tolist(), counts.tolist(), strict=True):
                kind = signatures[i].kind
                by_kind[kind] = by_kind.get(kind, 0) + count
            kinds = sorted(by_kind, key=lambda kind: -by_kind[kind])
            shown = ", ".join(kinds[:_KINDS_SHOWN]) + (", ..." if len(kinds) > _KINDS_SHOWN else "")
            result.append(f"{name}: {shown}" if name else shown)
        return result


def group_rows(run: CallRun) -> list[dict[str, Any]]:
    """A row per kind of groups; see `columns.GROUPS`."""
    kinds, waits = _Kinds(run), run.waits
    instances, calls = run.instances, run.instances.calls
    bus = np.array([_bus(one) for one in calls.signatures] or [np.nan])
    size = np.array([float(one.size) if one.size >= 0 else np.nan for one in calls.signatures]
                    or [np.nan])  # fmt: skip
    shares = run.calls_in_steps
    wait, transfer = np.zeros((2, len(calls)))
    for one in run.exposed:
        wait[one.call], transfer[one.call] = one.wait, one.transfer
    known = np.flatnonzero((instances.of_call >= 0) & shares)
    instance = instances.of_call[known]
    kind = kinds.of_instance[instance]
    per_step = max(run.rank_steps, 1)
    result: list[dict[str, Any]] = []
    for number, (_, members) in enumerate(kinds.names):
        own = known[kind == number]
        groups = [i for i, of in enumerate(kinds.of_group) if of == number]
        ranks = {rank for i in groups for rank in instances.groups[i].ranks}
        n = max(run.rank_steps_of(ranks), 1) if ranks else per_step
        took = waits.transfer[instances.of_call[own]].astype(float)
        traffic = bus[calls.signature[own]]
        counted = ~np.isnan(traffic) & (took > 0)
        sizes = size[calls.signature[own]]
        result.append(
            {
                "group": kinds.texts[number],
                "groups": len(groups),
                "size": members,
                "known": max((len(instances.groups[i].ranks) for i in groups), default=0),
                "calls": round(len(own) / n, 1),
                "bytes": float(np.nansum(sizes)) / n if not np.isnan(sizes).all() else None,
                "transfer_ns": float(took.sum()) / n,
                "exposed_ns": float(transfer[own].sum()) / n,
                "wait_ns": float(wait[own].sum()) / n,
                "bus_bytes_per_s": (
                    float(traffic[counted].sum() / took[counted].sum()) * 1e9
                    if counted.any() else None
                ),
            }
        )  # fmt: skip
    return result


def _bus(signature: Any) -> float:
    if signature.kind not in COLLECTIVES or signature.size < 0 or signature.n_ranks < 1:
        return float("nan")
    return float(bus_bytes(signature.kind, signature.size, signature.n_ranks))


def waiting_rows(run: CallRun) -> list[dict[str, Any]]:
    """Waits by rank, step, group and the rank waited for; see `columns.WAITS`."""
    kinds, instances = _Kinds(run), run.instances
    sums: dict[tuple[int, int, int, int], list[float]] = {}
    for rank, one in enumerate(run.exposed):
        record = run.records[rank]
        time = record.chain.time[one.event]
        # A wait that ends with a step is of that step.
        step = np.searchsorted(record.steps.start, time, "left") - 1
        instance = instances.of_call[one.call]
        numbers = run.step_numbers[rank]
        for row in np.flatnonzero((one.wait > 0) & (instance >= 0) & (step >= 0)).tolist():
            key = (
                rank, int(numbers[step[row]]), int(kinds.of_instance[instance[row]]),
                int(one.last[row]),
            )  # fmt: skip
            total = sums.setdefault(key, [0, 0])
            total[0] += 1
            total[1] += float(one.wait[row])
    return [
        {
            "rank": run.numbers[rank],
            "step": step,
            "group": kinds.texts[kind],
            "waits_for": None if last == UNKNOWN else run.numbers[last],
            "calls": int(count),
            "wait_ns": ns,
        }
        for (rank, step, kind, last), (count, ns) in sums.items()
    ]


def stage_rows(run: CallRun) -> list[dict[str, Any]]:
    """Classes of ranks that exchange messages; see `columns.STAGES`."""
    instances, peers = run.instances, run.peers
    pairs = np.array([group.is_pair for group in instances.groups] or [False])
    if not pairs.any() or len(np.unique(peers.of_rank)) < 2:
        return []
    result: list[dict[str, Any]] = []
    for number in np.unique(peers.of_rank).tolist():
        ranks = peers.ranks(number)
        bubble = 0.0
        for rank in ranks:
            one = run.exposed[rank]
            instance = instances.of_call[one.call]
            own = (instance >= 0) & pairs[np.where(instance >= 0, instances.group[instance], 0)]
            own &= run.calls_in_steps[one.call]
            bubble += float(one.ns[own].sum())
        n = max(run.rank_steps_of(set(ranks)), 1)
        step = float(np.nanmean(run.mean_parts[ranks, -1]))
        shown = ", ".join(str(run.numbers[rank]) for rank in ranks[:6])
        result.append(
            {
                "stage": str(len(result)),
                "ranks": shown + (", ..." if len(ranks) > 6 else ""),
                "step_ns": step,
                "bubble_ns": bubble / n,
                "bubble_share": bubble / n / step if step else None,
            }
        )
    return result
