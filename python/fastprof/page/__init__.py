"""The page that `fastprof report` writes: one HTML file for a profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastprof._system.garbage import uncollected
from fastprof.model.page import Page
from fastprof.page.build import build
from fastprof.page.section import Source
from fastprof.page.sections import SECTIONS
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile

__all__ = ["page_of"]


def page_of(
    profile: Profile,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Page:
    """The page of a profile.

    gpu, peak, bandwidth : see `fastprof.model.device_options.with_figures`

    Raises
    ------
    ReportError
        A GPU or figure is unknown.
    BadInputError
        The file has changed since it was read.
    """
    with uncollected():
        source = Source(profile, {"gpu": gpu, "peak": peak, "bandwidth": bandwidth})
        sections = [each(source) for each in SECTIONS]
        return Page(build(_name(profile), _about(profile), sections))


def _name(profile: Profile) -> str:
    return profile.name.replace("\\", "/").rsplit("/", 1)[-1]


def _about(profile: Profile) -> list[str]:
    about: list[Any] = [
        gpu_names(profile.about, profile.column("device")),
        profile.find_steps().description if len(profile) else "",
        " ".join(filter(None, (profile.about.tool, profile.about.tool_version))),
    ]
    return [str(each) for each in about if each]
