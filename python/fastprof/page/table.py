"""Table -> HTML: the first rows as HTML, all rows as compressed columns for table.js."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fastprof._system.classes import dataclass
from fastprof.model.columns import Ints, Values
from fastprof.model.heading import printable
from fastprof.model.numbers import quantity
from fastprof.model.table import ColumnData, Floats, Table
from fastprof.model.table_text import NumberFormat, number_format

_TYPES: Final = frozenset(f"{sign}{bits}" for sign in ("int", "uint") for bits in (8, 16, 32)) | {
    "float32",
    "float64",
}
_ALIGNED: Final = 8


def shown(text: str) -> str:
    """A text from a file as HTML: escaped, control characters and lone surrogates replaced."""
    return html.escape(printable(text))


def packed(data: Any, arrays: Mapping[str, npt.NDArray[np.generic]]) -> str:
    """Data and arrays as base64 of a zlib stream; `decode` in page.js reads it.

    The stream contains the length of a JSON header (uint32), the header, and the arrays, each at a
    multiple of 8 bytes, all little-endian. The header gives data, and type, offset and length of
    each array; offsets count from the end of the header.

    Raises
    ------
    TypeError
        An array has a type that JavaScript lacks.
    """
    places, end = {}, 0
    for name, array in arrays.items():
        if array.dtype.name not in _TYPES or array.ndim != 1:
            raise TypeError(
                f"array {name!r}: expected one dimension of {', '.join(sorted(_TYPES))}; "
                f"found {array.ndim} of {array.dtype}"
            )
        places[name] = [array.dtype.name, end, len(array)]
        end += array.nbytes + -array.nbytes % _ALIGNED
    header = _json({"data": data, "arrays": places}).encode("ascii")
    header += b" " * (-(4 + len(header)) % _ALIGNED)
    stream = zlib.compressobj(6)
    parts = [stream.compress(len(header).to_bytes(4, "little")), stream.compress(header)]
    for array in arrays.values():
        raw = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        parts += stream.compress(raw), stream.compress(bytes(-len(raw) % _ALIGNED))
    return base64.b64encode(b"".join([*parts, stream.flush()])).decode("ascii")


def _json(value: Any) -> str:
    """JSON in ASCII. NaN and infinities become null, invisible characters spaces."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False, default=_plain)
    except ValueError:
        text = json.dumps(_finite(value), separators=(",", ":"), allow_nan=False, default=_plain)
    return _INVISIBLE.sub(r"\1 ", text)


# Escapes of control characters, of marks and overrides of the text direction, and of line and
# paragraph separators. Pairs of backslashes before them are escaped backslashes.
_INVISIBLE: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u(?:00[01][0-9a-f]|007f|00[89][0-9a-f]|061c|20(?:0[b-f]|2[89a-e]|6[0-9a-f])|feff)"
)


def _plain(value: Any) -> Any:
    """The Python value of a NumPy number or array."""
    if isinstance(value, np.generic | np.ndarray):
        return _finite(value.tolist())
    raise TypeError(f"expected a value that JSON can represent, found {type(value).__name__}")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


_FIRST_ROWS: Final = 12
_UNKNOWN: Final = "na"
_CODE: Final = "code"
# Columns of sentences, which are wrapped, and of paths, whose ends tell more than their beginnings.
_PROSE: Final = frozenset({"what", "where", "remedy", "evidence"})
_PATHS: Final = frozenset({"path", "layer", "line", "library_line", "file"})


def table_html(name: str, caption: str, table: Table) -> str:
    """A table with its lead and notes. Scripts sort, search and fold it; without them, its first
    rows are visible.

    name : id of the element
    """
    kept, rest = first_rows(table)
    columns = columns_of(kept)
    tree = depths_of(columns)
    notes = (*rest, *table.notes)
    above = "".join(f'<p class="note">{shown(text)}</p>' for text in _prose(table.lead))
    head = "".join(map(_header, columns))
    body = "".join(_rows(columns, min(kept.n_rows, _FIRST_ROWS), tree))
    below = "".join(f'<p class="note">{shown(note)}</p>' for note in notes)
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
            names = [str(value).strip() for value in labels.values]
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
    style = f' class="{column.style}"' if column.style else ""
    return f"<td{style}>{'&emsp;' * depth}<{tag}>{shown(text)}</{tag}></td>"


MOST_ROWS: Final = 10_000
LONGEST: Final = 1000  # characters of a cell


