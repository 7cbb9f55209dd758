"""Names in texts for people: safe to show, and what may have been meant by unknown ones."""

from __future__ import annotations

from collections.abc import Sequence

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
