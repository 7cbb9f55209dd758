"""Section: the length of a step, what the GPU does in it, and what to change."""

from __future__ import annotations

from fastprof.page.section import Section, Source

__all__ = ["section"]


def section(source: Source) -> Section:
    """The findings of `advise` that save most."""
    table = source.table("advise")
    return Section("answer", "The answer", tables=[("Findings", table)])
