"""The longest common subsequence of two sequences."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np

_MOST: Final = 1 << 24  # cells of the table; longer sequences align at both ends only


def aligned(
    left: Sequence[Hashable | None], right: Sequence[Hashable | None]
) -> list[tuple[int, int]]:
    """The pairs of indices of a longest common subsequence, ascending; None equals nothing."""
    n = min(len(left), len(right))
    equal = [a == b and a is not None for a, b in zip(left, right, strict=False)]
    head = equal.index(False) if False in equal else n
    tail = 0
    while tail < n - head and left[-1 - tail] == right[-1 - tail] is not None:
        tail += 1
    middle = _middle(left[head : len(left) - tail], right[head : len(right) - tail])
    return [
        *((i, i) for i in range(head)),
        *((head + i, head + j) for i, j in middle),
        *((len(left) - k, len(right) - k) for k in range(tail, 0, -1)),
    ]


def _middle(
    left: Sequence[Hashable | None], right: Sequence[Hashable | None]
) -> list[tuple[int, int]]:
    if not left or not right or len(left) * len(right) > _MOST:
        return []
    numbers = {each: i for i, each in enumerate(dict.fromkeys([*left, *right]))}
    own = [-1 if each is None else numbers[each] for each in left]
    other = np.array([-2 if each is None else numbers[each] for each in right])
    length = np.zeros((len(left) + 1, len(right) + 1), np.int32)
    for i, each in enumerate(own):
        taken = np.maximum(length[i, 1:], length[i, :-1] + (other == each))
        np.maximum.accumulate(taken, out=length[i + 1, 1:])
    return _traced(length, own, other.tolist())


def _traced(
    length: np.ndarray[tuple[int, int], np.dtype[np.int32]], left: list[int], right: list[int]
) -> list[tuple[int, int]]:
    """The pairs that a table of lengths contains, from its end."""
    i, j, found = len(left), len(right), []
    while i and j:
        if left[i - 1] == right[j - 1]:
            i, j = i - 1, j - 1
            found.append((i, j))
        elif length[i - 1, j] >= length[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return found[::-1]
