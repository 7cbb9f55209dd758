"""The collectives of all ranks to instances: which calls of which ranks are one exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from fastprof._system.classes import NamedTuple, dataclass
from fastprof.model.arrays import Int32, Int64
from fastprof.ops.collectives.messages import SEND_RECEIVE
from fastprof.ranks.run.align import NOWHERE, CallSequence, KnownClocks, aligned, clustered
from fastprof.ranks.run.record import CallSignature, RankRecord


@dataclass(frozen=True, eq=False)
class RunCalls:
    """The calls of all ranks, rank by rank, each in order of start.

    Parameters
    ----------
    bounds : int64 [ranks + 1], the first call of each rank
    rank : int32 [calls], index of the rank
    start, end : int64 [calls], ns on the clock of the rank
    signature : int32 [calls], index into `signatures`
    seq : int32 [calls], -1 if not recorded
    signatures : the distinct ones of all ranks
    """

    bounds: Int64
    rank: Int32
    start: Int64
    end: Int64
    signature: Int32
    seq: Int32
    signatures: list[CallSignature]

    def __len__(self) -> int:
        return len(self.rank)


class Group(NamedTuple):
    """Ranks that communicate with each other.

    Parameters
    ----------
    name : as recorded, "" if not
    ranks : indices of the ranks whose calls are known, ascending
    members : the numbers of all ranks, () if not recorded
    size : number of ranks, -1 if unknown
    is_pair : whether messages go from one rank to another
    """

    name: str
    ranks: tuple[int, ...]
    members: tuple[int, ...]
    size: int
    is_pair: bool


class Unmatched(NamedTuple):
    """Calls of a rank that are part of no instance.

    Parameters
    ----------
    rank : index of the rank
    group : name of the group, "" if unknown
    calls : their number
    reason : in words
    """

    rank: int
    group: str
    calls: int
    reason: str


@dataclass(frozen=True, eq=False)
class CollectiveInstances:
    """The instances of collectives, in no order.

    Parameters
    ----------
    calls : RunCalls
    of_call : int32 [calls], the instance of each call, -1 for none
    group : int32 [instances], index into `groups`
    signature : int32 [instances], index into `calls.signatures`
    groups : the groups
    unmatched : calls without an instance
    """

    calls: RunCalls
    of_call: Int32
    group: Int32
    signature: Int32
    groups: list[Group]
    unmatched: list[Unmatched]

    def __len__(self) -> int:
        return len(self.group)

    def members(self) -> tuple[Int64, Int64]:
        """Calls in order of instance, and where those of each instance begin, [instances + 1]."""
        known = np.flatnonzero(self.of_call >= 0)
        order = known[np.argsort(self.of_call[known], kind="stable")]
        return order, np.searchsorted(self.of_call[order], np.arange(len(self) + 1))

    def parts(self) -> Int64:
        """[ranks] Equal for ranks that share instances, directly or through others."""
        rank, (order, bounds) = self.calls.rank, self.members()
        counts = np.diff(bounds)
        part = np.arange(len(self.calls.bounds) - 1)
        while len(order):
            first = np.minimum.reduceat(part[rank[order]], bounds[:-1])
            old = part.copy()
            np.minimum.at(part, rank[order], np.repeat(first, counts))
            if (old == part).all():
                break
        return part


def run_calls(records: Sequence[RankRecord]) -> RunCalls:
    """The calls of all ranks."""
    numbers: dict[CallSignature, int] = {}
    ids = []
    for record in records:
        own = [numbers.setdefault(signature, len(numbers)) for signature in record.signatures]
        ids.append(np.array([*own, -1], np.int32)[record.calls.signature])
    counts = [len(record.calls) for record in records]
    empty = np.empty(0, np.int64)
    return RunCalls(
        bounds=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        rank=np.repeat(np.arange(len(records), dtype=np.int32), counts),
        start=np.concatenate([empty, *(record.calls.start for record in records)]),
        end=np.concatenate([empty, *(record.calls.end for record in records)]),
        signature=np.concatenate([empty, *ids]).astype(np.int32),
        seq=np.concatenate([empty, *(record.calls.seq for record in records)]).astype(np.int32),
        signatures=list(numbers),
    )


def match(records: Sequence[RankRecord], numbers: Sequence[int]) -> CollectiveInstances:
    """Match the calls of all ranks.

    A call belongs to a group: by the recorded name and ranks, else by NCCL's communicator, else to
    that of its stream. Within a group, calls match by their recorded number, else by order: the
    sequences of kind, type, size and number of ranks are shifted until they agree and the calls
    end together. Messages match by pair of ranks.

    numbers : the rank number of each record
    """
    calls = run_calls(records)
    world = max((record.world_size or -1 for record in records), default=-1)
    matcher = _Matcher(calls, numbers, world)
    for key, parts in _by_group(calls, numbers):
        matcher.add(key, parts)
    return matcher.result()


class _Key(NamedTuple):
    """What tells a group."""

    name: str
    members: tuple[int, ...]
    size: int
    channel: int  # -1 of named groups
    pair: tuple[int, int] | None


def _key(signature: CallSignature, rank: int, communicators: Mapping[str, Sequence[int]]) -> _Key:
    name, members = signature.group, signature.members
    size = signature.n_ranks
    channel = -1 if name or members else signature.channel
    # torch and NCCL number messages by rank, not by pair.
    pair = _pair(signature, rank, communicators)
    return _Key(name, members, size, channel if pair is None else -1, pair)


def _pair(
    signature: CallSignature, rank: int, communicators: Mapping[str, Sequence[int]]
) -> tuple[int, int] | None:
    """The numbers of the rank that sends and of that which receives; None if unknown.

    Only the other rank is recorded: by torch as in the run, by NCCL as in the communicator, whose
    ranks are in the order of those of the run, if all of them are known.
    """
    source, target = signature.source, signature.target
    if signature.kind != SEND_RECEIVE or (source < 0 and target < 0):
        return None
    if signature.group.startswith(_COMMUNICATOR):
        members = communicators.get(signature.group, ())
        other = max(source, target)
        if len(members) != signature.n_ranks or other >= len(members):
            return None
        source, target = (members[i] if i >= 0 else -1 for i in (source, target))
    return (rank if source < 0 else source), (rank if target < 0 else target)


_COMMUNICATOR: Final = "0x"  # begins the name of a communicator


def _communicators(
    calls: RunCalls, numbers: Sequence[int], used: Sequence[Sequence[int]]
) -> dict[str, list[int]]:
    """The numbers of the ranks with calls of each communicator, ascending.

    used : [ranks], the signatures that each rank uses
    """
    result: dict[str, set[int]] = {}
    for number, own in zip(numbers, used, strict=True):
        for signature in own:
            name = calls.signatures[signature].group
            if name.startswith(_COMMUNICATOR):
                result.setdefault(name, set()).add(number)
    return {name: sorted(members) for name, members in result.items()}


def _by_group(
    calls: RunCalls, numbers: Sequence[int]
) -> Iterator[tuple[_Key, list[tuple[int, Int64]]]]:
    """The calls of each group: pairs of a rank and its calls, in order of start."""
    signatures_of = np.split(calls.signature, calls.bounds[1:-1])
    used = [np.unique(own).tolist() for own in signatures_of[: len(numbers)]]
    communicators = _communicators(calls, numbers, used)
    parts: dict[_Key, list[tuple[int, Int64]]] = {}
    for rank, number in enumerate(numbers):
        first, own = int(calls.bounds[rank]), signatures_of[rank]
        of_key: dict[_Key, list[int]] = {}
        for signature in used[rank]:
            key = _key(calls.signatures[signature], number, communicators)
            of_key.setdefault(key, []).append(signature)
        for key, signatures in of_key.items():
            rows = first + np.flatnonzero(np.isin(own, signatures))
            parts.setdefault(key, []).append((rank, rows))
    # Long sequences tell the clocks, and these which calls of short ones are one.
    yield from sorted(parts.items(), key=lambda part: -max(len(rows) for _, rows in part[1]))


class _Matcher:
    """Collects instances."""

    def __init__(self, calls: RunCalls, numbers: Sequence[int], world: int) -> None:
        self._calls, self._numbers, self._world = calls, numbers, world
        self._of_call = np.full(len(calls), -1, np.int32)
        self._clocks = KnownClocks(len(numbers))
        self._groups: list[Group] = []
        self._sizes: list[int] = []  # instances of each group
        self._unmatched: list[Unmatched] = []
        same: dict[tuple[str, int, str, int], int] = {}
        self._same = np.array(
            [same.setdefault(of.same_call(), len(same)) for of in calls.signatures] or [0],
            np.int32,
        )

    def add(self, key: _Key, parts: list[tuple[int, Int64]]) -> None:
        """Match the calls of ranks that share a key."""
        sequences = [self._sequence(rank, rows) for rank, rows in parts]
        for some in self._groups_of(key, sequences):
            self._add_group(key, some)

    def _sequence(self, rank: int, rows: Int64) -> CallSequence:
        calls = self._calls
        return CallSequence(
            rank, rows, self._same[calls.signature[rows]], calls.start[rows], calls.end[rows],
            calls.seq[rows],
        )  # fmt: skip

    def _groups_of(self, key: _Key, sequences: list[CallSequence]) -> Iterable[list[CallSequence]]:
        """Ranks that share a key are one group if the key tells so; else by when calls end."""
        is_certain = key.pair is not None or key.members or key.name.startswith(_COMMUNICATOR)
        n = len(sequences)
        if is_certain or n < 2 or (key.name and key.size == n):
            return [sequences]
        return clustered(sequences, key.size)

    def _add_group(self, key: _Key, sequences: list[CallSequence]) -> None:
        has_numbers = key.pair is None and self._has_numbers(sequences)
        places, reasons = aligned(sequences, has_numbers, self._clocks)
        for sequence, place, reason in zip(sequences, places, reasons, strict=True):
            if reason:
                lost = int(np.count_nonzero(place == NOWHERE))
                self._unmatched.append(Unmatched(sequence.rank, key.name, lost, reason))
        everywhere, rows = (
            np.concatenate(arrays) for arrays in (places, [sequence.rows for sequence in sequences])
        )
        is_known = everywhere != NOWHERE
        if not is_known.any():
            return
        used, place = np.unique(everywhere[is_known], return_inverse=True)
        self._of_call[rows[is_known]] = sum(self._sizes) + place
        ranks = tuple(sequence.rank for sequence in sequences)
        size = len(key.members) or key.size
        if size < 0 and len(ranks) == len(self._numbers):
            size = self._world  # a group that no record names, of all ranks
        members = key.pair or key.members
        self._groups.append(
            Group(key.name, ranks, members, 2 if key.pair else size, key.pair is not None)
        )
        self._sizes.append(len(used))

    def _has_numbers(self, sequences: list[CallSequence]) -> bool:
        return all((sequence.seq >= 0).all() for sequence in sequences)

    def result(self) -> CollectiveInstances:
        """The instances."""
        group = np.repeat(np.arange(len(self._sizes), dtype=np.int32), self._sizes)
        known = self._of_call >= 0
        signature = np.zeros(len(group), np.int32)
        signature[self._of_call[known]] = self._calls.signature[known]
        return CollectiveInstances(
            self._calls, self._of_call, group, signature, self._groups, self._unmatched
        )
