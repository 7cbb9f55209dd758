"""Section: tables of operators, layers, lines, kernels, idle causes, copies and collectives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from fastprof.model.table import Table
from fastprof.page.section import PageSource, Section, Shown
from fastprof.profile.facts import gpu_names

# Caption, report and options of each table.
_TABLES: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("Operators", "summary", {}),
    ("Layers", "layers", {}),
    ("Source lines", "lines", {}),
    ("Kernels", "summary", {"by": ("kernel", "kind", "dir")}),
    ("Your ranges", "ranges", {}),
    ("Causes of idle time", "idle", {}),
    ("Steps", "steps", {}),
    ("Copies and memsets", "copies", {}),
    ("Collectives", "overlap", {}),
)
_OF_ENGINE: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("Stages of the engine", "serving", {}),
    ("Idle time of iterations", "serving", {"idle": True}),
)


def section(source: PageSource) -> Section:
    """The reports. One without rows, or with work without a layer, line or range alone, gives its
    first note: what to record."""
    wanted = _TABLES
    if source.facts.steps.source == "iteration":
        wanted = (*wanted, *_OF_ENGINE)
    made = [(caption, source.shown(name, **options)) for caption, name, options in wanted]
    return Section(
        "tables",
        "Tables",
        tables=list(_without_repetition(source, made)),
        missing=list(_missing(made)),
    )


def _missing(made: Iterable[tuple[str, Shown]]) -> Iterator[str]:
    """The first note of reports without rows, after the captions of all that have it."""
    captions: dict[str, list[str]] = {}
    for caption, (table, _) in made:
        if _is_empty(table):
            for note in table.notes[:1]:
                captions.setdefault(note, []).append(caption)
    return (f"{', '.join(names)}: {note}" for note, names in captions.items())


def _is_empty(table: Table) -> bool:
    """Whether a table has no row, or one for all that has no name, such as `(no layer)`."""
    if table.n_rows != 1 or not table.notes:
        return not table.n_rows
    name = next(iter(table.columns.values())).at(0)
    return isinstance(name, str) and name.startswith("(no ")


def _without_repetition(
    source: PageSource, made: Iterable[tuple[str, Shown]]
) -> Iterator[tuple[str, Table]]:
    """The tables with rows; a line that several reports print stands at the first of them."""
    profile = source.profile
    gpus = gpu_names(profile.about, profile.column("device"))
    printed = {", ".join(filter(None, [gpus, source.facts.steps.description]))}
    for caption, (table, rest) in made:
        if not _is_empty(table):
            new = (
                tuple(line for line in lines if line not in printed)
                for lines in (table.lead, table.notes)
            )
            yield caption, replace(table, lead=next(new), notes=(*rest, *next(new)))
            printed |= {*table.lead, *table.notes}
