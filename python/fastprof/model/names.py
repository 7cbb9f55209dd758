"""Messages about unknown names."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["unknown_name"]

_MOST_LISTED = 24


def unknown_name(what: str, name: str, valid: Sequence[str]) -> str:
    """One line: the unknown name, the nearest valid names, and all names if they are few."""
    near = get_close_matches(name, valid, n=3, cutoff=0.5)
    text = f"unknown {what} {name!r}"
    if near:
        text += f"; did you mean {' or '.join(near)}?"
    if len(valid) <= _MOST_LISTED:
        text += f"{' Valid' if near else '; valid'}: {', '.join(valid)}"
    return text
