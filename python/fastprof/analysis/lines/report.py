"""`lines`: GPU time by source line or function of call stacks, with the text of the sources."""

from __future__ import annotations

import ast
import fnmatch
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.threads import computed_once
from fastprof.analysis.cells import ReportCells
from fastprof.analysis.counted import headed, notes_on_sums
from fastprof.analysis.grouping import group, texts
from fastprof.analysis.keys import key_of
from fastprof.analysis.lines.columns import COLUMNS
from fastprof.analysis.lines.descent import below_one_line
from fastprof.analysis.parts import parts_of
from fastprof.analysis.registry import Where
from fastprof.analysis.roofline.ideal import ideals_of
from fastprof.analysis.roofline.utilisation import devices_with, roof_notes
from fastprof.analysis.selection import selected
from fastprof.analysis.stacks.sums import OPTIONAL, Sums, path_sums
from fastprof.analysis.summary.measures import shown
from fastprof.errors import ReportError
from fastprof.model.arrays import Int64
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import unknown_name
from fastprof.model.markers.frames import path_pattern, place_of
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Table, text_column
from fastprof.model.table_text import Layout
from fastprof.profile.data import ProfileData
from fastprof.profile.recording_hints import advice_on


class SourceSection(NamedTuple):
    """A function, or a file where functions are unknown; the functions of a file if stacks name
    them. `first` is the first line of the function."""

    file: str | None
    function: str | None = None
    first: int | None = None

    @property
    def title(self) -> str:
        """The text above its lines."""
        if self.function is None:
            return self.file or ""
        return f"{self.file}:{self.first} {self.function}"


class LineRow(NamedTuple):
    """A source line, or a function; `has_function`: the stack names the function."""

    frame: str
    section: SourceSection
    line: int | None
    function: str | None
    has_function: bool = False

    @property
    def file(self) -> str | None:
        """The file."""
        return self.section.file

    @property
    def label(self) -> str:
        """The row inside its section."""
        if self.line is None:
            return self.frame
        return f"{self.line:>6}" + (f" {self.function}" if self.has_function else "")


NO_LINE: Final = LineRow("(no line)", SourceSection(None), None, None)


def line_row(frame: str, sources: SourceFiles) -> LineRow:
    """The row of a frame."""
    place = place_of(frame)
    if place.function is not None or place.line is None:
        has_function = place.function is not None
        return LineRow(frame, SourceSection(place.file), place.line, place.function, has_function)
    source = sources.find(place.file)
    function = None if source is None else source.function_at(place.line)
    if function is None:
        return LineRow(frame, SourceSection(place.file), place.line, None)
    section = SourceSection(place.file, function.name, function.first)
    return LineRow(frame, section, place.line, function.name)


def function_row(frame: str, sources: SourceFiles) -> LineRow:
    """The row of the function of a frame; that of the file if the function is unknown."""
    row = line_row(frame, sources)
    if row.has_function:
        return row
    return LineRow(row.section.title, row.section, row.section.first, row.section.function)


def ordered(
    rows: Iterable[LineRow], time: Mapping[SourceSection, int], depth: Mapping[LineRow, int]
) -> list[LineRow]:
    """Rows by section, the longest first, and by line; NO_LINE last.

    time : the GPU time of each section, with what it calls
    depth : the least depth of each row in a stack; of equal sections, the callers are first
    """
    outer: dict[SourceSection, int] = {}
    for row, number in depth.items():
        outer[row.section] = min(number, outer.get(row.section, number))

    def key(row: LineRow) -> tuple[bool, int, int, str, int, int, str]:
        section = row.section
        where = -time[section], outer.get(section, 0), section.file or "", section.first or 0
        return row == NO_LINE, *where, row.line or 0, row.frame

    return sorted(rows, key=key)


def completed(rows: Sequence[LineRow], sources: SourceFiles) -> Iterator[LineRow]:
    """The rows, and the other lines of their functions, in the order of `rows`."""
    of_sections: dict[SourceSection, list[LineRow]] = {}
    for row in rows:
        of_sections.setdefault(row.section, []).append(row)
    for section, own in of_sections.items():
        source = None if section.file is None else sources.find(section.file)
        if source is None or any(row.has_function or row.line is None for row in own):
            yield from own
            continue
        by_line = {row.line: row for row in own}
        for line in _lines_of(section, [row.line or 0 for row in own], source):
            unused = LineRow(f"{section.file}:{line}", section, line, section.function)
            yield by_line.pop(line, unused)
        yield from by_line.values()  # lines beyond the end of a file that has changed


