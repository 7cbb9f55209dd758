"""An SQLite file opened read-only: its schema, and table columns as arrays.

Views, triggers, virtual tables and expressions in the schema of an untrusted file can run code, and
huge sizes can make SQLite work without end: https://www.sqlite.org/security.html.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import numpy as np
import numpy.typing as npt

from fastprof._core import _column, _scan
from fastprof._core._pages import UnusualError
from fastprof._system.classes import dataclass
from fastprof.errors import BadInputError, SettingError
from fastprof.readers.sqlite.pages import Pages, TableLayout, escaped

EXPORT_AGAIN = "export it again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"
ALL_ROWS = (-(2**63), 2**63 - 1)  # row ids
PAGES, SQLITE = "pages", "sqlite"  # methods to read a table
TableColumns = dict[str, npt.NDArray[Any]]
Progress = Callable[[str, int, int], None]  # what is read, rows so far, estimated total


@dataclass(frozen=True)
class Field:
    """A column to read and the conversion of its values.

    Parameters
    ----------
    name : column name in the table
    kind : _column.I64, I32, KEY, TEXT, LENGTH, RANGE or MESSAGE; KEY interns `value >> shift` in
        `pool`
    none : replaces NULL, and fills the column if the table lacks it
    needed : the table must have the column
    together : distinct combinations of these columns (I64, I32 or KEY) are stored once
    sql : expression to read instead of the column
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
    """A read-only connection. It neither modifies the file nor creates others.

    Tables are read from the file's pages, or by SQLite statements if the file or table has an
    unsupported feature. The results are the same. The environment variable FASTPROF_SCAN (`pages`
    or `sqlite`) forces a method.

    Attributes
    ----------
    tables : dict of table to dict of column to whether it may be NULL
    read_by : dict of each table read so far to the reason why SQLite read it, "" if from pages
    posing : dict of each view and virtual table to "a view" or "a virtual table"; never read
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
            reject_logs(self.name)
            self._connection = connect(path, self.name)
        except BaseException:
            self._close_pages()
            raise
        try:
            self._pages.guard.check_path(path)
            self.tables = self._read_tables()
            self._reader = _scan.Reader(self._connection)
        except BaseException:
            self.close()
            raise

    def _read_tables(self) -> dict[str, dict[str, bool]]:
        """The columns of each table and whether each may be NULL. Sets `posing`."""
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
        """Reject a file in which one of these names is a view or virtual table.

        Raises
        ------
        BadInputError
        """
        for name in names:
            if name in self.posing:
                raise BadInputError(
                    f"{self.name}: {name} is {self.posing[name]} and no table; views and virtual "
                    f"tables are not read, since they run code from the file; {EXPORT_AGAIN}"
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
        """A second connection to the same file, for another thread. Close it before this one."""
        return Database(self.path, progress, self)

    def announce(self, tables: Iterable[str]) -> None:
        """Report the size of tables that are read next, so that all of the work is known."""
        if self._progress is None:
            return
        for table in tables:
            if total := self.count(table):
                self._progress(table, 0, total)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a statement with a small result.

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
            return 0, -1  # the scan reports the error
        return (0, -1) if first is None else (first, last)

    def count(self, table: str) -> int:
        """Estimated number of rows: the span of row ids, bounded by the file size."""
        first, last = self.row_ids(table)
        return max(0, min(last - first + 1, self.path.stat().st_size // 8))

    def pieces(self, table: str, n: int) -> list[tuple[int, int]]:
        """At most n ranges of row ids of similar size that cover the table.

        A single range if the interior pages cannot be read: in a damaged tree, SQLite's search for
        a row id may silently differ from a scan.
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

    def _layout(self, table: str) -> TableLayout:
        if self._forced == SQLITE:
            raise UnusualError("FASTPROF_SCAN=sqlite")
        return self._pages.layout(table, self.rows)

    def chosen(self, table: str, fields: Sequence[Field]) -> list[Field]:
        """The fields that the table has.

        Raises
        ------
        BadInputError
            A needed field is missing.
        """
        present = {name.lower() for name in self.tables[table]}
        for field in fields:
            if field.needed and not field.sql and field.name.lower() not in present:
                raise BadInputError(
                    f"{self.name}: table {table} has no column {field.name}; it has "
                    f"{', '.join(self.tables[table])}. This version of the export is not "
                    f"supported: {EXPORT_AGAIN}"
                )
        return [field for field in fields if field.sql or field.name.lower() in present]

    def scan(
        self,
        table: str,
        fields: Sequence[Field],
        row_ids: tuple[int, int] = ALL_ROWS,
        keep: Any = None,
        capacity: int | None = None,
    ) -> TableColumns:
        """Columns of a table by field name, in the order of row ids.

        Missing columns are filled with `none`. A missing table has no rows.

        row_ids : first and last row id to read
        keep : row filter on the first columns, which must be `needed`
        capacity : estimated number of rows after filtering
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
        """Append rows to the columns of `fields`, which must exist; see `TableRows`."""
        progress: Callable[[int], None] | None = None
        if self._progress is not None:
            report, before, total = self._progress, self._rows_read.get(table, 0), self.count(table)

            def progress(rows: int) -> None:
                self._rows_read[table] = before + rows
                if total:
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
        reject_logs(self.name)
        self._pages.guard.check()

    def _walk(
        self,
        table: str,
        fields: Sequence[Field],
        row_ids: tuple[int, int],
        room: _column.Room,
        *how: Any,
    ) -> None:
        """Append rows from the pages of the table, or raise UnusualError."""
        if any(field.sql for field in fields):
            raise UnusualError("SQLite computes some of its columns")
        layout = self._layout(table)
        places = layout.places_of([field.name for field in fields])
        layout.table.scan(room, places, *row_ids, *how)


class TableRows:
    """Columns of a table that is read in several steps."""

    def __init__(
        self,
        database: Database,
        table: str,
        fields: Sequence[Field],
        capacity: int | None = None,
    ) -> None:
        """capacity : estimated number of rows to keep; None: all rows of the table"""
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
        """Append the rows with these ids, see `Database.scan`."""
        if self._room is not None:
            database.read_rows(self._table, self._chosen, row_ids, self._room, keep)

    def columns(self, further: int = 0) -> TableColumns:
        """All columns, extended by `further` uninitialised rows. Ends reading.

        Fields with `together` are not included; the column _column.TOGETHER (int32) indexes the
        rows of `together()`.
        """
        columns = self._room.columns(further) if self._room is not None else {}
        n = len(self) + further
        if _column.TOGETHER not in columns and any(field.together for field in self._fields):
            columns[_column.TOGETHER] = np.zeros(
                n, np.int32
            )  # one combination: all fields are missing
        return _with_none(columns, [f for f in self._missing if not f.together], n)

    def together(self) -> TableColumns:
        """The distinct combinations of all fields with `together`."""
        columns = self._room.together() if self._room is not None else {}
        n = max((len(column) for column in columns.values()), default=1)
        return _with_none(columns, [f for f in self._missing if f.together], n)


def _forced() -> str:
    """The method forced by FASTPROF_SCAN, or ""."""
    way = os.environ.get("FASTPROF_SCAN", "")
    if way not in ("", PAGES, SQLITE):
        raise SettingError(f"FASTPROF_SCAN={way}: expected {PAGES} or {SQLITE}")
    return way


def select_of(table: str, fields: Sequence[Field], row_ids: tuple[int, int]) -> str:
    """The SELECT for existing fields. NOT INDEXED returns rows in the order of row ids."""
    columns = ", ".join(field.sql or f'"{escaped(field.name)}"' for field in fields)
    where = "" if row_ids == ALL_ROWS else f" WHERE rowid BETWEEN {row_ids[0]} AND {row_ids[1]}"
    return f'SELECT {columns} FROM "{escaped(table)}" NOT INDEXED{where}'


def _with_none(columns: TableColumns, missing: Sequence[Field], n: int) -> TableColumns:
    """The columns, plus n rows of `none` for each missing field."""
    for field in missing:
        dtype = np.int64 if field.kind == _column.I64 else np.int32
        columns[field.name] = np.full(n, field.none, dtype)
        if field.kind in (_column.RANGE, _column.MESSAGE):
            columns[field.name + "_seq"] = np.full(n, -1, np.int64)
            columns[field.name + "_op_id"] = np.full(n, -1, np.int64)
    return columns


_CONFIGURATION = {
    apsw.SQLITE_DBCONFIG_DEFENSIVE: 1,
    apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_VIEW: 0,
    apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER: 0,
    apsw.SQLITE_DBCONFIG_DQS_DML: 0,  # "name" is a column or an error, never a string
}
# Our statements stay far below these limits. CREATE TABLE statements of the file count too: the
# maximum of 2000 columns takes about 100 KB.
_LIMITS = {
    apsw.SQLITE_LIMIT_SQL_LENGTH: 1_000_000,
    apsw.SQLITE_LIMIT_EXPR_DEPTH: 100,
    apsw.SQLITE_LIMIT_COMPOUND_SELECT: 10,
    apsw.SQLITE_LIMIT_VDBE_OP: 100_000,
    apsw.SQLITE_LIMIT_ATTACHED: 0,
    apsw.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1000,
    apsw.SQLITE_LIMIT_VARIABLE_NUMBER: 10,
    apsw.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    apsw.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_MIN_LENGTH = 1_000_000

# Suffixes of files with rows that are not, or not permanently, in the database file.
_LOGS = ("-wal", "-journal")


def connect(path: str | os.PathLike[str], name: str) -> apsw.Connection:
    """Open a file. Only one thread at a time may use the connection.

    Raises
    ------
    BadInputError
        The file cannot be opened.
    """
    # With immutable, SQLite neither locks the file nor creates other files.
    uri = f"file:{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1"
    try:
        # Without SQLite's mutex, a scan takes half the time.
        connection = apsw.Connection(
            uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX
        )
    except apsw.Error as error:
        raise BadInputError(f"{name}: cannot be opened: {error}") from error
    for option, value in _CONFIGURATION.items():
        connection.config(option, value)
    for kind, most in _LIMITS.items():
        connection.limit(kind, most)
    # No value is longer than the file, unless an expression computes it.
    length = max(_MIN_LENGTH, min(os.stat(path).st_size, 2**31 - 1))
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, length)
    connection.drop_modules(None)  # virtual tables
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def reject_logs(name: str) -> None:
    """Reject a database with a non-empty log file, which holds rows that the database lacks.

    The log is next to the file itself, not next to links to it. SQLite can only read both together
    if it may write or lock.

    Raises
    ------
    BadInputError
        There is a log.
    """
    for path in dict.fromkeys([os.path.abspath(name), os.path.realpath(name)]):
        for suffix in _LOGS:
            log = Path(path + suffix)
            if log.exists() and log.stat().st_size:
                raise BadInputError(
                    f"{name}: {log.name} exists: another program is writing the file or was "
                    "stopped while writing it; let it finish, or export again"
                )
