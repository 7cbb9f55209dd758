"""Shortens the names of nested layers for reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_DEEPEST: Final = 64  # maximum number of dots searched in a name; modules nest less deeply


def each_part_once(names: Sequence[str]) -> tuple[str, ...]:
    """Remove the names of enclosing layers from the names of nested layers.

    `model`, `model.layers.0`, `model.layers.0.mlp` become `model`, `layers.0`, `mlp`. If a name
    starts with an enclosing layer's name and a dot, both are removed; the longest match wins.

    Parameters
    ----------
    names : sequence of str
        The recorded names, outermost first.

    Returns
    -------
    tuple of str
        Same length and order. A nonempty name stays nonempty.
    """
    around: set[str] = set()
    parts = []
    for name in names:
        parts.append(name[_repeated(name, around) :])
        around.add(name)
    return tuple(parts)


def _repeated(name: str, around: set[str]) -> int:
    """Length of the prefix of a name that is an enclosing layer's name and a dot; 0 if none."""
    end = name.rfind(".", 0, len(name) - 1)
    for _ in range(_DEEPEST):
        if end <= 0:
            break
        if name[:end] in around:
            return end + 1
        end = name.rfind(".", 0, end)
    return 0
