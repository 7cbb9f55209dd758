"""The values of a key that take most of some time."""

from __future__ import annotations

import numpy as np

from fastprof.analysis.grouping import Floats64
from fastprof.model.columns import Values


def top_shares(keys: Values, ns: Floats64, most: int) -> list[tuple[str, float]]:
    """The values with most time, and their share of it; ns : the time of each row."""
    sums = np.bincount(keys.ids + 1, ns, len(keys.values) + 1)[1:]
    order = np.argsort(-sums, kind="stable")[:most].tolist()
    total = max(float(ns.sum()), 1.0)
    return [(str(keys.values[i]), float(sums[i]) / total) for i in order if sums[i] > 0]
