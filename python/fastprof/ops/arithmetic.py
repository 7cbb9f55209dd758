"""What one evaluation of a function counts, in FLOPs: the one place that says so.

One arithmetic operation, comparison, rounding or bit operation on an element is one FLOP. The
functions below cost a GPU some tens of instructions, how many depending on type, flags and range;
they count 20, PyProf's estimate, so that its numbers and ours can be compared. Composites
count their formula: a sigmoid is 1 / (1 + exp(-x)), hence `EXPONENTIAL + 2` (the sign is free).
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ERROR_FUNCTION",
    "EXPONENTIAL",
    "GAMMA",
    "LOGARITHM",
    "POWER",
    "SIGMOID",
    "SQUARE_ROOT",
    "TRIGONOMETRIC",
]

EXPONENTIAL: Final = 20
LOGARITHM: Final = 20
POWER: Final = 20
SQUARE_ROOT: Final = 20  # also its reciprocal
TRIGONOMETRIC: Final = 20  # also hyperbolic and inverse
ERROR_FUNCTION: Final = 20
GAMMA: Final = 20
SIGMOID: Final = EXPONENTIAL + 2
