"""Tables for people: aligned text, Markdown, HTML, with units per column; also trees."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import zip_longest
from typing import Any, Final, Protocol, cast

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import NamedTuple, dataclass
from fastprof._system.regex import regex
from fastprof.model.columns import Rows, Values
from fastprof.model.heading import UNITS, Heading, Scale, printable
from fastprof.model.numbers import scale_of
from fastprof.model.terminal import (
    MIDDLE,
    PLAIN,
    Colours,
    Style,
    bar,
    cut,
    cut_all,
    padded,
    width_of,
)


class TextColumn(Protocol):
    """A column of numbers or texts."""

    def at(self, row: int) -> Any: ...
    def take(self, rows: Rows) -> TextColumn: ...
    def array(self) -> Any: ...


class NumberColumn(TextColumn, Protocol):
    """A column of numbers."""

    def known(self) -> npt.NDArray[Any]: ...


class ShownTable(Protocol):
    """The parts of `model.table.Table` that are shown."""

    @property
    def n_rows(self) -> int: ...
    @property
    def columns(self) -> Mapping[str, TextColumn]: ...
    @property
    def title(self) -> str: ...
    @property
    def lead(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def total(self) -> dict[str, Any]: ...
    @property
    def layout(self) -> Layout | None: ...
    def heading(self, name: str) -> Heading: ...


_UNKNOWN: Final = "na"
_GAP: Final = "  "
_MIN_TEXT: Final = 12  # characters that a cut text keeps
_INDENT: Final = "\u2003"  # in Markdown and HTML, which drop spaces at the start of a cell


class _Shown(NamedTuple):
    """A column as text: header, cells, and the cell of the total."""

    header: str
    cells: list[str]
    total: str
    is_text: bool
    share_of_start: float
    rank: int
    min_width: int

    @property
    def width(self) -> int:
        return max(map(width_of, (self.header, self.total, *self.cells)))

    def cut(self, width: int) -> _Shown:
        """The column with texts of at most `width` characters."""
        cells = cut_all(self.cells, width, self.share_of_start)
        return self._replace(header=self.header[:width], cells=cells, total=self.total[:width])

    def lines(self, styles: Sequence[Style] = ()) -> list[str]:
        """Header, cells and total, padded to one width.

        styles : of header, cells and total; none by default
        """
        width = self.width
        texts = [
            padded(text, width, self.is_text) for text in (self.header, *self.cells, self.total)
        ]
        return [style(text) for style, text in zip(styles, texts, strict=True)] if styles else texts


def aligned(
    table: ShownTable, limit: int | None, width: int | None, colours: Colours = PLAIN
) -> str:
    """See `Table.text`."""
    shown = _shown(table, limit)
    omitted: list[str] = []
    if width is not None:
        shown, omitted = _fitted(shown, width)
    columns = (
        _styled(table, shown, width, colours)
        if colours.are_on
        else [column.lines() for column in shown]
    )
    head, *rows, total = (_GAP.join(row).rstrip() for row in zip(*columns, strict=True))
    title = [colours.strong(line) for line in _prose([table.title] if table.title else [], width)]
    lines = [*title, *_prose(table.lead, width), head, *_with_sections(rows, table.layout, width)]
    if len(rows) < table.n_rows:
        lines.append(colours.weak(f"... {table.n_rows - len(rows)} more rows"))
    if table.total:
        lines.append(total)
    left_out = [f"(too narrow for {', '.join(omitted)})"] if omitted else []
    lines += map(colours.weak, _prose((*left_out, *table.notes), width))
    return "".join(f"{line}\n" for line in lines)


_LITTLE: Final = 0.01  # a share of the time below which numbers have no weight
_MUCH: Final = 0.1
_BAR: Final = 10  # characters


def _styled(
    table: ShownTable, shown: list[_Shown], width: int | None, colours: Colours
) -> list[list[str]]:
    """The lines of each column, and of a bar beside the shares of the time if it fits."""
    n = len(shown[0].cells)
    title, shares = _main_shares(table, n)
    rows: list[Style] = [str] * n
    for i, share in enumerate(shares):
        if share is not None and not _LITTLE <= share < _MUCH:
            rows[i] = colours.weak if share < _LITTLE else colours.strong
    styles = [colours.strong, *rows, colours.strong]
    columns = [column.lines(styles) for column in shown]
    place = next((i for i, column in enumerate(shown, 1) if column.header == title), 0)
    used = sum(column.width + len(_GAP) for column in shown)
    room = _BAR if width is None else width - used
    largest = max((share or 0.0 for share in shares), default=0.0)
    if place and room >= _BAR and largest > 0:
        bars = [colours.bar(bar((share or 0.0) / largest, _BAR)) for share in shares]
        columns.insert(place, [" " * _BAR, *bars, " " * _BAR])
    return columns


def _main_shares(table: ShownTable, n: int) -> tuple[str, list[float | None]]:
    """The header and the first cells of the column with shares of the time; empty if none is."""
    for name, column in table.columns.items():
        heading = table.heading(name)
        if heading.in_text and heading.unit == "share" and heading.header in ("time", "step"):
            return f"{heading.header}(%)", [column.at(row) for row in range(n)]
    return "", []


def side_by_side(blocks: Sequence[Sequence[str]], between: int) -> list[str]:
    """Blocks of lines next to each other; empty ones are omitted."""
    shown = [block for block in blocks if block]
    widths = [max(map(width_of, block)) for block in shown]
    gap = " " * between
    return [
        gap.join(
            padded(cell, width, True) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in zip_longest(*shown, fillvalue="")
    ]


def _prose(texts: Sequence[str], width: int | None) -> list[str]:
    """Lines of at most `width` characters; lines in columns stay as they are."""
    lines: list[str] = []
    for text in map(printable, texts):
        if width is None or len(text) <= width or "  " in text:
            lines.append(text)
        else:
            lines += textwrap.wrap(text, max(width, _MIN_TEXT), subsequent_indent="  ")
    return lines


def _with_sections(rows: list[str], layout: Layout | None, width: int | None) -> Iterator[str]:
    """The rows, and the title of each section above its first row."""
    sections = None if layout is None else layout.sections
    before = -1
    for i, row in enumerate(rows):
        section = -1 if sections is None else int(sections.ids[i])
        if section != before and i:
            yield ""
        if section not in (before, -1) and sections is not None:
            title = _as_text(sections.values[section])
            yield title if width is None else cut(title, width)
        before = section
        yield row


def markdown(table: ShownTable, limit: int | None) -> str:
    """See `Table.markdown`."""
    shown = _shown(table, limit, _INDENT)

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(map(markdown_text, cells)) + " |"

    lines = [f"**{markdown_text(table.title)}**", ""] if table.title else []
    lines += [text for name in table.lead for text in (markdown_text(name), "")]
    lines.append(line([each.header for each in shown]))
    lines.append(line(["---" if each.is_text else "--:" for each in shown]))
    lines += [line(row) for row in zip(*(each.cells for each in shown), strict=True)]
    if table.total:
        lines.append(line([each.total for each in shown]))
    lines += [text for note in table.notes for text in ("", markdown_text(note))]
    return "".join(f"{line}\n" for line in lines)


# Table cells, HTML, links and images, code, entities.
_MARKDOWN: Final = regex(r"[\\|<\[`]|&(?=#?\w+;)")


def markdown_text(text: str) -> str:
    """The text on one line of Markdown, which shows it as it is, indented."""
    name = text.lstrip(_INDENT)
    return text[: len(text) - len(name)] + _MARKDOWN.sub(r"\\\g<0>", printable(name))


def html(table: ShownTable) -> str:
    """An HTML table for notebooks. All text is escaped."""
    from html import escape

    shown = _shown(table, _MOST_ROWS_IN_HTML, _INDENT)

    def row(cells: Sequence[str], tag: str) -> str:
        inner = "".join(
            f'<{tag} style="text-align:{"left" if column.is_text else "right"}">'
            f"{escape(cell)}</{tag}>"
            for column, cell in zip(shown, cells, strict=True)
        )
        return f"<tr>{inner}</tr>"

    def line(text: str) -> str:
        """A line in columns keeps their places."""
        tag = "pre" if "  " in text.strip() else "div"
        return f"<{tag}>{escape(printable(text))}</{tag}>"

    lead = "".join(map(line, table.lead)).replace("</pre><pre>", "\n")
    notes = "".join(f"<div>{escape(printable(note))}</div>" for note in table.notes)
    body = [row(cells, "td") for cells in zip(*(each.cells for each in shown), strict=True)]
    if table.total:
        body.append(row([each.total for each in shown], "td"))
    rest = table.n_rows - len(shown[0].cells) if shown else 0
    more = f"<div>{rest} more rows</div>" if rest else ""
    return (
        f"{lead}<table><caption>{escape(table.title)}</caption><thead>"
        f"{row([each.header for each in shown], 'th')}</thead><tbody>{''.join(body)}</tbody>"
        f"</table>{more}{notes}"
    )


_MOST_ROWS_IN_HTML: Final = 100


def _shown(table: ShownTable, limit: int | None, indent: str = "") -> list[_Shown]:
    """The columns of text. `indent`: replaces spaces at the start of labels, without sections."""
    n = table.n_rows if limit is None else min(limit, table.n_rows)
    labels = {} if table.layout is None else table.layout.labels
    if indent and table.layout is not None and table.layout.sections is not None:
        labels = {}
    result = []
    for name in table.columns:
        heading = table.heading(name)
        if not heading.in_text:
            continue
        if name in labels:
            cells = [_as_text(labels[name].at(row) or "") for row in range(n)]
            cells = [_indented(cell, indent) if indent else cell for cell in cells]
            result.append(_Shown(heading.header, cells, "", True, MIDDLE, *_fit(heading)))
        else:
            result.append(_column(table, heading, n))
    if table.total and result and not result[0].total:
        result[0] = result[0]._replace(total="total")
    return result


def _indented(text: str, indent: str) -> str:
    rest = text.lstrip(" ")
    return indent * (len(text) - len(rest)) + rest


def _fit(heading: Heading) -> tuple[int, int]:
    return heading.rank, heading.min_width


def _column(table: ShownTable, heading: Heading, n: int) -> _Shown:
    column, total = table.columns[heading.key], table.total.get(heading.key)
    cells: list[str]
    show: Callable[[Any], str] = _as_text
    if isinstance(column, Values):
        is_text = not column.values or any(isinstance(value, str) for value in column.values)
        unit = ""
    else:
        is_text = False
        numbers = number_format(table, heading)
        show, unit = numbers.text, numbers.unit
    first = column.take(np.arange(n))
    values = [first.at(row) for row in range(n)]
    cells = [_UNKNOWN if value is None else show(value) for value in values]
    if not is_text and table.layout is not None and table.layout.blank is not None:
        blank = table.layout.blank.tolist()
        cells = ["" if blank[row] else cell for row, cell in enumerate(cells)]
    last = "" if total is None else show(total)
    share = 0.0 if heading.keeps_end else 1.0 if heading.keeps_start else MIDDLE
    return _Shown(heading.header + unit, cells, last, is_text, share, *_fit(heading))


def _largest(column: NumberColumn, total: Any) -> tuple[float, bool]:
    """The largest magnitude of a column and its total, and whether all are integers."""
    known = column.known()
    largest = max(float(np.abs(known).max(initial=0)), abs(total or 0))
    return largest, known.dtype.kind == "i" and not isinstance(total, float)


def _scale(heading: Heading, largest: float) -> Scale | None:
    if not heading.unit:
        return None
    limits = [unit for unit in UNITS[heading.unit] if unit.name == heading.largest_unit]
    return scale_of(heading.unit, min([largest, *(limit.size for limit in limits)]))


class NumberFormat(NamedTuple):
    """How text shows the numbers of a column.

    Parameters
    ----------
    scale : the unit of text; None for numbers without a unit
    decimals : decimals in that unit; None shows integers in full
    """

    scale: Scale | None
    decimals: int | None

    @property
    def unit(self) -> str:
        """The unit in parentheses, as headers show it; "" without a unit."""
        return "" if self.scale is None else f"({self.scale.name})"

    def text(self, value: Any) -> str:
        """A number in this unit, without its name."""
        if self.decimals is None:
            return str(value)
        return f"{value / (self.scale.size if self.scale else 1):.{self.decimals}f}"


def number_format(table: ShownTable, heading: Heading) -> NumberFormat:
    """The unit and decimals of a column of numbers: those of its largest number."""
    of = heading.same_unit if heading.same_unit in table.columns else heading.key
    largest, are_whole = 0.0, False
    if heading.unit or heading.decimals is None:
        column = cast(NumberColumn, table.columns[of])
        largest, are_whole = _largest(column, table.total.get(of))
    scale = _scale(heading, largest)
    size = scale.size if scale else 1
    decimals = heading.decimals
    if decimals is None and not (are_whole and size == 1):
        decimals = 1 if heading.unit == "share" else _decimals(largest / size, heading.digits)
    return NumberFormat(scale, decimals)


def _decimals(largest: float, digits: int) -> int:
    """Decimals that give the largest number of a column about this many digits."""
    if not math.isfinite(largest) or largest >= 10 ** (digits - 1):
        return 0
    if largest < 1:
        return digits - 1 if largest else 0
    return digits - 1 - int(math.log10(largest))


def _as_text(value: Any) -> str:
    return printable(str(value))


def _fitted(shown: list[_Shown], width: int) -> tuple[list[_Shown], list[str]]:
    """The columns that fit the width, with texts cut, and the headers of the omitted ones."""
    kept = list(range(len(shown)))
    while True:
        columns = [shown[i] for i in kept]
        is_ranked = any(column.rank for column in columns)
        fitted, fits = _narrowed(columns, width, is_ranked)
        if fits or len(kept) == 1:
            return fitted, [each.header for i, each in enumerate(shown) if i not in kept]
        kept.remove(max(kept, key=lambda i: (shown[i].rank, i)))


def _narrowed(
    columns: list[_Shown], width: int, keeps_min_width: bool
) -> tuple[list[_Shown], bool]:
    """Cut the widest texts first, and whether the columns then fit."""
    shown = list(columns)
    while True:
        excess = sum(each.width + len(_GAP) for each in shown) - len(_GAP) - width
        least = [each.min_width if keeps_min_width else _MIN_TEXT for each in shown]
        texts = [i for i, each in enumerate(shown) if each.is_text and each.width > least[i]]
        if excess <= 0 or not texts:
            return shown, excess <= 0
        widest = max(texts, key=lambda i: shown[i].width)
        others = sorted((shown[i].width for i in texts if i != widest), reverse=True)
        target = max(least[widest], others[0] - 1 if others else 0, shown[widest].width - excess)
        shown[widest] = shown[widest].cut(target)


@dataclass(frozen=True)
class Layout:
    """The layout of text while the rows are in their original order; sorting drops it.

    Parameters
    ----------
    labels : dict of str to Values
        By column: texts [rows] in place of its cells, such as names indented by depth.
    sections : Values or None
        The section of each row, texts [rows]. Text prints the title above the section's first row.
        Markdown and HTML have no sections, and print the cells instead of the labels.
    blank : bool array [rows] or None
        Rows whose numbers text leaves empty.
    """

    labels: Mapping[str, Values] = field(default_factory=dict)
    sections: Values | None = None
    blank: npt.NDArray[np.bool_] | None = None

    def take(self, rows: npt.NDArray[np.intp]) -> Layout:
        """The layout of some rows, in this order."""
        labels = {name: label.take(rows) for name, label in self.labels.items()}
        sections = None if self.sections is None else self.sections.take(rows)
        return Layout(labels, sections, None if self.blank is None else self.blank[rows])
