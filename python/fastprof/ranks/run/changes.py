"""The changes of a run that a user names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastprof.ranks.run.peers import Peers
from fastprof.ranks.run.replay import (
    Change,
    equal_work,
    kinds_of_causes,
    like_median,
    no_slower,
    without,
)

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
    if not value.isdigit() or int(value) not in numbers:
        listed = ", ".join(map(str, numbers[:8])) + (", ..." if len(numbers) > 8 else "")
        raise ValueError(f"{text!r}: expected a rank of the run ({listed}), found {value!r}")
    return numbers.index(int(value))
