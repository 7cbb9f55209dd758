"""Columns of a profile by their form."""

from __future__ import annotations

from typing import Any, cast

import numpy.typing as npt

from fastprof.model.columns import Values
from fastprof.profile.profile import Profile

__all__ = ["numbers", "texts"]


def numbers(profile: Profile, name: str) -> npt.NDArray[Any]:
    """A column of integers, [kernels]; -1 is unknown."""
    return cast("npt.NDArray[Any]", profile.column(name).values)


def texts(profile: Profile, name: str) -> Values:
    """A column of texts."""
    return cast(Values, profile.column(name))
