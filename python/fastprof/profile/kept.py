"""Results that several reports of a profile use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fastprof.profile.profile import Profile

__all__ = ["kept"]

Result = TypeVar("Result")


def kept(profile: Profile, function: Callable[[Profile], Result]) -> Result:
    """The result of a function of a profile, which is computed once and lives as long as that.

    It must not refer to the profile, whose memory would then wait for the garbage collector.
    """
    results = profile._source.kept
    if function not in results:
        results[function] = function(profile)
    found: Result = results[function]
    return found
