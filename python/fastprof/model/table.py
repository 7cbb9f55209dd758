"""Table, Tables: the result of a report, as rows, text, CSV, JSON, Arrow and pandas."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NoReturn, TextIO, overload

import numpy as np
import numpy.typing as npt

from fastprof._core._take import ascending as in_order
from fastprof._system.classes import dataclass
from fastprof._system.optional import import_optional
from fastprof._system.output_file import output_file
from fastprof._version import __version__
from fastprof.errors import ReportError
from fastprof.model import table_text
from fastprof.model.columns import Ints, Rows, Values
from fastprof.model.heading import Heading, column_key
from fastprof.model.table_text import Layout
from fastprof.model.terminal import PLAIN, Colours

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


# The version of the JSON of reports.
SCHEMA: Final = 1


class Floats:
    """float64 [n]; NaN is unknown."""

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        self._values = values

    @property
    def values(self) -> npt.NDArray[np.float64]:
        """The numbers."""
        return self._values

    def __len__(self) -> int:
        return len(self.values)

    def array(self) -> npt.NDArray[np.float64]:
        """The numbers."""
        return self.values

    def known(self) -> npt.NDArray[np.float64]:
        """The known numbers."""
        return self.values[np.isfinite(self.values)]

    def take(self, rows: Rows) -> Floats:
        """Some rows, in this order."""
        return Floats(self.values[rows])

    def at(self, row: int) -> float | None:
        """The value of one row, or None."""
        value = float(self.values[row])
        return None if np.isnan(value) else value


ColumnData = Ints | Values | Floats


def text_column(values: Sequence[str | None]) -> Values:
    """A column of texts."""
    ids: dict[str, int] = {}
    numbers = [-1 if value is None else ids.setdefault(value, len(ids)) for value in values]
    return Values(np.array(numbers, np.int32), list(ids))


@dataclass(frozen=True)
class Table:
    """Columns of one length by name. Numbers are in raw units (ns, bytes, FLOP); unknown is None.

    `table["gpu_ns"]` is a NumPy array: a masked one of integers, a plain one of floats (NaN where
    unknown) or an object array of texts (None where unknown). `table[0]` is a row as a dict;
    `table[:5]`, `table[table["gpu_ns"] > 1e6]` and `table[["op", "gpu_ns"]]` are tables.
    Iteration gives the rows, `len` their number. Only text, Markdown and HTML choose another unit,
    which stands in the header.

    Parameters
    ----------
    columns : dict of str to Ints, Values or Floats
    headings : headings of the columns; a column without one is headed by its name
    title : one line, printed above the table
    lead : lines of text between the title and the table
    notes : lines of text below the table: what is missing, estimated or left out
    total : totals over all rows by name of column, None where unknown; the last row of text
    facts : further values of the JSON object, by name
    layout : how text shows the rows in their original order; None after `sort`
    """

    columns: dict[str, ColumnData]
    headings: tuple[Heading, ...] = ()
    title: str = ""
    lead: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    total: dict[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    layout: Layout | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows, as `len`."""
        return len(next(iter(self.columns.values())))

    def __len__(self) -> int:
        return self.n_rows

    def keys(self) -> KeysView[str]:
        """The names of the columns; with it, `dict(table)` is the arrays by name."""
        return self.columns.keys()

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.rows()

    @overload
    def __getitem__(self, key: str) -> npt.NDArray[Any]: ...
    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...
    @overload
    def __getitem__(
        self, key: slice | list[str] | list[int] | list[bool] | npt.NDArray[Any]
    ) -> Table: ...
    def __getitem__(self, key: Any) -> npt.NDArray[Any] | dict[str, Any] | Table:
        """A column, a row, some rows or some columns.

        key : a name; a number, from the end if negative; a slice, row numbers or a mask [n_rows],
            where unknown is False; a list of names

        Raises
        ------
        UnknownColumnError
            There is no such column; the message names the nearest.
        IndexError
            There is no such row, or the mask has another length.
        """
        if isinstance(key, str):
            return self.columns[self.key_of(key)].array()
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return self.select(key)
        if isinstance(key, int | np.integer):
            row = range(self.n_rows)[key]
            return {name: column.at(row) for name, column in self.columns.items()}
        rows = key if isinstance(key, slice) else np.ma.filled(np.ma.asarray(key), False)
        return replace(self, total={}).take(np.arange(self.n_rows)[rows])

    def key_of(self, name: str) -> str:
        """The key of a column that is named by its key or by its heading in text.

        Raises
        ------
        UnknownColumnError
            There is no such column, or several have the heading; the message names the choices.
        """
        present = [heading for heading in self.headings if heading.key in self.columns]
        return column_key(name, present, list(self.columns))

    def __repr__(self) -> str:
        """The first rows as text, in at most 20 lines as wide as the terminal."""
        lines = first_lines(replace(self, lead=(), notes=()), _LINES_OF_REPR - 1)
        return "\n".join([*lines, f"[{self.n_rows} rows x {len(self.columns)} columns]"])

    def _repr_html_(self) -> str:
        return table_text.html(self)

    def heading(self, name: str) -> Heading:
        """The heading of a column."""
        results = [heading for heading in self.headings if heading.key == name]
        return results[0] if results else Heading(name, name)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict per row."""
        names = list(self.columns)
        for chunk in self.chunks():
            for row in zip(*chunk, strict=True):
                yield dict(zip(names, row, strict=True))

    def chunks(self) -> Iterator[tuple[list[Any], ...]]:
        """The Python values of each column, for some rows at a time; None where unknown."""
        return zip(*map(_chunks, self.columns.values()), strict=True)

    def take(self, rows: npt.NDArray[np.integer[Any]] | Sequence[int]) -> Table:
        """Some rows, in this order; totals stay those of all rows."""
        picked = np.asarray(rows, np.intp)
        columns = {name: column.take(picked) for name, column in self.columns.items()}
        layout = None if self.layout is None else self.layout.take(picked)
        return replace(self, columns=columns, layout=layout)

    def head(self, n: int) -> Table:
        """The first n rows."""
        return self.take(np.arange(min(n, self.n_rows)))

    def select(self, names: Sequence[str]) -> Table:
        """Some columns, in this order; text shows all of them.

        names : keys, or headings in text

        Raises
        ------
        UnknownColumnError
            There is no such column; the message names the nearest.
        """
        keys = [self.key_of(name) for name in names]
        return replace(
            self,
            columns={key: self.columns[key] for key in keys},
            headings=tuple(replace(self.heading(key), in_text=True) for key in keys),
            total={key: self.total[key] for key in keys if key in self.total},
        )

    def sort(self, by: str, ascending: bool | None = None) -> Table:
        """Rows in order of a column: numbers descending, texts ascending, unknowns last.

        Raises
        ------
        UnknownColumnError
            There is no such column; the message names the nearest.
        """
        return replace(self, layout=None).take(self.order(by, ascending))

    def order(self, by: str, ascending: bool | None = None) -> npt.NDArray[np.intp]:
        """The indices of the rows in the order of `sort`."""
        column = self.columns[self.key_of(by)]
        if ascending is None:
            ascending = isinstance(column, Values)
        return _order(column, ascending)

    def text(
        self, limit: int | None = None, *, width: int | None = None, colours: Colours = PLAIN
    ) -> str:
        """Aligned text: title, lead, header, rows, total, notes.

        limit : most rows; a line counts omitted rows
        width : most characters per line; long texts are cut, then columns from the right omitted
        colours : of a terminal: large figures stand out, and bars are beside shares of the time
        """
        return table_text.aligned(self, limit, width, colours)

    def markdown(self, limit: int | None = None) -> str:
        """A Markdown table."""
        return table_text.markdown(self, limit)

    def to_json(self) -> str:
        """One JSON object: fastprof (version), schema, the facts, rows and total; raw units.

        Unknown numbers are null. `schema` is 1 and changes with the meaning of any value.
        """
        return str(self._encoded())

    def _encoded(self) -> Encoded:
        return object_of(
            {
                "fastprof": __version__,
                "schema": SCHEMA,
                **self.facts,
                "notes": list(self.notes),
                "rows": rows_of(self.columns, self.chunks()),
                "total": self.total,
            }
        )

    def csv(self) -> str:
        """All rows as CSV; see `write_csv`."""
        file = io.StringIO()
        self.write_csv(file)
        return file.getvalue()

    def write_csv(self, file: TextIO) -> None:
        """Write all rows as CSV: every field quoted, `na` for unknown values, raw units."""
        import csv

        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(self.columns)
        for chunk in self.chunks():
            columns = (
                ["na" if value is None else value for value in column] if None in column else column
                for column in chunk
            )
            writer.writerows(zip(*columns, strict=True))

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table; unknowns are null.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        arrow = import_optional("pyarrow", "Arrow and Parquet need")
        return arrow.table({name: _arrow(arrow, column) for name, column in self.columns.items()})

    def to_polars(self) -> polars.DataFrame:
        """A polars DataFrame, through Arrow; texts are categories, unknowns are null.

        Raises
        ------
        MissingDependencyError
            polars or pyarrow is not installed.
        """
        pl = import_optional("polars", "polars DataFrames need")
        frame: polars.DataFrame = pl.from_arrow(self.to_arrow())
        return frame

    def write_parquet(self, path: str | os.PathLike[str] | BinaryIO) -> None:
        """Write all rows as a Parquet file, to a path or a binary file.

        Raises
        ------
        MissingDependencyError
            pyarrow is not installed.
        """
        table = self.to_arrow()
        from pyarrow import parquet

        if isinstance(path, str | os.PathLike):
            with output_file(path) as file:
                parquet.write_table(table, file)
        else:
            parquet.write_table(table, path)

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; texts are categories, unknowns are missing.

        Raises
        ------
        MissingDependencyError
            pandas is not installed.
        """
        pd = import_optional("pandas", "DataFrames need")
        frame: pandas.DataFrame = pd.DataFrame(
            {name: _series(pd, column) for name, column in self.columns.items()}
        )
        return frame


