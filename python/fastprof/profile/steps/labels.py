"""Labels of ranges: numbers folded, and the numbers that tell steps apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from fastprof.errors import StepsError

_NUMBER: Final = re.compile(r"\d+")
_LONGEST_SHOWN: Final = 60


def folded(label: str) -> str:
    """The label with each number replaced by `*`: `step 17` is `step *`."""
    return _NUMBER.sub("*", label)


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


def nearest(pattern: str, labels: Sequence[str]) -> str:
    """The labels most like a pattern, for a message; the first ones if none is similar."""
    by_lower = {label.lower(): label for label in reversed(labels)}
    close = get_close_matches(pattern.lower(), by_lower, n=3, cutoff=0.4)
    names = [by_lower[each] for each in close] or list(by_lower.values())[-3:]
    return ", ".join(repr(shown(name)) for name in names)
