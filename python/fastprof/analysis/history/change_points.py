"""Where the level of a series changes: circular binary segmentation on normal scores.

Circular binary segmentation: Olshen, Venkatraman, Lucito, Wigler, Biostatistics 5 (2004), 557-572.
Of all stretches of the series it takes the one that differs most from the rest, and keeps it if
so large a difference is rare in random orders of the values. The values are replaced by the normal
scores of their ranks (van der Waerden): the distribution over random orders is then the same for
all series of a length, whatever their noise, so its quantile is a table; outliers are only ranks.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

LEAST: Final = 3  # values of a stretch
SHORTEST: Final = 10  # series: in shorter ones, equal values of chance look like a change
# Length of the series -> the statistic that 1 % of random orders exceed.
QUANTILES: Final = {
    10: 2.58, 12: 2.82, 16: 3.11, 24: 3.37, 32: 3.55, 48: 3.78, 64: 3.95, 100: 4.11, 200: 4.35,
    400: 4.55, 1000: 4.67,
}  # fmt: skip


def change_points(values: Floats) -> list[int]:
    """The places at which the level changes, ascending: values from there on have another one.

    Parameters
    ----------
    values : float64 [n], finite
    """
    places = [0, *_found(values, 0), len(values)]
    while len(places) > 2:
        # A stretch has two ends, of which one may be noise.
        sure = [_excess(values[places[i - 1] : places[i + 1]], places[i] - places[i - 1])
                for i in range(1, len(places) - 1)]  # fmt: skip
        weakest = int(np.argmin(sure))
        if sure[weakest] > 0:
            break
        del places[weakest + 1]
    return places[1:-1]


def _found(values: Floats, first: int) -> list[int]:
    """The ends of the stretches that differ, in a series and then in each of its parts."""
    if len(values) < SHORTEST:
        return []
    statistic, begin, end = largest(scores(values))
    if statistic <= quantile(len(values)):
        return []
    bounds = sorted({0, begin, end, len(values)})
    inner = [first + bound for bound in bounds[1:-1]]
    for low, high in pairwise(bounds):
        inner += _found(values[low:high], first + low)
    return sorted(inner)


def _excess(values: Floats, place: int) -> float:
    """How far the difference of two parts is above what random orders have."""
    score = scores(values)
    n = len(score)
    spread = float(score.std())
    if not spread:
        return -1.0
    part = abs(float(score[:place].sum())) / np.sqrt(place * (n - place) / n) / spread
    return float(part) - quantile(n)


def scores(values: Floats) -> Floats:
    """The normal scores of the ranks, [n]; equal values have their mean score. Their sum is 0."""
    n = len(values)
    inverse = NormalDist().inv_cdf
    normal = np.array([inverse((i + 0.5) / n) for i in range(n)])
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(normal)])
    means = (sums[ends] - sums[ends - counts]) / counts
    result: Floats = means[place.reshape(-1)]
    result -= result.mean()
    return result


def largest(score: Floats) -> tuple[float, int, int]:
    """The stretch that differs most from the rest: the statistic, its begin and its end.

    score : float64 [n] with the sum 0

    The statistic is the difference of the means in units of its standard deviation. Both the
    stretch and what is before and after it, if anything is, have at least LEAST values.
    """
    n, spread = len(score), float(score.std())
    if not spread:
        return 0.0, 0, n
    sums = np.concatenate([[0.0], np.cumsum(score)])
    best = (0.0, 0, n)
    for begin in (0, *range(LEAST, n - LEAST + 1)):
        end = np.arange(begin + LEAST, n + 1)
        inside = (end - begin).astype(np.float64)
        is_valid = ((end == n) | (n - end >= LEAST)) & (n - inside >= LEAST)
        end, inside = end[is_valid], inside[is_valid]
        if not len(end):
            continue
        statistic = np.abs(sums[end] - sums[begin]) / np.sqrt(inside * (n - inside) / n)
        at = int(np.argmax(statistic))
        if statistic[at] > best[0]:
            best = (float(statistic[at]), begin, int(end[at]))
    return best[0] / spread, best[1], best[2]


def quantile(n: int) -> float:
    """The statistic that 1 % of random orders of n values exceed; n is at least SHORTEST."""
    lengths = np.log(np.array([*QUANTILES], np.float64))
    return float(np.interp(np.log(n), lengths, list(QUANTILES.values())))
