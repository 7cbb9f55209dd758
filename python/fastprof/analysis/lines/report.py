"""`lines`: GPU time by source line or function."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from fastprof._system.classes import dataclass
from fastprof.analysis.cells import cells_of
from fastprof.analysis.columns import texts
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.grouping import group
from fastprof.analysis.lines.columns import COLUMNS
from fastprof.analysis.lines.rows import (
    NO_LINE,
    LineRow,
    SourceSection,
    code_of,
    completed,
    dedented,
    function_row,
    line_row,
    ordered,
)
from fastprof.analysis.lines.source_text import SourceFiles
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import ideals_of
from fastprof.analysis.roofline.peaks import devices_with, roof_notes
from fastprof.analysis.selection import selected
from fastprof.analysis.stacks.sums import OPTIONAL, Sums, path_sums
from fastprof.analysis.summary.measures import shown
from fastprof.errors import ReportError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.markers.frames import path_pattern, place_of
from fastprof.model.names import unknown_name
from fastprof.model.quantity import quantity
from fastprof.model.table import ColumnData, Table
from fastprof.model.table import texts as text_column
from fastprof.model.table_text import Layout
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on

_BY: Final = {"line": line_row, "function": function_row}
_MOST_FILES: Final = 3
_MOST_PARTS: Final = 4


def lines(
    profile: ProfileData,
    files: str | Sequence[str] = (),
    by: str = "line",
    function: str | None = None,
    source: str | None = None,
    where: Where | None = None,
    steps: str | None = None,
    gpu: str | None = None,
    peak: str | Mapping[str, float] | None = None,
    bandwidth: float | None = None,
) -> Table:
    """Time and work of each of your source lines, including all that it calls.

    A backward kernel counts to the lines of its forward call, a kernel to a recursive line once.
    own_ns excludes what inner lines of the table launch. Without `files`, the rows are all lines of
    your own files, and own_ns sums to the total; work of other code is the row `(no line)`.

    Parameters
    ----------
    files : globs of files, your own or not: only their lines, and if the source is found, all lines
        of their functions
    by : "line", or "function" for a row per function
    function : glob of function names: only their lines
    source : folder with the source files; their own paths are searched too
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    gpu, peak, bandwidth : see `fastprof.model.device_options.with_figures`

    Raises
    ------
    ReportError
        There is no such file or function, or a key of `where`, GPU or figure is unknown.
    StepsError
        The source of steps is unknown, or the file has no such steps.
    """
    if by not in _BY:
        raise ReportError(f"by: expected {' or '.join(_BY)}, found {by!r}")
    globs = [files] if isinstance(files, str) else list(files)
    sources = SourceFiles(source)
    found, cells = profile.find_steps(steps), cells_of(profile, where=where)
    traces = texts(cells, "trace")
    chosen = selected(cells, where)
    groups = group([traces], len(cells), chosen)
    devices = devices_with(profile, gpu, peak, bandwidth)
    sums = path_sums(cells, groups, found, ideals_of(cells, devices))
    stacks = [list(traces.at(row) or ()) for row in groups.first.tolist()]
    listed, notes = chosen_frames(profile, stacks, globs)
    row_of = {each: _BY[by](each, sources) for each in {each for own in listed for each in own}}
    work = _Work([[row_of[each] for each in own] for own in listed], sums)
    rows = _wanted({*row_of.values()}, globs, function)
    if not any(traces.values):
        notes.append(advice_on(profile.about, profile.contents, "source line"))
    if not (globs or function) and not all(listed):
        rows.append(NO_LINE)
    table = _table(work, rows, sources, by, is_complete=bool(globs))
    return replace(
        table,
        headings=headed(table.headings, profile),
        notes=(
            *notes,
            *notes_on_sums(profile, found, None if chosen is None else cells.flags(chosen)),
            *_notes(rows, sources, by == "function" or function is not None),
            *roof_notes(devices, table.columns),
        ),
    )


@dataclass(frozen=True)
class _Work:
    """The work of the selected kernels.

    Parameters
    ----------
    stacks : rows of each distinct call stack, outermost first
    sums : the sums over the kernels of each stack
    """

    stacks: list[list[LineRow]]
    sums: Sums

    def inclusive(self, rows: Sequence[LineRow]) -> Sums:
        """The sums of each row and all that it calls."""
        place = {row: i for i, row in enumerate(rows)}
        both = [
            (i, place[row])
            for i, stack in enumerate(self.stacks)
            for row in set(stack or [NO_LINE])
            if row in place
        ]
        return self.sums.onto([i for i, _ in both], [row for _, row in both], len(rows))

    def own(self, rows: Sequence[LineRow]) -> Int64:
        """The GPU time of each row without that of inner rows."""
        last = _Work([stack[-1:] for stack in self.stacks], self.sums)
        return last.inclusive(rows).of["gpu_ns"]

    def of_sections(self, rows: Sequence[LineRow]) -> dict[SourceSection, int]:
        """The GPU time of each section, with all that it calls."""
        place = {row.section: LineRow("", row.section, None, None) for row in (*rows, NO_LINE)}
        stacks = [
            [place[row.section] for row in stack if row.section in place] for stack in self.stacks
        ]
        sections = list(place.values())
        time = _Work(stacks, self.sums).inclusive(sections).of["gpu_ns"]
        return {row.section: each for row, each in zip(sections, time.tolist(), strict=True)}

    def depths(self) -> dict[LineRow, int]:
        """The least depth of each row in a stack."""
        found: dict[LineRow, int] = {}
        for stack in self.stacks:
            for depth, row in enumerate(stack):
                found[row] = min(depth, found.get(row, depth))
        return found

    def totals(self, rows: Sequence[LineRow]) -> dict[str, Any]:
        """The sums over the stacks that contain any of the rows."""
        listed = set(rows)
        some = [i for i, stack in enumerate(self.stacks) if listed & set(stack or [NO_LINE])]
        return self.sums.take(some).totals()


def chosen_frames(
    profile: ProfileData, stacks: list[list[str]], globs: Sequence[str] = ()
) -> tuple[list[list[str]], list[str]]:
    """The frames of each stack that are rows: the user's own and those of `globs`; and notes."""
    is_listed = _is_in(globs)
    own = profile.source.lines
    chosen = [
        [
            frame
            for frame, is_mine in zip(stack, own.mine(stack), strict=True)
            if is_mine or (globs and is_listed(place_of(frame).file))
        ]
        for stack in stacks
    ]
    if any(chosen) or not any(stacks):
        return chosen, []
    return stacks, ["no lines of your own files: all lines are shown; --mine GLOB selects files"]


