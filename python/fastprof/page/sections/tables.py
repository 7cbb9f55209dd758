"""Section: tables of operators, layers, lines, kernels, collectives, idle causes and copies."""

from __future__ import annotations

from fastprof.page.section import Section, Source

__all__ = ["section"]


def section(source: Source) -> Section:
    """The reports."""
    return Section(
        "tables",
        "Tables",
        tables=[("Operators", source.table("summary")), ("Layers", source.table("layers"))],
    )
