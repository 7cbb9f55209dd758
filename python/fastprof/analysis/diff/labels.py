"""The values of keys that both sides of a comparison have in common."""

from __future__ import annotations

from collections import Counter
from typing import Final

from fastprof.analysis.diff.matching import TYPES
from fastprof.analysis.diff.side import UNIT_KEYS
from fastprof.analysis.diff.waterfall import Waterfall
from fastprof.analysis.keys import without_types

_MOST: Final = 3  # names of one side


def labels(found: Waterfall, key: str) -> tuple[list[str | None], list[str | None]]:
    """The value of a key for the groups of both sides.

    The groups of a row have the same value: `linear -> addmm` if the sides differ. Kinds and names
    of kernels stay those of each group.
    """
    texts = [half.side.texts(key) for half in found.halves]
    if key not in UNIT_KEYS:
        return texts[0], texts[1]
    if key == "shape" and TYPES in found.matched.ignored:
        texts = [[text and without_types(text) for text in each] for each in texts]
    times: list[tuple[Counter[str | None], Counter[str | None]]] = [
        (Counter(), Counter()) for _ in range(found.n_rows)
    ]
    for side, half in enumerate(found.halves):
        numbers = zip(half.row.tolist(), texts[side], half.own_ns.tolist(), strict=True)
        for row, text, ns in numbers:
            times[row][side][text] += ns + 1
    of_rows = [_both(before, after) for before, after in times]
    before, after = ([of_rows[row] for row in half.row.tolist()] for half in found.halves)
    return before, after


def _both(before: Counter[str | None], after: Counter[str | None]) -> str | None:
    if not before or not after:
        return _names(before or after)
    if set(before) == set(after) or before.keys() == {None} or after.keys() == {None}:
        return _names(before + after)
    return f"{_names(before)} -> {_names(after)}"


def _names(times: Counter[str | None]) -> str | None:
    """The names, those with most time first."""
    ordered = sorted(times.items(), key=lambda item: (-item[1], item[0] or ""))
    names = [name for name, _ in ordered if name is not None]
    if not names:
        return None
    more = [f"{len(names) - _MOST} more"] if len(names) > _MOST else []
    return " + ".join([*names[:_MOST], *more])
