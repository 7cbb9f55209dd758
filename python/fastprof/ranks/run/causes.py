"""Why a rank arrives late: the work since the ranks last left a common instance, compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple
from fastprof.analysis.experts.names import is_of_experts
from fastprof.analysis.idle.causes import CAUSES
from fastprof.model.arrays import Bools, Int32, Int64
from fastprof.ranks.run.peers import Peers
from fastprof.ranks.run.record import (
    ARRIVED,
    COMPUTE,
    COPY,
    KINDS_OF_LABELS,
    Label,
    RankRecord,
)
from fastprof.ranks.run.waits import UNKNOWN, Exposed, Waits, earlier_calls

SLOWER, UNEVEN, COPIES = "slower GPU", "uneven work", "copies"
TRANSFER, SCHEDULE, BEFORE = "transfer", "pipeline schedule", "before the recording"
OTHER, MISSING, LATE_START = "other", "rank without a file", "late start"

_SHARE: Final = 0.999  # of all waits is explained call by call
_MOST: Final = 50_000  # instances explained
_FAR_BACK: Final = 400  # waits searched for the last common one
_GOES_ON: Final = 0.1  # of the waits before the steps that count come again in these
_QUEUED: Final = 0.1  # of the lateness: a shorter time in the queue of a stream does not count
_DENSE: Final = 10_000  # labels: so many are added up in an array of all
_LONGER: Final = 1.05  # experts against other work: they have more rows
_EQUAL: Final = 0.02  # kernels of equal shapes: fewer differ in number


# Names of differences: of idle time, that of its cause; equal kernels that take longer, until their
# numbers tell that they are uneven.
_NAMES: Final = (*KINDS_OF_LABELS, SLOWER, UNEVEN, COPIES)
_SLOWER, _UNEVEN, _COPIES = range(len(KINDS_OF_LABELS), len(_NAMES))
_NAME_OF_KIND: Final = {COMPUTE: _SLOWER, COPY: _COPIES}


class WaitCause(NamedTuple):
    """Why a rank is late.

    Parameters
    ----------
    rank : index of the rank that is late, UNKNOWN for one without a file
    name : one of the names above, or of a cause of idle time
    label : index into `Explained.labels`, -1 for none: what takes most of it
    """

    rank: int
    name: str
    label: int


Shares = dict[WaitCause, float]  # ns
Floats = npt.NDArray[np.float64]


class Explained(NamedTuple):
    """The causes of waits.

    Parameters
    ----------
    labels : the labels of all ranks
    waited : ns that ranks waited, their work blocked, by cause
    times : instances in which the rank was last, by cause
    unexplained : ns of waits whose instances were not examined
    """

    labels: list[Label]
    waited: dict[WaitCause, float]
    times: dict[WaitCause, int]
    unexplained: float


def explain(
    records: Sequence[RankRecord], waits: Waits, exposed: Sequence[Exposed], peers: Peers
) -> Explained:
    """Find the causes of the waits that block work, the longest first."""
    explainer = _Explainer(records, waits, exposed, peers)
    waited = explainer.waited()
    total = float(waited.sum())
    order = np.argsort(-waited, kind="stable")
    order = order[waited[order] > 0]
    enough = int(np.searchsorted(np.cumsum(waited[order]), _SHARE * total)) + 1
    chosen = order[: min(enough, _MOST)]
    result, times = dict[WaitCause, float](), dict[WaitCause, int]()
    at_start: Shares = {}
    # Waits are followed to earlier ones: those come first.
    for instance in chosen[np.argsort(waits.last_arrival[chosen], kind="stable")].tolist():
        shares = explainer.shares(instance)
        if explainer.is_at_start(instance):
            whole = sum(shares.values()) or 1.0
            for cause, ns in shares.items():
                at_start[cause] = at_start.get(cause, 0.0) + waited[instance] * ns / whole
            continue
        whole = sum(shares.values()) or 1.0
        best = max(shares, key=lambda cause: shares[cause]) if shares else None
        for cause, ns in shares.items():
            result[cause] = result.get(cause, 0.0) + waited[instance] * ns / whole
            times[cause] = times.get(cause, 0) + (cause == best)
    for cause, ns in _late_starts(at_start, result).items():
        result[cause], times[cause] = ns, 1
    rest = total - float(waited[chosen].sum())
    return Explained(explainer.labels, result, times, rest)


def _late_starts(at_start: Shares, later: Shares) -> Shares:
    """Causes of waits before the steps that count: idle time that does not go on happens once.

    Of a rank whose causes mostly go on, none. Other causes keep their names.
    """
    sums: dict[tuple[int, str], list[float]] = {}
    for number, shares in enumerate((at_start, later)):
        for cause, ns in shares.items():
            sums.setdefault((cause.rank, cause.name), [0.0, 0.0])[number] += ns
    go_on = {key for key, (first, rest) in sums.items() if rest > _GOES_ON * first}
    once: Shares = {}
    whole: dict[int, float] = {}
    for cause, ns in at_start.items():
        if cause.name != SCHEDULE:
            whole[cause.rank] = whole.get(cause.rank, 0.0) + ns
        is_idle = cause.rank != UNKNOWN and cause.name in CAUSES
        if is_idle and (cause.rank, cause.name) not in go_on:
            late = cause._replace(name=LATE_START)
            once[late] = once.get(late, 0.0) + ns
    by_rank: dict[int, float] = {}
    for cause, ns in once.items():
        by_rank[cause.rank] = by_rank.get(cause.rank, 0.0) + ns
    return {cause: ns for cause, ns in once.items() if by_rank[cause.rank] > whole[cause.rank] / 2}


class _Explainer:
    """Explains instances; each once."""

    def __init__(
        self,
        records: Sequence[RankRecord],
        waits: Waits,
        exposed: Sequence[Exposed],
        peers: Peers,
    ) -> None:
        self._records, self._waits, self._exposed, self._peers = records, waits, exposed, peers
        numbers: dict[Label, int] = {}
        self._ids = [
            np.array([numbers.setdefault(label, len(numbers)) for label in record.labels], np.int64)
            for record in records
        ]
        self.labels = list(numbers)
        self._order, self._bounds = waits.members
        self._bounds_of_rank = waits.instances.calls.bounds
        self._known: dict[int, Shares] = {}
        self._arrived = [_arrivals(record) for record in records]
        self._earlier = earlier_calls(records, waits)
        self._places = [_Waited(waits, one) for one in exposed]
        self._has_stages = any(group.is_pair for group in waits.instances.groups)
        self._counts: dict[int, tuple[Int64, Int64]] = {}
        keys: dict[Label, int] = {}
        self._key = np.array(
            [keys.setdefault(label._replace(shape=""), len(keys)) for label in self.labels] or [0]
        )
        self._of_experts = np.array([is_of_experts(of.op) for of in self.labels] or [False])
        self._name = np.array([_NAME_OF_KIND.get(of.kind, of.kind) for of in self.labels] or [0])

    def waited(self) -> npt.NDArray[np.float64]:
        """[instances] How long the work of all ranks waits for the last one, ns."""
        total = np.zeros(len(self._waits.instances) + 1)
        for one in self._exposed:
            instance = self._waits.instances.of_call[one.call]
            np.add.at(total, instance, one.wait)
        result: npt.NDArray[np.float64] = total[:-1]
        return result

    def is_at_start(self, instance: int) -> bool:
        """Whether an instance is before the first counted step of the rank that arrives last."""
        rank = int(self._waits.last[instance])
        steps = self._records[rank].steps
        counted = np.flatnonzero(steps.is_counted)
        if not len(counted) or not counted[0]:
            return False
        calls = self._order[self._bounds[instance] : self._bounds[instance + 1]]
        own = calls[self._waits.instances.calls.rank[calls] == rank]
        return bool(self._waits.instances.calls.start[own[0]] < steps.start[counted[0]])

    def shares(self, instance: int, depth: int = 0) -> Shares:
        """What makes the last rank of an instance later than the median one, ns by cause."""
        if instance not in self._known:
            self._known[instance] = {}  # of an instance that would explain itself
            self._known[instance] = self._compared(instance, depth)
        return self._known[instance]

    def _compared(self, instance: int, depth: int) -> Shares:
        waits = self._waits
        calls = self._order[self._bounds[instance] : self._bounds[instance + 1]]
        last = int(waits.last[instance])
        shares: Shares = {}
        if waits.unknown_wait[instance]:
            shares[WaitCause(UNKNOWN, MISSING, -1)] = float(waits.unknown_wait[instance])
        if len(calls) < 2:
            return shares
        ranks = waits.instances.calls.rank
        of_last = int(calls[ranks[calls] == last][0])
        other = self._median(calls, last)
        usual = 0.0
        if other is None:  # the others run other programs, as the stages of a pipeline do
            other = self._median(self._at_same_place(of_last, last), last)
            late = 0.0 if other is None else waits.arrival[of_last] - waits.arrival[other]
            usual = float(waits.wait[calls].max() - max(late, 0.0))
            if usual > 0:
                shares[WaitCause(last, SCHEDULE if self._has_stages else UNEVEN, -1)] = usual
        if other is None:
            return shares
        late = float(waits.arrival[of_last] - waits.arrival[other])
        late -= self._add_queue(shares, of_last, late, depth)
        return self._joined(shares, self._window(of_last, other, depth), late)

    def _add_queue(self, shares: Shares, call: int, late: float, depth: int) -> float:
        """Add the time in which a call waits for the one before it on its stream; returns it."""
        before = int(self._earlier[call])
        if before < 0:
            return 0.0
        rank = int(self._waits.instances.calls.rank[call])
        event = int(self._arrived[rank][call - self._bounds_of_rank[rank]])
        ready = self._records[rank].chain.time[event : event + 1]
        at = int(self._waits.clocks.moved(ready, np.array([rank], np.int32))[0])
        queued = min(float(self._waits.arrival[call]) - at, late)
        instance = int(self._waits.instances.of_call[before])
        if queued < _QUEUED * late or instance < 0:
            return 0.0
        self._add_root(shares, instance, queued, depth)
        return queued

    def _median(self, calls: Int64, last: int) -> int | None:
        """The call of the median rank: of those that run the program of the last one."""
        waits, of_rank = self._waits, self._peers.of_rank
        ranks = waits.instances.calls.rank[calls]
        own = calls[(of_rank[ranks] == of_rank[last]) & (ranks != last)]
        if not len(own):
            return None
        order = own[np.argsort(waits.arrival[own], kind="stable")]
        return int(order[len(order) // 2 if len(order) % 2 else len(order) // 2 - 1])

    def _at_same_place(self, call: int, rank: int) -> Int64:
        """The calls of other ranks at the same place of the same program."""
        bounds, peers = self._bounds_of_rank, self._peers
        place = int(peers.places[rank][call - int(bounds[rank])]) + int(peers.shift[rank])
        result = []
        for own in peers.ranks(int(peers.of_rank[rank])):
            calls, at = peers.calls[own], place - int(peers.shift[own])
            if 0 <= at < len(calls):
                result.append(int(bounds[own]) + int(calls[at]))
        return np.array(result, np.int64)

    def _joined(self, shares: Shares, found: Shares, late: float) -> Shares:
        """Positive differences, as parts of the time by which the rank is late."""
        positive = {cause: ns for cause, ns in found.items() if ns > 0}
        whole = sum(positive.values())
        for cause, ns in positive.items():
            shares[cause] = shares.get(cause, 0.0) + max(late, 0.0) * ns / whole
        return shares

    def _window(self, late: int, usual: int, depth: int) -> Shares:
        """Differences of what two ranks did since both last waited for one instance."""
        rank = self._waits.instances.calls.rank
        ranks = int(rank[late]), int(rank[usual])
        ends = [
            int(self._arrived[r][call - self._bounds_of_rank[r]])
            for r, call in zip(ranks, (late, usual), strict=True)
        ]
        begins = self._last_common(ranks, ends)
        result: Shares = {}
        if begins is None:
            begins = [-1, -1]
            apart = self._began(ranks[0]) - self._began(ranks[1])
            result[WaitCause(ranks[0], BEFORE, -1)] = float(apart)
        one, other = (
            self._done(r, first, last) for r, first, last in zip(ranks, begins, ends, strict=True)
        )
        self._compare(result, ranks, one, other)
        self._compare_waits(result, ranks, begins, ends, depth)
        return result

    def _began(self, rank: int) -> int:
        begin = np.array([self._records[rank].chain.begin])
        return int(self._waits.clocks.moved(begin, np.array([rank], np.int32))[0])

    def _last_common(self, ranks: tuple[int, int], ends: list[int]) -> list[int] | None:
        """The events at which both ranks last waited for one instance."""
        one, other = (self._places[rank] for rank in ranks)
        place = int(np.searchsorted(one.event, ends[0])) - 1
        for i in range(place, max(place - _FAR_BACK, -1), -1):
            event = other.find(int(one.instance[i]))
            if event is not None and event < ends[1]:
                return [int(one.event[i]), event]
        return None

    def _done(self, rank: int, first: int, last: int) -> tuple[Int64, Int64]:
        """Label and ns of the entries of the pieces after one event up to another."""
        chain = self._records[rank].chain
        rows = slice(int(chain.offsets[first + 1]), int(chain.offsets[last + 1]))
        return self._ids[rank][chain.label[rows]], chain.ns[rows]

    def _compare(
        self,
        found: Shares,
        ranks: tuple[int, int],
        one: tuple[Int64, Int64],
        other: tuple[Int64, Int64],
    ) -> None:
        """Add differences of work and idle time, each with the label that differs most."""
        labels, apart = _differences(one, other, len(self.labels))
        name = self._name[labels]
        work = (name == _SLOWER).nonzero()[0]
        if len(work):
            uneven = self._is_uneven(labels[work], ranks)
            if self._of_experts[labels[work]].any():
                uneven |= self._have_more_rows(labels[work], one, other)
            name[work[uneven]] = _UNEVEN
        ns = np.bincount(name, apart, len(_NAMES)).tolist()
        order = apart.argsort(kind="stable")  # the one that differs most is the last of a name
        most = dict(zip(name[order].tolist(), labels[order].tolist(), strict=True))
        for number, label in most.items():
            found[WaitCause(ranks[0], _NAMES[number], label)] = ns[number]

    def _is_uneven(self, labels: Int64, ranks: tuple[int, int]) -> Bools:
        """[labels] Whether kernels of the same operator, layer and line are others, or more.

        By their numbers in the counted steps: arrivals of two ranks may divide them differently.
        """
        n, usual = (self._counts_of(rank, labels) for rank in ranks)
        differs: Bools = np.abs(n - usual) > _EQUAL * np.maximum(n, usual)
        if differs.any():
            key = self._key[labels]
            differs = np.isin(key, key[differs])
        return differs

    def _have_more_rows(
        self, labels: Int64, one: tuple[Int64, Int64], other: tuple[Int64, Int64]
    ) -> Bools:
        """[labels] Whether experts take longer than equal kernels by more than other work does.

        Shapes of fused layers are those of all tokens: how many rows their experts get, only the
        time tells.
        """
        n = len(self.labels)
        own, usual = (np.bincount(ids, ns, n) for ids, ns in (one, other))
        rest = (self._name == _SLOWER) & ~self._of_experts
        rate = own[rest].sum() / usual[rest].sum() if usual[rest].any() else 1.0
        longer = own[labels] > _LONGER * max(rate, 1.0) * usual[labels]
        result: Bools = longer & self._of_experts[labels] & (usual[labels] > 0)
        return result

    def _counts_of(self, rank: int, labels: Int64) -> Int64:
        """The kernels of a rank of some labels, in a counted step on average times 100."""
        if rank not in self._counts:
            self._counts[rank] = self._per_step(rank)
        own, counts = self._counts[rank]
        if len(self.labels) <= _DENSE:
            return counts[labels]
        row = np.minimum(np.searchsorted(own, labels), max(len(own) - 1, 0))
        return np.where(own[row] == labels, counts[row], 0) if len(own) else labels * 0

    def _per_step(self, rank: int) -> tuple[Int64, Int64]:
        """Labels of a rank, ascending, and their kernels in a counted step times 100.

        Of few labels, the kernels of all labels.
        """
        record = self._records[rank]
        chain, steps = record.chain, record.steps
        step = np.searchsorted(steps.start, chain.time, "left") - 1
        inside = np.append(steps.is_counted, False)[np.where(step >= 0, step, -1)]
        of_label = np.zeros(len(record.labels) or 1)
        runs = np.flatnonzero(np.diff(inside, prepend=False, append=False))  # of counted pieces
        for first, last in chain.offsets[runs].reshape(-1, 2).tolist():
            rows = slice(first, last)
            of_label += np.bincount(chain.label[rows], chain.count[rows], len(of_label))
        own, place = np.unique(self._ids[rank], return_inverse=True)
        count = np.bincount(place, of_label[: len(place)], len(own))
        n_steps = max(int(steps.is_counted.sum()), 1)
        result = np.rint(count * (100 / n_steps)).astype(np.int64)
        if len(self.labels) > _DENSE:
            return own, result
        of_all = np.zeros(len(self.labels), np.int64)
        of_all[own] = result
        return own, of_all

    def _compare_waits(
        self,
        found: Shares,
        ranks: tuple[int, int],
        begins: list[int],
        ends: list[int],
        depth: int,
    ) -> None:
        """Add differences of waits, followed to the ranks at their root, and of transfers."""
        waits = self._waits
        for sign, rank, first, last in zip((1, -1), ranks, begins, ends, strict=True):
            one = self._exposed[rank]
            rows = slice(*np.searchsorted(one.event, [first + 1, last]).tolist())
            cause = WaitCause(ranks[0], TRANSFER, -1)
            found[cause] = found.get(cause, 0.0) + sign * float(
                (one.ns[rows] - one.wait[rows]).sum()
            )
            instances = waits.instances.of_call[one.call[rows]]
            for instance, ns in zip(instances.tolist(), one.wait[rows].tolist(), strict=True):
                if ns > 0 and instance >= 0:
                    self._add_root(found, instance, sign * float(ns), depth)

    def _add_root(self, found: Shares, instance: int, ns: float, depth: int) -> None:
        shares = self.shares(instance, depth + 1) if depth < _DEEPEST else {}
        whole = sum(shares.values())
        if whole <= 0:
            cause = WaitCause(int(self._waits.last[instance]), OTHER, -1)
            found[cause] = found.get(cause, 0.0) + ns
            return
        for cause, part in shares.items():
            found[cause] = found.get(cause, 0.0) + ns * part / whole


_DEEPEST: Final = 64


def _differences(
    one: tuple[Int64, Int64], other: tuple[Int64, Int64], n_labels: int
) -> tuple[Int64, Floats]:
    """The labels whose ns differ, and how much longer the first takes; see `_Explainer._done`."""
    ids = np.concatenate([one[0], other[0]])
    ns = np.concatenate([one[1], -other[1]]).astype(np.float64)
    if n_labels <= _DENSE:
        dense = np.bincount(ids, ns, n_labels).astype(np.float64, copy=False)
        present = dense.nonzero()[0]
        return present, dense[present]
    labels, place = np.unique(ids, return_inverse=True)
    return labels, np.bincount(place, ns, len(labels)).astype(np.float64, copy=False)


def _arrivals(record: RankRecord) -> Int32:
    """[calls] The event at which each call arrives."""
    events = np.flatnonzero(record.chain.kind == ARRIVED)
    result = np.zeros(len(record.calls), np.int32)
    result[record.chain.call[events]] = events
    return result


class _Waited:
    """The instances that a rank's work waits for.

    Attributes
    ----------
    event : int64 [waits], ascending
    instance : int32 [waits]
    """

    def __init__(self, waits: Waits, exposed: Exposed) -> None:
        self.event = exposed.event
        self.instance: Int32 = waits.instances.of_call[exposed.call]
        self._order = np.argsort(self.instance, kind="stable")
        self._sorted = self.instance[self._order]

    def find(self, instance: int) -> int | None:
        """The event at which the work waits for an instance."""
        if instance < 0:
            return None
        place = int(np.searchsorted(self._sorted, instance))
        if place == len(self._sorted) or self._sorted[place] != instance:
            return None
        return int(self.event[self._order[place]])
