"""A SQLite file opened to be read: its tables and columns, and columns out of its tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _scan
from fastprof._core._pages import UnusualError
from fastprof.errors import BadInputError, SettingError
from fastprof.readers.sqlite.connection import connect
from fastprof.readers.sqlite.pages import Layout, Pages, escaped
from fastprof.readers.unchanged import refuse_logs

EXPORT_AGAIN = "export it again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"
ALL_ROWS = (-(2**63), 2**63 - 1)  # row ids
PAGES, SQLITE = "pages", "sqlite"  # ways to read a table
Columns = dict[str, npt.NDArray[Any]]
Progress = Callable[[str, int, int], None]  # what is read, rows so far, rows in all (estimated)


@dataclass(frozen=True)
class Field:
    """A column to read: its name in the table, and what becomes of its values.

    The values of those `together`, I64, I32 or KEY, are kept once for all rows that have the same.
    `sql` is the expression whose value it is, where that is not the column of its name.
    `kind` is one of _column.I64, I32, KEY, TEXT, RANGE; `none` is what NULL becomes, and what the
    whole column is when the table does not have it; KEY takes value >> shift into `pool`.
    """

    name: str
    kind: int
    none: int = -1
    pool: Any = None
    shift: int = 0
    needed: bool = False
    together: bool = False
    sql: str = ""


class Database:
    """A read-only connection. The file is never written to, and nothing is put beside it.

    Tables are read from the file's pages (`pages`), or by stepping through SQLite where something
    about a file or a table is unusual; the environment variable FASTPROF_SCAN, `pages` or `sqlite`,
    forces one of the two. What comes out is the same.

    Attributes
    ----------
    tables : dict of table to dict of its columns to whether each may be NULL
    read_by : dict of each table that was read to why SQLite read it, "" where it did not
    posing : dict of each view and virtual table to which of the two it is; they are never read
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        progress: Progress | None = None,
        first: Database | None = None,
    ) -> None:
        self.path = Path(path)
        self.name = os.fsdecode(path)
        self._progress = progress
        self._rows_read: dict[str, int] = {}
        self._forced = _forced()
        self._first = first
        self._pages: Pages = first._pages if first else Pages(path, self.name)
        self.read_by: dict[str, str] = first.read_by if first else {}
        self.posing: dict[str, str] = {}
        try:
            refuse_logs(self.name)
            self._connection = connect(path, self.name)
        except BaseException:
            self._close_pages()
            raise
        try:
            self._pages.unchanged.check_path(path)
            self.tables = self._read_tables()
            self._reader = _scan.Reader(self._connection)
        except BaseException:
            self.close()
            raise

    def _read_tables(self) -> dict[str, dict[str, bool]]:
        """The columns of each table, and whether each may be NULL; notes what only poses as one."""
        listed = self.rows(
            "SELECT name, type, rootpage FROM sqlite_schema WHERE type IN ('table', 'view')"
        )
        roots: dict[int, str] = {}
        tables = {}
        for name, type_, root in listed:
            if not isinstance(name, str) or name.startswith("sqlite_"):
                continue
            if type_ == "view" or not root:
                self.posing[name] = "a view" if type_ == "view" else "a virtual table"
                continue
            if roots.setdefault(root, name) != name:
                raise BadInputError(
                    f"{self.name}: damaged: the tables {roots[root]} and {name} begin on the same "
                    f"page; {EXPORT_AGAIN}"
                )
            columns = self.rows(f'PRAGMA main.table_info("{escaped(name)}")')
            tables[name] = {column[1]: not column[3] for column in columns}
        return tables

    def refuse_posing(self, *names: str) -> None:
        """Refuse a file in which one of these is no table.

        Raises
        ------
        BadInputError
        """
        for name in names:
            if name in self.posing:
                raise BadInputError(
                    f"{self.name}: {name} is {self.posing[name]} and no table: what it gives "
                    f"would have to be computed, which is not done for a file; {EXPORT_AGAIN}"
                )

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close(True)
        self._close_pages()

    def _close_pages(self) -> None:
        if self._first is None:
            self._pages.close()

    def another(self, progress: Progress | None = None) -> Database:
        """One more connection to the same file, for use on another thread; close it first."""
        return Database(self.path, progress, self)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a small result.

        Raises
        ------
        BadInputError
            The file is damaged.
        """
        try:
            return list(self._connection.execute(sql))
        except (apsw.Error, UnicodeDecodeError) as error:
            raise BadInputError(
                f"{self.name}: cannot be read as an SQLite database: {error}; {EXPORT_AGAIN}"
            ) from error

    def row_ids(self, table: str) -> tuple[int, int]:
        """The first and last row id of a table; (0, -1) for an empty one, or one without."""
        try:
            ((first, last),) = self.rows(
                f'SELECT (SELECT rowid FROM "{table}" ORDER BY rowid LIMIT 1),'
                f' (SELECT rowid FROM "{table}" ORDER BY rowid DESC LIMIT 1)'
            )
        except BadInputError:
            return 0, -1  # the scan that follows will say what is wrong
        return (0, -1) if first is None else (first, last)

    def count(self, table: str) -> int:
        """About how many rows a table has: the span of its row ids, bounded by the file's size."""
        first, last = self.row_ids(table)
        return max(0, min(last - first + 1, self.path.stat().st_size // 8))

    def pieces(self, table: str, n: int) -> list[tuple[int, int]]:
        """At most n ranges of row ids, with about as many rows each, that are all rows together.

        One, where the pages above the rows cannot be read: looking for a row id in a damaged tree,
        SQLite may end elsewhere than stepping does, and say nothing.
        """
        try:
            leaves = self._pages.layout(table, self.rows).table
        except UnusualError:
            return [ALL_ROWS]
        if len(leaves) < n:
            return [ALL_ROWS]
        ends = {leaves.last_row_id(len(leaves) * i // n - 1) for i in range(1, n)}
        starts = [ALL_ROWS[0], *(end + 1 for end in sorted(ends))]
        return list(zip(starts, [*sorted(ends), ALL_ROWS[1]], strict=True))

    def _layout(self, table: str) -> Layout:
        if self._forced == SQLITE:
            raise UnusualError("FASTPROF_SCAN=sqlite")
        return self._pages.layout(table, self.rows)

    def chosen(self, table: str, fields: Sequence[Field]) -> list[Field]:
        """Those of the fields that the table has.

        Raises
        ------
        BadInputError
            It lacks one that is needed.
        """
        present = {name.lower() for name in self.tables[table]}
        for field in fields:
            if field.needed and not field.sql and field.name.lower() not in present:
                raise BadInputError(
                    f"{self.name}: table {table} has no column {field.name}; it has "
                    f"{', '.join(self.tables[table])}. The export is of a version that cannot be "
                    f"read: {EXPORT_AGAIN}"
                )
        return [field for field in fields if field.sql or field.name.lower() in present]

    def scan(
        self,
        table: str,
        fields: Sequence[Field],
        row_ids: tuple[int, int] = ALL_ROWS,
        keep: Any = None,
        capacity: int | None = None,
    ) -> Columns:
        """Columns of a table by the names of `fields`; what it does not have is filled with none.

        A table that is not there has no rows. Rows come in the order of their ids.

        row_ids : the first and the last row id to read
        keep : filters rows by the first columns, which must be needed ones
        capacity : about how many rows that keeps
        """
        rows = TableRows(self, table, fields, capacity)
        rows.read(self, row_ids, keep)
        return rows.columns()

    def read_rows(
        self,
        table: str,
        fields: Sequence[Field],
        row_ids: tuple[int, int],
        room: _column.Room,
        keep: Any,
    ) -> None:
        """Add rows to columns, those of `fields`, which the table has; see `TableRows`."""
        progress: Callable[[int], None] | None = None
        if self._progress is not None:
            report, before, total = self._progress, self._rows_read.get(table, 0), self.count(table)

            def progress(rows: int) -> None:
                self._rows_read[table] = before + rows
                report(table, before + rows, total)

        how = (f"{self.name}: table {table}", keep, progress)
        try:
            self._walk(table, fields, row_ids, room, *how)
            self.read_by.setdefault(table, "")
        except UnusualError as error:
            self._check_unchanged()
            if self._forced == PAGES:
                raise SettingError(
                    f"{self.name}: table {table}: FASTPROF_SCAN=pages, but {error}"
                ) from None
            self._reader.scan(select_of(table, fields, row_ids), room, *how)
            self.read_by[table] = str(error)
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        refuse_logs(self.name)
        self._pages.unchanged.check()

    def _walk(
        self,
        table: str,
        fields: Sequence[Field],
        row_ids: tuple[int, int],
        room: _column.Room,
        *how: Any,
    ) -> None:
        """Add rows from the pages of the table, or raise an UnusualError."""
        if any(field.sql for field in fields):
            raise UnusualError("what is read of it is computed by SQLite")
        layout = self._layout(table)
        places = layout.places_of([field.name for field in fields])
        layout.table.scan(room, places, *row_ids, *how)


class TableRows:
    """Columns of a table that are being read: some of its rows, then others."""

    def __init__(
        self,
        database: Database,
        table: str,
        fields: Sequence[Field],
        capacity: int | None = None,
    ) -> None:
        """capacity : about how many rows will be kept; that of the table where it is None."""
        self._table, self._fields, self._room = table, fields, None
        self._missing = list(fields)
        if table not in database.tables:
            database.refuse_posing(table)
            return
        self._chosen = database.chosen(table, fields)
        self._missing = [field for field in fields if field not in self._chosen]
        may_be_null = {name.lower(): null for name, null in database.tables[table].items()}
        specs = [
            (
                f.name,
                f.kind,
                f.none,
                f.pool,
                f.shift,
                may_be_null.get(f.name.lower(), True),
                f.together,
            )
            for f in self._chosen
        ]
        self._room = _column.Room(specs, database.count(table) if capacity is None else capacity)

    def __len__(self) -> int:
        return 0 if self._room is None else len(self._room)

    def read(self, database: Database, row_ids: tuple[int, int], keep: Any = None) -> None:
        """Add the rows with these ids, as `Database.scan` does."""
        if self._room is not None:
            database.read_rows(self._table, self._chosen, row_ids, self._room, keep)

    def columns(self, further: int = 0) -> Columns:
        """All columns, and room for so many further rows behind what was read; no more is read.

        Those of fields that are `together` are in `together`; here is _column.TOGETHER, int32: the
        row of those.
        """
        columns = self._room.columns(further) if self._room is not None else {}
        n = len(self) + further
        if _column.TOGETHER not in columns and any(field.together for field in self._fields):
            columns[_column.TOGETHER] = np.zeros(n, np.int32)  # all are alike: nothing is known
        return _with_none(columns, [f for f in self._missing if not f.together], n)

    def together(self) -> Columns:
        """The distinct rows of all fields that are `together`."""
        columns = self._room.together() if self._room is not None else {}
        n = max((len(column) for column in columns.values()), default=1)
        return _with_none(columns, [f for f in self._missing if f.together], n)


def _forced() -> str:
    """The way of reading that the environment asks for, or ""."""
    way = os.environ.get("FASTPROF_SCAN", "")
    if way not in ("", PAGES, SQLITE):
        raise SettingError(f"FASTPROF_SCAN={way}: it can be {PAGES} or {SQLITE}")
    return way


def select_of(table: str, fields: Sequence[Field], row_ids: tuple[int, int]) -> str:
    """The SELECT for fields that the table has. NOT INDEXED keeps rows in the order of their ids,
    where an index could serve, too."""
    columns = ", ".join(field.sql or f'"{escaped(field.name)}"' for field in fields)
    where = "" if row_ids == ALL_ROWS else f" WHERE rowid BETWEEN {row_ids[0]} AND {row_ids[1]}"
    return f'SELECT {columns} FROM "{escaped(table)}" NOT INDEXED{where}'


def _with_none(columns: Columns, missing: Sequence[Field], n: int) -> Columns:
    """The columns, and n rows of "none" for each field that is missing."""
    for field in missing:
        dtype = np.int64 if field.kind == _column.I64 else np.int32
        columns[field.name] = np.full(n, field.none, dtype)
        if field.kind == _column.RANGE:
            columns[field.name + "_seq"] = np.full(n, -1, np.int64)
            columns[field.name + "_op_id"] = np.full(n, -1, np.int64)
    return columns
