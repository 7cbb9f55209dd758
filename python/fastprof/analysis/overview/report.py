"""`overview`: the first look at a trace, in one screen, and the commands that it proposes."""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any, Final, cast

import numpy as np

from fastprof._system.classes import dataclass
from fastprof._system.memory import give_back
from fastprof._system.threads import SecondThread
from fastprof.analysis.advice.facts import Facts
from fastprof.analysis.advice.finding import CannotJudge
from fastprof.analysis.advice.report import findings, first_calls, saved_text
from fastprof.analysis.counted import notes_on_sums
from fastprof.analysis.idle.causes import CAUSES
from fastprof.analysis.overview.columns import CAUSES_OF_IDLE, ROWS
from fastprof.analysis.overview.work import work_tables
from fastprof.analysis.parts import parts_of
from fastprof.analysis.roofline.utilisation import devices_with
from fastprof.analysis.summary.report import headline
from fastprof.errors import ReportError
from fastprof.model.columns import Ints
from fastprof.model.devices import Device
from fastprof.model.heading import printable
from fastprof.model.metadata import FORMATS
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table, Tables, text_column
from fastprof.model.table_text import markdown_text, side_by_side
from fastprof.model.terminal import PLAIN, Colours, width_of
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
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

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
        cells = parts_of(profile)
        tables = work_tables(cells, facts.steps, devices)
        lines, of_steps = headline(profile, facts.steps, devices)
        if facts.steps.source == "iteration":
            lines[1:1] = _engine(profile, devices)
        give_back()  # findings take the most
        table = findings(facts)
        idle = idling.result()
    tables = {
        "ops": tables["ops"],
        "idle": idle,
        "layers": tables["layers"],
        "lines": tables["lines"],
        "findings": table,
    }
    commands = next_commands(facts, tables)
    more: dict[str, Any] = {
        "answer": table.facts["answer"],
        **of_steps,
        "findings_of_ns": table.facts["without_recorder_ns"] or round(facts.step_ns),
        "next": [command for command, _ in commands],
    }
    step = tables["ops"].total.get("step_ns"), of_steps.get("step_busy_ns")
    sums = notes_on_sums(profile, facts.steps, step=step)
    lines = [line for line in lines if line != facts.steps.incomplete]  # the answer says it
    lead = (
        _file(profile),
        *lines,
        *first_calls(facts),
        *sums,
        *_known(profile),
        *cells.notes_on_parts(),
    )
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


