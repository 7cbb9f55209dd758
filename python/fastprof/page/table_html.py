"""Table -> HTML: the first rows as HTML, all rows as data for table.js."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof.model.table import Table
from fastprof.page.embed import packed, shown
from fastprof.page.table_data import MOST_ROWS, PageColumn, columns_of, depths_of, rest_of

_FIRST_ROWS: Final = 12
_UNKNOWN: Final = "na"
_CODE: Final = "code"


def table_html(name: str, caption: str, table: Table) -> str:
    """A table with its lead and notes. Scripts sort, search and fold it; without them, its first
    rows are visible.

    name : id of the element
    """
    kept = table.head(MOST_ROWS) if table.n_rows > MOST_ROWS else table
    columns = columns_of(table if kept is table else kept)
    tree = depths_of(columns)
    notes = [*([] if kept is table else [rest_of(table, kept)]), *table.notes]
    above = "".join(f'<p class="note">{shown(each)}</p>' for each in _prose(table.lead))
    head = "".join(map(_header, columns))
    body = "".join(_rows(columns, min(kept.n_rows, _FIRST_ROWS), tree))
    below = "".join(f'<p class="note">{shown(each)}</p>' for each in notes)
    return (
        f'<div class="table" id="{name}" data-script="table"><h3>{shown(caption)}</h3>{above}'
        f'<div class="scroll" role="region" tabindex="0" aria-label="{shown(caption)}"><table>'
        f'<caption class="visually-hidden">{shown(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{_total(table, columns)}</table></div>"
        f'<script type="application/octet-stream" id="{name}-data">'
        f"{_payload(kept, columns, tree)}</script>{below}</div>"
    )


def _prose(lead: tuple[str, ...]) -> Iterator[str]:
    """The lines of a lead up to its first empty line, without those in columns."""
    return (line for line in takewhile(bool, lead) if "  " not in line)


def _payload(
    table: Table, columns: list[PageColumn], tree: tuple[int, npt.NDArray[np.int32]] | None
) -> str:
    data: dict[str, Any] = {"rows": table.n_rows, "first": _FIRST_ROWS, "columns": []}
    arrays: dict[str, npt.NDArray[np.generic]] = {}
    for i, column in enumerate(columns):
        of_column = column.data()
        for kind, array, texts in column.arrays():
            arrays[f"{kind}{i}"] = array
            if texts is not None:
                of_column["values"] = texts
        data["columns"].append(of_column)
    if tree is not None:
        i, arrays["depth"] = tree
        data["tree"] = i
        labels = columns[i].labels
        if labels is not None:
            names = [str(each).strip() for each in labels.values]
            arrays["name"], data["names"] = labels.ids.astype(np.int32), names
    return packed(data, arrays)


def _header(column: PageColumn) -> str:
    unit = f' <span class="unit">{column.unit}</span>' if column.unit else ""
    kind = "" if column.format is None else ' class="number"'
    return f'<th scope="col"{kind} title="{shown(column.about)}">{shown(column.header)}{unit}</th>'


def _rows(
    columns: list[PageColumn], n: int, tree: tuple[int, npt.NDArray[np.int32]] | None
) -> Iterator[str]:
    for row in range(n):
        depth = 0 if tree is None else int(tree[1][row])
        cells = (
            _cell(column, column.text(row), column.cells.at(row), depth if i == 0 else 0)
            for i, column in enumerate(columns)
        )
        yield f"<tr>{''.join(cells)}</tr>"


def _total(table: Table, columns: list[PageColumn]) -> str:
    if not table.total:
        return ""
    cells = []
    for i, column in enumerate(columns):
        value = table.total.get(column.key)
        if value is None or column.format is None:
            cells.append(f"<td>{'total' if i == 0 else ''}</td>")
        else:
            cells.append(_cell(column, column.format.text(value), value))
    return f"<tfoot><tr>{''.join(cells)}</tr></tfoot>"


def _cell(column: PageColumn, text: str | None, value: Any, depth: int = 0) -> str:
    kind = [] if column.format is None else ["number"]
    if text is None:
        return f'<td class="{" ".join([*kind, "unknown"])}">{_UNKNOWN}</td>'
    if kind:
        return f'<td class="number" data-value="{value}">{shown(text)}</td>'
    tag = _CODE if column.key == _CODE else "bdi"
    return f"<td>{'&emsp;' * depth}<{tag}>{shown(text)}</{tag}></td>"