def _lines_of(section: SourceSection, used: list[int], source: SourceFile) -> list[int]:
    """The lines of a function; of a module, those between used ones, without its functions."""
    own = [function for function in source.functions if function.first == section.first]
    last = own[0].last if own else max(used)
    first = min(used) if section.first is None else section.first
    lines = range(first, min(last, len(source.lines)) + 1)
    if section.first is not None:
        return list(lines)
    return [line for line in lines if source.function_at(line) is None]


def code_of(row: LineRow, sources: SourceFiles) -> str | None:
    """The text of the line; None if the source is unknown."""
    source = None if row.file is None else sources.find(row.file)
    return None if source is None else source.line(row.line)


def dedented(rows: Sequence[LineRow], sources: SourceFiles) -> list[str]:
    """The text of each line, without the indentation that the lines of its section share."""
    texts = [(code_of(row, sources) or "").expandtabs() for row in rows]
    indents: dict[SourceSection, int] = {}
    for row, text in zip(rows, texts, strict=True):
        if text.strip():
            indent = len(text) - len(text.lstrip())
            indents[row.section] = min(indent, indents.get(row.section, indent))
    return [text[indents.get(row.section, 0) :] for row, text in zip(rows, texts, strict=True)]


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
    your own files, and own_ns sums to the total; work of other code is the row `(no line)`. Below
    a line that takes nearly all, such as `model(x)`, the lines of libraries are rows too.

    Parameters
    ----------
    files : globs of files, your own or not: only their lines, and if the source is found, all lines
        of their functions
    by : "line", or "function" for a row per function
    function : glob of function names: only their lines
    source : folder with the source files; their own paths are searched too
    where : see `fastprof.analysis.selection`
    steps : what a step is, see `Profile.find_steps`
    gpu, peak, bandwidth : see `fastprof.model.devices.with_figures`

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
    kernels, cells = profile.find_steps(steps), parts_of(profile, where=where)
    traces = texts(cells, "trace")
    chosen = selected(cells, where)
    groups = group([traces], len(cells), chosen)
    devices = devices_with(profile, gpu, peak, bandwidth)
    ideals = cells.with_ideals(lambda whole: ideals_of(whole, devices))
    sums = path_sums(cells, groups, kernels, ideals)
    stacks = [list(traces.at(row) or ()) for row in groups.first.tolist()]
    listed, notes = chosen_frames(profile, stacks, globs)
    if not globs and function is None:
        notes += _descend(listed, cells, groups.first, sums.of["gpu_ns"])
    row_of = {text: _BY[by](text, sources) for text in {text for own in listed for text in own}}
    work = _Work([[row_of[text] for text in own] for own in listed], sums)
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
            *notes_on_sums(profile, kernels, None if chosen is None else cells.flags(chosen)),
            *cells.notes_on_parts(chosen),
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
        last = _Work([stack[-1:] for stack in self.stacks], self.sums.only("gpu_ns"))
        return last.inclusive(rows).of["gpu_ns"]

    def time_of_sections(self, rows: Sequence[LineRow]) -> dict[SourceSection, int]:
        """The GPU time of each section, with all that it calls."""
        place = {row.section: LineRow("", row.section, None, None) for row in (*rows, NO_LINE)}
        stacks = [
            [place[row.section] for row in stack if row.section in place] for stack in self.stacks
        ]
        sections = list(place.values())
        time = _Work(stacks, self.sums.only("gpu_ns")).inclusive(sections).of["gpu_ns"]
        return {row.section: number for row, number in zip(sections, time.tolist(), strict=True)}

    def depths(self) -> dict[LineRow, int]:
        """The least depth of each row in a stack."""
        result: dict[LineRow, int] = {}
        for stack in self.stacks:
            for depth, row in enumerate(stack):
                result[row] = min(depth, result.get(row, depth))
        return result

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


