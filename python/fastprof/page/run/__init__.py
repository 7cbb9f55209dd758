"""The page of a run: who waits for whom, why, and what it costs; ranks on one time line."""

from __future__ import annotations

from collections.abc import Mapping

from fastprof._system.garbage import uncollected
from fastprof.model.numbers import quantity
from fastprof.model.page import Page
from fastprof.page.build import build
from fastprof.page.run import answer, heat, lanes, tables
from fastprof.page.section import Link
from fastprof.ranks.run.pictures import step_waits
from fastprof.ranks.run.result import RunData


def page_of_run(run: RunData, *, each: Mapping[int, str] | None = None) -> Page:
    """The page of a run.

    each : the page of each rank: its path, relative to this page, by the number of the rank
    """
    with uncollected():
        waits = step_waits(run)
        sections = [
            answer.section(run, waits, _links(run, each or {})),
            heat.section(run, waits),
            lanes.section(run, waits),
            tables.what_if(run),
            tables.section(run),
        ]
        return Page(build(_title(run), _about(run), sections))


def _title(run: RunData) -> str:
    return f"{len(run)} ranks" if len(run) != 1 else "1 rank"


def _about(run: RunData) -> list[str]:
    gpus = sorted({record.gpu for record in run.records if record.gpu})
    return [
        *gpus[:3],
        f"{run.n_steps} {'step' if run.n_steps == 1 else 'steps'}",
        f"{quantity(run.step_ns, 'ns')} a step",
        f"{len(run.instances):,} collectives",
    ]


def _links(run: RunData, each: Mapping[int, str]) -> list[Link]:
    return [Link(f"rank {number}", each[number]) for number in run.numbers if number in each]
