"""Results that several reports of a profile use."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from fastprof.profile.profile import Profile

__all__ = ["kept"]

Result = TypeVar("Result")


def kept(profile: Profile, function: Callable[..., Result], *arguments: Hashable) -> Result:
    """function(profile, *arguments), which is computed once and lives as long as the profile.

    Neither arguments nor result may refer to the profile, whose memory would then wait for the
    garbage collector.
    """
    results, key = profile._source.kept, (function, *arguments)
    if key not in results:
        results[key] = function(profile, *arguments)
    found: Result = results[key]
    return found
