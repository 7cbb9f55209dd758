"""Headings of tables: names, units and help of columns, safe to show. Imports no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastprof._system.classes import dataclass

_MOST_LISTED = 24


def printable(text: str) -> str:
    """The text on one line; all but printable characters become spaces.

    Names are from files of others. These characters would control a terminal, reorder or hide text:
    control characters, direction marks, separators, zero-width characters, lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " for c in text)


def unknown_name(what: str, name: str, valid: Sequence[str]) -> str:
    """One line: the unknown name, the nearest valid names, and all names if they are few."""
    from difflib import get_close_matches

    near = get_close_matches(name, valid, n=3, cutoff=0.5)
    text = f"unknown {what} {name!r}"
    if near:
        text += f"; did you mean {' or '.join(near)}?"
    if len(valid) <= _MOST_LISTED:
        text += f"{' Valid' if near else '; valid'}: {', '.join(valid)}"
    return text


@dataclass(frozen=True)
class Heading:
    """The heading of a column.

    Parameters
    ----------
    key : str
        Its name in Python, JSON, CSV and `--sort`.
    header : str
        Its name in text and Markdown, without the unit.
    unit : str
        The unit of its numbers, a key of `UNITS`; "" for texts, counts and ratios.
    about : str
        One line of help.
    keeps_end : bool
        Text is cut on the left, to keep the end of a path.
    decimals : int or None
        Decimals of its numbers in text; None chooses by size.
    digits : int
        Digits of its largest number in text, if decimals are chosen by size.
    in_text : bool
        Whether text and Markdown show it by default.
    same_unit : str
        Key of the column whose unit and decimals it has in text; "" for its own.
    rank : int
        If text is too narrow, columns of the highest rank are omitted first.
    min_width : int
        Characters that its texts keep until columns of a rank above 0 are omitted.
    largest_unit : str
        The largest unit in text, such as GB/s; "" for any.
    """

    key: str
    header: str
    unit: str = ""
    about: str = ""
    keeps_end: bool = False
    decimals: int | None = None
    in_text: bool = True
    digits: int = 4
    same_unit: str = ""
    rank: int = 0
    min_width: int = 12
    largest_unit: str = ""


@dataclass(frozen=True)
class Scale:
    """A unit of text output: its name, and the raw units that it contains."""

    name: str
    size: float


_DECIMAL: Final = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))


def _decimal(unit: str) -> tuple[Scale, ...]:
    return tuple(Scale(prefix + unit, size) for prefix, size in _DECIMAL)


# The units of text for each raw unit, ascending.
UNITS: Final[dict[str, tuple[Scale, ...]]] = {
    "ns": (Scale("ns", 1), Scale("us", 1e3), Scale("ms", 1e6), Scale("s", 1e9)),
    "bytes": _decimal("B"),
    "flop": _decimal("FLOP"),
    "flop/s": _decimal("FLOP/s"),
    "bytes/s": _decimal("B/s"),
    "share": (Scale("%", 0.01),),
}
