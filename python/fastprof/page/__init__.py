"""The page that `fastprof report` writes: one HTML file for a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fastprof._system.garbage import uncollected
from fastprof._system.memory import give_back
from fastprof.analysis.cells import FEW_CELLS
from fastprof.analysis.registry import Where
from fastprof.analysis.schedule import Ahead, computing
from fastprof.analysis.selection import condition_texts
from fastprof.model.page import Page
from fastprof.page.build import Rendered, build, rendered
from fastprof.page.run_steps import run_steps
from fastprof.page.section import Link, PageSource
from fastprof.page.sections import SECTIONS, PagePart
from fastprof.profile.data import ProfileData
from fastprof.profile.facts import gpu_names


def page_of(
    profile: ProfileData,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
    where: Where | None = None,
    links: Sequence[Link] = (),
) -> Page:
    """The page of a profile.

    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`
    where : the work that charts and tables of kernels show, see `fastprof.analysis.selection`
    links : to other pages

    Raises
    ------
    ReportError
        A GPU or figure is unknown; a condition is malformed, or its key is unknown.
    BadInputError
        The file has changed since it was read.
    """
    with uncollected(), computing(profile, _NEEDS), Ahead() as ahead:
        peaks = {"gpu": gpu, "peak": peak, "bandwidth": bandwidth}
        source = PageSource(profile, peaks, ahead, where)
        source.begin(name for part in SECTIONS for name in part.needs)
        for part in SECTIONS:
            if part.is_ahead:
                ahead.begin(part, _made_if_small, part, source)
        sections = [
            ahead.result(part, _made, part, source) or _made(part, source) for part in SECTIONS
        ]
        if (of_run := run_steps(profile.name)) is not None:
            sections.insert(1, rendered(of_run))
        return Page(build(_name(profile), [*_about(profile), *_limits(where)], sections, links))


def _made(part: PagePart, source: PageSource) -> Rendered:
    """A section as HTML: what it is made of is released before the next one is made."""
    result = rendered(part.section(source))
    if not _is_small(source):
        give_back()
    return result


def _made_if_small(part: PagePart, source: PageSource) -> Rendered | None:
    """A section of a profile with few cells; None for others, whose sections are made in turn."""
    return _made(part, source) if _is_small(source) else None


def _is_small(source: PageSource) -> bool:
    return len(source.profile.source.cells) <= FEW_CELLS


_NEEDS: Final = ("host", "costs", "contents")


def _limits(where: Where | None) -> Iterator[str]:
    """What `where` limits, in words."""
    if where:
        conditions = ", ".join(condition_texts(where))
        yield f"only {conditions} in where time goes, roofline, operators, layers, lines"


def _name(profile: ProfileData) -> str:
    return profile.name.replace("\\", "/").rsplit("/", 1)[-1]


def _about(profile: ProfileData) -> list[str]:
    steps = profile.find_steps()
    about = profile.about
    rank = None if about.distributed is None else about.distributed.rank
    results = [
        gpu_names(about, profile.column("device")),
        steps.left_out or ("" if steps.source == "none" else steps.description),
        " ".join(filter(None, (about.tool, about.tool_version))),
        "" if rank is None else f"rank {rank}",
    ]
    return [text for text in results if text]
