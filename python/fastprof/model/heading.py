"""Headings of tables: names, units and help of columns, safe to show. Imports no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastprof._system.classes import dataclass
from fastprof.errors import UnknownColumnError

_MOST_LISTED = 24


def printable(text: str) -> str:
    """The text on one line; all but printable characters become spaces.

    Names are from files of others. These characters would control a terminal, reorder or hide text:
    control characters, direction marks, separators, zero-width characters, lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " for c in text)


def nearest(name: str, valid: Sequence[str]) -> list[str]:
    """At most three valid names that are like a name, the most similar first."""
    from difflib import get_close_matches

    return get_close_matches(name, valid, n=3, cutoff=0.5)


def unknown_name(what: str, name: str, valid: Sequence[str]) -> str:
    """One line: the unknown name, the nearest valid names, and all names if they are few."""
    return _unknown(what, name, valid, nearest(name, valid))


def _unknown(what: str, name: str, valid: Sequence[str], near: Sequence[str]) -> str:
    text = f"unknown {what} {name!r}"
    if near:
        text += f"; did you mean {' or '.join(dict.fromkeys(near))}?"
    if len(valid) <= _MOST_LISTED:
        text += f"{' Valid' if near else '; valid'}: {', '.join(valid)}"
    return text


@dataclass(frozen=True)
class Heading:
    """The heading of a column.

    Parameters
    ----------
    key : str
        Its name in Python, JSON and CSV.
    header : str
        Its name in text and Markdown, without the unit.
    unit : str
        The unit of its numbers, a key of `UNITS`; "" for texts, counts and ratios.
    about : str
        One line of help.
    keeps_end : bool
        Text is cut on the left, to keep the end of a path; by default in the middle, as names.
    keeps_start : bool
        Text is cut on the right, to keep the first sizes of a shape.
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
    keeps_start: bool = False


def headed(name: str, headings: Sequence[Heading]) -> list[Heading]:
    """The headings that text prints as a name, such as gpu or gpu(ms); those in text if any."""
    title, _, unit = name.strip().lower().removesuffix(")").partition("(")
    fitting = [
        heading
        for heading in headings
        if heading.header.lower() == title.strip()
        and (not unit or unit in [scale.name.lower() for scale in UNITS.get(heading.unit, ())])
    ]
    return [heading for heading in fitting if heading.in_text] or fitting


def column_key(name: str, headings: Sequence[Heading], keys: Sequence[str] = ()) -> str:
    """The key of a column that is named by its key, or by the heading that text prints.

    name : such as gpu_ns, gpu or gpu(ms)
    keys : those of columns without headings

    Raises
    ------
    UnknownColumnError
        There is no such column, or several have this heading; the message names the choices.
    """
    known = list(dict.fromkeys([*keys, *(heading.key for heading in headings)]))
    if name in known:
        return name
    fitting = headed(name, headings)
    if len(fitting) == 1:
        return fitting[0].key
    if fitting:
        choices = ", ".join(f"{heading.key} ({heading.about})" for heading in fitting)
        raise UnknownColumnError(f"several columns are headed {name!r}; name one: {choices}")
    near = nearest(name, [*known, *(heading.header for heading in headings)])
    raise UnknownColumnError(_unknown("column", name, known, near))


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
    "hz": (Scale("Hz", 1), Scale("kHz", 1e3), Scale("MHz", 1e6), Scale("GHz", 1e9)),
    "share": (Scale("%", 0.01),),
}
