"""Recommendation models: embedding tables and jagged features of fbgemm."""

from fastprof.ops.recommendation import (
    features,
    jagged,
    jagged_products,
    lookup_gradients,
    lookups,
    pooled,
    quantised,
)

__all__ = [
    "features",
    "jagged",
    "jagged_products",
    "lookup_gradients",
    "lookups",
    "pooled",
    "quantised",
]
