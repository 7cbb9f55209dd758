"""Simulated runs: matching, clocks, waits, parts, replay and causes against the truth."""

from pathlib import Path
from shutil import rmtree

import pytest

from support.hypothesis_profiles import IS_FULL
from support.simulated_ranks import problems, random_scenario

SEEDS = range(200 if IS_FULL else 10)
# Limits of today, by seed; a seed that agrees again must leave the list.
TWO_HOSTS = "of two slow hosts, one is given the wait for the other"
LIMITS = {
    47: TWO_HOSTS,
    53: "of two ranks of a pipeline that start late, one is not found",
    154: "a slow host is found, but replayed it costs 9 % less than it does",
    169: TWO_HOSTS,
}


CASES = [
    pytest.param(
        seed,
        marks=[pytest.mark.xfail(reason=LIMITS[seed], strict=True)] if seed in LIMITS else [],
    )
    for seed in SEEDS
]


@pytest.mark.parametrize("seed", CASES)
def test_answers_are_those_of_the_simulation(seed: int, tmp_path: Path) -> None:
    found = problems(seed, tmp_path)
    rmtree(tmp_path)  # some MB
    assert found == [], random_scenario(seed)
