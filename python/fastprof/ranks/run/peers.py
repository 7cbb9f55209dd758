"""Ranks that run the same program, and the same positions in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Int32, Int64
from fastprof.ranks.run.record import ARRIVED, KINDS_OF_LABELS, RankRecord
from fastprof.ranks.run.waits import Waits

_ALIKE: Final = 0.98  # of the calls of peers have the same signature


@dataclass(frozen=True, eq=False)
class Peers:
    """Classes of ranks whose sequences of collectives agree.

    The position of a piece of a chain is that of the next call that arrives: at equal positions,
    the ranks of a class do the same work.

    Attributes
    ----------
    records : the ranks
    of_rank : int32 [ranks], the class of each
    shift : int64 [ranks], the position of the first call of each
    """

    records: Sequence[RankRecord]
    of_rank: Int32
    shift: Int64

    @computed_once
    def calls(self) -> list[Int32]:
        """[ranks] The calls of each rank in the order of its program."""
        return [
            record.chain.call[record.chain.kind == ARRIVED].astype(np.int32)
            for record in self.records
        ]

    @computed_once
    def places(self) -> list[Int32]:
        """[ranks] The place of each call in the order of its program."""
        result = []
        for calls in self.calls:
            place = np.zeros(len(calls), np.int32)
            place[calls] = np.arange(len(calls), dtype=np.int32)
            result.append(place)
        return result

    def ranks(self, number: int) -> list[int]:
        """The ranks of a class."""
        return [int(rank) for rank in np.flatnonzero(self.of_rank == number)]

    def positions(self, rank: int) -> Int64:
        """[events] The position of each piece of a chain."""
        kind = self.records[rank].chain.kind
        result: Int64 = np.cumsum(kind == ARRIVED) - (kind == ARRIVED) + self.shift[rank]
        return result

    @computed_once
    def _kinds(self) -> list[Int32]:
        return [
            np.array([label.kind for label in record.labels] or [0], np.int32)
            for record in self.records
        ]

    def time_by_kind(self, rank: int, kinds: Sequence[int] | None = None) -> Int64:
        """[events] The time of labels of some kinds in each piece, ns; None for all kinds."""
        chain = self.records[rank].chain
        piece = np.repeat(np.arange(len(chain)), np.diff(chain.offsets))
        ns = chain.ns
        if kinds is not None:
            wanted = np.zeros(len(KINDS_OF_LABELS), bool)
            wanted[list(kinds)] = True
            inside = wanted[self._kinds[rank][chain.label]]
            piece, ns = piece[inside], ns[inside]
        result = np.zeros(len(chain), np.int64)
        np.add.at(result, piece, ns)
        return result

    def of_positions(
        self, number: int, kinds: Sequence[int] | None = None
    ) -> tuple[list[int], npt.NDArray[np.float64], int]:
        """Time of some kinds at each position of a class, NaN where a rank has none.

        Returns
        -------
        ranks : list of int
        time : float64 [ranks, positions], ns
        first : int
            The first position.
        """
        ranks = self.ranks(number)
        places = [self.positions(rank) for rank in ranks]
        first = min((int(place[0]) for place in places if len(place)), default=0)
        last = max((int(place[-1]) for place in places if len(place)), default=-1)
        time = np.full((len(ranks), last - first + 1), np.nan)
        for row, (rank, place) in enumerate(zip(ranks, places, strict=True)):
            if not len(place):
                continue
            sums = np.bincount(place - first, self.time_by_kind(rank, kinds), time.shape[1])
            # The capture cuts the first and the last piece.
            time[row, place[0] - first + 1 : place[-1] - first] = sums[
                place[0] - first + 1 : place[-1] - first
            ]
        return ranks, time, first


def peers_of(records: Sequence[RankRecord], waits: Waits, steps: Sequence[Int64]) -> Peers:
    """Find the ranks that run the same program.

    steps : [ranks], the numbers of the steps of each in the run, see `common_steps`
    """
    calls = waits.instances.calls
    same: dict[object, int] = {}
    ids = np.array(
        [same.setdefault(of.same_program(), len(same)) for of in calls.signatures] or [0],
        np.int32,
    )
    sequences = [
        ids[calls.signature[calls.bounds[rank] + record.chain.call[_arrivals(record)]]]
        for rank, record in enumerate(records)
    ]
    firsts = [_first_calls(record, own) for record, own in zip(records, steps, strict=True)]
    of_rank, shift = np.full(len(records), -1, np.int32), np.zeros(len(records), np.int64)
    leaders: list[int] = []
    for rank, sequence in enumerate(sequences):
        for number, leader in enumerate(leaders):
            apart = _apart(firsts[leader], firsts[rank])
            if apart is not None and _agree(sequences[leader], sequence, apart):
                of_rank[rank], shift[rank] = number, shift[leader] + apart
                break
        else:
            of_rank[rank] = len(leaders)
            leaders.append(rank)
    return Peers(records, of_rank, shift)


def _arrivals(record: RankRecord) -> Int64:
    """The events at which calls arrive, in the order of the program."""
    return np.flatnonzero(record.chain.kind == ARRIVED)


def _first_calls(record: RankRecord, steps: Int64) -> dict[int, int]:
    """The first call of each step, by the number of the step in the run."""
    first = np.searchsorted(record.chain.time[_arrivals(record)], record.steps.start)
    return dict(zip(steps.tolist(), first.tolist(), strict=True))


def _apart(one: dict[int, int], other: dict[int, int]) -> int | None:
    """How many calls earlier one begins than the other, by a step in the middle of both."""
    both = sorted(set(one) & set(other))
    if not both:
        return None
    # In a first step that is cut, calls may be missing.
    number = both[len(both) // 2]
    return one[number] - other[number]


def _agree(one: Int32, other: Int32, shift: int) -> bool:
    low, high = max(0, shift), min(len(one), len(other) + shift)
    if high <= low:
        return len(one) == len(other)
    return bool((one[low:high] == other[low - shift : high - shift]).mean() >= _ALIKE)
