"""Common subsequences of two sequences of numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]

_BELOW = -(1 << 30)
_MAX_CELLS = 1 << 25  # larger tables are not computed; the result is then "nothing in common"


def in_order(left: Numbers, right: Numbers, least: int) -> tuple[Places, Places]:
    """A longest common subsequence with at least `least` elements.

    Parameters
    ----------
    left, right : int32 [n], [m]; a negative number on the right equals any on the left

    Returns
    -------
    int64 [k], int64 [k]
        Positions of the elements on the left and on the right, ascending; empty if fewer than
        `least` elements are common.

    Notes
    -----
    Dynamic programming along the diagonal. Cost: n * d for at most d unmatched elements.
    """
    short = min(len(left), len(right))
    same = _equal(left[:short], right[:short])
    head = short if same.all() else int(np.argmin(same))
    same = _equal(left[::-1][: short - head], right[::-1][: short - head])
    tail = short - head if same.all() else int(np.argmin(same))
    n, m = len(left) - head - tail, len(right) - head - tail
    least -= head + tail
    inner = _between(left[head : head + n], right[head : head + m], max(least, 0))
    if inner is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ends = (np.arange(-tail, 0) + len(left), np.arange(-tail, 0) + len(right))
    first, second = (
        np.concatenate([np.arange(head), found + head, end])
        for found, end in zip(inner, ends, strict=True)
    )
    return first, second


def _equal(left: Numbers, right: Numbers) -> npt.NDArray[np.bool_]:
    same: npt.NDArray[np.bool_] = (left == right) | (right < 0)
    return same


def _between(left: Numbers, right: Numbers, least: int) -> tuple[Places, Places] | None:
    """`in_order` without the common prefix and suffix; None if too few elements are common."""
    n, m = len(left), len(right)
    if least > min(n, m):
        return None
    # A path from (0, 0) to (n, m) has at most n - least steps down and m - least to the right.
    low, width = least - n, n + m - 2 * least + 1
    if (n + 1) * width > _MAX_CELLS:
        return None
    longest = _table(left, right, low, width)
    if longest[n, m - n - low] < least:
        return None
    found = []
    i, j = n, m
    while i and j:
        here = longest[i, j - i - low]
        at = j - i - low
        if at + 1 < width and longest[i - 1, at + 1] == here:
            i -= 1
        elif at and longest[i, at - 1] == here:
            j -= 1
        else:
            i, j = i - 1, j - 1
            found.append((i, j))
    places = np.array(found[::-1], np.int64).reshape(-1, 2)
    return places[:, 0], places[:, 1]


def _table(left: Numbers, right: Numbers, low: int, width: int) -> npt.NDArray[np.int32]:
    """The length of the longest common subsequence of left[:i] and right[:j], at
    [i, j - i - low]."""
    n, m = len(left), len(right)
    longest = np.full((n + 1, width), _BELOW, np.int32)
    offsets = np.arange(low, low + width)
    longest[0, (offsets >= 0) & (offsets <= m)] = 0
    for i in range(1, n + 1):
        j = offsets + i
        inside = (j >= 0) & (j <= m)
        before = longest[i - 1]
        up = np.append(before[1:], _BELOW)
        to = right[np.clip(j - 1, 0, max(m - 1, 0))] if m else np.zeros(width, np.int32)
        same = (j >= 1) & ((to == left[i - 1]) | (to < 0)) & (m > 0)
        row = np.maximum(up, np.where(same, before + 1, _BELOW))
        longest[i] = np.where(inside, np.maximum.accumulate(np.where(inside, row, _BELOW)), _BELOW)
    return longest


def by_occurrence(left: Numbers, right: Numbers) -> tuple[Places, Places]:
    """Pair the k-th occurrence of each number on both sides. Returns positions, unordered."""
    places = [np.argsort(side, kind="stable") for side in (left, right)]
    numbers = [side[place] for side, place in zip((left, right), places, strict=True)]
    pairs = [
        number.astype(np.int64) << 32 | np.arange(len(number)) - np.searchsorted(number, number)
        for number in numbers
    ]
    _, first, second = np.intersect1d(pairs[0], pairs[1], assume_unique=True, return_indices=True)
    return places[0][first], places[1][second]
