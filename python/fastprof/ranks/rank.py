"""Processes of files to ranks: the number that each has in the run.

Rules in turn; the first that gives each process a number, and none of them twice, is taken:

1. told: the file says it (`distributedInfo` of torch.profiler);
2. name: the number behind `rank` in the file's name, or in that of a directory above it;
3. digits: names that differ in one number only;
4. order: 0, 1, 2, ... in order of name, then of the processes in the file.

Files of Nsight Systems do not say their rank. One file with several processes is numbered by order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Final

__all__ = ["named", "ranks"]

_RANK: Final = re.compile(r"(?<![a-z])rank[-_ =.]?([0-9]{1,9})(?![0-9])", re.IGNORECASE)
_DIGITS: Final = re.compile(r"[0-9]+")
_LARGEST: Final = 1 << 31

Numbers = list[int | None]


def named(path: str) -> int | None:
    """The number behind the last `rank` in a path."""
    found = _RANK.findall(path)
    return int(found[-1]) if found else None


def _told(paths: Sequence[str], told: Sequence[int | None]) -> Numbers:
    return list(told)


def _named(paths: Sequence[str], told: Sequence[int | None]) -> Numbers:
    return [named(path) for path in paths]


def _digits(paths: Sequence[str], told: Sequence[int | None]) -> Numbers:
    forms = {_DIGITS.sub("#", path) for path in paths}
    fields = list(zip(*(_DIGITS.findall(path) for path in paths), strict=False))
    differing = [field for field in fields if len(set(field)) > 1]
    if len(forms) != 1 or len(differing) != 1:
        return [None] * len(paths)
    return [int(text) for text in differing[0]]


def _ordered(paths: Sequence[str], told: Sequence[int | None]) -> Numbers:
    return list(range(len(paths)))


RULES: Final[dict[str, Callable[[Sequence[str], Sequence[int | None]], Numbers]]] = {
    "told": _told,
    "name": _named,
    "digits": _digits,
    "order": _ordered,
}


def ranks(paths: Sequence[str], told: Sequence[int | None]) -> tuple[list[int], str]:
    """The rank of each process, and the rule that it comes from.

    Parameters
    ----------
    paths : the file of each process, in order of name
    told : the rank that the file says, or None
    """
    below = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths] or ["/"])
    names = [os.path.relpath(os.path.abspath(path), below) for path in paths]
    for rule, numbers_of in RULES.items():
        numbers = [number for number in numbers_of(names, told) if number is not None]
        if len(set(numbers)) == len(paths) and all(0 <= n < _LARGEST for n in numbers):
            return numbers, rule
    return list(range(len(paths))), "order"
