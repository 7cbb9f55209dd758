"""Whether steps differ by more than noise: Welch's t interval of the ratio of two means.

The interval is that of the logarithm of the ratio, so swapping the captures negates it. It assumes
that means of steps are nearly normal and that both captures ran under the same conditions: steps
contain the noise within a run, not that between runs. Correlated successive steps count as fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, expm1, inf, lgamma, log, log1p, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.analysis.diff.side import Side
from fastprof.analysis.diff.waterfall import CALLS, STEPS, Waterfall
from fastprof.model.arrays import Int64

Numbers = npt.NDArray[np.float64] | Int64 | Sequence[float] | Sequence[int]

FASTER, SAME, SLOWER, NOT_JUDGED = "faster", "same", "slower", "not judged"
LEVEL: Final = 0.95  # of the interval
THRESHOLD: Final = 0.02  # smaller changes are "same"
LEAST_STEPS, LEAST_RUNS = 3, 2
_UNBOUNDED: Final = 50.0  # logarithm of the ratio


@dataclass(frozen=True)
class Confidence:
    """The change of a mean, and its confidence interval.

    Parameters
    ----------
    change : mean after / mean before - 1; None if a mean is 0
    low, high : interval of the change; None if there are too few samples, or no upper bound
    verdict : FASTER, SAME, SLOWER or NOT_JUDGED
    because : why it is not judged
    samples : what the interval is from: "6 and 6 steps"
    """

    change: float | None
    low: float | None
    high: float | None
    verdict: str
    because: str = ""
    samples: str = ""

    def is_above(self, limit: float) -> bool:
        """Whether the change is above a limit beyond noise: all of its interval is."""
        return self.low is not None and self.low > limit


def confidence(
    before: Numbers,
    after: Numbers,
    threshold: float = THRESHOLD,
    of_runs: bool = False,
) -> Confidence:
    """Compare the means of two samples.

    Parameters
    ----------
    before, after : lengths of steps in order of time, or mean steps of runs
    threshold : smaller changes are "same", a share
    of_runs : the samples are independent runs; 2 of each are enough, instead of 3 steps
    """
    samples = [np.asarray(each, np.float64) for each in (before, after)]
    means = [float(sample.mean()) if len(sample) else 0.0 for sample in samples]
    if min(means) <= 0:
        return Confidence(None, None, None, NOT_JUDGED, "a capture has no steps")
    ratio = log(means[1] / means[0])
    least, what = (LEAST_RUNS, "runs") if of_runs else (LEAST_STEPS, "steps")
    if min(map(len, samples)) < least:
        counts = f"{len(samples[0])} before and {len(samples[1])} after"
        because = f"noise is unknown: expected {least} or more {what} of each, found {counts}"
        return Confidence(expm1(ratio), None, None, NOT_JUDGED, because)
    half = _half_width(samples, means, of_runs)
    verdict = SAME
    if abs(ratio) > max(half, log1p(threshold)):
        verdict = SLOWER if ratio > 0 else FASTER
    return Confidence(
        expm1(ratio),
        expm1(ratio - half),
        _bounded(ratio + half),
        verdict,
        samples=f"{len(samples[0])} and {len(samples[1])} {what}",
    )


def _half_width(samples: list[npt.NDArray[np.float64]], means: list[float], of_runs: bool) -> float:
    """Half of the interval of the logarithm of the ratio."""
    variances, degrees = [], []
    for values, mean in zip(samples, means, strict=True):
        n = len(values) if of_runs else _independent(values)
        variances.append(float(values.var(ddof=1)) / (n * mean * mean))
        degrees.append(n - 1)
    variance = sum(variances)
    if variance == 0:
        return 0.0
    freedom = variance**2 / sum(v * v / d for v, d in zip(variances, degrees, strict=True))
    return quantile((1 + LEVEL) / 2, freedom) * sqrt(variance)


def _independent(values: npt.NDArray[np.float64]) -> float:
    """The number of independent samples that determine the mean as well: at least 2.

    Correlation of successive values counts if it exceeds what chance makes of independent ones.
    """
    n = len(values)
    rest = values - values.mean()
    square = float((rest * rest).sum())
    if square == 0:
        return n
    correlation = float((rest[1:] * rest[:-1]).sum()) / square
    if correlation <= 2 / sqrt(n):
        return n
    return max(2.0, n * (1 - correlation) / (1 + correlation))


def _bounded(value: float) -> float | None:
    """A bound as a change; None if it is no useful one."""
    return expm1(value) if value < _UNBOUNDED else None


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
    result = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < _EXACT:
            break
    return result


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALL else _SMALL


def judged(waterfall: Waterfall, runs: Sequence[tuple[Side, Side]], threshold: float) -> Confidence:
    """Compare the steps of two sides, or of several runs of each.

    Parameters
    ----------
    runs : before and after of each run
    threshold : smaller changes are "same", a share
    """
    if waterfall.unit != STEPS:
        return Confidence(None, None, None, NOT_JUDGED, "expected steps in both captures")
    before, after = ([lengths_of_steps(pair[i]) for pair in runs] for i in (0, 1))
    if len(runs) == 1:
        return confidence(before[0], after[0], threshold)
    old, new = ([float(step.mean()) for step in steps] for steps in (before, after))
    return confidence(old, new, threshold, of_runs=True)


def lengths_of_steps(side: Side) -> npt.NDArray[np.float64]:
    """The length of each step in order, ns: the mean of all GPUs and ranks."""
    _, place = np.unique(side.windows["step"], return_inverse=True)
    return np.bincount(place, side.windows["wall_ns"]) / np.bincount(place)


def wall_of(waterfall: Waterfall, judgement: Confidence) -> dict[str, Any]:
    """The fact `wall` of a comparison.

    `before_ns` and `after_ns`, means in ns, of the step; without steps, of the captures;
    `before_median_ns` and `after_median_ns`. `change`, a share of the mean, and its interval from
    `low` to `high` are None if unknown. `verdict`, `because`, `samples`.
    """
    before, after = waterfall.wall_ns
    if waterfall.unit == CALLS:
        before, after = (_mean_wall(half.side) for half in waterfall.halves)
    medians = [float(np.median(lengths_of_steps(half.side))) for half in waterfall.halves]
    return {
        "before_ns": before,
        "after_ns": after,
        "before_median_ns": medians[0],
        "after_median_ns": medians[1],
        "change": after / before - 1 if before and waterfall.unit == STEPS else None,
        "low": judgement.low,
        "high": judgement.high,
        "verdict": judgement.verdict,
        "because": judgement.because or None,
        "samples": judgement.samples or None,
    }


def _mean_wall(side: Side) -> int:
    return round(int(side.windows["wall_ns"].sum()) / side.n_windows)
