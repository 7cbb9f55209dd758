"""The rows of `lines`: source lines and functions of call stacks, and their sections."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fastprof._system.classes import NamedTuple
from fastprof.analysis.lines.source_text import SourceFile, SourceFiles
from fastprof.model.markers.frames import place_of


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
    for row, each in depth.items():
        outer[row.section] = min(each, outer.get(row.section, each))

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
    own = [each for each in source.functions if each.first == section.first]
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
