"""Names of nested layers: what a report shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_DEEPEST: Final = 64  # dots of a name that are looked at; modules nest less deep


def each_part_once(names: Sequence[str]) -> tuple[str, ...]:
    """Nested layers without what their names repeat of those around them.

    `model`, `model.layers.0`, `model.layers.0.mlp` are `model`, `layers.0`, `mlp`: a name that
    begins with that of a layer around it and a dot loses both, the longest such name first.

    Parameters
    ----------
    names : sequence of str
        As they were recorded, outermost first.

    Returns
    -------
    tuple of str
        As many, in the same order; never an empty name for one that was not.
    """
    around: set[str] = set()
    parts = []
    for name in names:
        parts.append(name[_repeated(name, around) :])
        around.add(name)
    return tuple(parts)


def _repeated(name: str, around: set[str]) -> int:
    """How many characters of a name are that of a layer around it and a dot."""
    end = name.rfind(".", 0, len(name) - 1)
    for _ in range(_DEEPEST):
        if end <= 0:
            break
        if name[:end] in around:
            return end + 1
        end = name.rfind(".", 0, end)
    return 0
