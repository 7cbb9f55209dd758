"""The page that `fastprof report` writes: one HTML file for a profile."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from fastprof._system.garbage import uncollected
from fastprof._system.threads import SecondThread
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.cells import cells_of, computing_costs
from fastprof.model.page import Page
from fastprof.page.build import build
from fastprof.page.run_steps import run_steps
from fastprof.page.section import PageSource
from fastprof.page.sections import SECTIONS, flame
from fastprof.profile.facts import gpu_names
from fastprof.profile.profile import Profile


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
    source = PageSource(profile, {"gpu": gpu, "peak": peak, "bandwidth": bandwidth})
    with uncollected(), SecondThread() as second:
        reading = second.submit(_read_host_side, profile)
        with computing_costs(profile):
            facts = source.facts
            reading.result()
            with suppress(CannotJudge):  # the reports say so
                _ = facts.idle
            cells_of(profile)
        for name in _OF_KERNELS:
            source.table(name)
        source.begin(second, _OF_TIME_LINE)
        begun = {each: second.submit(each, source) for each in _LATER}
        made = {each: each(source) for each in SECTIONS if each not in begun}
        for each, section in begun.items():
            made[each] = each(source) if section.cancel() else section.result()
        sections = [made[each] for each in SECTIONS]
        if (of_run := run_steps(profile.name)) is not None:
            sections.insert(1, of_run)
        return Page(build(_name(profile), _about(profile), sections))


_LATER: Final = (flame.section,)  # on the second thread, after its reports
# Reports that do not use the host side, and those that do.
_OF_KERNELS: Final = ("summary", "layers", "lines")
_OF_TIME_LINE: Final = ("steps", "idle", "ranges", "overlap", "copies")


def _read_host_side(profile: Profile) -> None:
    """Read the ranges and API calls, which takes as long as the costs; kept."""
    if len(profile) and "start" in profile.names:
        _ = profile.api


def _name(profile: Profile) -> str:
    return profile.name.replace("\\", "/").rsplit("/", 1)[-1]


def _about(profile: Profile) -> list[str]:
    steps = profile.find_steps()
    about = profile.about
    rank = None if about.distributed is None else about.distributed.rank
    found = [
        gpu_names(about, profile.column("device")),
        steps.left_out or ("" if steps.source == "none" else steps.description),
        " ".join(filter(None, (about.tool, about.tool_version))),
        "" if rank is None else f"rank {rank}",
    ]
    return [each for each in found if each]
