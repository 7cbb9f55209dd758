"""Who waits for whom: arrivals, transfers and waits of instances; the time of steps in parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.ranks.run.clocks import Clocks, medians
from fastprof.ranks.run.match import CollectiveInstances
from fastprof.ranks.run.record import (
    COMPUTE,
    COPY,
    FIRST_CAUSE,
    KINDS_OF_LABELS,
    WAITED,
    Chain,
    RankRecord,
)

UNKNOWN: Final = -1  # a rank that no file is of


@dataclass(frozen=True, eq=False)
class Waits:
    """Arrivals, waits and transfers, on the clock of the run.

    Attributes
    ----------
    instances : Instances
    clocks : Clocks
    arrival, end : int64 [calls], ns
    wait : int64 [calls], ns from the arrival to that of the last rank; 0 for calls without others
    last_arrival : int64 [instances], ns
    last : int32 [instances], index of the rank that arrives last
    transfer : int64 [instances], ns from the last arrival to the median end of the ranks
    is_shared : bool [instances], whether two or more ranks are known
    missing : int32 [instances], ranks of the group without a call; 0 if the size is unknown
    unknown_wait : int64 [instances], ns after the last known arrival that ranks without a file are
        waited for: what the transfer takes longer than the fastest of the same kind and size
    """

    instances: CollectiveInstances
    clocks: Clocks
    arrival: Int64
    end: Int64
    wait: Int64
    last_arrival: Int64
    last: Int32
    transfer: Int64
    is_shared: Bools
    missing: Int32
    unknown_wait: Int64

    @computed_once
    def members(self) -> tuple[Int64, Int64]:
        """See `CollectiveInstances.members`."""
        return self.instances.members()


def waits_of(instances: CollectiveInstances, clocks: Clocks) -> Waits:
    """Arrivals, waits and transfers of all instances."""
    calls = instances.calls
    arrival, end = (clocks.moved(time, calls.rank) for time in (calls.start, calls.end))
    order, bounds = instances.members()
    n = len(instances)
    counts = np.diff(bounds)
    instance = np.repeat(np.arange(n), counts)
    first = bounds[:-1]
    last_arrival = np.maximum.reduceat(arrival[order], first) if n else np.empty(0, np.int64)
    is_last = arrival[order] == last_arrival[instance]
    last = np.zeros(n, np.int32)
    rows = np.flatnonzero(is_last)[::-1]
    last[instance[rows]] = calls.rank[order[rows]]
    middle = _medians(instance, end[order], n)
    transfer = np.maximum(middle - last_arrival, 0)
    wait = np.zeros(len(calls), np.int64)
    wait[order] = last_arrival[instance] - arrival[order]
    sizes = np.array([group.size for group in instances.groups] or [-1])[instances.group]
    missing = np.maximum(sizes - counts, 0).astype(np.int32)
    return Waits(
        instances, clocks, arrival, end, wait, last_arrival, last, transfer, counts > 1, missing,
        _unknown_waits(instances, transfer, missing),
    )  # fmt: skip


def _medians(group: Int64, values: Int64, n: int) -> Int64:
    """The median of each group; integers of the size of clocks have no exact floats."""
    if not n:
        return np.empty(0, np.int64)
    origin = int(values.min())
    result: Int64 = origin + np.rint(medians(group, (values - origin).astype(float), n)).astype(
        np.int64
    )
    return result


def _unknown_waits(instances: CollectiveInstances, transfer: Int64, missing: Int32) -> Int64:
    """Of instances with missing ranks: the time above the fastest transfer of the same kind."""
    if not missing.any():
        return np.zeros(len(transfer), np.int64)
    key = instances.group.astype(np.int64) * (len(instances.calls.signatures) + 1)
    key += instances.signature
    _, place = np.unique(key, return_inverse=True)
    fastest = np.full(int(place.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(fastest, place, transfer)
    return np.where(missing > 0, transfer - fastest[place], 0)


def on_calls(values: npt.NDArray[Any], instance: Int32, none: int) -> npt.NDArray[Any]:
    """[calls] What belongs to the instance of each call; `none` for calls without one.

    values : [instances]; instance : int32 [calls], -1 for none
    """
    if not len(values):
        return np.full(len(instance), none, values.dtype)
    return np.where(instance >= 0, values[instance], np.array(none, values.dtype))


class Exposed:
    """How long the work of a rank waits for its calls, and for what.

    Attributes
    ----------
    event : int64 [waits], events of the chain, WAITED
    call : int64 [waits], rows of RunCalls
    ns : int64 [waits], in all
    wait : int64 [waits], the part before the last rank arrives
    """

    def __init__(self, waits: Waits, rank: int, chain: Chain) -> None:
        self.event = np.flatnonzero(chain.kind == WAITED)
        self.call = waits.instances.calls.bounds[rank] + chain.call[self.event]
        self.ns = chain.blocked[self.event]
        instance = waits.instances.of_call[self.call]
        begin = waits.end[self.call] - self.ns
        last_arrival = on_calls(waits.last_arrival, instance, 0)
        unknown_wait = on_calls(waits.unknown_wait, instance, 0)
        known = on_calls(waits.is_shared, instance, False) | (unknown_wait > 0)
        until = last_arrival + unknown_wait
        self.wait: Int64 = np.where(known, np.clip(until - begin, 0, self.ns), 0)
        self.last: Int32 = np.where(
            known & (last_arrival > begin), on_calls(waits.last, instance, UNKNOWN), UNKNOWN
        ).astype(np.int32)

    @property
    def transfer(self) -> Int64:
        """[waits] The part after the last rank has arrived."""
        return self.ns - self.wait


PARTS: Final = ("compute", "copies", "idle", "transfer", "wait")


@dataclass(frozen=True, eq=False)
class StepParts:
    """The time of the steps of a rank, ns; the parts add up to the step.

    Parameters
    ----------
    number : int64 [steps]
    start, end : int64 [steps], on the clock of the run
    is_counted : bool [steps]
    parts : int64 [steps, PARTS]: compute, copies that no compute hides, idle time, transfer that
        no work hides, waits for other ranks
    hidden : int64 [steps], transfer during work
    """

    number: Int64
    start: Int64
    end: Int64
    is_counted: Bools
    parts: Int64
    hidden: Int64


def step_parts(waits: Waits, rank: int, record: RankRecord, exposed: Exposed) -> StepParts:
    """The time of each step of a rank in parts."""
    chain, steps = record.chain, record.steps
    per_event = parts_of_events(record, exposed)
    until = np.concatenate([np.zeros((1, len(PARTS)), np.int64), np.cumsum(per_event, axis=0)])
    first = np.searchsorted(chain.time, steps.start, "right")
    last = np.searchsorted(chain.time, steps.end, "right")
    first[steps.start <= chain.begin] = 0
    parts = until[last] - until[first]
    ranks = np.full(len(steps), rank, np.int32)
    start, end = (waits.clocks.moved(time, ranks) for time in (steps.start, steps.end))
    calls = slice(*waits.instances.calls.bounds[rank : rank + 2].tolist())
    instance = waits.instances.of_call[calls]
    transfer = np.where(
        instance >= 0, on_calls(waits.transfer, instance, 0),
        waits.end[calls] - waits.arrival[calls],
    )  # fmt: skip
    step = steps.rows_at(record.calls.start)
    inside = step >= 0
    total = np.zeros(len(steps), np.int64)
    np.add.at(total, step[inside], transfer[inside])
    return StepParts(
        steps.number, start, end, steps.is_counted, parts,
        np.maximum(total - parts[:, PARTS.index("transfer")], 0),
    )  # fmt: skip


def parts_of_events(record: RankRecord, exposed: Exposed) -> Int64:
    """[events, PARTS] The time of each piece of the chain in parts, ns."""
    result = np.zeros((len(record.chain), len(PARTS)), np.int64)
    idle = range(FIRST_CAUSE, len(KINDS_OF_LABELS))
    for part, kinds in enumerate(((COMPUTE,), (COPY,), idle)):
        result[:, part] = record.time_of(kinds)
    result[exposed.event, 3] = exposed.transfer
    result[exposed.event, 4] = exposed.wait
    return result


def common_steps(records: Sequence[RankRecord], waits: Waits) -> list[Int64]:
    """The number of each step in the run, by rank: steps of equal number share instances.

    Ranks may begin to record in different steps, or number them differently.
    """
    calls, instances = waits.instances.calls, waits.instances
    shift: dict[int, int] = {}
    step_of_call = np.full(len(calls), -1, np.int64)
    for rank, record in enumerate(records):
        rows = slice(*calls.bounds[rank : rank + 2].tolist())
        step_of_call[rows] = np.searchsorted(record.steps.start, record.calls.start, "right") - 1
    order, bounds = waits.members
    for rank in range(len(records)):
        if rank not in shift:
            shift[rank] = 0
            _spread_shift(shift, instances, step_of_call, order, bounds)
    return [
        np.arange(len(record.steps), dtype=np.int64) + shift[rank]
        for rank, record in enumerate(records)
    ]


def _spread_shift(
    shift: dict[int, int], instances: CollectiveInstances, step: Int64, order: Int64, bounds: Int64
) -> None:
    """Set the shifts of all ranks that share instances, directly or not, with known ones."""
    rank = instances.calls.rank
    n_ranks = len(instances.calls.bounds) - 1
    instance = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    while True:
        known = np.full(n_ranks, np.iinfo(np.int64).min)
        known[list(shift)] = list(shift.values())
        is_known = known[rank[order]] != np.iinfo(np.int64).min
        target = np.full(len(bounds) - 1, np.iinfo(np.int64).min)
        rows = order[is_known]
        target[instance[is_known]] = step[rows] + known[rank[rows]]
        new = ~is_known & (target[instance] != np.iinfo(np.int64).min)
        if not new.any():
            return
        apart = target[instance[new]] - step[order[new]]
        own = rank[order[new]]
        by_rank = np.argsort(own, kind="stable")
        numbers, first = np.unique(own[by_rank], return_index=True)
        for number, some in zip(numbers.tolist(), np.split(apart[by_rank], first[1:]), strict=True):
            values, counts = np.unique(some, return_counts=True)
            shift[number] = int(values[np.argmax(counts)])


def earlier_calls(records: Sequence[RankRecord], waits: Waits) -> Int64:
    """[calls] The call before each on its stream, as a row of RunCalls; -1 for none."""
    bounds = waits.instances.calls.bounds
    result = np.full(len(waits.instances.calls), -1, np.int64)
    for rank, record in enumerate(records):
        channel = np.array([one.channel for one in record.signatures] or [0])[
            record.calls.signature
        ]
        order = np.argsort(channel, kind="stable")
        same = channel[order[1:]] == channel[order[:-1]]
        result[bounds[rank] + order[1:][same]] = bounds[rank] + order[:-1][same]
    return result