def _descend(listed: list[list[str]], cells: ReportCells, first: Int64, ns: Int64) -> Iterator[str]:
    """Append the lines of libraries to stacks that end with a line that takes nearly all; a note.

    Parameters
    ----------
    listed : frames of each stack; changed in place
    cells, first : the cells, and the first one of each stack
    ns : GPU time of each stack
    """
    lines, inner = (key_of(cells, name).take(first) for name in ("line", "library_line"))
    descent = below_one_line(lines, inner, ns)
    if descent is None:
        return
    longest, below = descent
    for row in np.flatnonzero(below).tolist():
        listed[row].append(str(inner.at(row)))
    share = int(ns[lines.ids == longest].sum()) / max(int(ns.sum()), 1)
    place = place_of(str(lines.values[longest]))
    yield (
        f"{place.file}:{place.line} takes {share:.0%} of the time: lines of libraries below it are "
        "listed"
    )


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
    results = [row for row in every if is_listed(row.file)]
    if every and not results:
        raise ReportError(unknown_name("file", globs[0], sorted({row.file or "" for row in every})))
    if function is None:
        return results
    names = sorted({name for row in results for name in _names(row)})
    fitting = {name for name in names if fnmatch.fnmatchcase(name, function)}
    if names and not fitting:
        raise ReportError(unknown_name("function", function, names))
    return [row for row in results if fitting.intersection(_names(row))]


def _names(row: LineRow) -> list[str]:
    """The function of a row, with and without its class."""
    return [] if row.function is None else [row.function, row.function.rpartition(".")[2]]


def _table(
    work: _Work, rows: list[LineRow], sources: SourceFiles, by: str, is_complete: bool
) -> Table:
    time = work.time_of_sections(rows)
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
            replace(heading, header="function") if heading.key == "frame" else heading
            for heading in headings
        )
    total = work.totals(rows)
    table = Table(
        {column.key: columns[column.key] for column in COLUMNS},
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
    missing = sorted(text for text in sources.missing if text in files or not rows)
    missing = [text for text in missing if text[:1] != "<"]
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


_LARGEST: Final = 8 << 20  # bytes


class SourceFunction(NamedTuple):
    """A function of a source file: qualified name, first and last line, counted from 1."""

    name: str
    first: int
    last: int


class SourceFile:
    """A source file. `lines`: its lines without line ends."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        # Python's lines end in nothing else; splitlines also splits at form feeds.
        self.lines = self._text.removesuffix("\n").split("\n")

    @computed_once
    def functions(self) -> list[SourceFunction]:
        """The functions, outer before inner ones; none if it is not valid Python."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return list(_functions(ast.parse(self._text), ""))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []

    def function_at(self, line: int) -> SourceFunction | None:
        """The innermost function that contains a line."""
        around = [
            function for function in self.functions if function.first <= line <= function.last
        ]
        return around[-1] if around else None

    def line(self, number: int | None) -> str | None:
        """The text of a line, None beyond the end."""
        if number is None or not 1 <= number <= len(self.lines):
            return None
        return self.lines[number - 1]


def _functions(node: ast.AST, around: str) -> Iterator[SourceFunction]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = around + child.name
            if not isinstance(child, ast.ClassDef):
                first = min([child.lineno, *(each.lineno for each in child.decorator_list)])
                yield SourceFunction(name, first, child.end_lineno or child.lineno)
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, around)


class SourceFiles:
    """Finds source files by the paths in a trace, and reads each once.

    Parameters
    ----------
    folder : searched first, for the longest end of the path that exists below it; then the path
        itself, relative to the working directory
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._read: dict[str, SourceFile | None] = {}

    def find(self, path: str) -> SourceFile | None:
        """A Python source file, None if it is not on this machine."""
        if path not in self._read:
            self._read[path] = next(filter(None, map(_opened, self._places(path))), None)
        return self._read[path]

    @property
    def missing(self) -> list[str]:
        """The files that were not found."""
        return [path for path, file in self._read.items() if file is None]

    def _places(self, path: str) -> Iterator[Path]:
        # A trace is untrusted: only Python files are read, below the folder without `..`.
        if not path.endswith(".py") or "\0" in path:
            return
        parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".", "..")]
        if self._folder is not None:
            for i in range(len(parts)):
                yield self._folder.joinpath(*parts[i:])
        yield Path(path)


def _opened(path: Path) -> SourceFile | None:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            return None
        return SourceFile(path.read_bytes().decode("utf-8-sig", "replace"))
    except (OSError, ValueError):
        return None
