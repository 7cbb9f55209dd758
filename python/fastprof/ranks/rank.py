"""The rank of each process of each file.

The first rule that gives every process a distinct number applies:

1. recorded: in the file (`distributedInfo` of torch.profiler);
2. name: the number after `rank` in the file name or in a parent directory's name;
3. digits: the only number in which the names differ;
4. order: 0, 1, 2, ... in order of name, then of the processes in the file.

Files of Nsight Systems record no rank. Processes of a single file are numbered by order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Final

_RANK: Final = re.compile(r"(?<![a-z])rank[-_ =.]?([0-9]{1,9})(?![0-9])", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9]+")
_LARGEST: Final = 1 << 31

Numbers = list[int | None]


def rank_in_name(path: str) -> int | None:
    """The number after the last `rank` in a path."""
    found = _RANK.findall(path)
    return int(found[-1]) if found else None


def _recorded(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    return list(recorded)


def _named(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    return [rank_in_name(path) for path in paths]


def _digits(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    forms = {_DIGITS.sub("#", path) for path in paths}
    fields = list(zip(*(_DIGITS.findall(path) for path in paths), strict=False))
    differing = [field for field in fields if len(set(field)) > 1]
    if len(forms) != 1 or len(differing) != 1:
        return [None] * len(paths)
    return [int(text) for text in differing[0]]


def _ordered(paths: Sequence[str], recorded: Sequence[int | None]) -> Numbers:
    return list(range(len(paths)))


RULES: Final[dict[str, Callable[[Sequence[str], Sequence[int | None]], Numbers]]] = {
    "recorded": _recorded,
    "name": _named,
    "digits": _digits,
    "order": _ordered,
}


def assign_ranks(paths: Sequence[str], recorded: Sequence[int | None]) -> tuple[list[int], str]:
    """The rank of each process, and the rule that applied.

    Parameters
    ----------
    paths : the file of each process, in order of name
    recorded : the rank recorded in the file, or None
    """
    below = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths] or ["/"])
    names = [os.path.relpath(os.path.abspath(path), below) for path in paths]
    for rule, numbers_of in RULES.items():
        numbers = [number for number in numbers_of(names, recorded) if number is not None]
        if len(set(numbers)) == len(paths) and all(0 <= n < _LARGEST for n in numbers):
            return numbers, rule
    return list(range(len(paths))), "order"
