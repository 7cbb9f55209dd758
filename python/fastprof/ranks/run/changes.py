"""The changes of a run that a user names."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof.model.arrays import Int64
from fastprof.ranks.run.peers import Peers
from fastprof.ranks.run.record import ARRIVED, KINDS_OF_LABELS
from fastprof.ranks.run.replay import Change

Floats = npt.NDArray[np.float64]
Work = list[Int64 | None]  # of ranks, int64 [events], see `Change.work`

CHANGES: Final = (
    "median:RANK", "no-data-loading", "no-data-loading:RANK", "communication:FACTOR", "equal-work",
    "no-stragglers",
)  # fmt: skip
STRAGGLERS: Final = "no-stragglers"


def parse_change(text: str, peers: Peers, numbers: Sequence[int]) -> Change:
    """The change that a text names, see `RunData.what_if`.

    Raises
    ------
    ValueError
        It names no change, no rank of the run, or no factor from 0 to 100.
    """
    name, _, value = text.partition(":")
    n = len(peers.records)
    if name == "no-stragglers" and not value:
        return Change(text, no_slower(peers, range(n), None))
    if name == "equal-work" and not value:
        return Change(text, equal_work(peers))
    if name == "communication":
        return Change(text, [None] * n, _factor(text, value))
    if name == "no-data-loading":
        ranks = [_rank(text, value, numbers)] if value else list(range(n))
        return Change(text, without(peers, ranks, kinds_of_causes(["data loading"])))
    if name == "median":
        return Change(text, like_median(peers, [_rank(text, value, numbers)], None))
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


def like_median(peers: Peers, ranks: Sequence[int], kinds: Sequence[int] | None) -> Work:
    """Work whose time of some kinds is that of the median rank at each position.

    ranks : those that change; kinds : of labels, None for all
    """
    return _moved(peers, ranks, kinds, peers.usual, both_ways=True)


def no_slower(peers: Peers, ranks: Sequence[int], kinds: Sequence[int] | None) -> Work:
    """The same where the rank takes longer than the median one; else as recorded."""
    return _moved(peers, ranks, kinds, peers.usual, both_ways=False)


def equal_work(peers: Peers) -> Work:
    """Work that takes the mean of all ranks at each position."""

    def mean(number: int, kinds: Sequence[int] | None) -> Floats:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # positions that no rank has
            result: Floats = np.nanmean(peers.of_positions(number, kinds)[1], axis=0)
        return result

    return _moved(peers, range(len(peers.records)), None, mean, both_ways=True)


def without(peers: Peers, ranks: Sequence[int], kinds: Sequence[int]) -> Work:
    """Work without the time of some kinds."""
    result: Work = [None] * len(peers.records)
    for rank in ranks:
        result[rank] = peers.time_by_kind(rank) - peers.time_by_kind(rank, kinds)
    return result


def _moved(
    peers: Peers,
    ranks: Sequence[int],
    kinds: Sequence[int] | None,
    target: Callable[[int, Sequence[int] | None], Floats],
    both_ways: bool,
) -> Work:
    """Work of some ranks moved to a target, by class and kinds: float64 [positions], ns."""
    result: Work = [None] * len(peers.records)
    wanted = sorted(set(ranks))
    for number in np.unique(peers.of_rank[wanted]).tolist():
        members = peers.ranks(number)
        if len(members) < 2:
            continue
        first, usual = peers.first_position(number), target(number, kinds)
        if not len(usual):
            continue
        for rank in (rank for rank in wanted if peers.of_rank[rank] == number):
            time = peers.at_positions(rank, kinds)
            own = peers.time_by_kind(rank, kinds)
            scale = _factors(time, usual, both_ways)[peers.positions(rank) - first]
            extra = _missing(time, usual, both_ways)
            moved = peers.time_by_kind(rank) + np.rint(own * (scale - 1)).astype(np.int64)
            result[rank] = moved + _at_ends(peers, rank, first, extra)
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


def _at_ends(peers: Peers, rank: int, first: int, extra: Floats) -> Int64:
    """[events] Times of positions, each at the arrival that ends it."""
    chain = peers.records[rank].chain
    result = np.zeros(len(chain), np.int64)
    events = np.flatnonzero(chain.kind == ARRIVED)
    place = peers.positions(rank)[events] - first
    result[events] = np.rint(extra[place]).astype(np.int64)
    return result


def kinds_of_causes(names: Sequence[str]) -> list[int]:
    """The kinds of labels with some names of `KINDS_OF_LABELS`."""
    return [i for i, name in enumerate(KINDS_OF_LABELS) if name in names]