_LINES_OF_REPR: Final = 20


def first_lines(table: Table, most: int) -> list[str]:
    """At most so many lines of a table's text, as wide as the terminal; its rows are cut."""
    from shutil import get_terminal_size

    width = get_terminal_size((100, 24)).columns
    lines = table.text(most, width=width).splitlines()
    if (excess := len(lines) - most) > 0:
        lines = table.text(max(1, min(most, table.n_rows) - excess - 1), width=width).splitlines()
    return lines[:most]


def _chunks(column: ColumnData) -> Iterator[list[Any]]:
    """The Python values of some rows at a time; None where unknown."""
    if not isinstance(column, Floats):
        yield from column.chunks(_ROWS_AT_ONCE)
        return
    for first in range(0, len(column), _ROWS_AT_ONCE):
        part = column.values[first : first + _ROWS_AT_ONCE]
        objects = part.astype(object)
        objects[np.isnan(part)] = None
        yield objects.tolist()


_ROWS_AT_ONCE: Final = 1 << 14


def _order(column: ColumnData, ascending: bool) -> npt.NDArray[np.intp]:
    """The rows in order of a column, unknowns last; equal ones keep their order."""
    if isinstance(column, Ints):
        values = column.values.astype(np.int64, copy=False)
        keys = values if ascending else ~values  # reverses the order
        unknown = np.flatnonzero(values == column.none)
        if not len(unknown):
            return in_order(keys)
        known = np.flatnonzero(values != column.none)
        return np.concatenate([known[in_order(keys[known])], unknown])
    rank = column.values if isinstance(column, Floats) else _ranks(column)
    key = rank if ascending else -rank
    return np.argsort(np.where(np.isnan(rank), np.inf, key), kind="stable")