def _engine(profile: ProfileData, devices: Mapping[int, Device]) -> list[str]:
    """What a serving engine does, stage by stage. Few traces need its module."""
    from fastprof.analysis.serving.report import opening

    return opening(profile, devices)


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
    ns = np.array([value for _, value, _ in rows], np.float64)
    columns: dict[str, ColumnData] = {
        "cause": text_column([cause for cause, _, _ in rows]),
        "ns": Ints(ns.round().astype(np.int64)),
        "share": Floats(ns / max(facts.step_ns, 1)),
        "where": text_column([where for _, _, where in rows]),
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
    if facts.steps.source == "iteration":
        yield "serving {}", "tokens, stages and idle time of the engine"
    by_line = tables["lines"].n_rows > 0
    if facts.has_times:
        times, step = facts.times, max(facts.step_ns, 1)
        if times["idle_ns"] >= _LARGE * step and tables["idle"].n_rows:
            words = "idle {} --by line" if by_line else "idle {} --gaps 20"
            yield words, "where the GPU waits" if by_line else "the longest gaps"
        if times["exposed_communication_ns"] >= _LARGE * step:
            if _is_one_of_many(profile):
                folder = shlex.quote(os.path.dirname(profile.name) or ".")
                yield f"ranks {folder}", "all ranks: who waits for whom, and why"
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


def _is_one_of_many(profile: ProfileData) -> bool:
    """Whether the file is of one rank of several."""
    distributed = profile.about.distributed
    return distributed is not None and (distributed.world_size or 0) > 1


_WIDTH: Final = 100
_PROSE: Final = 120
_MORE: Final = (("kernels", "lost_ns"), ("kernels",), ())  # columns, if there is room for them
_LEAST: Final = 90  # of two tables side by side
_BETWEEN: Final = 4
_MOST_FINDINGS: Final = 3
_SCREEN: Final = 45  # lines
_MOST_LINES: Final = 2  # of a sentence
_NAMES: Final = {"ops": "GPU work"}
_PAIRS: Final = (("ops", "idle"), ("layers", "lines"))


@dataclass(frozen=True)
class Overview(Tables):
    """The tables `ops`, `idle`, `layers`, `lines` and `findings`; `text()` is one screen.

    Parameters
    ----------
    lead : the file, the GPUs, the step, and how much is known: one line each
    commands : what to run next, with the question that each command answers
    """

    lead: tuple[str, ...] = ()
    commands: tuple[tuple[str, str], ...] = ()

    def text(
        self,
        limit: int | None = ROWS,
        *,
        width: int | None = None,
        colours: Colours = PLAIN,
    ) -> str:
        """One screen.

        limit : most rows of a table; None for all
        width : most characters per line, by default 100; prose takes at most 120
        colours : of a terminal
        """
        width = width or _WIDTH
        prose = min(width, _PROSE)
        head = [*map(colours.strong, self._answer(prose)), "", *self._lead(prose), ""]
        pairs = [[*self._pair(names, limit, width, colours), ""] for names in _PAIRS]
        tail = [*self._findings(prose, colours), *self._next(width)]
        excess = len(head) + sum(map(len, pairs)) + len(tail) - _SCREEN
        if limit == ROWS and excess > 0:
            pairs[-1] = [*self._pair(_PAIRS[-1], max(limit - excess, 1), width, colours), ""]
        lines = [*head, *chain(*pairs), *tail]
        return "".join(f"{line.rstrip()}\n" for line in lines)

    def markdown(self, limit: int | None = ROWS) -> str:
        """Markdown tables below the lines of the lead."""
        lines = (self.facts["answer"], *self.lead)
        lead = "".join(f"{markdown_text(line)}\n\n" for line in lines)
        return lead + super().markdown(limit)

    def __repr__(self) -> str:
        return self.text().rstrip("\n")

    def opening(self) -> list[str]:
        """The answer, and what the file, the GPUs and the step are."""
        return [
            *self._answer(_WIDTH),
            "",
            *self._lead(_WIDTH),
        ]

    def _answer(self, width: int) -> list[str]:
        """The answer; what the file lacks comes first and takes lines of its own."""
        is_whole = not self.facts["steps"]["incomplete"]
        most = _MOST_LINES if is_whole else 2 * _MOST_LINES
        return _sentence(printable(self.facts["answer"]), width, rest=0, most=most)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.text())}</pre>"

    def _one_only(self, option: str) -> ReportError:
        return ReportError(
            f"{option}: expected a report with one table, found {len(self)} in overview; run "
            "fastprof summary, idle, layers, lines or advise"
        )

    def _lead(self, width: int) -> Iterator[str]:
        for line in map(printable, self.lead):
            yield from textwrap.wrap(
                line, width, subsequent_indent="  ", max_lines=_MOST_LINES, placeholder=" …"
            ) or [""]

    def _pair(
        self, names: Sequence[str], limit: int | None, width: int, colours: Colours
    ) -> list[str]:
        """Two tables side by side, or one above the other if the width is small."""
        if width < _LEAST:
            left, right = (self._shown(name) for name in names)
            return [*_block(left, limit, width, colours), "", *_block(right, limit, width, colours)]
        room = width - _BETWEEN
        for more in _MORE:  # full names come first
            left, right = (self._shown(name, more) for name in names)
            needs = _width(left, limit), _width(right, limit)
            if sum(needs) <= room:
                break
        first = max(room - min(needs[1], room - room // 2), min(needs[0], room // 2))
        blocks = (
            _block(left, limit, first, colours),
            _block(right, limit, room - min(first, needs[0]), colours),
        )
        return side_by_side(blocks, _BETWEEN)

    def _shown(self, name: str, more: Sequence[str] = ()) -> Table:
        """A table without what is beside it; more: further columns."""
        table = self[name]
        if not table.n_rows:
            text = f"{_NAMES.get(name, name)}: {' '.join(table.notes) or 'none'}"
            return replace(table, notes=(text,))
        headings = (
            replace(
                heading, in_text=(heading.in_text or heading.key in more) and heading.key != "flag"
            )
            for heading in table.headings
        )
        return replace(
            table, headings=tuple(headings), title="", lead=(), notes=(), total={}, layout=None
        )

    def _findings(self, width: int, colours: Colours) -> Iterator[str]:
        """The largest savings, and what to record."""
        table = self["findings"]
        rows = [row for row in table.rows() if row["saving_ns"]]
        total, is_bound = table.total, table.facts["is_bound"]
        saved = saved_text(total["saving_ns"], total["share"], is_bound)
        groups = dict.fromkeys(row["together"] for row in rows if row["together"])
        shared = "".join(f"; {', '.join(group.split(','))} only together" for group in groups)
        of_all = f"{saved} of {self._step()}{shared}" if rows else f"findings: {saved}"
        yield from map(colours.strong, _sentence(printable(of_all), width))
        verb = "at most" if is_bound else "saves"
        for number, row in enumerate(rows[:_MOST_FINDINGS], 1):
            saving = f"{verb} {quantity(row['saving_ns'], 'ns')}, {row['share']:.0%}"
            name = f"{number}. {row['id']}"
            head, *rest = _sentence(printable(f"{name} ({saving}): {row['what']}"), width)
            yield from (head.replace(name, colours.mark(name), 1), *rest)
            remedies = _first_remedies(printable(row["remedy"]), width - 3)
            yield from _sentence(remedies, width, 3, 3)
        for row in table.rows():
            if row["id"] == "capture":
                yield from _sentence(printable(f"record: {row['remedy']}"), width)
        yield ""

    def _step(self) -> str:
        steps = self.facts["steps"]
        name = "a step" if steps["unit"] == "step" else f"the {steps['unit']}"
        name = "an iteration" if steps["source"] == "iteration" else name
        is_unrecorded = self["findings"].facts["without_recorder_ns"] is not None
        without = " without the recorder" if is_unrecorded else ""
        return f"{name} of {quantity(self.facts['findings_of_ns'], 'ns')}{without}"

    def _next(self, width: int) -> Iterator[str]:
        """Commands, and what they show where a line has room for it."""
        commands = [printable(command) for command, _ in self.commands]
        longest = max(map(len, commands), default=0)
        for number, (command, (_, why)) in enumerate(zip(commands, self.commands, strict=True)):
            line = f"{'      ' if number else 'next: '}{command.ljust(longest)}  {why}"
            yield line if len(line) <= width else line[: 6 + longest]
        yield "      fastprof explain TERM"


def _width(table: Table, limit: int | None) -> int:
    """The characters that a table takes without cuts."""
    if not table.n_rows:
        return max(map(len, table.notes))
    return max(map(width_of, table.text(limit).splitlines()))


def _block(table: Table, limit: int | None, width: int, colours: Colours) -> list[str]:
    """The lines of a table, or why it has none; the flags of its rows below."""
    if not table.n_rows:
        return textwrap.wrap(table.notes[0], width, subsequent_indent="  ")
    lines = table.text(limit, width=width, colours=colours).splitlines()
    marks = (line for mark in _marks(table, limit) for line in textwrap.wrap(mark, width))
    return [*(line for line in lines if "(too narrow " not in line), *marks]


def _first_remedies(text: str, width: int) -> str:
    """The first remedy, and those after it that fit on its line; `advise` names them all."""
    first, *others = text.split("; ")
    for other in others:
        if len(first) + len(other) + 2 > width:
            break
        first = f"{first}; {other}"
    return first


def _marks(table: Table, limit: int | None) -> list[str]:
    """The flags of the shown rows, each with its rows."""
    if "flag" not in table:
        return []
    marked: dict[str, list[str]] = {}
    names = [
        name for name in ("dir", "op", "range", "kind", "kernel", "layer", "line") if name in table
    ]
    for row, flag in enumerate(table["flag"][:limit].tolist()):
        if flag:
            words = (table.columns[name].at(row) for name in names)
            marked.setdefault(flag, []).append(" ".join(str(word) for word in words if word))
    return [f"{flag}: {', '.join(rows)}" for flag, rows in marked.items()]


def _sentence(
    text: str, width: int, first: int = 0, rest: int = 3, most: int = _MOST_LINES
) -> list[str]:
    """At most `most` lines; `first`, `rest`: their indents."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        max_lines=most,
        placeholder=" …",
        break_on_hyphens=False,
    )
