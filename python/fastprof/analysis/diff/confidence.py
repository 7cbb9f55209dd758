"""Whether a change of the step is more than noise: Welch's t interval of the ratio of two means.

The interval is that of the logarithm of the ratio, so swapping the captures negates it. It assumes
that means of steps are nearly normal and that both captures ran under the same conditions: steps
contain the noise within a run, not that between runs. Correlated successive steps count as fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import expm1, log, log1p, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.analysis.diff.student import quantile
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
    means = [float(each.mean()) if len(each) else 0.0 for each in samples]
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