def _ranks(column: Values) -> npt.NDArray[np.float64]:
    """Numbers in the order of the values; NaN for unknown."""
    rank = np.full(len(column.values) + 1, np.nan)
    order = sorted(range(len(column.values)), key=lambda i: _ordered(column.values[i]))
    rank[order] = np.arange(len(order))
    return rank[column.ids]


def _ordered(value: Any) -> tuple[bool, Any]:
    """Numbers before texts."""
    return (True, value) if isinstance(value, str) else (False, value)


def _arrow(arrow: Any, column: ColumnData) -> Any:
    if isinstance(column, Values):
        ids = arrow.array(column.ids, mask=column.ids < 0)
        if column.values and not any(isinstance(value, str) for value in column.values):
            return arrow.array(column.values).take(ids)
        valid = [str(value).encode("utf-8", "replace").decode() for value in column.values]
        return arrow.DictionaryArray.from_arrays(ids, arrow.array(valid, arrow.string()))
    unknown = (
        np.isnan(column.values) if isinstance(column, Floats) else column.values == column.none
    )
    return arrow.array(column.values, mask=unknown)


def _series(pandas: Any, column: ColumnData) -> Any:
    if isinstance(column, Values):
        return pandas.Categorical.from_codes(column.ids, categories=column.values)
    if isinstance(column, Floats):
        return column.values
    unknown = column.values == column.none
    if not unknown.any():
        return column.values
    return pandas.arrays.IntegerArray(np.where(unknown, 0, column.values), unknown)


