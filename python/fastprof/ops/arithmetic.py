"""FLOPs per evaluation of elementary functions.

One arithmetic operation, comparison, rounding or bit operation on an element is one FLOP. The
functions below take tens of GPU instructions, depending on type, compiler flags and range. They
count 20, PyProf's estimate, for comparable numbers. Composite functions count their formula: a
sigmoid is 1 / (1 + exp(-x)), hence `EXPONENTIAL + 2` (the sign is free).
"""

from __future__ import annotations

from typing import Final

EXPONENTIAL: Final = 20
LOGARITHM: Final = 20
POWER: Final = 20
SQUARE_ROOT: Final = 20  # also its reciprocal
TRIGONOMETRIC: Final = 20  # also hyperbolic and inverse
ERROR_FUNCTION: Final = 20
GAMMA: Final = 20
SIGMOID: Final = EXPONENTIAL + 2
