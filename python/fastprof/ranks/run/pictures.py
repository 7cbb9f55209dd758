"""What pictures of a run show: the time lines of ranks in slices, and waits by rank and step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.model.arrays import Bools, Int32, Int64, UInt8
from fastprof.ranks.run.record import COMPUTE, COPY, KINDS_OF_LABELS
from fastprof.ranks.run.result import RunData
from fastprof.ranks.run.waits import PARTS, UNKNOWN

WAIT, TRANSFER = len(KINDS_OF_LABELS), len(KINDS_OF_LABELS) + 1
KINDS: Final = (*KINDS_OF_LABELS, "wait", "transfer")

# The order of what a piece of the chain contains, which records only sums.
_PLACES: Final = np.zeros(len(KINDS), np.int64)
_PLACES[[COPY, COMPUTE, WAIT, TRANSFER]] = 1, 2, 3, 4


@dataclass(frozen=True, eq=False)
class ChainSlices:
    """The time line of a rank without gaps: a slice for each kind of time in a piece of its chain.

    Within a piece, idle time comes first, then copies, kernels, the wait and the transfer.

    Parameters
    ----------
    start, end : int64 [slices], ns on the clock of the run
    kind : uint8 [slices], index into `KINDS`
    label : int32 [slices], the label with most of the time, -1 for waits and transfers
    count : int32 [slices], kernels
    call : int64 [slices], row of RunCalls that a wait or transfer is of, else -1
    """

    start: Int64
    end: Int64
    kind: UInt8
    label: Int32
    count: Int32
    call: Int64

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Bools | Int64) -> ChainSlices:
        """Some of the slices."""
        return ChainSlices(
            self.start[rows], self.end[rows], self.kind[rows], self.label[rows], self.count[rows],
            self.call[rows],
        )  # fmt: skip


def chain_slices(run: RunData, rank: int) -> ChainSlices:
    """The slices of a rank, in order of time."""
    chain, exposed = run.records[rank].chain, run.exposed[rank]
    kinds = np.array([label.kind for label in run.records[rank].labels] or [0])
    piece = np.repeat(np.arange(len(chain)), np.diff(chain.offsets))
    kind = kinds[chain.label]
    order = np.lexsort((-chain.ns, kind, piece))
    key = piece[order] * len(KINDS) + kind[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    most = order[first]
    none = np.full(len(first), -1, np.int64)
    n = len(exposed.event)
    parts = [
        (piece[most], kind[most], _sums(chain.ns[order], first), chain.label[most],
         _sums(chain.count[order], first), none),
        *((exposed.event, np.full(n, of), ns, np.full(n, -1), np.zeros(n, np.int64), exposed.call)
          for of, ns in ((WAIT, exposed.wait), (TRANSFER, exposed.transfer))),
    ]  # fmt: skip
    piece, kind, ns, label, count, call = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    rows = np.flatnonzero(ns > 0)
    rows = rows[np.lexsort((_PLACES[kind[rows]], piece[rows]))]
    end = chain.begin + np.cumsum(ns[rows])
    ranks = np.full(len(rows), rank, np.int32)
    return ChainSlices(
        start=run.clocks.moved(end - ns[rows], ranks),
        end=run.clocks.moved(end, ranks),
        kind=kind[rows].astype(np.uint8),
        label=label[rows].astype(np.int32),
        count=count[rows].astype(np.int32),
        call=call[rows].astype(np.int64),
    )


def _sums(values: Int64 | Int32, first: Int64) -> Int64:
    """The sum of the values from each of some places to the next."""
    result: Int64 = np.add.reduceat(values.astype(np.int64), first) if len(first) else first
    return result


class StepWaits(NamedTuple):
    """Waits by rank and step of the run, ns; -1 where a rank lacks a step.

    Parameters
    ----------
    steps : int64 [steps], numbers of the steps
    is_counted : bool [steps], whether means include the step on any rank
    length, wait : int64 [ranks, steps], of the step; its wait for other ranks
    waited_for : int64 [ranks, steps], work of all other ranks that waits for the rank in the step
    last : int32 [ranks, steps], the rank waited for longest, UNKNOWN for none
    for_last : int64 [ranks, steps], how long
    start, end : int64 [steps], from the first begin to the last end of any rank, on the clock of
        the run
    """

    steps: Int64
    is_counted: Bools
    length: Int64
    wait: Int64
    waited_for: Int64
    last: Int32
    for_last: Int64
    start: Int64
    end: Int64


def step_waits(run: RunData) -> StepWaits:
    """The waits of all ranks in all steps."""
    numbers = run.step_numbers
    steps = np.unique(np.concatenate([np.empty(0, np.int64), *numbers]))
    shape = len(run), len(steps)
    length, wait = np.full(shape, -1, np.int64), np.full(shape, -1, np.int64)
    waited_for, for_last = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    last = np.full(shape, UNKNOWN, np.int32)
    counted = np.zeros(len(steps), bool)
    start = np.full(len(steps), np.iinfo(np.int64).max)
    end = np.full(len(steps), np.iinfo(np.int64).min)
    for rank, (times, own) in enumerate(zip(run.step_times, numbers, strict=True)):
        place = np.searchsorted(steps, own)
        length[rank, place] = times.end - times.start
        wait[rank, place] = times.parts[:, PARTS.index("wait")]
        counted[place] |= times.is_counted
        np.minimum.at(start, place, times.start)
        np.maximum.at(end, place, times.end)
        for step, of, ns in zip(*_waited(run, rank, place), strict=True):
            waited_for[of, step] += ns
            if ns > for_last[rank, step]:
                last[rank, step], for_last[rank, step] = of, ns
    return StepWaits(steps, counted, length, wait, waited_for, last, for_last, start, end)


def _waited(run: RunData, rank: int, place: Int64) -> tuple[list[int], list[int], list[int]]:
    """Step, rank waited for and ns, for each pair of them, of the waits of a rank."""
    one, steps = run.exposed[rank], run.records[rank].steps
    time = run.records[rank].chain.time[one.event]
    step = np.searchsorted(steps.start, time, "left") - 1
    known = (one.last >= 0) & (one.wait > 0) & (step >= 0)
    known &= time <= np.append(steps.end, 0)[step]
    key = np.append(place, 0)[step[known]] * len(run) + one.last[known]
    pairs, which = np.unique(key, return_inverse=True)
    ns = np.zeros(len(pairs), np.int64)
    np.add.at(ns, which, one.wait[known])
    return (pairs // len(run)).tolist(), (pairs % len(run)).tolist(), ns.tolist()


def chosen_ranks(run: RunData, waits: StepWaits, most: int) -> list[int]:
    """At most some ranks, ascending: of findings, waited for longest, the median, waiting longest.

    All ranks if there are no more.
    """
    if len(run) <= most:
        return list(range(len(run)))
    wait = np.maximum(waits.wait, 0).sum(axis=1)
    by_wait = np.argsort(-wait, kind="stable").tolist()
    by_blame = np.argsort(-waits.waited_for.sum(axis=1), kind="stable").tolist()
    order = [row.rank for row in run.findings if row.rank != UNKNOWN][: most // 2]
    order += [by_wait[len(by_wait) // 2], *by_blame[: most // 4], *by_wait]
    return sorted(list(dict.fromkeys(order))[:most])


def slowest_step(waits: StepWaits) -> int:
    """The place of the counted step that takes longest on any rank."""
    longest = waits.length.max(axis=0, initial=0)
    counted = waits.is_counted if waits.is_counted.any() else np.ones(len(longest), bool)
    return int(np.argmax(np.where(counted, longest, -1)))


def waiting_of(run: RunData, ranks: Sequence[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Calls and ns that work waited, by waiting rank and the rank waited for, over all steps."""
    result = {}
    for rank in ranks:
        one = run.exposed[rank]
        rows = np.flatnonzero(one.wait > 0)
        last = one.last[rows]
        for other in np.unique(last).tolist():
            own = rows[last == other]
            result[rank, other] = len(own), int(one.wait[own].sum())
    return result