class Encoded:
    """JSON text, in parts. They are joined once, because tables may have a million rows."""

    def __init__(self, parts: list[str]) -> None:
        self.parts = parts

    def __str__(self) -> str:
        return "".join(self.parts)


def object_of(members: Mapping[str, Any]) -> Encoded:
    """An object, one member per line. Members are values, or Encoded."""
    parts = ["{\n"]
    for name, value in members.items():
        parts.append(f"{json.dumps(name)}: ")
        parts += value.parts if isinstance(value, Encoded) else [json.dumps(value)]
        parts.append(",\n")
    return Encoded([*parts[: -1 if members else None], "\n}"])


def rows_of(names: Iterable[str], chunks: Iterable[Sequence[list[Any]]]) -> Encoded:
    """An array of rows, one per line.

    names : the columns
    chunks : the values of each column, for some rows at a time
    """
    cells = ", ".join(json.dumps(name).replace("%", "%%") + ": %s" for name in names)
    line, parts = f"{{{cells}}}", ["[\n"]
    for columns in chunks:
        rows = zip(*map(_encoded, columns), strict=True)
        parts += [",\n".join([line % row for row in rows]), ",\n"]
    return Encoded([*parts[:-1], "\n]"] if len(parts) > 1 else ["[]"])


def _encoded(values: list[Any]) -> list[str]:
    """The JSON of each value. Only lists and objects with several items contain line feeds."""
    cells = json.dumps(values, separators=("\n", ": "))[1:-1].split("\n")
    return cells if len(cells) == len(values) else [json.dumps(value) for value in values]


@dataclass(frozen=True)
class Tables(Mapping[str, Table]):
    """Tables by name, written one after another.

    Parameters
    ----------
    tables : dict of str to Table
    facts : further values of the JSON object, by name
    """

    tables: dict[str, Table]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def head(self, n: int) -> Tables:
        """The first n rows of each table."""
        return replace(self, tables={name: table.head(n) for name, table in self.items()})

    def sort(self, by: str, ascending: bool | None = None) -> NoReturn:
        """Not possible.

        Raises
        ------
        ReportError
        """
        raise self._one_only(f"--sort {by}")

    def select(self, names: Sequence[str]) -> NoReturn:
        """Not possible.

        Raises
        ------
        ReportError
        """
        raise self._one_only(f"--columns {','.join(names)}")

    def _one_only(self, option: str) -> ReportError:
        return ReportError(
            f"expected one table for {option}, found {len(self)}; name one of: {', '.join(self)}"
        )

    def text(
        self, limit: int | None = None, *, width: int | None = None, colours: Colours = PLAIN
    ) -> str:
        """Aligned text, see `Table.text`; an empty line between tables."""
        return "\n".join(table.text(limit, width=width, colours=colours) for table in self.values())

    def markdown(self, limit: int | None = None) -> str:
        """Markdown tables."""
        return "\n".join(table.markdown(limit) for table in self.values())

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.values())

    def csv(self) -> str:
        """CSV of all rows; an empty line between tables."""
        return "\n".join(table.csv() for table in self.values())

    def to_json(self) -> str:
        """One JSON object: fastprof (version), schema, the facts, and rows and notes by table."""
        return str(self._encoded())

    def _encoded(self) -> Encoded:
        tables = {
            name: object_of(
                {"notes": list(table.notes), "rows": rows_of(table.columns, table.chunks())}
            )
            for name, table in self.items()
        }
        members = {"fastprof": __version__, "schema": SCHEMA, **self.facts}
        return object_of({**members, "tables": object_of(tables)})


def json_parts(table: Table | Tables) -> list[str]:
    """The text of `to_json` in parts, which take half the memory until they are joined."""
    return table._encoded().parts
