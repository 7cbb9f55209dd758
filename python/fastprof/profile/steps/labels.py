"""Labels of steps: their numbers, and how messages show them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor
from typing import Final

from fastprof.errors import StepsError

_LONGEST_SHOWN: Final = 60


def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of a source of steps.

    Raises
    ------
    StepsError
        It is invalid.
    """
    try:
        return re.compile(pattern)
    except re.error as error:
        raise StepsError(f"invalid regular expression {pattern!r}: {error}") from None


def numbers(labels: Sequence[str]) -> list[int]:
    """A number per step: the last in its label that is distinct in each; else 1, 2, ..."""
    found = [re.findall(r"\d{1,18}", label) for label in labels]
    if len({len(each) for each in found}) == 1:
        for column in reversed(list(zip(*found, strict=True))):
            if len(set(column)) == len(labels):
                return [int(text) for text in column]
    return list(range(1, len(labels) + 1))


def shown(label: str) -> str:
    """The label, shortened to fit a message."""
    return label if len(label) <= _LONGEST_SHOWN else label[: _LONGEST_SHOWN - 3] + "..."


def percent(share: float) -> str:
    """A share of 1 in per cent, rounded down: a share below a limit is shown below it."""
    return f"{floor(share * 1000) / 10:g} %"


def nearest(pattern: str, labels: Sequence[str]) -> str:
    """The labels most like a pattern, for a message; the first ones if none is similar."""
    from difflib import get_close_matches

    by_lower = {label.lower(): label for label in reversed(labels)}
    close = get_close_matches(pattern.lower(), by_lower, n=3, cutoff=0.4)
    names = [by_lower[each] for each in close] or list(by_lower.values())[-3:]
    return ", ".join(repr(shown(name)) for name in names)
