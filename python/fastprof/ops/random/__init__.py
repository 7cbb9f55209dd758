"""Random numbers and dropout."""

from fastprof.ops.random import dropout, numbers

__all__ = [
    "dropout",
    "numbers",
]
