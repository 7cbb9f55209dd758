"""The sections of a page, in order; a module each, with `section(source) -> Section`."""

from __future__ import annotations

from typing import Final

from fastprof.page.section import SectionMaker
from fastprof.page.sections import answer, flame, memory, recorded, roofline, tables, timeline

SECTIONS: Final[tuple[SectionMaker, ...]] = (
    answer.section,
    flame.section,
    timeline.section,
    roofline.section,
    memory.section,
    tables.section,
    recorded.section,
)
