"""A curve with fewer points and the same extremes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fastprof.model.arrays import Int64


def envelope(values: Int64, most: int) -> Int64:
    """int64 [points] Rows that keep the extremes of a curve; about `most`, at least 4, ascending.

    Of equal parts of the curve, the first and last row, and a row of the minimum and of the
    maximum. Short curves keep all rows.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, max(most // 4, 1) + 1).astype(np.int64)
    extremes = [
        begin + int(place(values[begin:end]))
        for begin, end in pairwise(edges.tolist())
        for place in (np.argmin, np.argmax)
    ]
    rows: Int64 = np.concatenate([edges[:-1], edges[1:] - 1, np.array(extremes, np.int64)])
    return np.unique(rows)
