"""Student's t distribution."""

from __future__ import annotations

from math import exp, inf, lgamma, log, log1p
from typing import Final

_TERMS: Final = 500  # of the continued fraction; it converges in a few dozen
_SMALL: Final = 1e-300
_EXACT: Final = 1e-15


def tail(t: float, degrees: float) -> float:
    """The probability of a value above t.

    degrees : degrees of freedom, above 0
    """
    both = _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    return both / 2 if t >= 0 else 1 - both / 2


def quantile(share: float, degrees: float) -> float:
    """The value that a share of all values is below: `tail` of it is 1 - share.

    share : 0.5 or more, below 1
    """
    high = 1.0
    while tail(high, degrees) > 1 - share:
        high *= 2
        if high == inf:
            return inf
    low = 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if tail(middle, degrees) > 1 - share:
            low = middle
        else:
            high = middle
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by the method of Lentz."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            found *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return found


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALL else _SMALL