@dataclass(frozen=True)
class PageColumn:
    """A column of a table on a page.

    Parameters
    ----------
    key, header, about : see `Heading`
    cells : the values
    format : unit and decimals of numbers; None for texts
    labels : texts that are shown in place of the values; None for none
    """

    key: str
    header: str
    about: str
    cells: ColumnData
    format: NumberFormat | None
    labels: Values | None = None

    @property
    def unit(self) -> str:
        """The unit of its numbers, "" for none."""
        scale = None if self.format is None else self.format.scale
        return "" if scale is None else scale.name

    @property
    def style(self) -> str:
        """The class of its cells in page.css; "" for none."""
        return "prose" if self.key in _PROSE else "path" if self.key in _PATHS else ""

    def text(self, row: int) -> str | None:
        """The text of a cell, None where unknown."""
        value = self.cells.at(row)
        if self.labels is not None and self.format is not None:
            value = self.labels.at(row)
            return None if value is None else str(value)
        if value is None:
            return None
        return cut(str(value)) if self.format is None else self.format.text(value)

    def data(self) -> dict[str, Any]:
        """What table.js needs besides the arrays."""
        result: dict[str, Any] = {"key": self.key}
        if self.format is None:
            return {**result, "text": True, "style": self.style}
        scale = self.format.scale
        return {
            **result,
            "size": 1 if scale is None else scale.size,
            "decimals": self.format.decimals,
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[np.generic], list[str] | None]]:
        """Name, array and texts: `ids` into texts (-1 unknown), or `numbers` (NaN unknown)."""
        if self.labels is not None and self.format is not None:
            yield "ids", *_ids(self.labels)
        if isinstance(self.cells, Values):
            yield "ids", *_ids(self.cells)
        elif isinstance(self.cells, Ints):
            values = self.cells.values
            numbers = np.where(values == self.cells.none, np.nan, values.astype(np.float64))
            yield "numbers", numbers, None
        else:
            yield "numbers", self.cells.values.astype(np.float64), None


def _ids(cells: Values) -> tuple[npt.NDArray[np.int32], list[str]]:
    used, ids = np.unique(cells.ids, return_inverse=True)
    texts = [cut(str(cells.values[number])) for number in used.tolist() if number >= 0]
    return (ids - int(np.count_nonzero(used < 0))).astype(np.int32), texts


def cut(text: str) -> str:
    """The text with at most `LONGEST` characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def columns_of(table: Table) -> list[PageColumn]:
    """The columns that text shows. Numbers have the unit and decimals of text."""
    layout, columns = table.layout, []
    labels = {} if layout is None or layout.sections is not None else layout.labels
    for key, cells in table.columns.items():
        heading = table.heading(key)
        if not heading.in_text:
            continue
        how = None
        if isinstance(cells, Values) and _has_numbers(cells):
            cells, how = _numbers(cells), NumberFormat(None, None)
        elif not isinstance(cells, Values):
            how = number_format(table, heading)
        columns.append(PageColumn(key, heading.header, heading.about, cells, how, labels.get(key)))
    return columns


def _has_numbers(cells: Values) -> bool:
    return bool(cells.values) and not any(isinstance(value, str) for value in cells.values)


def _numbers(cells: Values) -> ColumnData:
    if all(isinstance(value, int) for value in cells.values):
        return Ints(np.array([*cells.values, -1], np.int64)[cells.ids])
    return Floats(np.array([*cells.values, np.nan], np.float64)[cells.ids])


def depths_of(columns: list[PageColumn]) -> tuple[int, npt.NDArray[np.int32]] | None:
    """The column that text indents, and the depth of each row from 0; None without a tree."""
    for i, column in enumerate(columns):
        if column.labels is None or column.format is not None:
            continue
        texts = [str(value) for value in column.labels.values]
        depth = np.array([*((len(text) - len(text.lstrip(" "))) // 2 for text in texts), 0])
        return i, depth[column.labels.ids].astype(np.int32)
    return None


def first_rows(table: Table) -> tuple[Table, tuple[str, ...]]:
    """The rows of a table that a page has, and a note on the rest; no note for all rows."""
    if table.n_rows <= MOST_ROWS:
        return table, ()
    kept = table.head(MOST_ROWS)
    return kept, (rest_of(table, kept),)


def rest_of(table: Table, kept: Table) -> str:
    """The rows that the page leaves out: their number, and their time."""
    n = table.n_rows - kept.n_rows
    text = f"The page has {kept.n_rows:,} of {table.n_rows:,} rows"
    for key, total in table.total.items():
        cells = kept.columns.get(key)
        if table.heading(key).unit == "ns" and total is not None and isinstance(cells, Ints):
            rest = total - int(cells.values[cells.values != cells.none].sum())
            return f"{text}; {table.heading(key).header} of the other {n:,}: {quantity(rest, 'ns')}"
    return f"{text}. {n:,} rows are omitted"
