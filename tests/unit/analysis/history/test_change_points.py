"""Change points: steps are found where they are, noise has none, and the table of quantiles."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from fastprof.analysis.history.change_points import (
    LEAST,
    QUANTILES,
    change_points,
    largest,
    quantile,
    scores,
)
from support.hypothesis_profiles import IS_FULL

Floats = npt.NDArray[np.float64]
ALPHA = 0.01
N_SERIES = 400 if IS_FULL else 40
NOISE: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "normal": lambda random, n: random.normal(100, 1, n),
    "heavy tails": lambda random, n: 100 + random.standard_t(2, n),
    "Cauchy": lambda random, n: random.standard_cauchy(n),
    "skewed": lambda random, n: random.lognormal(0, 1, n),
    "few values": lambda random, n: random.integers(0, 4, n).astype(float),
}


@pytest.mark.parametrize("kind", NOISE)
@pytest.mark.parametrize("outlier", [False, True], ids=["plain", "one outlier"])
def test_noise_has_at_most_one_false_alarm_in_20_series(kind: str, outlier: bool) -> None:
    random = np.random.default_rng(11)
    n_false = 0
    for _ in range(N_SERIES):
        values = NOISE[kind](random, 100)
        if outlier:
            values[random.integers(100)] += 100
        n_false += bool(change_points(values))
    assert n_false <= N_SERIES // 20


@pytest.mark.parametrize("place", [10, 25, 50, 75, 90])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_step_of_three_deviations_is_found_within_two_captures(place: int, sign: int) -> None:
    random = np.random.default_rng(place)
    n_found = 0
    for _ in range(N_SERIES):
        values = random.normal(100, 1, 100)
        values[place:] += 3 * sign
        result = change_points(values)
        n_found += len(result) == 1 and abs(result[0] - place) <= 2
    assert n_found >= 0.9 * N_SERIES


@pytest.mark.parametrize("levels", [(0, 4, 0), (0, 4, 8), (0, -4, 4)])
def test_two_steps_are_found(levels: tuple[int, ...]) -> None:
    random = np.random.default_rng(3)
    n_found = 0
    for _ in range(N_SERIES):
        values = random.normal(0, 1, 100) + np.repeat(levels, (40, 25, 35))
        result = change_points(values)
        n_found += len(result) == 2 and max(abs(np.subtract(result, (40, 65)))) <= 2
    assert n_found >= 0.9 * N_SERIES


@pytest.mark.parametrize(
    "values, places",
    [
        ([], []),
        ([5.0], []),
        ([5.0] * 50, []),
        ([5.0] * 4 + [6.0] * 4, []),  # too few
        ([5.0] * 6 + [6.0] * 6, [6]),
        ([5.0] * 20 + [9.0] + [5.0] * 20, []),  # an outlier
        ([5.0] * 20 + [9.0] * 8 + [5.0] * 20, [20, 28]),
    ],
)
def test_plain_series(values: list[float], places: list[int]) -> None:
    assert change_points(np.array(values, np.float64)) == places


def test_the_answer_does_not_depend_on_the_unit_and_is_the_same_again() -> None:
    values = np.random.default_rng(1).normal(100, 1, 80) + np.repeat([0, 3], 40)
    expected = change_points(values)
    assert expected == change_points(values * 1e6) == change_points(np.exp(values))
    assert expected == [80 - place for place in change_points(values[::-1])][::-1]


def test_scores_are_those_of_ranks() -> None:
    result = scores(np.array([3.0, 1.0, 2.0, 2.0]))
    assert result[2] == result[3] and result[1] < result[2] < result[0]
    assert result.sum() == pytest.approx(0)


def test_the_largest_stretch_is_that_of_all_stretches() -> None:
    score = scores(np.random.default_rng(2).normal(0, 1, 14))
    n = len(score)
    best = (0.0, 0, n)
    for begin in range(n):
        for end in range(begin + LEAST, n + 1):
            sizes = {begin, end - begin, n - end} - {0}
            if min(sizes) < LEAST or len(sizes) == 1:
                continue
            inside, outside = score[begin:end], np.delete(score, range(begin, end))
            spread = score.std() * np.sqrt(1 / len(inside) + 1 / len(outside))
            statistic = abs(inside.mean() - outside.mean()) / spread
            if statistic > best[0] + 1e-9:
                best = (statistic, begin, end)
    assert largest(score) == (pytest.approx(best[0]), *best[1:])


@pytest.mark.parametrize("n", [n for n in QUANTILES if n <= (200 if IS_FULL else 32)])
def test_quantiles_are_those_of_random_orders(n: int) -> None:
    random = np.random.default_rng(n)
    n_orders = 8000 if IS_FULL else 800
    base = scores(np.arange(n, dtype=np.float64))
    above = sum(largest(random.permutation(base))[0] > quantile(n) for _ in range(n_orders))
    assert above / n_orders <= ALPHA + 3 * np.sqrt(ALPHA / n_orders)
    assert QUANTILES[n] == quantile(n)
