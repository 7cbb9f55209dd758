"""A curve with fewer points and the same extremes."""

from __future__ import annotations

import numpy as np

from fastprof.model.arrays import Int64

__all__ = ["envelope"]


def envelope(values: Int64, most: int) -> Int64:
    """int64 [points] Rows that keep the extremes of a curve; about `most`, at least 4, ascending.

    Of equal parts of the curve, the first and last row, and a row of the minimum and of the
    maximum. Short curves keep all rows.
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    edges = np.linspace(0, n, max(most // 4, 1) + 1).astype(np.int64)
    parts = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    extremes = [
        begin + int(pick(values[begin:end])) for begin, end in parts for pick in (np.argmin, np.argmax)
    ]
    found: Int64 = np.unique(np.concatenate([edges[:-1], edges[1:] - 1, extremes])).astype(np.int64)
    return found
