"""Table -> HTML: the first rows as HTML, all rows as data for table.js."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.model.columns import Ints, Values
from fastprof.model.table import Cells, Table
from fastprof.model.table_text import number_format
from fastprof.page.embed import packed, shown

__all__ = ["table_html"]

FIRST_ROWS: Final = 12
MOST_ROWS: Final = 10_000
_UNKNOWN: Final = "na"


def table_html(name: str, caption: str, table: Table) -> str:
    """A table. Scripts sort and search it; without them, its first rows are visible.

    name : id of the element
    """
    kept = table.head(MOST_ROWS) if table.n_rows > MOST_ROWS else table
    columns = list(_columns(table))
    notes = list(table.notes)
    if kept is not table:
        notes.insert(0, f"first {MOST_ROWS} of {table.n_rows} rows; totals are those of all rows")
    data: dict[str, Any] = {"columns": columns, "rows": kept.n_rows, "first": FIRST_ROWS}
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for i, column in enumerate(columns):
        arrays[str(i)], values = _array(kept.columns[column["key"]])
        if values is not None:
            column["values"] = values
    head = "".join(map(_header, columns))
    body = "".join(_rows(kept, columns))
    below = "".join(f'<p class="note">{shown(each)}</p>' for each in notes)
    return (
        f'<div class="table" id="{name}" data-script="table"><div class="scroll">'
        f"<table><caption>{shown(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody>{_total(table, columns)}</table></div>"
        f'<script type="application/octet-stream" id="{name}-data">{packed(data, arrays)}</script>'
        f"{below}</div>"
    )


def _columns(table: Table) -> Iterator[dict[str, Any]]:
    """Key, header, help and number format of each column that text shows."""
    for key, cells in table.columns.items():
        heading = table.heading(key)
        if not heading.in_text:
            continue
        column = {"key": key, "header": heading.header, "about": heading.about}
        if isinstance(cells, Values):
            yield {**column, "text": True}
            continue
        how = number_format(table, heading)
        size = how.scale.size if how.scale else 1
        unit = how.scale.name if how.scale else ""
        yield {**column, "unit": unit, "size": size, "decimals": how.decimals}


def _array(cells: Cells) -> tuple[npt.NDArray[np.generic], list[str] | None]:
    """The cells as an array: ids into distinct texts (-1: unknown), or numbers (NaN: unknown)."""
    if isinstance(cells, Values):
        used, ids = np.unique(cells.ids, return_inverse=True)
        texts = [str(cells.values[each]) for each in used.tolist() if each >= 0]
        return (ids - int(used[:1].sum() < 0)).astype(np.int32), texts
    if isinstance(cells, Ints):
        return np.where(cells.values == cells.none, np.nan, cells.values.astype(np.float64)), None
    return cells.values, None


def _header(column: dict[str, Any]) -> str:
    unit = f' <span class="unit">{column["unit"]}</span>' if column.get("unit") else ""
    kind = "" if "text" in column else ' class="number"'
    about, header = shown(column["about"]), shown(column["header"])
    return f'<th scope="col"{kind} title="{about}">{header}{unit}</th>'


def _rows(table: Table, columns: list[dict[str, Any]]) -> Iterator[str]:
    for row in range(min(table.n_rows, FIRST_ROWS)):
        cells = (_cell(column, table.columns[column["key"]].at(row)) for column in columns)
        yield f"<tr>{''.join(cells)}</tr>"


def _total(table: Table, columns: list[dict[str, Any]]) -> str:
    if not table.total:
        return ""
    cells = []
    for i, column in enumerate(columns):
        value = table.total.get(column["key"])
        if value is None:
            cells.append(f"<td>{'total' if i == 0 else ''}</td>")
        else:
            cells.append(_cell(column, value))
    return f"<tfoot><tr>{''.join(cells)}</tr></tfoot>"


def _cell(column: dict[str, Any], value: Any) -> str:
    if value is None:
        return f'<td class="{"unknown" if "text" in column else "number unknown"}">{_UNKNOWN}</td>'
    if "text" in column:
        return f"<td><bdi>{shown(str(value))}</bdi></td>"
    decimals = column["decimals"]
    text = str(value) if decimals is None else f"{value / column['size']:.{decimals}f}"
    return f'<td class="number" data-value="{value}">{text}</td>'
