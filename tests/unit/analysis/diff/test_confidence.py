"""The interval of a change: against tables of Student's t, and on samples of known change."""

from math import log1p

import numpy as np
import pytest

from fastprof.analysis.diff.confidence import (
    FASTER,
    NOT_JUDGED,
    SAME,
    SLOWER,
    confidence,
    quantile,
    tail,
)
from support.hypothesis_profiles import some


@pytest.mark.parametrize(
    "degrees, at_975, at_995",
    [(1, 12.706, 63.657), (2, 4.303, 9.925), (5, 2.571, 4.032), (30, 2.042, 2.750),
     (1000, 1.962, 2.581)],
)  # fmt: skip
def test_quantiles_are_those_of_tables(degrees: float, at_975: float, at_995: float) -> None:
    assert quantile(0.975, degrees) == pytest.approx(at_975, abs=6e-4)
    assert quantile(0.995, degrees) == pytest.approx(at_995, abs=6e-4)
    assert tail(at_975, degrees) == pytest.approx(0.025, rel=1e-3)
    assert tail(-at_975, degrees) == pytest.approx(0.975, rel=1e-3)


def test_the_interval_is_that_of_welch() -> None:
    """Worked by hand: means 100 and 110, variances 4 and 16, 5 steps each."""
    before, after = ([m + s * x for x in (-1, -0.5, 0, 0.5, 1)] for m, s in ((100, 2), (110, 4)))
    variances = [2.5 / 5 / 100**2, 10 / 5 / 110**2]  # of the logarithms of the means
    freedom = sum(variances) ** 2 / sum(v * v / 4 for v in variances)
    half = quantile(0.975, freedom) * sum(variances) ** 0.5
    result = confidence(before, after)
    assert result.change == pytest.approx(0.1)
    assert result.low is not None and result.high is not None
    assert log1p(result.low) == pytest.approx(log1p(0.1) - half)
    assert log1p(result.high) == pytest.approx(log1p(0.1) + half)
    assert result.verdict == SLOWER


def alarms(change: float, n: int, m: int, tries: int = 1500) -> float:
    """The share of samples that are called different; the spread of AFTER is twice as large."""
    random = np.random.default_rng(n * 1000 + m)
    samples = (
        (random.normal(100, 2, n), random.normal(100 * (1 + change), 4, m)) for _ in range(tries)
    )
    return sum(confidence(*sample, threshold=0).verdict != SAME for sample in samples) / tries


@pytest.mark.parametrize("n, m", some([(3, 3), (5, 8), (6, 40), (30, 30)], 2))
def test_equal_captures_rarely_differ(n: int, m: int) -> None:
    """5 % of equal samples, with 1 % of tolerance: 1.8 standard errors of 1500 tries."""
    assert alarms(0, n, m) == pytest.approx(0.05, abs=0.015)


def test_changes_above_the_noise_are_found() -> None:
    assert alarms(0.05, 30, 30) > 0.99
    assert 0.2 < alarms(0.05, 6, 6) < 0.9


def correlated(random: np.random.Generator, n: int, share: float = 0.7) -> list[float]:
    values = [random.normal()]
    for _ in range(n - 1):
        values.append(share * values[-1] + random.normal() * (1 - share**2) ** 0.5)
    return [100 + 5 * value for value in values]


def test_correlated_steps_count_as_fewer() -> None:
    """With 100 steps each, independent ones would make 41 % of false alarms."""
    random = np.random.default_rng(5)
    samples = ((correlated(random, 100), correlated(random, 100)) for _ in range(500))
    assert sum(confidence(*sample, threshold=0).verdict != SAME for sample in samples) < 0.12 * 500


def test_the_reverse_is_the_reciprocal() -> None:
    before, after = [100.0, 103, 99, 104], [109.0, 112, 118]
    there, back = confidence(before, after), confidence(after, before)
    assert None not in (there.low, there.high, back.low, back.high)
    assert (1 + (there.low or 0)) * (1 + (back.high or 0)) == pytest.approx(1)
    assert (1 + (there.change or 0)) * (1 + (back.change or 0)) == pytest.approx(1)
    assert (there.verdict, back.verdict) == (SLOWER, FASTER)


def test_small_changes_are_the_same() -> None:
    before, after = [100.0, 100.1, 99.9], [101.0, 101.1, 100.9]
    assert confidence(before, after, threshold=0.02).verdict == SAME
    assert confidence(before, after, threshold=0.005).verdict == SLOWER


@pytest.mark.parametrize("n, m", [(1, 1), (2, 30), (30, 2)])
def test_fewer_than_three_steps_are_not_judged(n: int, m: int) -> None:
    result = confidence([100.0] * n, [150.0] * m)
    assert (result.verdict, result.low, result.high) == (NOT_JUDGED, None, None)
    assert result.because == (
        f"noise is unknown: expected 3 or more steps of each, found {n} before and {m} after"
    )
    assert result.change == pytest.approx(0.5)
    assert not result.is_above(0.03)


def test_two_runs_are_enough() -> None:
    assert confidence([100, 101], [150, 151], of_runs=True).verdict == SLOWER
    assert confidence([100], [150], of_runs=True).verdict == NOT_JUDGED


def test_equal_steps_have_no_noise() -> None:
    result = confidence([100] * 4, [103] * 4)
    assert (result.low, result.high) == (pytest.approx(0.03), pytest.approx(0.03))
    assert result.is_above(0.029) and not result.is_above(0.031)


def test_without_time_nothing_is_judged() -> None:
    assert confidence([], [1, 2, 3]).verdict == NOT_JUDGED
    assert confidence([0, 0, 0], [1, 2, 3]).change is None
