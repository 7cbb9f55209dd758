"""Means in whole ns whose sum is the mean of the sums."""

from __future__ import annotations

import numpy as np

from fastprof.model.arrays import Int64


def means(sums: Int64, n: int) -> Int64:
    """Sums over n windows as means, ns: whole numbers that add up to the rounded mean of all.

    Each is rounded down or up; those with the largest remainder are rounded up.
    """
    down, rest = np.divmod(sums, n)
    total = (2 * int(sums.sum()) + n) // (2 * n)
    up = np.argsort(-rest, kind="stable")[: total - int(down.sum())]
    down[up] += 1
    return down
