"""Ranks that run the same program, and the same positions in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._core._groups import sum_where
from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.model.arrays import Int32, Int64
from fastprof.ranks.run.record import ARRIVED, HOST_KINDS, RankRecord
from fastprof.ranks.run.waits import Waits

Floats = npt.NDArray[np.float64]

_ALIKE: Final = 0.98  # of the calls of peers have the same signature and direction
_CLEAR: Final = 0.9  # of the work before a call goes its direction
# What is measured of a rank: pieces of its chain without those parts of their time that are due to
# late launches, these parts, the own time of the host between launches, and kernels.
CHAIN, LATE, HOST, COUNT = range(4)


class PeerMeasure(NamedTuple):
    """A time of each event of a rank, or a number of kernels.

    Parameters
    ----------
    of : CHAIN, LATE, HOST or COUNT
    kinds : of labels, None for all; HOST and COUNT have none
    """

    of: int = CHAIN
    kinds: tuple[int, ...] | None = None


WORK: Final = PeerMeasure()


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
        result: Int64 = self.records[rank].chain.calls_before() + self.shift[rank]
        return result

    def has_launches(self, rank: int) -> bool:
        """Whether the launches of a rank are known, so that its host is apart from its chain."""
        return bool((self.records[rank].chain.slack >= 0).any())

    def time(self, rank: int, measure: PeerMeasure = WORK) -> Int64:
        """[events] A time of each event of a rank, ns."""
        record, kinds = self.records[rank], measure.kinds
        if measure.of == HOST:
            return record.host_time()
        if measure.of == LATE:
            return record.late_time(HOST_KINDS if kinds is None else HOST_KINDS & set(kinds))
        chain = record.chain
        if measure.of == COUNT:
            return chain.sums(chain.count)
        if kinds is None:
            return chain.spent - record.late_time()
        return record.time_of(kinds) - self.time(rank, PeerMeasure(LATE, kinds))

    def position_times(
        self, number: int, measure: PeerMeasure = WORK
    ) -> tuple[list[int], Floats, int]:
        """A time at each position of a class, NaN where a rank has none.

        Returns
        -------
        ranks : list of int
        time : float64 [ranks, positions], ns
        first : int
            The first position.
        """
        ranks = self.ranks(number)
        first, n = self._range(number)
        time = np.full((len(ranks), n), np.nan)
        for row, rank in enumerate(ranks):
            if measure.of == CHAIN or self.has_launches(rank):
                time[row] = self.at_positions(rank, measure)
        return ranks, time, first

    def at_positions(self, rank: int, measure: PeerMeasure = WORK) -> Floats:
        """[positions] The row of a rank, see `of_positions`."""
        first, n = self._range(int(self.of_rank[rank]))
        place = self.positions(rank) - first
        time = np.full(n, np.nan)
        if len(place):
            # The capture cuts the first and the last piece.
            inside = slice(int(place[0]) + 1, int(place[-1]))
            time[inside] = np.bincount(place, self.time(rank, measure), n)[inside]
        return time

    def first_position(self, number: int) -> int:
        """The first position of a class."""
        return self._range(number)[0]

    def _range(self, number: int) -> tuple[int, int]:
        """The first position of a class, and how many it has."""
        if number not in self._ranges:
            ends = [
                (int(place[0]), int(place[-1]))
                for place in map(self.positions, self.ranks(number))
                if len(place)
            ]
            first = min((one for one, _ in ends), default=0)
            last = max((one for _, one in ends), default=-1)
            self._ranges[number] = first, last - first + 1
        return self._ranges[number]

    @computed_once
    def _ranges(self) -> dict[int, tuple[int, int]]:
        return {}

    def usual(self, number: int, measure: PeerMeasure = WORK) -> Floats:
        """[positions] The median over the ranks of a class; of two, the shorter; NaN where no rank
        has a time, see `of_positions`."""
        key = number, measure
        if key not in self._usual:
            _, time, _ = self.position_times(number, measure)
            known = np.count_nonzero(~np.isnan(time), axis=0)
            time.sort(axis=0)  # NaN come last
            self._usual[key] = time[np.maximum(known - 1, 0) // 2, np.arange(time.shape[1])]
        return self._usual[key]

    @computed_once
    def _usual(self) -> dict[tuple[int, PeerMeasure], Floats]:
        return {}


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
    directions: dict[str, int] = {"": 0}
    works = [_directions(record, directions) for record in records]
    firsts = [_first_calls(record, own) for record, own in zip(records, steps, strict=True)]
    of_rank, shift = np.full(len(records), -1, np.int32), np.zeros(len(records), np.int64)
    leaders: list[int] = []
    for rank, sequence in enumerate(sequences):
        for number, leader in enumerate(leaders):
            apart = _apart(firsts[leader], firsts[rank])
            if (
                apart is not None
                and _agree(sequences[leader], sequence, apart)
                and _agree(works[leader], works[rank], apart, unclear=0)
            ):
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


def _directions(record: RankRecord, numbers: dict[str, int]) -> Int32:
    """[calls] The direction of nearly all work before each call in the order of the program.

    0 where it is mixed or unknown. Stages of a pipeline whose calls agree differ in the order in
    which they go forward and backward.

    numbers : of directions; new ones are added
    """
    chain = record.chain
    of_label = np.array(
        [numbers.setdefault(label.direction, len(numbers)) for label in record.labels] or [0],
        np.int32,
    )
    n, calls = len(numbers), len(record.calls)
    # After the last call, in no group.
    before = chain.calls_before()
    of_piece = np.where(before < calls, before * n, -n).astype(np.int32)
    key = of_piece.repeat(np.diff(chain.offsets))
    key += of_label[chain.label]
    begins = (chain.count > 0).view(np.uint8)
    time = sum_where(key, np.ascontiguousarray(chain.ns), begins, calls * n).reshape(calls, n)
    is_clear = time.max(axis=1) >= _CLEAR * time.sum(axis=1)
    result: Int32 = np.where(is_clear, time.argmax(axis=1), 0).astype(np.int32)
    return result


def _agree(one: Int32, other: Int32, shift: int, unclear: int | None = None) -> bool:
    """Whether nearly all values agree, one being so many calls ahead; `unclear` agrees with all."""
    low, high = max(0, shift), min(len(one), len(other) + shift)
    if high <= low:
        return len(one) == len(other)
    one, other = one[low:high], other[low - shift : high - shift]
    same = (one == other) | (one == unclear) | (other == unclear)
    return bool(same.mean() >= _ALIKE)
