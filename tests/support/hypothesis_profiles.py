"""Profiles of a test run: `fast`, and `full` with HYPOTHESIS_PROFILE=full, as in `make test-all`.

Both are profiles of Hypothesis. Other tests use `some` or `IS_FULL` to choose their cases.
Neither profile has deadlines or checks of the wall clock, which fail on a busy machine.
"""

import os
from collections.abc import Iterable
from typing import TypeVar

from hypothesis import HealthCheck, settings

Case = TypeVar("Case")
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")
IS_FULL = PROFILE == "full"
FAST_SHARE = 5  # the fast profile draws a fifth of the examples

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}


def register() -> None:
    """Register both profiles with Hypothesis and load the chosen one.

    Raises
    ------
    hypothesis.errors.InvalidArgument
        HYPOTHESIS_PROFILE names no registered profile.
    """
    settings.register_profile("fast", max_examples=100 // FAST_SHARE, **_COMMON)
    settings.register_profile("full", max_examples=100, **_COMMON)
    settings.load_profile(PROFILE)


def examples(n: int) -> settings:
    """Settings that draw `n` examples in the full profile, and a fifth of them in the fast one."""
    return settings(max_examples=n if IS_FULL else n // FAST_SHARE)


def some(cases: Iterable[Case], step: int) -> list[Case]:
    """All cases in the full profile, every `step`-th in the fast one, from the first."""
    return list(cases)[:: 1 if IS_FULL else step]
