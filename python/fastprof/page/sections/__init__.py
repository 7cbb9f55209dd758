"""The sections of a page, in order; a module each, with `section(source) -> Section`."""

from __future__ import annotations

from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.page.section import SectionMaker
from fastprof.page.sections import answer, flame, memory, recorded, roofline, tables, timeline


class PagePart(NamedTuple):
    """A section of the page.

    Parameters
    ----------
    section : makes it
    needs : the reports without options that it shows; another thread makes them ahead
    is_ahead : whether the other thread makes the section, after the reports
    """

    section: SectionMaker
    needs: tuple[str, ...] = ()
    is_ahead: bool = False


SECTIONS: Final = (
    PagePart(answer.section, ("steps", "idle")),
    PagePart(flame.section, is_ahead=True),
    PagePart(timeline.section),
    PagePart(roofline.section),
    PagePart(memory.section),
    PagePart(tables.section, ("ranges", "overlap", "copies")),
    PagePart(recorded.section),
)
