"""Answers of tools: values for programs, and a short text of the same for readers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fastprof._system.classes import NamedTuple
from fastprof._version import __version__
from fastprof.model.heading import Heading, printable
from fastprof.model.table import SCHEMA, Table, Tables

LINES: Final = 60  # of text
ROWS: Final = 20  # of a table, unless the call asks for more
MOST_ROWS: Final = 200
WIDTH: Final = 140  # characters of a line
_LONGEST: Final = 400  # characters of a line that no table has
_MOST_CHARACTERS: Final = 1000  # of a text among the values
_MOST_ITEMS: Final = 50  # of a list among the facts


class ToolAnswer(NamedTuple):
    """What a tool returns.

    Parameters
    ----------
    values : for JSON; unknown is None
    text : at most LINES lines
    """

    values: dict[str, Any]
    text: str


class Paging(NamedTuple):
    """Which rows of a table an answer has, and in which order.

    Parameters
    ----------
    sort : key or heading of a column, largest first; None for the order of the report
    columns : keys or headings, or `all`; None for those that text shows
    offset : rows to skip
    limit : rows of the answer
    ascending : smallest first
    """

    sort: str | None = None
    columns: Sequence[str] | None = None
    offset: int = 0
    limit: int = ROWS
    ascending: bool = False

    @property
    def wants_all(self) -> bool:
        """Whether all columns are asked for."""
        return self.columns is not None and list(self.columns) == ["all"]


def table_answer(
    result: Table | Tables, page: Paging, more: Mapping[str, Any], without: Sequence[str] = ()
) -> ToolAnswer:
    """The answer with a report: rows, totals, notes, and what was left out.

    more : further values
    without : facts to leave out

    Raises
    ------
    UnknownColumnError
        `sort` or `columns` names no column.
    ReportError
        They are given for several tables.
    """
    head = {"fastprof": __version__, "schema": SCHEMA, **bounded(more)}
    if isinstance(result, Tables):
        values = _of_tables(result, page)
        text = result.head(page.limit).text(page.limit, width=WIDTH)
    else:
        ordered = result
        if page.sort is not None:
            ordered = result.sort(page.sort, page.ascending or None)
        if page.columns is not None and not page.wants_all:
            ordered = ordered.select(page.columns)
        values, text = _rows(ordered, page), _text(ordered, page)
    omitted = {*values, *without}
    facts = {key: bounded(value) for key, value in result.facts.items() if key not in omitted}
    return ToolAnswer({**head, **facts, **values}, shortened(text))


def _of_tables(tables: Tables, page: Paging) -> dict[str, Any]:
    if page.sort is not None:
        tables.sort(page.sort)
    if page.columns is not None and not page.wants_all:
        tables.select(page.columns)
    return {"tables": {name: _rows(table, page) for name, table in tables.items()}}


def _rows(table: Table, page: Paging) -> dict[str, Any]:
    """The values of some rows, with the units of the columns, and what was left out."""
    end = min(page.offset + page.limit, table.n_rows)
    rows = [table[row] for row in range(min(page.offset, end), end)]
    shown = [name for name in table.columns if page.wants_all or table.heading(name).in_text]
    others = [name for name in table.columns if name not in shown]
    unknown = [name for name in others if rows and all(row[name] is None for row in rows)]
    return {
        "n_rows": table.n_rows,
        "offset": page.offset,
        "rows": [bounded({name: row[name] for name in shown}) for row in rows],
        "more_columns": [name for name in others if name not in unknown],
        "unknown_columns": unknown,
        "total": bounded(table.total),
        "units": units([table.heading(name) for name in shown]),
        "lead": bounded([line for line in table.lead if line]),
        "notes": bounded(table.notes),
        "cut": cut(page.offset, len(rows), table.n_rows),
    }


def units(headings: Iterable[Heading]) -> dict[str, str]:
    """The unit of each column that has one."""
    return {heading.key: heading.unit for heading in headings if heading.unit}


def cut(offset: int, n_shown: int, n_rows: int) -> str | None:
    """What an answer leaves out, and how to ask for it; None for nothing."""
    if n_shown == n_rows:
        return None
    if offset + n_shown >= n_rows:
        return f"rows {offset + 1} to {n_rows} of {n_rows}; earlier ones: offset=0"
    return (
        f"rows {offset + 1} to {offset + n_shown} of {n_rows}; the next: "
        f"offset={offset + n_shown}; at most limit={MOST_ROWS} a call"
    )


def _text(table: Table, page: Paging) -> str:
    """The text of some rows in at most LINES lines, the rows cut first."""
    shown = table.take(range(page.offset, table.n_rows)) if page.offset else table
    text = shown.text(page.limit, width=WIDTH)
    excess = text.count("\n") - LINES
    if excess > 0:
        fewer = max(1, min(page.limit, shown.n_rows) - excess - 2)
        text = shown.text(fewer, width=WIDTH)
    return text


def shortened(text: str) -> str:
    """The text in printable characters, at most LINES lines; a last line says what was cut."""
    lines = [printable(line) for line in text.rstrip().splitlines()]
    lines = [line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..." for line in lines]
    if len(lines) > LINES:
        n_cut = len(lines) - LINES + 1
        lines = [*lines[: LINES - 1], f"... {n_cut} more lines: the structured content has more"]
    return "\n".join(lines)


def bounded(value: Any) -> Any:
    """A value for JSON of bounded size: long lists and texts are cut, marked by `...`."""
    if isinstance(value, str):
        kept = value[:_MOST_CHARACTERS]
        return _encodable(kept if kept == value else f"{kept}...")
    if isinstance(value, Mapping):
        return {_encodable(str(key)): bounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        kept_items = [bounded(each) for each in value[:_MOST_ITEMS]]
        n_cut = len(value) - len(kept_items)
        return [*kept_items, f"... {n_cut} more"] if n_cut else kept_items
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _encodable(text: str) -> str:
    """The text with replacements for bytes that are no UTF-8."""
    return text.encode("utf-8", "replace").decode()
