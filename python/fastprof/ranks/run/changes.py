"""The changes of a run that a user names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import Int64
from fastprof.ranks.run.graph import RunChange
from fastprof.ranks.run.peers import COUNT, HOST, LATE, PeerMeasure, Peers
from fastprof.ranks.run.record import ARRIVED, COMPUTE, KINDS_OF_LABELS

Floats = npt.NDArray[np.float64]
Work = list[Int64 | None]  # of ranks, int64 [events], see `Change`
Kinds = tuple[int, ...]

CHANGES: Final = (
    "median:RANK", "no-data-loading", "no-data-loading:RANK", "communication:FACTOR", "equal-work",
    "no-stragglers",
)  # fmt: skip
STRAGGLERS: Final = "no-stragglers"
_MORE_KERNELS: Final = 1.02  # times those of the target are more


def parse_change(text: str, peers: Peers, numbers: Sequence[int]) -> RunChange:
    """The change that a text names, see `RunData.what_if`.

    Raises
    ------
    ValueError
        It names no change, no rank of the run, or no factor from 0 to 100.
    """
    name, _, value = text.partition(":")
    n = len(peers.records)
    if name == "no-stragglers" and not value:
        return no_slower(peers, range(n), None, text)
    if name == "equal-work" and not value:
        return equal_work(peers, text)
    if name == "communication":
        return RunChange(text, [None] * n, _factor(text, value))
    if name == "no-data-loading":
        ranks = [_rank(text, value, numbers)] if value else list(range(n))
        return without(peers, ranks, kinds_of_causes(["data loading"]), text)
    if name == "median":
        return like_median(peers, [_rank(text, value, numbers)], None, text)
    raise ValueError(f"unknown change {text!r}; valid: {', '.join(CHANGES)}")


def _factor(text: str, value: str) -> float:
    try:
        factor = float(value)
    except ValueError:
        factor = -1.0
    if not 0 <= factor <= 100:
        raise ValueError(
            f"{text!r}: expected the part of their time that transfers take, from 0 to 100, as in "
            f"communication:0.5 for twice as fast; found {value!r}"
        )
    return factor


def _rank(text: str, value: str, numbers: Sequence[int]) -> int:
    texts = list(map(str, numbers))
    if value not in texts:
        listed = ", ".join(texts[:8]) + (", ..." if len(numbers) > 8 else "")
        raise ValueError(f"{text!r}: expected a rank of the run ({listed}), found {value!r}")
    return texts.index(value)


def like_median(
    peers: Peers, ranks: Sequence[int], kinds: Kinds | None, text: str = ""
) -> RunChange:
    """Work whose time of some kinds is that of the median rank at each position.

    ranks : those that change; kinds : of labels, None for all
    """
    return _Mover(peers, ranks, peers.usual, both_ways=True).change(kinds, text)


def no_slower(peers: Peers, ranks: Sequence[int], kinds: Kinds | None, text: str = "") -> RunChange:
    """The same where the rank takes longer than the median one; else as recorded."""
    return _Mover(peers, ranks, peers.usual, both_ways=False).change(kinds, text)


def equal_work(peers: Peers, text: str = "") -> RunChange:
    """Work that takes the mean of all ranks at each position."""

    def mean(number: int, measure: PeerMeasure) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # positions that no rank has
            result: Floats = np.nanmean(peers.position_times(number, measure)[1], axis=0)
        return result

    return _Mover(peers, range(len(peers.records)), mean, both_ways=True).change(None, text)


def without(peers: Peers, ranks: Sequence[int], kinds: Kinds, text: str = "") -> RunChange:
    """Work without the time of some kinds."""
    n = len(peers.records)
    work: Work = [None] * n
    host: Work = [None] * n
    for rank in ranks:
        work[rank] = peers.time(rank) - peers.time(rank, PeerMeasure(kinds=kinds))
        own = peers.time(rank, PeerMeasure(HOST)) - peers.time(rank, PeerMeasure(LATE, kinds))
        host[rank] = np.maximum(own, 0)
    return RunChange(text, work, host=host)


class _Mover:
    """Moves work of some ranks to a target.

    target : of a class and a measure, float64 [positions], ns
    """

    def __init__(
        self,
        peers: Peers,
        ranks: Sequence[int],
        target: Callable[[int, PeerMeasure], Floats],
        both_ways: bool,
    ) -> None:
        self._peers, self._target, self._both_ways = peers, target, both_ways
        self._ranks = [
            rank for rank in sorted(set(ranks)) if len(peers.ranks(int(peers.of_rank[rank]))) > 1
        ]

    def change(self, kinds: Kinds | None, text: str) -> RunChange:
        """The change of the time of some kinds, None for all."""
        n = len(self._peers.records)
        work: Work = [None] * n
        host: Work = [None] * n
        for rank in self._ranks:
            work[rank] = self._chain(rank, kinds)
            host[rank] = self._host(rank, kinds)
        return RunChange(text, work, host=host)

    def _chain(self, rank: int, kinds: Kinds | None) -> Int64 | None:
        """[events] The time of the pieces of a chain."""
        measure = PeerMeasure(kinds=kinds)
        time, usual = self._times(rank, measure)
        if not len(usual):
            return None
        own = self._peers.time(rank, measure)
        moved = own * (_factors(time, usual, self._both_ways)[self._places(rank)] - 1)
        extra = _missing(time, usual, self._both_ways)
        return self._peers.time(rank) + np.rint(moved).astype(np.int64) + self._at_ends(rank, extra)

    def _host(self, rank: int, kinds: Kinds | None) -> Int64 | None:
        """[events] The own time of the host, moved by the share of some kinds."""
        if not self._peers.has_launches(rank):
            return None
        time, usual = self._times(rank, PeerMeasure(HOST))
        if not len(usual):
            return None
        share = self._share(rank, kinds, time, usual)
        factor = 1 + (_factors(time, usual, self._both_ways) - 1) * share
        own = self._peers.time(rank, PeerMeasure(HOST))
        extra = _missing(time, usual, self._both_ways and kinds is None)
        return np.rint(own * factor[self._places(rank)]).astype(np.int64) + self._at_ends(
            rank, extra
        )

    def _share(self, rank: int, kinds: Kinds | None, time: Floats, usual: Floats) -> Floats | float:
        """The share of some kinds in the time of the host that is more than the target.

        Where the rank has more kernels, their work has all of it; elsewhere causes of idle time
        have it, as they share the idle time that is more than the target.

        time, usual : float64 [positions], ns, of the host
        """
        if kinds is None:
            return 1.0
        count, usual_count = self._times(rank, PeerMeasure(COUNT))
        has_more = count > usual_count * _MORE_KERNELS
        if COMPUTE in kinds:
            return has_more.astype(np.float64)
        of_kinds, of_all = (
            np.nan_to_num(np.maximum(np.subtract(*self._times(rank, PeerMeasure(LATE, own))), 0))
            for own in (kinds, None)
        )
        whole = of_all.sum()
        usual_share = of_kinds.sum() / whole if whole else 0.0
        # What no idle time shows is divided as all of it is.
        excess = np.nan_to_num(np.maximum(time - usual, 0))
        some, result = of_all > 0, np.full(len(of_all), usual_share)
        shown = np.minimum(of_all, excess)[some] / np.maximum(excess[some], 1)
        result[some] += shown * (of_kinds[some] / of_all[some] - usual_share)
        result[has_more] = 0
        shares: Floats = np.clip(result, 0, 1)
        return shares

    def _times(self, rank: int, measure: PeerMeasure) -> tuple[Floats, Floats]:
        """[positions] The times of a rank, and the target."""
        usual = self._target(int(self._peers.of_rank[rank]), measure)
        return self._peers.at_positions(rank, measure), usual

    def _places(self, rank: int) -> Int64:
        first = self._peers.first_position(int(self._peers.of_rank[rank]))
        return self._peers.positions(rank) - first

    def _at_ends(self, rank: int, extra: Floats) -> Int64:
        """[events] Times of positions, each at the arrival that ends it."""
        chain = self._peers.records[rank].chain
        result = np.zeros(len(chain), np.int64)
        events = np.flatnonzero(chain.kind == ARRIVED)
        result[events] = np.rint(extra[self._places(rank)[events]]).astype(np.int64)
        return result


def _factors(own: Floats, usual: Floats, both_ways: bool) -> Floats:
    """What the time at each position is multiplied by."""
    known = ~np.isnan(own) & ~np.isnan(usual) & (own > 0)
    factor = np.ones(len(own))
    factor[known] = usual[known] / own[known]
    return factor if both_ways else np.minimum(factor, 1.0)


def _missing(own: Floats, usual: Floats, both_ways: bool) -> Floats:
    """The time that is added at positions where the rank has none."""
    lacks = ~np.isnan(own) & ~np.isnan(usual) & (own == 0)
    return np.where(lacks & both_ways, usual, 0.0)


def kinds_of_causes(names: Sequence[str]) -> Kinds:
    """The kinds of labels with some names of `KINDS_OF_LABELS`."""
    return tuple(i for i, name in enumerate(KINDS_OF_LABELS) if name in names)
