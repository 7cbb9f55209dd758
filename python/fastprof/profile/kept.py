"""What several reports of a profile use: results, and the work that counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from fastprof.model.arrays import Bools, Int64
from fastprof.profile.data import ProfileData

Result = TypeVar("Result")


def kept(profile: ProfileData, function: Callable[..., Result], *arguments: Hashable) -> Result:
    """function(profile, *arguments), which is computed once and lives as long as the profile.

    Neither arguments nor result may refer to the profile, whose memory would then wait for the
    garbage collector.
    """
    results, key = profile.source.kept, (function, *arguments)
    if key not in results:
        results[key] = function(profile, *arguments)
    found: Result = results[key]
    return found


def inside_part(profile: ProfileData) -> Bools | None:
    """bool [kernels], the work in the part of `Profile.trim`; None for all."""
    return profile.source.is_inside


def begins_in_part(profile: ProfileData, time: Int64) -> Bools | None:
    """bool [times], whether each is in the part of `Profile.trim`; None for all."""
    window = profile.source.window
    return None if window is None or not window.text else window.contains(time)


def answered(profile: ProfileData) -> Bools | None:
    """bool [kernels], the work in the part of `Profile.trim`, or after the start-up; None: all."""
    return profile.source.answered


def left_out(profile: ProfileData) -> tuple[str, ...]:
    """The line that says which part of the capture is answered; none if that is all of it."""
    return () if answered(profile) is None else (profile.find_steps().left_out,)
