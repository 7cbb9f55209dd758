"""Tables for people: aligned text, Markdown, HTML. Units are chosen per column."""

from __future__ import annotations

import html as escape
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from fastprof.model.columns import Values
from fastprof.model.heading import Heading, Scale
from fastprof.model.quantity import scale_of


class Column(Protocol):
    """A column of numbers or texts."""

    def at(self, row: int) -> Any: ...
    def array(self) -> Any: ...


class Table(Protocol):
    """The parts of `model.table.Table` that are shown."""

    @property
    def n_rows(self) -> int: ...
    @property
    def columns(self) -> Mapping[str, Column]: ...
    @property
    def title(self) -> str: ...
    @property
    def lead(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def total(self) -> dict[str, Any]: ...
    def heading(self, name: str) -> Heading: ...


_UNKNOWN: Final = "na"
_GAP: Final = "  "
_MIN_TEXT: Final = 12  # characters that a cut text keeps
_CUT: Final = "…"


class _Shown(NamedTuple):
    """A column as text: header, cells, and the cell of the total."""

    header: str
    cells: list[str]
    total: str
    is_text: bool
    keeps_end: bool

    @property
    def width(self) -> int:
        return max(map(len, (self.header, self.total, *self.cells)))

    def cut(self, width: int) -> _Shown:
        """The column with texts of at most `width` characters."""

        def short(text: str) -> str:
            if len(text) <= width:
                return text
            return _CUT + text[1 - width :] if self.keeps_end else text[: width - 1] + _CUT

        cells = [short(cell) for cell in self.cells]
        return self._replace(header=self.header[:width], cells=cells, total=self.total[:width])

    def lines(self) -> list[str]:
        """Header, cells and total, padded to one width."""
        pad = str.ljust if self.is_text else str.rjust
        return [pad(text, self.width) for text in (self.header, *self.cells, self.total)]


def aligned(table: Table, limit: int | None, width: int | None) -> str:
    """See `Table.text`."""
    shown = _shown(table, limit)
    omitted: list[str] = []
    if width is not None:
        shown, omitted = _fitted(shown, width)
    lines = [_plain(line) for line in (*([table.title] if table.title else []), *table.lead)]
    rows = [_GAP.join(row).rstrip() for row in zip(*(each.lines() for each in shown), strict=True)]
    lines += rows if table.total else rows[:-1]
    n = len(rows) - 2
    if n < table.n_rows:
        lines.insert(len(lines) - bool(table.total), f"... {table.n_rows - n} more rows")
    if omitted:
        lines.append(f"(too narrow for {', '.join(omitted)})")
    lines += [_plain(note) for note in table.notes]
    return "".join(f"{line}\n" for line in lines)


def markdown(table: Table, limit: int | None) -> str:
    """See `Table.markdown`."""
    shown = _shown(table, limit)

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    lines = [f"**{_plain(table.title)}**", ""] if table.title else []
    lines += [text for each in table.lead for text in (_plain(each), "")]
    lines.append(line([each.header for each in shown]))
    lines.append(line(["---" if each.is_text else "--:" for each in shown]))
    lines += [line(row) for row in zip(*(each.cells for each in shown), strict=True)]
    if table.total:
        lines.append(line([each.total for each in shown]))
    lines += [text for note in table.notes for text in ("", _plain(note))]
    return "".join(f"{each}\n" for each in lines)


def html(table: Table) -> str:
    """An HTML table for notebooks. All text is escaped."""
    shown = _shown(table, _MOST_ROWS_IN_HTML)

    def row(cells: Sequence[str], tag: str) -> str:
        inner = "".join(
            f'<{tag} style="text-align:{"left" if column.is_text else "right"}">'
            f"{escape.escape(cell)}</{tag}>"
            for column, cell in zip(shown, cells, strict=True)
        )
        return f"<tr>{inner}</tr>"

    lead = "".join(f"<div>{escape.escape(each)}</div>" for each in table.lead)
    notes = "".join(f"<div>{escape.escape(each)}</div>" for each in table.notes)
    body = [row(cells, "td") for cells in zip(*(each.cells for each in shown), strict=True)]
    if table.total:
        body.append(row([each.total for each in shown], "td"))
    rest = table.n_rows - len(shown[0].cells) if shown else 0
    more = f"<div>{rest} more rows</div>" if rest else ""
    return (
        f"{lead}<table><caption>{escape.escape(table.title)}</caption><thead>"
        f"{row([each.header for each in shown], 'th')}</thead><tbody>{''.join(body)}</tbody>"
        f"</table>{more}{notes}"
    )


_MOST_ROWS_IN_HTML: Final = 100


def _shown(table: Table, limit: int | None) -> list[_Shown]:
    n = table.n_rows if limit is None else min(limit, table.n_rows)
    found = []
    for name, column in table.columns.items():
        heading = table.heading(name)
        if heading.in_text:
            found.append(_column(heading, column, n, table.total.get(name)))
    if table.total and found and not found[0].total:
        found[0] = found[0]._replace(total="total")
    return found


def _column(heading: Heading, column: Column, n: int, total: Any) -> _Shown:
    cells: list[str]
    if isinstance(column, Values):
        is_text = not column.values or any(isinstance(each, str) for each in column.values)
        show: Callable[[Any], str] = _as_text
        unit = ""
    else:
        is_text = False
        largest, are_whole = _largest(column, total)
        scale = _scale(heading, largest)
        unit = f"({scale.name})" if scale is not None else ""
        show = _number_format(heading, scale, largest, are_whole)
    values = [column.at(row) for row in range(n)]
    cells = [_UNKNOWN if value is None else show(value) for value in values]
    last = "" if total is None else show(total)
    return _Shown(heading.header + unit, cells, last, is_text, heading.keeps_end)


def _largest(column: Column, total: Any) -> tuple[float, bool]:
    """The largest magnitude of a column and its total, and whether all are integers."""
    known = np.ma.compressed(np.ma.masked_invalid(column.array()))
    largest = max(float(np.abs(known).max(initial=0)), abs(total or 0))
    return largest, known.dtype.kind == "i" and not isinstance(total, float)


def _scale(heading: Heading, largest: float) -> Scale | None:
    return scale_of(heading.unit, largest) if heading.unit else None


def _number_format(
    heading: Heading, scale: Scale | None, largest: float, are_whole: bool
) -> Callable[[Any], str]:
    size = scale.size if scale else 1
    decimals = heading.decimals
    if decimals is None:
        if are_whole and size == 1:
            return str
        decimals = 1 if heading.unit == "share" else _decimals(largest / size)
    return lambda value: f"{value / size:.{decimals}f}"


def _decimals(largest: float) -> int:
    """Decimals that give a column about four digits."""
    if not math.isfinite(largest) or largest >= 1000:
        return 0
    if largest < 1:
        return 3 if largest else 0
    return 3 - int(math.log10(largest))


def _as_text(value: Any) -> str:
    return _plain(str(value))


def _plain(text: str) -> str:
    # Names are from files and must not contain terminal escape sequences.
    return "".join(c if c.isprintable() else " " for c in text)


def _fitted(shown: list[_Shown], width: int) -> tuple[list[_Shown], list[str]]:
    """Columns that fit the width: cut the widest texts first, then omit columns on the right."""
    shown = list(shown)
    omitted: list[str] = []
    while True:
        excess = sum(each.width + len(_GAP) for each in shown) - len(_GAP) - width
        texts = [i for i, each in enumerate(shown) if each.is_text and each.width > _MIN_TEXT]
        if excess <= 0:
            return shown, omitted[::-1]
        if texts:
            widest = max(texts, key=lambda i: shown[i].width)
            others = sorted((shown[i].width for i in texts if i != widest), reverse=True)
            target = max(_MIN_TEXT, others[0] - 1 if others else 0, shown[widest].width - excess)
            shown[widest] = shown[widest].cut(target)
        elif len(shown) > 1:
            omitted.append(shown.pop().header)
        else:
            return shown, omitted[::-1]
