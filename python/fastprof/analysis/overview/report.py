"""`overview`: the first look at a trace, in one screen.

The commands that `overview` proposes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, cast

import numpy as np

from fastprof._system.threads import SecondThread
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.advice.idle_text import first_calls
from fastprof.analysis.advice.report import findings
from fastprof.analysis.cells import cells_of
from fastprof.analysis.counted import notes_on_sums
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.overview.columns import CAUSES_OF_IDLE
from fastprof.analysis.overview.text import Overview
from fastprof.analysis.overview.work import work_tables
from fastprof.analysis.roofline.peaks import devices_with
from fastprof.analysis.summary.report import headline
from fastprof.model.columns import Ints
from fastprof.model.metadata import FORMATS
from fastprof.model.table import ColumnData, Floats, Table, texts
from fastprof.profile.data import ProfileData

_WHERE: Final = ("line", "op", "layer", "range", "call")
_MOSTLY: Final = 0.5  # of the time of a cause, from which a place is its place


def overview(
    profile: ProfileData,
    steps: str | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """What a trace is, how much of it is known, what takes the time, and what to change.

    Parameters
    ----------
    steps : what a step is, see `Profile.find_steps`
    gpu, peak, bandwidth : see `fastprof.model.device_options.with_figures`

    Returns
    -------
    Overview
        A mapping of names to tables, the largest rows first: `ops`, `idle`, `layers`, `lines`,
        `findings`. `text()` is one screen; `facts` has the answer in a sentence, the step, the
        coverage and the next commands. Times are ns.

    Raises
    ------
    ReportError
        A GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    BadInputError
        The file has changed since it was read.
    """
    devices = devices_with(profile, gpu, peak, bandwidth)
    with SecondThread() as second:
        facts = Facts(profile, steps, devices)
        idling = second.submit(_idle, facts)
        cells = cells_of(profile)
        tables = work_tables(cells, facts.steps, devices)
        lines, of_steps = headline(profile, facts.steps, devices)
        found = findings(facts)
        idle = idling.result()
    tables = {
        "ops": tables["ops"],
        "idle": idle,
        "layers": tables["layers"],
        "lines": tables["lines"],
        "findings": found,
    }
    commands = next_commands(facts, tables)
    more: dict[str, Any] = {
        "answer": found.facts["answer"],
        **of_steps,
        "findings_of_ns": round(facts.step_ns),
        "next": [command for command, _ in commands],
    }
    step = tables["ops"].total.get("step_ns"), of_steps.get("step_busy_ns")
    sums = notes_on_sums(profile, facts.steps, step=step)
    lead = (_file(profile), *lines, *first_calls(facts), *sums, *_known(profile))
    return cast(Table, Overview(tables, more, lead, commands))


def _file(profile: ProfileData) -> str:
    """The file and its format."""
    about = profile.about
    parts = [f"{profile.name}: {FORMATS.get(about.format, about.format)}"]
    if about.tool_version:
        parts.append(f"version {about.tool_version}")
    rank = about.distributed
    if rank is not None and rank.rank is not None:
        parts.append(f"rank {rank.rank}" + (f" of {rank.world_size}" if rank.world_size else ""))
    if name := profile.contents.program.name:
        parts.append(name)
    return ", ".join(parts)


def _known(profile: ProfileData) -> tuple[str, ...]:
    """The share of the GPU time with an operator, shapes, a cost and a source line."""
    coverage = profile.coverage_of_kernels
    if not coverage.total:
        return ()
    shares = (f"{depth} {time / coverage.total:.0%}" for depth, time in coverage.known.items())
    return (f"known of the GPU time: {', '.join(shares)}",)


def _idle(facts: Facts) -> Table:
    """The idle time of the mean step by cause."""
    notes: tuple[str, ...] = ()
    rows: list[tuple[str, float, str | None]] = []
    try:
        idle = facts.idle
    except CannotJudge as reason:
        notes = (str(reason),)
    else:
        for cause in CAUSES:
            if mean := idle.mean(cause):
                gaps = idle.is_mainly(cause)
                tops = (idle.top(place, gaps, 1) for place in _WHERE)
                rows.append(
                    (
                        cause,
                        mean,
                        next((top[0][0] for top in tops if top and top[0][1] >= _MOSTLY), None),
                    )
                )
    rows.sort(key=lambda row: -row[1])
    ns = np.array([each for _, each, _ in rows], np.float64)
    columns: dict[str, ColumnData] = {
        "cause": texts([cause for cause, _, _ in rows]),
        "ns": Ints(ns.round().astype(np.int64)),
        "share": Floats(ns / max(facts.step_ns, 1)),
        "where": texts([where for _, _, where in rows]),
    }
    return Table(columns, CAUSES_OF_IDLE, notes=notes, total={"ns": round(float(ns.sum()))})


_MOST: Final = 4
_LARGE: Final = 0.05  # of a step


def next_commands(facts: Facts, tables: Mapping[str, Table]) -> tuple[tuple[str, str], ...]:
    """Up to four commands, each with the question that it answers."""
    file = shlex.quote(facts.profile.name)
    proposed = ((f"fastprof {words.format(file)}", why) for words, why in _proposed(facts, tables))
    return tuple(islice(proposed, _MOST))


def _proposed(facts: Facts, tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Arguments, with {} for the file, and what they show; the most useful first."""
    profile = facts.profile
    if not len(profile):
        yield "info {}", "what to record"
        yield "summary {}", "CPU time by operator"
        return
    if n := tables["findings"].n_rows:
        yield "advise {}", f"evidence and remedies of {'all ' * (n > 1)}{n} finding{'s' * (n > 1)}"
    yield "report {}", "charts and all tables, as an HTML page"
    by_line = tables["lines"].n_rows > 0
    if facts.has_times:
        times, step = facts.times, max(facts.step_ns, 1)
        if times["idle_ns"] >= _LARGE * step and tables["idle"].n_rows:
            words = "idle {} --by line" if by_line else "idle {} --gaps 20"
            yield words, "where the GPU waits" if by_line else "the longest gaps"
        if times["exposed_communication_ns"] >= _LARGE * step:
            yield "overlap {}", "communication that is not hidden behind compute"
    if tables["layers"].n_rows:
        yield "layers {} --fold", "the module tree, forward and backward"
    if tables["ops"].total.get("lost_ns") is not None:
        yield "roofline {}", "shapes far from the peak rates of the GPU"
    if len(profile.about.memory):
        yield "memory {}", "what is in memory at the peak"
    if by_line:
        yield "lines {}", "source lines, with all that they call"
    yield "info {}", "what to record for more detail"
    yield "summary {} --by kind,kernel", "GPU time by kernel"