def _is_in(globs: Sequence[str]) -> Callable[[str | None], bool]:
    """Whether a file matches a glob; any file if there are none.

    Raises
    ------
    ReportError
        A glob is empty.
    """
    try:
        pattern = path_pattern(globs or ["*"])
    except ValueError as error:
        raise ReportError(f"files: {error}") from None
    return lambda file: pattern.match((file or "").replace("\\", "/")) is not None


def _wanted(rows: Iterable[LineRow], globs: list[str], function: str | None) -> list[LineRow]:
    """The rows of the files and functions.

    Raises
    ------
    ReportError
        There are none, although the trace has source lines; the message names the nearest.
    """
    is_listed = _is_in(globs)
    every = list(rows)
    found = [row for row in every if is_listed(row.file)]
    if every and not found:
        raise ReportError(unknown_name("file", globs[0], sorted({row.file or "" for row in every})))
    if function is None:
        return found
    names = sorted({name for row in found for name in _names(row)})
    fitting = {name for name in names if fnmatch.fnmatchcase(name, function)}
    if names and not fitting:
        raise ReportError(unknown_name("function", function, names))
    return [row for row in found if fitting.intersection(_names(row))]


def _names(row: LineRow) -> list[str]:
    """The function of a row, with and without its class."""
    return [] if row.function is None else [row.function, row.function.rpartition(".")[2]]


def _table(
    work: _Work, rows: list[LineRow], sources: SourceFiles, by: str, is_complete: bool
) -> Table:
    time = work.of_sections(rows)
    used = set(rows)
    rows = ordered(rows, time, work.depths())
    if by == "line" and is_complete:
        rows = list(completed(rows, sources))
    total_ns = int(work.sums.of["gpu_ns"].sum())
    own = work.own(rows)
    columns = _named(rows, sources) | work.inclusive(rows).cells(work.sums) | {"own_ns": Ints(own)}
    headings = shown(COLUMNS, columns, OPTIONAL)
    if by == "function" or any(row.has_function for row in rows):
        headings = tuple(
            replace(each, header="function") if each.key == "frame" else each for each in headings
        )
    total = work.totals(rows)
    table = Table(
        {each.key: columns[each.key] for each in COLUMNS},
        headings,
        total=total and {**total, "own_ns": int(own.sum())},
    )
    if by == "function":
        return table.sort("gpu_ns")
    return replace(
        table,
        layout=Layout(
            {
                "frame": text_column([row.label for row in rows]),
                "code": text_column(dedented(rows, sources)),
            },
            _sections(rows, time, total_ns),
            np.array([row not in used for row in rows], bool),
        ),
    )


def _named(rows: list[LineRow], sources: SourceFiles) -> dict[str, ColumnData]:
    numbers = [-1 if row.line is None else row.line for row in rows]
    return {
        "frame": text_column([row.frame for row in rows]),
        "file": text_column([row.file for row in rows]),
        "line": Ints(np.array(numbers, np.int64)),
        "function": text_column([row.function for row in rows]),
        "code": text_column([code_of(row, sources) for row in rows]),
    }


def _sections(rows: list[LineRow], time: dict[SourceSection, int], total_ns: int) -> Values:
    """The title of each row's section: its file or function, GPU time and share."""
    titles: list[str | None] = []
    for row in rows:
        ns = time[row.section]
        share = f", {100 * ns / total_ns:.1f} %" if total_ns else ""
        titles.append(
            None if row == NO_LINE else f"{row.section.title}   {quantity(ns, 'ns')}{share}"
        )
    return text_column(titles)


def _notes(rows: list[LineRow], sources: SourceFiles, needs_functions: bool) -> list[str]:
    notes = []
    if any(row.has_function for row in rows):
        notes.append(
            "the trace records functions, not lines: the line is the first of the function"
        )
    files = {row.file for row in rows}
    missing = sorted(each for each in sources.missing if each in files or not rows)
    missing = [each for each in missing if each[:1] != "<"]
    if missing:
        more = f" and {len(missing) - _MOST_FILES} more" if len(missing) > _MOST_FILES else ""
        names = ", ".join(map(_short, missing[:_MOST_FILES]))
        notes.append(f"source not found: {names}{more}; --source DIR searches below DIR")
        if needs_functions and any(row.function is None for row in rows or [NO_LINE]):
            notes.append(
                "functions unknown: the trace records lines only, and the source is missing"
            )
    return notes


def _short(file: str) -> str:
    """The end of a path."""
    parts = file.replace("\\", "/").split("/")
    return "/".join(["…", *parts[-2:]]) if len(parts) > _MOST_PARTS else file
