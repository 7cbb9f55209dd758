"""Reductions and scans."""

from fastprof.ops.reductions import comparisons, extremes, moments, norms, scans, sums, table

__all__ = [
    "comparisons",
    "extremes",
    "moments",
    "norms",
    "scans",
    "sums",
    "table",
]
