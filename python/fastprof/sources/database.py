"""A SQLite file opened to be read: its tables and columns, and columns out of its tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
import numpy as np
import numpy.typing as npt

from fastprof import _scan
from fastprof.errors import BadInputError

EXPORT_AGAIN = "export it again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"
Progress = Callable[[str, int, int], None]  # what is read, rows so far, rows in all (estimated)


@dataclass(frozen=True)
class Field:
    """A column to read: its name in the table, and what becomes of its values.

    `side` puts it beside others: columns of one `array`, [n, 3], are its sides 0, 1 and 2.
    `sql` is the expression whose value it is, where that is not the column of its name.
    `kind` is one of _scan.I64, I32, KEY, TEXT, RANGE; `none` is what NULL becomes, and what the
    whole column is when the table does not have it; KEY takes value >> shift into `pool`.
    """

    name: str
    kind: int
    none: int = -1
    pool: Any = None
    shift: int = 0
    needed: bool = False
    array: str = ""
    side: int | None = None
    sql: str = ""


class Database:
    """A read-only connection. The file is never written to, and nothing is put beside it."""

    def __init__(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        self.path = Path(path)
        self.name = os.fsdecode(path)
        self._progress = progress
        self._connection = self._open()
        try:
            self._connection.execute("PRAGMA cell_size_check = ON")
            self.tables = self._read_tables()
            self._reader = _scan.Reader(self._connection)
        except BaseException:
            self.close()
            raise

    def _open(self) -> apsw.Connection:
        for suffix in ("-wal", "-journal"):
            beside = Path(self.name + suffix)
            if beside.exists() and beside.stat().st_size:
                raise BadInputError(
                    f"{self.name}: {beside.name} lies beside it: another program is writing the "
                    "file, or was stopped while it did; let it finish, or export again"
                )
        # immutable keeps SQLite from locking the file and from making others beside it.
        uri = f"file:{quote(os.fsencode(os.path.abspath(self.name)))}?mode=ro&immutable=1"
        try:
            # One thread at a time uses a connection: without its mutex a scan takes half the time.
            return apsw.Connection(
                uri,
                flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX,
            )
        except apsw.Error as error:
            raise BadInputError(f"{self.name}: cannot be opened: {error}") from error

    def _read_tables(self) -> dict[str, dict[str, bool]]:
        """The columns of each table, and whether each may be NULL."""
        names = self.rows(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        return {
            name: {
                column[1]: not column[3]
                for column in self.rows(f'PRAGMA table_info("{_escaped(name)}")')
            }
            for (name,) in names
        }

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close(True)

    def another(self, progress: Progress | None = None) -> Database:
        """One more connection to the same file, for use on another thread."""
        return Database(self.name, progress)

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

    def select(self, table: str, fields: Sequence[Field], where: str = "") -> tuple[str, list[str]]:
        """The SELECT for those of the fields that the table has, and their names."""
        present = {name.lower() for name in self.tables[table]}
        for field in fields:
            if field.needed and not field.sql and field.name.lower() not in present:
                raise BadInputError(
                    f"{self.name}: table {table} has no column {field.name}; it has "
                    f"{', '.join(self.tables[table])}. The export is of a version that cannot be "
                    f"read: {EXPORT_AGAIN}"
                )
        chosen = [field for field in fields if field.sql or field.name.lower() in present]
        names = [field.name for field in chosen]
        columns = ", ".join(field.sql or f'"{field.name}"' for field in chosen)
        return f'SELECT {columns} FROM "{table}"{" WHERE " + where if where else ""}', names

    def scan(
        self,
        table: str,
        fields: Sequence[Field],
        where: str = "",
        keep: Any = None,
        capacity: int | None = None,
    ) -> dict[str, npt.NDArray[Any]]:
        """Columns of a table by the names of `fields`; what it does not have is filled with none.

        A table that is not there has no rows. `keep` filters rows by the first columns, which must
        be needed ones.
        """
        if table not in self.tables:
            return _with_none({}, fields, 0)
        sql, names = self.select(table, fields, where)
        by_name = {field.name: field for field in fields}
        total = self.count(table)
        may_be_null = {name.lower(): null for name, null in self.tables[table].items()}
        specs = [
            (
                f.array or n,
                f.kind,
                f.none,
                f.pool,
                f.shift,
                may_be_null.get(n.lower(), True),
                f.side,
            )
            for n, f in ((name, by_name[name]) for name in names)
        ]
        progress = None
        if self._progress is not None:
            report = self._progress
            progress = lambda rows: report(table, rows, total)  # noqa: E731
        columns = self._reader.scan(
            sql,
            specs,
            total if capacity is None else capacity,
            f"{self.name}: table {table}",
            keep,
            progress,
        )
        n = len(next(iter(columns.values())))
        missing = [field for field in fields if field.name not in names]
        return _with_none(columns, missing, n)

    def floor(self, table: str, fields: Sequence[Field], where: str = "") -> int:
        """Step the same SELECT as `scan` and do nothing with its rows; how many there were."""
        sql, _ = self.select(table, fields, where)
        return int(self._reader.floor(sql, f"{self.name}: table {table}"))


def _with_none(
    columns: dict[str, npt.NDArray[Any]], missing: Sequence[Field], n: int
) -> dict[str, npt.NDArray[Any]]:
    """The columns, and n rows of "none" for each field that is missing."""
    for field in missing:
        dtype = np.int64 if field.kind == _scan.I64 else np.int32
        if field.side is None:
            columns[field.name] = np.full(n, field.none, dtype)
        else:
            columns.setdefault(field.array, np.empty((n, 3), dtype))[:, field.side] = field.none
        if field.kind == _scan.RANGE:
            columns[field.name + "_seq"] = np.full(n, -1, np.int64)
            columns[field.name + "_op_id"] = np.full(n, -1, np.int64)
    return columns


def _escaped(name: str) -> str:
    return name.replace('"', '""')
