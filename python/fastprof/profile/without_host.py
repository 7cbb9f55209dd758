"""Profiles without ranges and API calls, whose times take as much memory as all kernels."""

from __future__ import annotations

from fastprof.profile.profile import Profile


def omit_host(profile: Profile, why: str) -> None:
    """Let `ranges` and `api` of a profile be empty.

    why : for the user, without a period

    Raises
    ------
    BadInputError
        The profile is of dict lines, which contain neither.
    """
    profile._source.omit_host(why)


def why_omitted(profile: Profile) -> str:
    """Why `ranges` and `api` are empty; "" if nothing is omitted."""
    return profile._source.host_omitted
